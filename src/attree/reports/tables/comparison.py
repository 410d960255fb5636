"""Compare all systems: computed ones, imported trees, and published figures."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from attree.base.errors import AttreeError
from attree.base.reading import read_described
from attree.base.schemas import SENTENCES_SCHEMA, read_table
from attree.base.tables import BASELINES, Table, number, scores_table, with_values
from attree.evaluation import HEADINGS, LABELLED
from attree.evaluation.baselines import ONE_TREE, fixed_parses
from attree.evaluation.metrics import Scored, score
from attree.evaluation.resampling import RESAMPLES, every_difference
from attree.plan.paths import GRAMMAR, IMPORTED
from attree.reports.tables.summaries import (
    RECALL,
    ScoreRow,
    by_test,
    heading_of,
    read_published,
    score_rows,
)
from attree.trees.parses import Parses

#: Sources of a system's figures.
COMPUTED, TREES, PUBLISHED = "computed", "imported", "published"
#: Source of a grammar whose mean over its seeds is not above the baselines below.
UNDERTRAINED = "computed, undertrained"
_WITHOUT_WORDS = ("left_branching", *(name for name in BASELINES if name.startswith("random_")))

#: The score for sorting systems, for p values and for scores by length.
FIRST = "corpus_f1"

_NOTE = (
    f"p: paired bootstrap over sentences ({RESAMPLES:,} resamples, two-sided) of corpus F1 against "
    "the best system. sent/s: sentences a second, words to trees, one thread. article: its figure "
    "for this system, of its own encoder and test set; (s) is sentence F1, (max) corpus F1 of its "
    "best run. computed: by attree; imported: another program's trees; published: figures alone, "
    "of the best run where no mean is given."
)
_LABELLED = "Labelled brackets by EVALB's rules; exact match: trees with all of them right."
#: The article's figures in order of preference, each with its mark.
_FIGURES = ((FIRST, ""), ("sentence_f1", " (s)"), (f"{FIRST}_max", " (max)"))
#: The gain in corpus F1 over its best member that an average should have.
_GAIN = 1.0

#: system → language → metric → the article's figure
Figures = Mapping[str, Mapping[str, Mapping[str, float]]]
#: average → the parsers and systems averaged
Averages = Mapping[str, Sequence[str]]

#: What narrow columns call metrics, where that is not their heading.
_SHORT = {"corpus_f1": "corpus F1", "corpus_f1_no_root": "no root", "sentence_f1": "sent. F1"}
_COLUMNS = [_SHORT.get(metric, heading) for metric, heading in HEADINGS.items()]
_HEADINGS = ["system", "kind", *_COLUMNS, "p", "sent/s", "article"]


@dataclass(frozen=True, slots=True)
class System:
    """A row of scores in a comparison.

    Attributes:
        row: what its summary says.
        name: its name, which may include its encoder.
        kind: computed (undertrained), imported or published.
        speed: sentences per second.
        each: the scores of each sentence, if they are known.
        by_length: longest sentence in words → corpus F1 in percent.
        p: p value of the difference in corpus F1 from the best system; NaN for the best itself.
    """

    row: ScoreRow
    name: str
    kind: str
    speed: float | None = None
    each: Scored | None = None
    by_length: Mapping[int, float | None] = field(default_factory=dict)
    p: float | None = None

    @property
    def test(self) -> tuple[str, str]:
        """Language and split."""
        return self.row.test

    @property
    def f1(self) -> float:
        """The score that systems are sorted by, in percent; 0 if there is none."""
        return self.row.values.get(FIRST) or 0.0

    @property
    def grammar(self) -> str:
        """The name of the grammar that a system is a seed of; empty if it is none."""
        return self.name.rpartition("-")[0] if self.row.encoder == GRAMMAR else ""

    def flat(self) -> dict[str, Any]:
        """Return the system as a flat record."""
        of = self.row
        row: dict[str, Any] = {"language": of.language, "split": of.split, "encoder": of.encoder}
        row |= {"kind": self.kind, "system": self.name}
        row |= {metric: of.values.get(metric) for metric in (*HEADINGS, *LABELLED)}
        row |= {"p_against_best": None if self.p is None or np.isnan(self.p) else self.p}
        row |= {"sentences_a_second": self.speed, "tuned_on": of.selection, **of.article()}
        row |= {f"{FIRST}_at_most_{longest}": f1 for longest, f1 in self.by_length.items()}
        return row | {f"recall_{label}": value for label, value in of.recall.items()}


def read_figures(path: Path | None, rows: Iterable[str]) -> Figures:
    """Read the article's figures of some systems.

    Args:
        path: the file of published figures.
        rows: ``SYSTEM=TABLE/ROW``, or ``SYSTEM=TABLE/ROW@COLUMN`` if the table has columns; a
            system may have several, and the first with a figure is used.

    Raises:
        AttreeError: a row has another form, or does not exist.
    """
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for text in rows:
        system, _, reference = text.partition("=")
        table, _, row = reference.partition("/")
        name, _, column = row.partition("@")
        if not (system and table and name and path):
            fix = "write SYSTEM=TABLE/ROW, and give --published"
            raise AttreeError("bad-reference", f"{text} does not name a published row", fix=fix)
        languages = figures.setdefault(system, {})
        values = {
            (language, metric.partition("@")[0]): value
            for (line, language, metric), value in read_published(path, table).items()
            if (line, metric.partition("@")[2]) == (name.lower(), column)
        }
        if not values:
            problem = f"there is no row {row} of table {table}"
            raise AttreeError("no-such-row", problem, file=path, fix="name a row of the file")
        for (language, metric), value in values.items():
            languages.setdefault(language, {}).setdefault(metric, value)
    return figures


def systems(
    summaries: Sequence[Path],
    tables: Iterable[Path],
    speeds: Iterable[Path],
    figures: Figures,
    max_words: int | None,
) -> list[System]:
    """Gather the systems of every split: scored parsers, baselines, and published systems.

    Args:
        summaries: summaries of ``attree score``, each with its table of sentence scores, and of
            ``attree baselines``.
        tables: the sentence table of each split, for scoring the baselines.
        speeds: files of ``attree speed``.
        figures: the article's figures.
        max_words: as for :func:`attree.evaluation.metrics.score`.
    """
    timed = _read_speeds(speeds)
    fixed = _of_fixed(tables, max_words)
    rows = [row for path in summaries for row in score_rows([path], {})]
    scored = [
        System(
            replace(row, published=figures.get(row.parser, {}).get(row.language, {})),
            heading_of(row, rows),
            TREES if row.encoder == IMPORTED else COMPUTED,
            timed.get((*row.test, row.encoder, row.parser)),
            row.each or fixed.get((*row.test, row.parser)),
        )
        for row in rows
    ]
    tests = list(by_test(rows))
    computed = {row.parser for row in rows}
    others = [(name, languages) for name, languages in figures.items() if name not in computed]
    published = [_published(name, x, of[x[0]]) for x in tests for name, of in others if x[0] in of]
    return sorted(_mark_weak(scored) + published, key=lambda system: tests.index(system.test))


def _grammar_means(systems: Iterable[System]) -> dict[str, tuple[int, float]]:
    """Return grammar → number of seeds on one split, and their mean corpus F1 in percent."""
    scores: dict[str, list[float]] = {}
    for system in systems:
        if system.grammar:
            scores.setdefault(system.grammar, []).append(system.f1)
    return {grammar: (len(values), float(np.mean(values))) for grammar, values in scores.items()}


def _mark_weak(systems: Sequence[System]) -> list[System]:
    """Mark the seeds of grammars that are no better than trees drawn without the words."""
    low = {
        (grammar, *test)
        for test, tested in by_test(systems).items()
        for grammar, (_, mean) in _grammar_means(tested).items()
        if any(other.row.parser in _WITHOUT_WORDS and mean <= other.f1 for other in tested)
    }
    return [
        replace(system, kind=UNDERTRAINED) if (system.grammar, *system.test) in low else system
        for system in systems
    ]


def _published(name: str, test: tuple[str, str], values: Mapping[str, float]) -> System:
    scores = {metric: values.get(metric, values.get(f"{metric}_max")) for metric in HEADINGS}
    recall: Any = {
        metric.removeprefix("recall_").upper(): {"recall": value}
        for metric, value in values.items()
        if metric.startswith("recall_")
    }
    nobody = ("", "", scores, 0, 0, 0, "")
    return System(ScoreRow(*nobody, *test, label_recall=recall, published=values), name, PUBLISHED)


@dataclass(frozen=True, slots=True)
class _Speeds:
    language: str | None
    split: str | None
    encoder: str
    sentences_a_second: dict[str, float]


def _read_speeds(paths: Iterable[Path]) -> dict[tuple[str, str, str, str], float]:
    how: Any = {"what": "file of speeds", "fix": "run `attree speed` again"}
    return {
        (speeds.language or "", speeds.split or "", speeds.encoder, parser): speed
        for speeds in (read_described(path, _Speeds, **how) for path in paths)
        for parser, speed in speeds.sentences_a_second.items()
    }


def _of_fixed(paths: Iterable[Path], max_words: int | None) -> dict[tuple[str, str, str], Scored]:
    """Score fixed trees; return (language, split, baseline) → their scores."""
    scores = {}
    for path in paths:
        table, facts = read_table(path, schema=SENTENCES_SCHEMA)
        gold, test = Parses.gold(table), (facts.get("language") or "", facts.get("split") or "")
        for name in ONE_TREE:
            scores[*test, name] = score(gold, fixed_parses(name, gold), max_words=max_words)
    return scores


def compared(
    systems: Sequence[System], lengths: Sequence[int]
) -> tuple[list[System], list[dict[str, Any]]]:
    """Score systems by length, and compare every two of a split by paired bootstrap.

    Returns:
        the systems of each split, the best first, baselines and published systems last; and a
        record for each pair compared and each metric.

    Raises:
        AttreeError: systems of one split are scored on different sentences.
    """
    ordered, records = [], []
    for (language, split), tested in by_test(systems).items():
        scored = [(system, system.each) for system in tested if system.each is not None]
        names = [system.name for system, _ in scored]
        best = max(scored, key=lambda pair: pair[0].f1)[0].name if scored else ""
        p = {best: math.nan}
        for metric, pairs in every_difference(names, [each for _, each in scored]).items():
            for (a, b), difference in pairs.items():
                where = {"language": language, "split": split, "metric": metric}
                sides = {"first": names[a], "second": names[b]}
                records.append({**where, **sides, **difference._asdict()})
                if metric == FIRST and best in sides.values():
                    p |= {name: difference.p for name in sides.values() if name != best}
        filled = [
            replace(system, by_length=_by_length(system.each, lengths), p=p.get(system.name))
            for system in tested
        ]
        ordered += sorted(filled, key=lambda x: (x.kind == PUBLISHED, x.row.is_baseline, -x.f1))
    return ordered, records


def _by_length(each: Scored | None, lengths: Sequence[int]) -> dict[int, float | None]:
    if each is None:
        return dict.fromkeys(lengths)
    return {n: each.take(each.n_words <= n).counts.corpus_f1 for n in lengths}


def comparison(
    systems: Sequence[System], title: str, speed_of: int, averages: Averages | None = None
) -> list[Table]:
    """Build the tables of every split, and a table of the systems' encoders and tuning trees.

    Args:
        systems: systems from :func:`compared`.
        title: title of all tables.
        speed_of: number of sentences that speed was measured on.
        averages: averages among the systems; the note compares each with its best member.
    """
    tables = []
    for test, tested in by_test(systems).items():
        where = f"{title}: {', '.join(test)}"
        note = " ".join(_notes(tested, speed_of, averages or {}))
        tables.append(Table(where, _HEADINGS, [_line(system) for system in tested], note))
        tables += _lengths(tested, where)
        recalls = [((system.name,), system.row.recall) for system in tested]
        labels = {label: label for _, values in recalls for label in values}
        tables += _table_of_any(f"{where}: recall by label", labels, recalls, RECALL)
        scores = [((system.name,), system.row.values) for system in tested]
        tables += _table_of_any(f"{where}: labels", LABELLED, scores, _LABELLED)
    rows = {x.name: [x.name, x.kind, x.row.encoder or "–", x.row.selection or "–"] for x in systems}
    note = "Tuned on: the trees that heads were ranked or weights trained on; –: none, or unknown."
    headings = ["system", "kind", "encoder", "tuned on"]
    return [*tables, Table(f"{title}: systems", headings, list(rows.values()), note)]


def _notes(tested: Sequence[System], speed_of: int, averages: Averages) -> Iterator[str]:
    yield _NOTE
    if any(system.speed for system in tested):
        yield f"Speed on the first {speed_of:,} sentences."
    for name, (seeds, mean) in _grammar_means(tested).items():
        yield f"{name}: mean of {seeds} seed{'s' * (seeds > 1)} {mean:.2f} corpus F1."
    if any(system.kind == UNDERTRAINED for system in tested):
        yield "undertrained: that mean is not above left branching and random trees."
    for system in tested:
        yield from system.row.overlap(system.name)
    yield from _gains(tested, averages)


def _gains(tested: Sequence[System], averages: Averages) -> Iterator[str]:
    """Say for each average whether it is better by a point than its best member."""
    for average in tested:
        members = [
            (score, other.name)
            for other in tested
            if other.kind in (COMPUTED, UNDERTRAINED)
            and other.row.parser in averages.get(average.row.parser, ())
            and other.row.encoder in (average.row.encoder, IMPORTED, GRAMMAR)
            and (score := other.row.values.get(FIRST)) is not None
        ]
        score = average.row.values.get(FIRST)
        if members and score is not None:
            best, name = max(members)
            whether = "beats" if score - best >= _GAIN else "does not beat"
            yield (
                f"{average.name} {whether} its best member, {name}, by {_GAIN:g} corpus F1"
                f" or more: {score:.2f} to {best:.2f}."
            )


def _line(system: System) -> list[str]:
    scores = [number(system.row.values.get(metric)) for metric in HEADINGS]
    speed = "–" if system.speed is None else f"{system.speed:.0f}"
    figures = ((system.row.published.get(metric), mark) for metric, mark in _FIGURES)
    shown = (f"{value:g}{mark}" for value, mark in figures if value is not None)
    article = "–" if system.kind == PUBLISHED else next(shown, "–")
    return [system.name, system.kind, *scores, _p(system.p), speed, article]


def _p(p: float | None) -> str:
    if p is None:
        return "–"
    return "(best)" if math.isnan(p) else "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def _lengths(tested: Sequence[System], where: str) -> list[Table]:
    if not (scored := [(system, system.each) for system in tested if system.each is not None]):
        return []
    system, first = scored[0]
    lengths = [*system.by_length, math.inf]
    counts = {n: (first.each.scored & (first.n_words <= n)).sum() for n in lengths}
    headings = {n: f"{'all' if n == math.inf else f'≤{n}'} ({counts[n]:,})" for n in lengths}
    rows = [
        ((system.name,), {**system.by_length, math.inf: system.row.values.get(FIRST)})
        for system, _ in scored
    ]
    note = "Corpus F1 on the sentences of at most so many words; in brackets, how many they are."
    return [scores_table(f"{where}: by length", ("system",), headings, rows, note)]


def _table_of_any(
    title: str,
    headings: Mapping[str, str],
    rows: Sequence[tuple[tuple[str], Mapping[str, float | None]]],
    note: str,
) -> list[Table]:
    """Build a table of the rows and columns that have any value; none if there are none."""
    rows = [row for row in rows if any(row[1].get(key) is not None for key in headings)]
    shown = with_values(headings, [values for _, values in rows])
    return [scores_table(title, ("system",), shown, rows, note)] if shown else []
