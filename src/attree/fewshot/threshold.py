"""Trees that need not be binary: the marginal below which a span is dropped, chosen on dev."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attree.decoding.batch import span_offsets
from attree.evaluation.metrics import f1_of_each
from attree.fewshot.gold import GoldTree
from attree.fewshot.parser import TrainedParser, gold_spans
from attree.fewshot.scorer import Source

#: thresholds of span marginals tried; 0 leaves trees binary
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(13))


def choose_threshold(
    parser: TrainedParser, source: Source, gold: Sequence[GoldTree]
) -> tuple[float, dict[str, float]]:
    """Return the threshold of span marginals whose pruned trees are best, and the F1 of each.

    Args:
        parser: one trained by ``tree_crf``, whose marginals mean something.
        source: features of trees that are not trained on.
        gold: those trees.
    """
    n_words = np.array([tree.n_words for tree in gold])
    starts, ends, likely = parser.decode_with_marginals(source)
    right = gold_spans(gold)
    tree = np.repeat(np.arange(len(gold)), np.diff(span_offsets(n_words)))
    found = {}
    for threshold in THRESHOLDS:
        kept = likely >= threshold
        offsets = np.concatenate(([0], np.cumsum(np.bincount(tree[kept], minlength=len(gold)))))
        pruned = f1_of_each(right, starts[kept], ends[kept], offsets)
        found[str(threshold)] = float(pruned.corpus_f1[0])
    best = max(THRESHOLDS, key=lambda threshold: (found[str(threshold)], -threshold))
    return best, found
