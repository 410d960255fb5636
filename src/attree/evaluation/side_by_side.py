"""Compare the trees of several parsers with gold trees: F1, intervals, p values of differences.

``attree evaluate`` and :meth:`attree.Parser.evaluate` both end here.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attree.base.errors import AttreeError
from attree.base.tables import Table, number, show
from attree.evaluation import HEADED, HEADINGS, METRICS
from attree.evaluation.baselines import ONE_TREE, fixed_parses
from attree.evaluation.metrics import Scored, mean, score, upper_bound
from attree.evaluation.resampling import RESAMPLES, interval, paired_bootstraps
from attree.treebank.as_table import Treebank, is_table
from attree.treebank.check import MOST_SENTENCES
from attree.treebank.cleaning import policy
from attree.treebank.formats import resolve, together
from attree.treebank.labels import UNIVERSAL, tables
from attree.treebank.pairing import as_parses, paired
from attree.treebank.sentence import Sentence, SplitSettings
from attree.treebank.table import from_table, to_table
from attree.trees.parses import Parses

if TYPE_CHECKING:
    import pyarrow as pa

    from attree.trees.tree import Tree

#: A note names a system if more than this share of its spans has labels that no gold tree has.
_OTHER_LABELS = 0.2
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Gold:
    """Gold trees to score with.

    Attributes:
        sentences: the cleaned sentences.
        parses: their trees.
        punctuation: the policy by which words were removed.
        refused: one line for each sentence that could not be read.
        whole: words of the sentences before any were removed; None where none were removed.
        stays: the same → which of them were not.
    """

    sentences: list[Sentence]
    parses: Parses
    punctuation: str = "keep"
    refused: list[str] = field(default_factory=list)
    whole: list[list[str]] | None = None
    stays: Mapping[tuple[str, ...], list[bool]] = field(default_factory=dict)

    @classmethod
    def read(cls, paths: Sequence[Path], settings: SplitSettings) -> Gold:
        """Read treebanks or sentence tables, each a file, a pattern or a folder.

        Dependency trees are read with the heads of words, which phrases are compared with.

        Raises:
            AttreeError: see :meth:`attree.treebank.as_table.Treebank.read_all`; or only some of the
                files are dependency trees.
        """
        groups = together(*paths, format=settings.format)
        derived = {resolve(settings, files).format == "conllu" for files in groups}
        if len(derived) > 1:
            problem = "dependency trees and constituency trees cannot be scored together"
            raise AttreeError("mixed-trees", problem, file=paths[0], fix="score them apart")
        if True in derived:
            settings = replace(settings, dependencies="half")
        treebank = Treebank.read_all(paths, settings, partial=True in derived)
        gold = cls.of_table(treebank.table, treebank.punctuation, treebank.refused)
        keep = policy(treebank.punctuation)
        if keep is None or any(map(is_table, paths)):
            return gold
        kept = replace(settings, punctuation="keep")
        table = Treebank.read_all(paths, kept, partial=True in derived).table
        stays = {sentence.words: keep(sentence) for sentence in from_table(table)}
        return replace(gold, whole=table["words"].to_pylist(), stays=stays)

    @classmethod
    def of_table(
        cls, table: pa.Table, punctuation: str = "keep", refused: Sequence[str] = ()
    ) -> Gold:
        """Make gold trees of a sentence table (``schemas.SENTENCES_SCHEMA``)."""
        sentences = list(from_table(table))
        return cls(sentences, Parses.gold(to_table(sentences)), punctuation, list(refused))

    @classmethod
    def of(cls, trees: Iterable[Tree]) -> Gold:
        """Make gold trees of trees as they are."""
        sentences = [sentence_of(tree, ("trees", line)) for line, tree in enumerate(trees, start=1)]
        if not sentences:
            raise AttreeError("no-trees", "there are no gold trees", fix="give at least one")
        return cls.of_table(to_table(sentences))

    def take(self, rows: Sequence[int]) -> Gold:
        """Return some of the sentences."""
        kept = [self.sentences[row] for row in rows]
        return replace(self, sentences=kept, parses=Parses.gold(to_table(kept)))


def sentence_of(tree: Tree, where: tuple[str, int]) -> Sentence:
    """Make a sentence of a tree; ``where`` is its file and line."""
    tags = tuple(tree.tags or ("",) * len(tree.words))
    return Sentence(tuple(tree.words), tags, tuple(tree.labelled("")), *where)


@dataclass(frozen=True, slots=True)
class System:
    """One parser's trees of the gold sentences.

    Attributes:
        name: its name in tables.
        runs: its trees, one run per draw of training trees; ``skipped`` where a tree is missing.
        refused: one line for each sentence without a partner.
        where: position of a sentence → file and line of its tree, if it was read from a file.
        trees: number of training trees; only systems with equal numbers are compared.
    """

    name: str
    runs: list[Parses]
    refused: list[str] = field(default_factory=list)
    where: Mapping[int, str] = field(default_factory=dict)
    trees: int = 0

    @classmethod
    def of_trees(
        cls, name: str, gold: Gold, read: Sequence[Sentence], *, labelled: bool, tagged: bool
    ) -> System:
        """Pair trees with gold sentences by their words.

        Raises:
            AttreeError: no tree has the words of a gold sentence.
        """
        refused: list[str] = []
        pairs = paired(gold.sentences, read, refused, name, gold.stays)
        parses = as_parses(gold.sentences, pairs, labelled=labelled, tagged=tagged)
        where = {row: f"{sentence.file}:{sentence.line}" for row, sentence in pairs.items()}
        return cls(name, [parses], refused, where)


@dataclass(frozen=True, slots=True)
class SystemScores:
    """The scores of one system.

    Attributes:
        name: its name in tables.
        runs: scores of each run.
        wrong: metric → F1 of the first run in percent, missing sentences counted as wrong.
        intervals: metric → 95 % interval; empty where there are several runs.
        trees: see :class:`System`.
    """

    name: str
    runs: Sequence[Scored]
    wrong: Mapping[str, float | None] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    trees: int = 0

    @property
    def missing(self) -> int:
        """The number of gold sentences without a tree."""
        return int(self.runs[0].each.skipped.sum())

    def mean(self, metric: str) -> float | None:
        """Return a score in percent, averaged over the runs."""
        return mean([getattr(scored.counts, metric) for scored in self.runs])


class Evaluation:
    """Scores of systems, baselines and the binary ceiling on the same gold trees; can be printed.

    Args:
        gold: the gold trees.
        systems: at least one system.
        max_words: score only sentences of at most this many words.
        notes: further sentences for the note below the table.

    Attributes:
        rows: scores of the systems.
    """

    def __init__(
        self,
        gold: Gold,
        systems: Sequence[System],
        max_words: int | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.gold, self.systems, self._max_words = gold, systems, max_words
        self._notes = notes
        self._headed = gold.parses.trees.heads is not None
        fitting = (name for name in METRICS if (name in HEADED) == self._headed)
        #: scores with intervals and p values, and those without
        self._tested = tuple(name for name in fitting if METRICS[name].tested)
        self._plain = () if self._headed else tuple(n for n in HEADINGS if n not in self._tested)
        self.rows = [self._row(system) for system in systems]

    @property
    def corpus_f1(self) -> float | None:
        """Unlabelled corpus F1 of the first system, in percent."""
        return self.rows[0].mean("corpus_f1")

    @property
    def labelled_f1(self) -> float | None:
        """Labelled F1 of the first system, in percent; None where trees have no labels."""
        return self.rows[0].mean("labelled_f1")

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """The first system's 95 % bootstrap intervals: ``corpus_f1``, ``labelled_f1`` → percent."""
        return self.rows[0].intervals

    def _score(self, parses: Parses) -> Scored:
        return score(self.gold.parses, parses, max_words=self._max_words)

    def _row(self, system: System) -> SystemScores:
        runs = [self._score(parses) for parses in system.runs]
        parts = {name: runs[0].parts(name) for name in self._tested} if len(runs) == 1 else {}
        intervals = {name: interval(part) for name, part in parts.items() if part.any()}
        wrong = self._with_missing_wrong(runs[0])
        return SystemScores(system.name, runs, wrong, intervals, system.trees)

    def _with_missing_wrong(self, scored: Scored) -> dict[str, float | None]:
        """Return F1 in percent, with the gold spans of missing trees counted as missed."""
        gold, counts = self.gold.parses, scored.counts
        if not counts.skipped:
            return {}
        missing = scored.sentence[scored.each.skipped]
        lost = gold.take(np.flatnonzero(np.isin(gold.sentence, missing)))
        whole = counts + score(lost, lost).counts.all_missed()
        return {
            name: getattr(whole, name)
            for name in self._tested
            if getattr(counts, name) is not None or name == "corpus_f1"
        }

    def baselines(self) -> Iterator[SystemScores]:
        """Yield the baselines, and the binary ceiling of F1."""
        for name in ONE_TREE:
            scored = self._score(fixed_parses(name, self.gold.parses))
            yield SystemScores(name.replace("_", " "), [scored])
        if not self._headed:
            ceiling = upper_bound(self.gold.parses, max_words=self._max_words)
            yield SystemScores("binary ceiling", [ceiling])

    def tables(self) -> list[Table]:
        """Return the tables to print: scores, and if there are several systems, every pair."""
        rows = [*self.rows, *self.baselines()]
        shown = [n for n in self._tested if any(row.mean(n) is not None for row in self.rows)]
        with_interval = any(row.intervals for row in self.rows)
        with_missing = any(row.missing for row in self.rows)
        columns: list[tuple[str, list[str]]] = [("", [row.name for row in rows])]
        for name in (*shown, *self._plain):
            columns.append((METRICS[name].heading, [number(row.mean(name)) for row in rows]))
            if with_interval and name in self._tested:
                limits = (row.intervals.get(name) for row in rows)
                columns.append(("95 %", ["–" if x is None else _range(*x, "–") for x in limits]))
            if with_missing and name in self._tested:
                wrong = [number(row.wrong.get(name, row.mean(name))) for row in rows]
                columns.append(("missing wrong", wrong))
        headings, cells = zip(*columns, strict=True)
        note = " ".join(self._remarks(shown, with_interval))
        title = "Phrases and dependencies" if self._headed else "F1"
        main = Table(title, headings, list(map(list, zip(*cells, strict=True))), note)
        return [main, *self._pairs()]

    def _remarks(self, shown: Sequence[str], with_interval: bool) -> Iterator[str]:
        policy, scored = self.gold.punctuation, len(self.rows[0].runs[0].sentence)
        yield f"{scored:,} sentences; punctuation: {policy}."
        if self._headed:
            yield (
                "Headed precision: share of the phrases that have exactly one word whose head lies "
                "outside. Recall of subtrees: share of the words with all their dependents, if "
                "these are a span, that are phrases. Both without punctuation at the edges, "
                "one-word phrases and the whole sentence."
            )
        else:
            yield "F1 is of unlabelled spans of two words and more, unless it is called labelled."
        if "labelled_f1" in shown:
            quoted = f"'{policy}'" if " " in policy else policy
            yield (
                f"Labelled F1 is that of `attree evalb --prm collins --punctuation {quoted}`; "
                "functions cut."
            )
        if with_interval:
            yield f"95 %: bootstrap over sentences, {RESAMPLES:,} resamples."
        if "labelled_f1" in shown:
            yield from self._other_labels()
        for row in self.rows:
            if row.missing:
                yield (
                    f"{row.name}: {row.missing:,} of {scored:,} sentences have no tree; they are "
                    "not scored, and in the column beside are wrong."
                )
        yield from self._notes

    def _other_labels(self) -> Iterator[str]:
        """Name the systems with many labels that no gold tree has, which are always wrong."""
        gold_labels = set(self.gold.parses.trees.label_of_each() or ())
        universal = all(label in tables()[UNIVERSAL] for label in gold_labels)
        for system in self.systems:
            labels = Counter(system.runs[0].trees.label_of_each())
            others = {label: count for label, count in labels.items() if label not in gold_labels}
            if sum(others.values()) > _OTHER_LABELS * labels.total():
                common = sorted(others, key=lambda label: (-others[label], label))
                fix = "" if universal else "; --labels universal compares universal ones"
                names = ", ".join(common[:_SHOWN])
                yield f"{system.name} has labels that no gold tree has ({names}){fix}."

    def _pairs(self) -> list[Table]:
        """Compare every two systems by paired bootstrap on the sentences that both parsed."""
        pair_tables = []
        for metric in self._tested:
            lines = [
                [first.name, second.name, *_compare_pair(first, second, metric)]
                for first, second in itertools.combinations(self.rows, 2)
                if first.trees == second.trees
                and metric in first.intervals
                and metric in second.intervals
            ]
            if lines:
                headings = ["first", "second", "difference", "95 %", "p"]
                title = f"{METRICS[metric].heading}: every two"
                pair_tables.append(Table(title, headings, lines, names=2))
        note = (
            f"First minus second, on the sentences that both have; paired bootstrap, {RESAMPLES:,} "
            "resamples, two-sided p."
        )
        return [*pair_tables[:-1], *(replace(table, note=note) for table in pair_tables[-1:])]

    def check_missing(self, accept_loss: float = 0.0) -> None:
        """Refuse systems without trees for more than a tenth of the sentences.

        Raises:
            AttreeError: the share missing is above a tenth and above ``accept_loss``.
        """
        total = max(len(self.rows[0].runs[0].sentence), 1)
        for row in self.rows:
            if row.missing > max(MOST_SENTENCES, accept_loss) * total:
                problem = f"{row.name}: {row.missing:,} of {total:,} sentences have no tree"
                fix = "give trees of the same sentences, or accept the loss: --accept-loss "
                fix += f"{np.ceil(100 * row.missing / total) / 100:g}"
                raise AttreeError("missing-trees", problem, fix=fix)

    def worst(self, count: int) -> Iterator[str]:
        """Yield drawings of the first system's worst trees by sentence F1, each beside gold.

        Against dependency trees, those with most phrases and subtrees that are wrong.
        """
        system, scored = self.systems[0], self.rows[0].runs[0]
        good, what = 100 * scored.sentence_f1, "sentence F1"
        drawn = {"gold": self.gold.parses, "predicted": system.runs[0]}
        if self._headed:
            each, what = scored.each, "right less all"
            good = 1.0 * (each.headed - each.phrases + each.found - each.subtrees)
            del drawn["gold"]
        order = np.argsort(good, kind="stable")
        for position in order[~np.isnan(good[order])][:count]:
            row = int(scored.sentence[position])
            sentence = self.gold.sentences[row]
            where = system.where.get(row, f"{sentence.file}:{sentence.line}")
            yield f"{where}: {what} {good[position]:.2f}"
            for title, parses in drawn.items():
                yield f"{title}:\n{parses.trees.of(row, sentence.words)}"

    def figures(self) -> list[dict[str, Any]]:
        """Return every system's name, F1 and intervals as JSON values."""
        return [
            {
                "name": row.name,
                "sentences": len(row.runs[0].sentence),
                "punctuation": self.gold.punctuation,
                **{name: row.mean(name) for name in (*self._tested, *self._plain)},
                "intervals": {name: list(limits) for name, limits in row.intervals.items()},
            }
            for row in self.rows
        ]

    def __str__(self) -> str:
        """Return the tables as a terminal shows them."""
        from rich.console import Console

        console = Console(highlight=False, width=100, color_system=None)
        with console.capture() as captured:
            show(self.tables(), console)
        return captured.get().rstrip()


def _compare_pair(first: SystemScores, second: SystemScores, metric: str) -> tuple[str, str, str]:
    runs = first.runs[0], second.runs[0]
    parts = np.stack([scored.parts(metric) for scored in runs])
    shared = (parts[:, :, 1] > 0).all(axis=0)
    if metric in HEADED:  # a tree without a phrase is one all the same
        shared = ~(runs[0].each.skipped | runs[1].each.skipped)
    if not (parts[:, shared, 1].sum(axis=1) > 0).all():
        return "–", "–", "–"
    result = paired_bootstraps(parts[:, shared])[0, 1]
    p = "<.001" if result.p < 0.001 else f"{result.p:.3f}"
    return f"{result.difference:+.2f}", _range(result.low, result.high, " to "), p


def _range(low: float, high: float, to: str) -> str:
    return f"{low:.1f}{to}{high:.1f}"
