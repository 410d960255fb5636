"""F1 of trees in a file against gold trees in another, beside trees that look at nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attree.evaluate.align import Aligned
from attree.evaluation import METRICS
from attree.evaluation.baselines import fixed_parses
from attree.evaluation.counts import Counts
from attree.evaluation.evalb import labelled_results
from attree.evaluation.metrics import score, upper_bound
from attree.parses import Parses
from attree.tables.render import Grid, number
from attree.treebank.table import to_table

#: Trees that stand beside every parser, with their headings.
BASELINES = {
    "right_branching": "right branching",
    "left_branching": "left branching",
    "balanced": "balanced",
}

_SHOWN = {name: metric.heading for name, metric in METRICS.items() if metric.in_tables}


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
        how = {"max_words": self._max_words}
        yield self._name, score(self.gold, self.predicted, **how).counts
        for name, heading in BASELINES.items():
            yield heading, score(self.gold, fixed_parses(name, self.gold), **how).counts
        yield "binary ceiling", upper_bound(self.gold, **how)

    def grid(self) -> Grid:
        """Return the table that people read."""
        rows = [
            [name, *(number(getattr(counts, metric)) for metric in _SHOWN)]
            for name, counts in self.rows()
        ]
        note = f"{self._pairs.sentences}. Unlabelled F1 of spans of two words and more."
        return Grid("F1", ["", *_SHOWN.values()], rows, f"{note} {self.labelled()}".strip())

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
