"""Trees that need not be binary: the marginal below which a span is dropped, chosen on dev."""

from __future__ import annotations

from collections.abc import Sequence

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
    trees, likely = parser.decode_with_marginals(source)
    right = gold_spans(gold)
    found = {}
    for threshold in THRESHOLDS:
        pruned = f1_of_each(right, trees.keep(likely >= threshold))
        found[str(threshold)] = float(pruned.corpus_f1[0])
    best = max(THRESHOLDS, key=lambda threshold: (found[str(threshold)], -threshold))
    return best, found
