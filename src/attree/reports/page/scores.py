"""What the report says of scores: tables over languages, counts of wins, sentences that explain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attree.base.tables import Table
from attree.evaluation import HEADINGS
from attree.plan.paths import BASELINES_PATH as BASELINES_FILE
from attree.plan.paths import IMPORTED, SCORES_PATH, path_of
from attree.reports.page.run import ReportedRun
from attree.reports.tables.build import (
    BASELINES,
    Published,
    ScoreRow,
    crosslingual,
    read_published,
    score_rows,
)

#: The baseline that no parser can beat: gold trees made binary.
CEILING = "upper_bound"

#: Encoder, parser, language, split.
Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Scores:
    """Every score of a run.

    Attributes:
        rows: of parsers, then of baselines.
        tables: those over languages.
        missing: rows that were asked for and have no score.
    """

    rows: list[ScoreRow]
    tables: list[Table]
    missing: list[Key]

    @property
    def corpus_f1(self) -> list[Table]:
        """The tables of the measure that comes first."""
        heading = HEADINGS["corpus_f1"]
        return [table for table in self.tables if table.title.endswith(f": {heading}")]


def read_scores(results: Path, run: ReportedRun) -> Scores:
    """Read the scores of the rows that a run asked for; of every row there is, if none says.

    The tables are built anew, as ``attree table crosslingual`` builds them: of a run that was cut
    short there is a table all the same.
    """
    asked = {name: list(table.rows) for name, table in run.tables.items()}
    asked = asked or {"": _found(results)}
    file = run.configuration.get("published")
    rows: dict[Key, ScoreRow] = {}
    tables: list[Table] = []
    for name, keys in asked.items():
        table = run.tables.get(name)
        published = table.published if table else None
        figures = read_published(Path(file), published) if file and published else {}
        own = _rows(results, keys, figures)
        rows |= {_key(row): row for row in own}
        tables += crosslingual(own, table.title if table else "Across languages")
    ordered = sorted(rows.values(), key=lambda row: row.parser in BASELINES)
    return Scores(ordered, tables, [key for key in run.rows if key not in rows])


def _found(results: Path) -> list[Key]:
    files = sorted((results / "scores").glob("*/*/*/*.json"))
    parts = (file.relative_to(results / "scores").with_suffix("").parts for file in files)
    return [(encoder, parser, language, split) for encoder, parser, language, split in parts]


def _rows(results: Path, keys: Sequence[Key], figures: Published) -> list[ScoreRow]:
    names = ("encoder", "parser", "language", "split")
    places = [dict(zip(names, key, strict=True)) for key in keys]
    files = [path_of(SCORES_PATH, results=results, **place) for place in places]
    splits = dict.fromkeys((language, split) for _, _, language, split in keys)
    files += [path_of(BASELINES_FILE, "/".join(place), results=results) for place in splits]
    return score_rows([Path(file) for file in files if Path(file).is_file()], figures)


def _key(row: ScoreRow) -> Key:
    return row.encoder, row.parser, row.language, row.split


def by_set(rows: Sequence[ScoreRow]) -> dict[tuple[str, str], list[ScoreRow]]:
    """Return (language, split) → its rows, in their order."""
    found: dict[tuple[str, str], list[ScoreRow]] = {}
    for row in rows:
        found.setdefault((row.language, row.split), []).append(row)
    return found


def name_of(row: ScoreRow, rows: Sequence[ScoreRow]) -> str:
    """Return a parser's name, with its encoder's where the run has several."""
    encoders = {one.encoder for one in rows if one.parser == row.parser}
    return row.heading if len(encoders) == 1 else f"{row.heading}, {row.encoder}"


def is_parser(row: ScoreRow) -> bool:
    """Tell a parser from a baseline."""
    return row.parser not in BASELINES


def in_short(rows: Sequence[ScoreRow]) -> list[dict[str, Any]]:
    """Return for each parser on how many test sets it is above every baseline, and the highest.

    Compared is corpus F1; the binary ceiling is no baseline. An entry has ``name``, ``sets``,
    ``above`` and ``highest``.
    """
    found: dict[str, dict[str, Any]] = {}
    for own in by_set(rows).values():
        baselines = [row for row in own if not is_parser(row) and row.parser != CEILING]
        bar = max(map(_f1, baselines), default=-1.0)
        parsers = [row for row in own if is_parser(row) and _f1(row) >= 0]
        highest = max(map(_f1, parsers), default=0.0)
        for row in parsers:
            name = name_of(row, rows)
            entry = found.setdefault(name, {"name": name, "sets": 0, "above": 0, "highest": 0})
            entry["sets"] += 1
            entry["above"] += _f1(row) > bar
            entry["highest"] += _f1(row) == highest
    return list(found.values())


def _f1(row: ScoreRow) -> float:
    value = row.values["corpus_f1"]
    return -1.0 if value is None else value


def best_cells(table: Table) -> list[set[int]]:
    """Return for each line of a table over languages the columns of its highest parsers.

    None of them where there is but one parser to compare.
    """
    own = [
        place
        for place, heading in enumerate(table.headings)
        if place > 1 and heading not in BASELINES.values() and not heading.endswith("(article)")
    ]
    found: list[set[int]] = []
    for line in table.rows:
        there = {place: float(line[place]) for place in own if line[place][:1].isdigit()}
        highest = max(there.values(), default=0.0)
        found.append({at for at, f1 in there.items() if f1 == highest and len(there) > 1})
    return found


def sentences(run: ReportedRun, rows: Sequence[ScoreRow]) -> list[str]:
    """Say in three sentences what was run, for somebody who has read nothing else."""
    parsers = [row for row in rows if is_parser(row)]
    sets = by_set(parsers)
    total = sum(max(row.scored for row in own) for own in sets.values())
    own = [row for row in parsers if row.encoder != IMPORTED]
    encoders = listed(dict.fromkeys(_encoder(run, row.encoder) for row in own))
    models = "the pretrained language model" + ("s" if " and " in encoders else "")
    out_of = (
        f" out of the attention of {models} {encoders}: which word looks at which" if own else ""
    )
    return [
        f"attree drew trees of the phrases of {total:,} sentences from {len(sets):,} "
        f"{'treebank' if len(sets) == 1 else 'treebanks'}{out_of}.",
        _parsers(run, parsers),
        "Every figure is an F1 in percent, which weighs how many of the phrases in the treebank's "
        "own (gold) trees were found against how many of those found are right: 100 is a perfect "
        "tree, and a parser is worth something where it beats trees drawn without looking at the "
        "words (right- and left-branching, balanced, random).",
    ]


def _parsers(run: ReportedRun, parsers: Sequence[ScoreRow]) -> str:
    """Say which parsers there are, and what trees their heads were chosen or they trained on."""
    recipes: Mapping[str, Mapping[str, str]] = run.configuration.get("parsers", {})
    tuned = {row.parser: row.selection for row in parsers if row.selection}
    averaging = {name: on for name, on in tuned.items() if name in recipes}
    trained = {name: on for name, on in tuned.items() if name not in recipes}
    others = dict.fromkeys(row.parser for row in parsers if row.parser not in tuned)
    said = []
    if averaging:
        told = listed(_recipe(name, recipes[name]) for name in averaging)
        who = f"the parser {told}" if len(averaging) == 1 else f"each of {told}"
        said.append(
            f"{'' if trained else 'nothing was trained: '}{who} averages the attention heads that "
            f"give the best trees on {listed(dict.fromkeys(averaging.values()))}, scores the spans "
            "of a sentence by that average, and picks a tree"
        )
    if trained:
        how = "trained" if run.configuration else "tuned or trained"
        on, are = listed(dict.fromkeys(trained.values())), "is" if len(trained) == 1 else "are"
        said.append(f"{how} on {on} {are} {listed(trained)}")
    if others:
        said.append(f"trees that came from elsewhere or were averaged: {listed(others)}")
    found = "; ".join(said)
    return f"{found[:1].upper()}{found[1:]}." if averaging or trained else f"Scored are {found}."


def _recipe(name: str, recipe: Mapping[str, str]) -> str:
    score = recipe["score"].replace("_", " and ").replace("adjacent and right", "adjacent (right)")
    logarithm = ", in logarithms" if recipe["association"] == "log" else ""
    return (
        f"{name} ({score} association{logarithm}; {recipe['decoder'].replace('_', ' ')} decoding)"
    )


def _encoder(run: ReportedRun, slug: str) -> str:
    source = run.configuration.get("encoders", {}).get(slug) or {}
    named = next((str(source[key]) for key in ("hub", "package", "path") if source.get(key)), "")
    return f"{slug} ({named})" if named and named != slug else slug


def listed(names: Iterable[str]) -> str:
    """Return ``a``, ``a and b``, ``a, b and c``."""
    *first, last = list(names) or [""]
    return f"{', '.join(first)} and {last}" if first else last
