"""Every system side by side: what was computed, what was imported, and what was only published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from attree.errors import AttreeError
from attree.evaluation.baselines import fixed_parses
from attree.evaluation.metrics import score
from attree.files import read_described
from attree.parses import Parses
from attree.plan import GRAMMAR, IMPORTED
from attree.schemas import SENTENCES, read_table
from attree.tables import LABELLED, METRICS
from attree.tables.build import BASELINES, heading_of, read_published, score_rows
from attree.tables.resampling import SentenceScores, every_difference

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

#: system → language → metric → the article's figure
Figures = Mapping[str, Mapping[str, Mapping[str, float]]]


@dataclass(frozen=True, slots=True)
class System:
    """One system on one split.

    Attributes:
        name: as tables show it.
        kind: computed (undertrained), imported or published.
        values: metric → score in percent, None where there is none.
        recall: label → recall in percent.
        tuned_on: the trees that it was tuned or trained on, empty for none.
        speed: sentences a second.
        published: metric → the article's figure.
        by_length: longest sentence in words → corpus F1 in percent.
        p: of the difference in corpus F1 from the best system; NaN for the best itself.
        scores: of each sentence, where they are known.
        parser: as the configuration calls it; tables may name its encoder too.
    """

    name: str
    kind: str
    language: str
    split: str
    encoder: str = ""
    values: Mapping[str, float | None] = field(default_factory=dict)
    recall: Mapping[str, float | None] = field(default_factory=dict)
    tuned_on: str = ""
    speed: float | None = None
    published: Mapping[str, float] = field(default_factory=dict)
    by_length: Mapping[int, float | None] = field(default_factory=dict)
    p: float | None = None
    scores: SentenceScores | None = None
    parser: str = ""

    @property
    def is_baseline(self) -> bool:
        """Whether it looks at nothing but the number of words."""
        return self.encoder == "none"

    @property
    def grammar(self) -> str:
        """The grammar that it is a seed of, empty if none."""
        return self.name.rpartition("-")[0] if self.encoder == GRAMMAR else ""

    @property
    def place(self) -> tuple[str, str]:
        """Its language and split."""
        return self.language, self.split

    def flat(self) -> dict[str, Any]:
        """Return the system as a record of numbers and text."""
        row = {key: getattr(self, key) for key in ("language", "split", "encoder", "kind")}
        row |= {"system": self.name}
        row |= {metric: self.values.get(metric) for metric in (*METRICS, *LABELLED)}
        row |= {"p_against_best": None if self.p is None or np.isnan(self.p) else self.p}
        row |= {"sentences_a_second": self.speed, "tuned_on": self.tuned_on}
        row |= {f"published_{metric}": self.published.get(metric) for metric in METRICS}
        row |= {f"{FIRST}_at_most_{longest}": f1 for longest, f1 in self.by_length.items()}
        return row | {f"recall_{label}": value for label, value in self.recall.items()}


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
            raise AttreeError(problem, fix="write SYSTEM=TABLE/ROW, and give --published")
        own = found.setdefault(system, {})
        there = False
        for (line, language, metric), value in read_published(path, table).items():
            base, _, at = metric.partition("@")
            if (line, at) == (name.lower(), wanted):
                own.setdefault(language, {}).setdefault(base, value)
                there = True
        if not there:
            raise AttreeError(
                f"there is no row {row} of table {table}", file=path, fix="see its columns"
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
) -> list[System]:
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
    found = []
    for path, row in rows:
        baseline = row.parser in BASELINES
        name = heading_of(row, [one for _, one in rows])
        beside = path.with_suffix(".parquet")
        scores = branching.get((row.language, row.split, row.parser))
        if not baseline and beside.is_file():
            scores = SentenceScores.read(beside)
        found.append(
            System(
                name=name,
                kind=TREES if row.encoder == IMPORTED else COMPUTED,
                language=row.language,
                split=row.split,
                encoder=row.encoder,
                values=row.values,
                recall={label: one["recall"] for label, one in row.label_recall.items()},
                tuned_on="" if baseline else row.selection,
                speed=timed.get((row.language, row.split, row.encoder, row.parser)),
                published=figures.get(row.parser, {}).get(row.language, {}),
                scores=scores,
                parser=row.parser,
            )
        )
    found = _marked(found)
    computed = {row.parser for _, row in rows}
    places = dict.fromkeys(one.place for one in found)
    found += [
        _published(name, place, figures[name][place[0]])
        for place in places
        for name in figures
        if name not in computed and place[0] in figures[name]
    ]
    return sorted(found, key=lambda one: [*places].index(one.place))


def grammar_means(found: Iterable[System]) -> dict[tuple[str, str, str], tuple[int, float]]:
    """Return (grammar, language, split) → its seeds, and the mean of their corpus F1 in percent."""
    scores: dict[tuple[str, str, str], list[float]] = {}
    for one in found:
        if one.grammar:
            own = scores.setdefault((one.grammar, *one.place), [])
            own.append(one.values.get(FIRST) or 0.0)
    return {key: (len(own), float(np.mean(own))) for key, own in scores.items()}


def _marked(found: Sequence[System]) -> list[System]:
    """Mark the seeds of grammars that are no better than trees that look at no word."""
    means = grammar_means(found)
    headings = [BASELINES[name] for name in _WITHOUT_WORDS]
    low = {
        (grammar, *place)
        for (grammar, *place), (_, mean) in means.items()
        for one in found
        if one.is_baseline and one.name in headings and list(one.place) == place
        if mean <= (one.values.get(FIRST) or 0.0)
    }
    return [
        replace(one, kind=UNDERTRAINED) if (one.grammar, *one.place) in low else one
        for one in found
    ]


def _published(name: str, place: tuple[str, str], values: Mapping[str, float]) -> System:
    recall = {
        metric.removeprefix("recall_").upper(): value
        for metric, value in values.items()
        if metric.startswith("recall_")
    }
    own = {metric: values.get(metric, values.get(f"{metric}_max")) for metric in METRICS}
    return System(name, PUBLISHED, *place, values=own, recall=recall, published=values)


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
) -> dict[tuple[str, str, str], SentenceScores]:
    """Score each sentence's fixed trees."""
    table, about = read_table(path, schema=SENTENCES)
    gold, found = Parses.gold(table), {}
    for name in _ONE_TREE:
        each = score(gold, fixed_parses(name, gold), profile=profile, max_words=max_words)
        columns = {key: getattr(each, key) for key in ("sentence", "n_words")}
        columns |= {key: getattr(each, key) for key in ("gold", "predicted", "matched")}
        own = SentenceScores.of(columns, each.sentence_f1)
        found[about.get("language") or "", about.get("split") or "", name] = own
    return found


def compared(
    found: Sequence[System], lengths: Sequence[int]
) -> tuple[list[System], list[dict[str, Any]]]:
    """Score systems by length, and compare every two of a split by paired bootstrap.

    Returns:
        the systems of each split, the best first, baselines and published ones last; and a record
        for each two that were compared, and each metric.

    Raises:
        AttreeError: systems of one split are scored on different sentences.
    """
    ordered, every = [], []
    for place in dict.fromkeys(one.place for one in found):
        own = [_by_length(one, lengths) for one in found if one.place == place]
        records = _tested([one for one in own if one.scores is not None])
        p = _against_best(own, records)
        ordered += sorted((replace(one, p=p.get(one.name)) for one in own), key=_order)
        every += records
    return ordered, every


def _order(one: System) -> tuple[bool, bool, float]:
    return one.kind == PUBLISHED, one.is_baseline, -(one.values.get(FIRST) or 0.0)


def _by_length(one: System, lengths: Sequence[int]) -> System:
    found: dict[int, float | None] = dict.fromkeys(lengths)
    for longest in lengths:
        if one.scores is not None:
            f1 = one.scores.where(one.scores.n_words <= longest).f1()[FIRST][0]
            found[longest] = None if np.isnan(f1) else float(f1)
    return replace(one, by_length=found)


def _tested(own: Sequence[System]) -> list[dict[str, Any]]:
    """Return a record of every two systems and each metric."""
    scores = [one.scores for one in own if one.scores is not None]
    for one, each in zip(own, scores, strict=True):
        if not np.array_equal(each.sentence, scores[0].sentence):
            raise AttreeError(
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


def _against_best(own: Sequence[System], records: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the p value of each system against the best; that of the best itself is NaN."""
    tested = [one for one in own if one.scores is not None]
    if not tested:
        return {}
    best = min(tested, key=lambda one: -(one.values.get(FIRST) or 0.0)).name
    found = {best: float("nan")}
    for record in records:
        sides = [record["first"], record["second"]]
        if record["metric"] == FIRST and best in sides:
            sides.remove(best)
            found[sides[0]] = record["p"]
    return found
