"""Every system side by side: what was computed, what was imported, and what was only published."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from attree.base.errors import AttreeError
from attree.base.files import read_described
from attree.base.schemas import SENTENCES_SCHEMA, read_table
from attree.base.tables import Table, number, scores_table
from attree.evaluation import HEADINGS, LABELLED
from attree.evaluation.baselines import fixed_parses
from attree.evaluation.metrics import score
from attree.plan.paths import GRAMMAR, IMPORTED
from attree.reports.tables.build import (
    BASELINES,
    PARTS,
    RECALL,
    RESAMPLES,
    ScoreRow,
    SentenceCounts,
    every_difference,
    heading_of,
    read_published,
    score_rows,
)
from attree.trees.parses import Parses

#: Where a system's figures come from.
COMPUTED, TREES, PUBLISHED = "computed", "imported", "published"
#: Of a grammar whose mean over its seeds is not above these baselines.
UNDERTRAINED = "computed, undertrained"
_WITHOUT_WORDS = (
    "left_branching",
    "random_uniform_split",
    "random_shift_reduce",
    "random_uniform_tree",
)

#: Baselines that have one tree a sentence, so that each sentence's score is known.
_ONE_TREE = ("right_branching", "left_branching", "balanced")

#: The score that systems are sorted by, and p values and lengths are of.
FIRST = "corpus_f1"

_NOTE = " ".join(
    [
        f"p: paired bootstrap over sentences ({RESAMPLES:,} resamples, two-sided) of corpus F1",
        "against the best system. sent/s: sentences a second, words to trees, one thread. article:",
        "its figure for this system, of its own encoder and test set; (s) is sentence F1,",
        "(max) corpus F1 of its best run.",
        "computed: by attree; imported: another program's trees; published: figures alone, of the",
        "best run where no mean is given.",
    ]
)
_LABELLED = "Labelled brackets by EVALB's rules; exact match: trees with all of them right."
#: What stands in the column of the article, and how it is marked.
_FIGURES = ((FIRST, ""), ("sentence_f1", " (s)"), (f"{FIRST}_max", " (max)"))
#: The gain in corpus F1 over its best member that an average should have.
_GAIN = 1.0

#: system → language → metric → the article's figure
Figures = Mapping[str, Mapping[str, Mapping[str, float]]]
#: average → the parsers and systems that it averages
Averages = Mapping[str, Sequence[str]]

_HEADINGS = ["system", "kind", "corpus F1", "no root", "sent. F1", "p", "sent/s", "article"]


def record_of(one: ScoreRow) -> dict[str, Any]:
    """Return a system as a record of numbers and text."""
    row = {key: getattr(one, key) for key in ("language", "split", "encoder", "kind")}
    row |= {"system": one.name}
    row |= {metric: one.values.get(metric) for metric in (*HEADINGS, *LABELLED)}
    row |= {"p_against_best": None if one.p is None or np.isnan(one.p) else one.p}
    row |= {"sentences_a_second": one.speed, "tuned_on": one.selection, **one.article()}
    row |= {f"{FIRST}_at_most_{longest}": f1 for longest, f1 in one.by_length.items()}
    return row | {f"recall_{label}": value for label, value in one.recall.items()}


def read_figures(path: Path | None, rows: Iterable[str]) -> Figures:
    """Read the article's figures of some systems.

    Args:
        path: the file of published figures.
        rows: ``SYSTEM=TABLE/ROW``, or ``SYSTEM=TABLE/ROW@COLUMN`` where the table has columns; a
            system may have several, of which the first that has a figure counts.

    Raises:
        AttreeError: no such row, or not of this form.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for text in rows:
        system, _, place = text.partition("=")
        table, _, row = place.partition("/")
        name, _, wanted = row.partition("@")
        if not (system and table and name and path):
            problem = f"this is no published row: {text}"
            raise AttreeError(
                "bad-reference", problem, fix="write SYSTEM=TABLE/ROW, and give --published"
            )
        own = found.setdefault(system, {})
        there = False
        for (line, language, metric), value in read_published(path, table).items():
            base, _, at = metric.partition("@")
            if (line, at) == (name.lower(), wanted):
                own.setdefault(language, {}).setdefault(base, value)
                there = True
        if not there:
            raise AttreeError(
                "no-such-row",
                f"there is no row {row} of table {table}",
                file=path,
                fix="see its columns",
            )
    return found


def systems(
    summaries: Sequence[Path],
    tables: Iterable[Path],
    speeds: Iterable[Path],
    figures: Figures,
    *,
    profile: str,
    max_words: int | None,
) -> list[ScoreRow]:
    """Gather the systems of every split: those scored, the baselines, and those only published.

    Args:
        summaries: of ``attree score``, each with the sentences' scores beside it, and of ``attree
            baselines``.
        tables: the SENTENCES table of each split, whose gold trees the baselines are scored by.
        speeds: of ``attree speed``.
        figures: of the article.
        profile, max_words: as for :func:`attree.evaluation.metrics.score`.
    """
    timed = _timed(speeds)
    branching = {
        key: each for path in tables for key, each in _fixed(path, profile, max_words).items()
    }
    rows = [(path, row) for path in summaries for row in score_rows([path], {}, resample=False)]
    every = [row for _, row in rows]
    found = []
    for path, row in rows:
        beside = path.with_suffix(".parquet")
        each = branching.get((*row.test, row.parser))
        if not _is_baseline(row) and beside.is_file():
            each = SentenceCounts.read(beside)
        found.append(
            replace(
                row,
                name=heading_of(row, every),
                kind=TREES if row.encoder == IMPORTED else COMPUTED,
                selection="" if _is_baseline(row) else row.selection,
                speed=timed.get((*row.test, row.encoder, row.parser)),
                published=figures.get(row.parser, {}).get(row.language, {}),
                each=each,
            )
        )
    tests = list(dict.fromkeys(row.test for row in every))
    computed = {row.parser for row in every}
    found = _marked(found) + [
        _published(name, test, figures[name][test[0]])
        for test in tests
        for name in figures
        if name not in computed and test[0] in figures[name]
    ]
    return sorted(found, key=lambda one: tests.index(one.test))


def _is_baseline(one: ScoreRow) -> bool:
    """Tell whether a row is of trees that look at nothing but the number of words."""
    return one.parser in BASELINES


def grammar_means(found: Iterable[ScoreRow]) -> dict[tuple[str, str, str], tuple[int, float]]:
    """Return (grammar, language, split) → its seeds, and the mean of their corpus F1 in percent."""
    scores: dict[tuple[str, str, str], list[float]] = {}
    for one in found:
        if grammar := _grammar(one):
            scores.setdefault((grammar, *one.test), []).append(_f1(one))
    return {key: (len(own), float(np.mean(own))) for key, own in scores.items()}


def _grammar(one: ScoreRow) -> str:
    """Return the grammar that a row is a seed of, empty if none."""
    return one.name.rpartition("-")[0] if one.encoder == GRAMMAR else ""


def _f1(one: ScoreRow) -> float:
    return one.values.get(FIRST) or 0.0


def _marked(found: Sequence[ScoreRow]) -> list[ScoreRow]:
    """Mark the seeds of grammars that are no better than trees that look at no word."""
    low = {
        (grammar, *test)
        for (grammar, *test), (_, mean) in grammar_means(found).items()
        if any(
            one.parser in _WITHOUT_WORDS and list(one.test) == test and mean <= _f1(one)
            for one in found
        )
    }
    return [
        replace(one, kind=UNDERTRAINED) if (_grammar(one), *one.test) in low else one
        for one in found
    ]


def _published(name: str, test: tuple[str, str], values: Mapping[str, float]) -> ScoreRow:
    recall = {
        metric.removeprefix("recall_").upper(): {"recall": value}
        for metric, value in values.items()
        if metric.startswith("recall_")
    }
    own = {metric: values.get(metric, values.get(f"{metric}_max")) for metric in HEADINGS}
    about: dict[str, Any] = {
        "label_recall": recall,
        "published": values,
        "name": name,
        "kind": PUBLISHED,
    }
    return ScoreRow(*test, "", "", own, **about)


@dataclass(frozen=True, slots=True)
class _Speeds:
    language: str | None
    split: str | None
    encoder: str
    sentences_a_second: dict[str, float]


def _timed(speeds: Iterable[Path]) -> dict[tuple[str, str, str, str], float]:
    found = {}
    for path in speeds:
        one = read_described(path, _Speeds, what="file of speeds", fix="run `attree speed` again")
        for parser, speed in one.sentences_a_second.items():
            found[one.language or "", one.split or "", one.encoder, parser] = speed
    return found


def _fixed(
    path: Path, profile: str, max_words: int | None
) -> dict[tuple[str, str, str], SentenceCounts]:
    """Score each sentence's fixed trees."""
    table, about = read_table(path, schema=SENTENCES_SCHEMA)
    gold, found = Parses.gold(table), {}
    for name in _ONE_TREE:
        each = score(gold, fixed_parses(name, gold), profile=profile, max_words=max_words)
        columns = {key: getattr(each, key) for key in ("sentence", "n_words")}
        columns |= {key: getattr(each, key) for key in ("gold", "predicted", "matched")}
        own = SentenceCounts.of(columns, each.sentence_f1)
        found[about.get("language") or "", about.get("split") or "", name] = own
    return found


def compared(
    found: Sequence[ScoreRow], lengths: Sequence[int]
) -> tuple[list[ScoreRow], list[dict[str, Any]]]:
    """Score systems by length, and compare every two of a split by paired bootstrap.

    Returns:
        the systems of each split, the best first, baselines and published ones last; and a record
        for each two that were compared, and each metric.

    Raises:
        AttreeError: systems of one split are scored on different sentences.
    """
    ordered, every = [], []
    for test in dict.fromkeys(one.test for one in found):
        own = [_by_length(one, lengths) for one in found if one.test == test]
        records = _tested([one for one in own if one.each is not None])
        p = _against_best(own, records)
        ordered += sorted((replace(one, p=p.get(one.name)) for one in own), key=_order)
        every += records
    return ordered, every


def _order(one: ScoreRow) -> tuple[bool, bool, float]:
    return one.kind == PUBLISHED, _is_baseline(one), -_f1(one)


def _by_length(one: ScoreRow, lengths: Sequence[int]) -> ScoreRow:
    found: dict[int, float | None] = dict.fromkeys(lengths)
    for longest in lengths:
        if one.each is not None:
            f1 = one.each.where(one.each.n_words <= longest).f1()[FIRST][0]
            found[longest] = None if np.isnan(f1) else float(f1)
    return replace(one, by_length=found)


def _tested(own: Sequence[ScoreRow]) -> list[dict[str, Any]]:
    """Return a record of every two systems and each metric."""
    scores = [one.each for one in own if one.each is not None]
    for one, each in zip(own, scores, strict=True):
        if not np.array_equal(each.sentence, scores[0].sentence):
            raise AttreeError(
                "other-sentences",
                f"{one.name} is scored on other sentences than {own[0].name}",
                fix="score every system on the same split, with the same max_words",
            )
    if not scores:
        return []
    return [
        {
            "language": own[first].language,
            "split": own[first].split,
            "metric": metric,
            "first": own[first].name,
            "second": own[second].name,
            **one._asdict(),
        }
        for metric, found in every_difference(scores).items()
        for (first, second), one in found.items()
    ]


def _against_best(
    own: Sequence[ScoreRow], records: Iterable[Mapping[str, Any]]
) -> dict[str, float]:
    """Return the p value of each system against the best; that of the best itself is NaN."""
    tested = [one for one in own if one.each is not None]
    if not tested:
        return {}
    best = max(tested, key=_f1).name
    found = {best: float("nan")}
    for record in records:
        sides = [record["first"], record["second"]]
        if record["metric"] == FIRST and best in sides:
            sides.remove(best)
            found[sides[0]] = record["p"]
    return found


def comparison(
    found: Sequence[ScoreRow], title: str, speed_of: int, averages: Averages | None = None
) -> list[Table]:
    """Build the tables of every split, and one that says what each system rests on.

    Args:
        found: as :func:`compared` returns them.
        title: of all of them.
        speed_of: on how many sentences speed was measured.
        averages: those among the systems; the note says what each gains over its best member.
    """
    made = []
    for test in dict.fromkeys(one.test for one in found):
        own = [one for one in found if one.test == test]
        where = f"{title}: {', '.join(test)}"
        gains = [f" {one}" for one in _gains(own, averages or {})]
        made.append(_scores(own, where, speed_of, "".join(gains)))
        made += _lengths(own, where)
        recall = [(one.name, one.recall) for one in own]
        made += _where_any(f"{where}: recall by label", recall, RECALL)
        scores = [(one.name, {name: one.values.get(name) for name in LABELLED}) for one in own]
        made += _where_any(f"{where}: labels", scores, _LABELLED, LABELLED)
    return [*made, _systems(found, title)]


def _gains(own: Sequence[ScoreRow], averages: Averages) -> Iterator[str]:
    """Say of each average of a split whether it is better by a point than its best member."""
    for one in own:
        among = [
            (score, other.name)
            for other in own
            if other.kind in (COMPUTED, UNDERTRAINED)
            and other.parser in averages.get(one.parser, ())
            and other.encoder in (one.encoder, IMPORTED, GRAMMAR)
            and (score := other.values.get(FIRST)) is not None
        ]
        score = one.values.get(FIRST)
        if among and score is not None:
            best, name = max(among)
            whether = "beats" if score - best >= _GAIN else "does not beat"
            yield (
                f"{one.name} {whether} its best member, {name}, by {_GAIN:g} corpus F1"
                f" or more: {score:.2f} to {best:.2f}."
            )


def _scores(own: Sequence[ScoreRow], where: str, speed_of: int, gains: str) -> Table:
    timed = f" Speed on the first {speed_of:,} sentences." if any(one.speed for one in own) else ""
    lines = [_line(one) for one in own]
    return Table(where, _HEADINGS, lines, _NOTE + timed + _grammars(own) + gains)


def _grammars(own: Sequence[ScoreRow]) -> str:
    """Say what the seeds of each grammar come to together."""
    means = [
        f" {name}: mean of {seeds} seed{'s' * (seeds > 1)} {mean:.2f} corpus F1."
        for (name, *_), (seeds, mean) in grammar_means(own).items()
    ]
    if any(one.kind == UNDERTRAINED for one in own):
        means.append(" undertrained: that mean is not above left branching and random trees.")
    return "".join(means)


def _line(one: ScoreRow) -> list[str]:
    scores = [number(one.values.get(metric)) for metric in HEADINGS]
    speed = "–" if one.speed is None else f"{one.speed:.0f}"
    return [one.name, one.kind, *scores, _p(one.p), speed, _article(one)]


def _p(p: float | None) -> str:
    if p is None:
        return "–"
    return "(best)" if math.isnan(p) else "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def _article(one: ScoreRow) -> str:
    """Return the article's figure of a system: the first of ``_FIGURES`` that it has."""
    if one.kind == PUBLISHED:
        return "–"
    figures = (f"{one.published[name]:g}{mark}" for name, mark in _FIGURES if name in one.published)
    return next(figures, "–")


def _lengths(own: Sequence[ScoreRow], where: str) -> list[Table]:
    known = [one for one in own if one.each is not None]
    first = known[0].each if known else None
    if first is None:
        return []
    lengths = [*known[0].by_length, math.inf]
    counts = {n: first.parts[first.n_words <= n, PARTS.index("scored")].sum() for n in lengths}
    headings = {n: f"{'all' if n == math.inf else f'≤{n}'} ({counts[n]:,.0f})" for n in lengths}
    rows = [((one.name,), {**one.by_length, math.inf: one.values.get(FIRST)}) for one in known]
    note = "Corpus F1 on the sentences of at most so many words; in brackets, how many they are."
    return [scores_table(f"{where}: by length", ("system",), headings, rows, note)]


def _where_any(
    title: str,
    own: Sequence[tuple[str, Mapping[str, float | None]]],
    note: str,
    headings: Mapping[str, str] | None = None,
) -> list[Table]:
    """Build a table of the systems that have any value, and of what any of them has one of.

    ``headings`` says what the columns are called, in their order; by default as their keys.
    """
    rows = [((name,), each) for name, each in own if {*each.values()} - {None}]
    known = {key: key for _, each in rows for key in each if each[key] is not None}
    shown = known if headings is None else {key: headings[key] for key in headings if key in known}
    return [scores_table(title, ("system",), shown, rows, note)] if shown else []


def _systems(found: Sequence[ScoreRow], title: str) -> Table:
    rows = {
        one.name: [one.name, one.kind, one.encoder or "–", one.selection or "–"] for one in found
    }
    note = "Tuned on: the trees that heads were ranked or weights trained on; –: none, or unknown."
    headings = ["system", "kind", "encoder", "tuned on"]
    return Table(f"{title}: systems", headings, list(rows.values()), note)
