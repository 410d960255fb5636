"""Report on scores: tables over languages, counts of wins, and a summary in sentences."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attree.base.tables import BASELINES, Table
from attree.plan.paths import BASELINES_PATH as BASELINES_FILE
from attree.plan.paths import IMPORTED, SCORES_PATH, TableRow, files_of_rows, path_of
from attree.reports.page.run import AskedTable, ReportedRun
from attree.reports.tables.summaries import (
    ScoreRow,
    by_test,
    crosslingual,
    read_published,
    score_rows,
)

#: The baseline that no parser can beat: gold trees made binary.
CEILING = "upper_bound"


def read_scores(results: Path, run: ReportedRun) -> tuple[list[ScoreRow], list[Table]]:
    """Read the scores of the rows that a run asked for, or of all rows if it asked for none.

    The tables are built here, as by ``attree table crosslingual``, so that a run that was cut short
    has them too.

    Returns:
        the rows of parsers, then of baselines; and the tables over languages.
    """
    file = run.configuration.get("published")
    rows: dict[TableRow, ScoreRow] = {}
    tables: list[Table] = []
    wanted = list(run.tables.values()) or [AskedTable("Across languages", None, _all_rows(results))]
    for table in wanted:
        figures = read_published(Path(file), table.published) if file and table.published else {}
        scored = score_rows(_files(results, table.rows), figures)
        rows |= {row.key: row for row in scored}
        tables += crosslingual(scored, table.title)
    return sorted(rows.values(), key=lambda row: row.is_baseline), tables


def _all_rows(results: Path) -> list[TableRow]:
    files = sorted((results / "scores").glob("*/*/*/*.json"))
    return [TableRow(*file.relative_to(results / "scores").with_suffix("").parts) for file in files]


def _files(results: Path, rows: Sequence[TableRow]) -> list[Path]:
    """Return the existing summaries of rows, and of the baselines on their test sets."""
    templates = (SCORES_PATH, BASELINES_FILE)
    files = (Path(x) for one in templates for x in files_of_rows(one, rows, results=results))
    return [file for file in files if file.is_file()]


def path_for(template: str, results: Path, row: ScoreRow) -> Path:
    """Return the path of a file about a row; ``template`` is one of :mod:`attree.plan.paths`."""
    return Path(path_of(template, results=results, **row.key._asdict()))


def name_of(row: ScoreRow, rows: Sequence[ScoreRow]) -> str:
    """Return a parser's name, with its encoder's name if the run has several."""
    encoders = {other.encoder for other in rows if other.parser == row.parser}
    return row.heading if len(encoders) == 1 else f"{row.heading}, {row.encoder}"


def in_short(rows: Sequence[ScoreRow]) -> list[dict[str, Any]]:
    """Count for each parser the test sets where its corpus F1 is above every baseline or highest.

    The binary ceiling does not count as a baseline. An entry has ``name``, ``sets``, ``above`` and
    ``highest``.
    """
    entries: dict[str, dict[str, Any]] = {}
    for tested in by_test(rows).values():
        f1 = [(row, value) for row in tested if (value := row.values["corpus_f1"]) is not None]
        baselines = [v for row, v in f1 if row.is_baseline and row.parser != CEILING]
        parsers = [(row, value) for row, value in f1 if not row.is_baseline]
        for row, value in parsers:
            name = name_of(row, rows)
            entry = entries.setdefault(name, {"name": name, "sets": 0, "above": 0, "highest": 0})
            entry["sets"] += 1
            entry["above"] += value > max(baselines, default=-1.0)
            entry["highest"] += value == max(value for _, value in parsers)
    return list(entries.values())


def best_cells(table: Table) -> list[set[int]]:
    """Return for each line of a table over languages the columns of its best parsers.

    A line with a single parser has none.
    """
    named = [(n, x) for n, x in enumerate(table.headings) if n > 1 and x not in BASELINES.values()]
    columns = [column for column, heading in named if not heading.endswith("(article)")]
    best: list[set[int]] = []
    for line in table.rows:
        f1 = {column: float(line[column]) for column in columns if line[column][:1].isdigit()}
        highest = max(f1.values(), default=0.0)
        best.append({column for column in f1 if f1[column] == highest and len(f1) > 1})
    return best


def sentences(run: ReportedRun, rows: Sequence[ScoreRow]) -> list[str]:
    """Describe the run in three sentences, for a reader who knows nothing about attree."""
    parsers = [row for row in rows if not row.is_baseline]
    tests = by_test(parsers).values()
    total = sum(max(row.scored for row in tested) for tested in tests)
    slugs = dict.fromkeys(row.encoder for row in parsers if row.encoder != IMPORTED)
    encoders = as_list(_describe_encoder(run, slug) for slug in slugs)
    models = "the pretrained language model" + ("s" if " and " in encoders else "")
    out_of = f" out of the attention of {models} {encoders}: which word looks at which"
    return [
        f"attree drew trees of the phrases of {total:,} sentences from {len(tests):,} "
        f"{'treebank' if len(tests) == 1 else 'treebanks'}{out_of if slugs else ''}.",
        _describe_parsers(run, parsers),
        "Every figure is an F1 in percent, which weighs how many of the phrases in the treebank's "
        "own (gold) trees were found against how many of those found are right: 100 is a perfect "
        "tree, and a parser is worth something where it beats trees drawn without looking at the "
        "words (right- and left-branching, balanced, random).",
    ]


def _describe_parsers(run: ReportedRun, parsers: Sequence[ScoreRow]) -> str:
    """Name the parsers, and the trees that they, or the choice of their heads, rest on."""
    recipes: Mapping[str, Mapping[str, str]] = run.configuration.get("parsers", {})
    own = {row.parser for row in parsers} - {*run.configuration.get("averages", {})}
    tuned = {row.parser: row.selection for row in parsers if row.selection and row.parser in own}
    averaging = {name: on for name, on in tuned.items() if name in recipes}
    trained = {name: on for name, on in tuned.items() if name not in recipes}
    others = dict.fromkeys(row.parser for row in parsers if row.parser not in tuned)
    parts = []
    if averaging:
        names = as_list(_describe_recipe(name, recipes[name]) for name in averaging)
        who = f"the parser {names}" if len(averaging) == 1 else f"each of {names}"
        parts.append(
            f"{'' if trained else 'nothing was trained: '}{who} averages the attention heads that "
            f"give the best trees on {as_list(dict.fromkeys(averaging.values()))}, scores the "
            "spans of a sentence by that average, and picks a tree"
        )
    if trained:
        how = "trained" if run.configuration else "tuned or trained"
        on, are = as_list(dict.fromkeys(trained.values())), "is" if len(trained) == 1 else "are"
        parts.append(f"{how} on {on} {are} {as_list(trained)}")
    if others:
        parts.append(f"trees that came from elsewhere or were averaged: {as_list(others)}")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if averaging or trained else f"Scored are {text}."


def _describe_recipe(name: str, recipe: Mapping[str, str]) -> str:
    score = recipe["score"].replace("_", " and ").replace("adjacent and right", "adjacent (right)")
    log = ", in logarithms" if recipe["association"] == "log" else ""
    return f"{name} ({score} association{log}; {recipe['decoder'].replace('_', ' ')} decoding)"


def _describe_encoder(run: ReportedRun, slug: str) -> str:
    source = run.configuration.get("encoders", {}).get(slug) or {}
    name = next((str(source[key]) for key in ("hub", "package", "path") if source.get(key)), "")
    return f"{slug} ({name})" if name and name != slug else slug


def as_list(names: Iterable[str]) -> str:
    """Return ``a``, ``a and b``, ``a, b and c``."""
    *first, last = list(names) or [""]
    return f"{', '.join(first)} and {last}" if first else last
