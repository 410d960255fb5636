"""That gold trees and parses are of the same sentences: none is ever dropped."""

from __future__ import annotations

import numpy as np

from attree.errors import AttreeError
from attree.parses import Parses


def check_same_sentences(gold: Parses, parses: Parses) -> None:
    """Check that both have the same sentences, once each, and as many words in each.

    Raises:
        AttreeError: they have not; the line names the first sentence at fault.
    """
    for one, other, which in ((gold, parses, "parses"), (parses, gold, "gold trees")):
        missing = np.setdiff1d(one.sentence, other.sentence)
        if missing.size:
            raise AttreeError(
                f"sentence {missing[0]} has no row among the {which}"
                + (f" (nor have {missing.size - 1} others)" if missing.size > 1 else ""),
                fix="score the parses with the sentence table they were made from",
            )
    if gold.sentence.size != parses.sentence.size:
        numbers, times = np.unique(
            np.concatenate([gold.sentence, parses.sentence]), return_counts=True
        )
        raise AttreeError(f"sentence {numbers[times > 2][0]} has more than one row")
    unequal = np.flatnonzero(gold.n_words != parses.n_words)
    if unequal.size:
        at = unequal[0]
        raise AttreeError(
            f"sentence {gold.sentence[at]} has {gold.n_words[at]} words in the gold tree and"
            f" {parses.n_words[at]} in the parse",
            fix="score the parses with the sentence table they were made from",
        )
