"""F1 of trees in a file against gold trees in another, beside trees that look at nothing."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from attree.evaluation import METRICS
from attree.evaluation.baselines import fixed_parses
from attree.evaluation.counts import Counts
from attree.evaluation.evalb import labelled_results
from attree.evaluation.metrics import score, upper_bound
from attree.own_files.align import Aligned
from attree.parses import Parses
from attree.tables.render import Table, number
from attree.treebank.table import to_table

#: Trees that stand beside every parser.
BASELINES = ("right_branching", "left_branching", "balanced")

#: score → heading, in the order of columns
SHOWN = {name: metric.heading for name, metric in METRICS.items() if metric.in_tables}


def baseline_rows(gold: Parses, max_words: int | None = None) -> Iterator[tuple[str, Counts]]:
    """Yield name and counts of the baselines and of the binary ceiling."""
    for name in BASELINES:
        counts = score(gold, fixed_parses(name, gold), max_words=max_words).counts
        yield name.replace("_", " "), counts
    yield "binary ceiling", upper_bound(gold, max_words=max_words)


def row_of(name: str, runs: Sequence[Counts], metrics: Iterable[str] = tuple(SHOWN)) -> list[str]:
    """Return a row of the table: a name and each F1, its mean where there are several runs."""
    columns = ([getattr(counts, metric) for counts in runs] for metric in metrics)
    means = (None if None in column else statistics.fmean(column) for column in columns)
    return [name, *map(number, means)]


class Evaluation:
    """Trees of a file beside gold ones.

    Args:
        pairs: of sentences.
        name: what the predictions are called.
        max_words: score only sentences of at most this many words.
    """

    def __init__(self, pairs: Aligned, name: str, max_words: int | None = None) -> None:
        self._pairs, self._name, self._max_words = pairs, name, max_words
        self.gold = Parses.gold(to_table(pairs.gold))
        self.predicted = Parses.gold(to_table(pairs.predicted))

    def rows(self) -> Iterator[tuple[str, Counts]]:
        """Yield name and counts of the predictions, the baselines and the binary ceiling."""
        yield self._name, score(self.gold, self.predicted, max_words=self._max_words).counts
        yield from baseline_rows(self.gold, self._max_words)

    def table(self) -> Table:
        """Return the table that people read."""
        rows = [row_of(name, [counts]) for name, counts in self.rows()]
        note = f"{self._pairs.sentences}. Unlabelled F1 of spans of two words and more."
        return Table("F1", ["", *SHOWN.values()], rows, f"{note} {self.labelled()}".strip())

    def labelled(self) -> str:
        """Return labelled F1 by EVALB's rules in words; nothing where labels are others."""
        names = (set(side.trees.label_of_each() or ()) for side in (self.gold, self.predicted))
        if not set.intersection(*names):
            return ""
        longest = self._max_words or np.inf
        rows = labelled_results(self.gold.trees, self.predicted.trees)
        rows = rows[self.gold.n_words <= longest]
        both, gold, predicted = rows.sum(axis=0)
        exact = np.mean((rows[:, 0] == rows[:, 1]) & (rows[:, 0] == rows[:, 2]))
        f1 = 200 * both / max(gold + predicted, 1)
        return f"Labelled F1 as EVALB counts it: {f1:.2f}, exact match {100 * exact:.2f} %."

    def worst(self, count: int) -> Iterator[str]:
        """Yield drawings of the sentences of the lowest sentence F1, gold beside predicted."""
        scored = score(self.gold, self.predicted, max_words=self._max_words)
        order = np.argsort(scored.sentence_f1, kind="stable")
        for place in order[~np.isnan(scored.sentence_f1[order])][:count]:
            number = int(scored.sentence[place])
            right, guess = self._pairs.gold[number], self._pairs.predicted[number]
            f1 = 100 * scored.sentence_f1[place]
            yield f"{guess.file}:{guess.line}: sentence F1 {f1:.2f}"
            for title, side, one in (
                ("gold", self.gold, right),
                ("predicted", self.predicted, guess),
            ):
                yield f"{title}:\n{side.trees.of(number, one.words)}"
