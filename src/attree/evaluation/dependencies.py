"""Compare phrases with dependency trees: headed precision, and recall of subtrees.

Neither depends on the style of a constituency treebank. *Headed precision* is the share of
predicted phrases that have exactly one word whose head lies outside. *Recall of subtrees* is the
share of projective subtrees, a word with all that depends on it, that are predicted phrases. Spans
count without punctuation at their edges, if two words or more are left that are not the sentence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attree.trees.trees import Trees

#: Tag of punctuation in Universal Dependencies.
PUNCTUATION = "PUNCT"


def phrases_and_subtrees(
    trees: Trees, heads: NDArray[np.int32], punctuation: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Count the phrases with one head, and the subtrees that are phrases, of each sentence.

    Args:
        trees: the predicted trees; of equal phrases one counts.
        heads: (words,), the heads of all words, from 0 in each sentence, -1 for a root; without
            cycles.
        punctuation: (words,), which words are punctuation: cut from the edges of phrases, and not
            counted inside them.

    Returns:
        (sentences, 4): phrases with exactly one word whose head lies outside, phrases, subtrees
        among the phrases, subtrees.
    """
    first = trees.word_offsets
    words, count = int(first[-1]), len(trees)
    sentence = np.repeat(np.arange(count), trees.n_words)
    above = np.where(heads < 0, -1, heads + first[sentence]).astype(np.int64)
    # the next word that is no punctuation, and the end of the last such word
    place = np.arange(words)
    ahead = np.append(np.where(punctuation, words, place), words)
    ahead = np.minimum.accumulate(ahead[::-1])[::-1]
    behind = np.maximum.accumulate(np.append(0, np.where(punctuation, 0, place + 1)))
    whole = ahead[first[:-1]] * (words + 1) + behind[first[1:]]

    def keys(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
        starts, ends = ahead[starts], behind[ends]
        numbers = (starts * (words + 1) + ends)[ends - starts > 1]
        return numbers[~np.isin(numbers, whole)]

    base = first[trees.tree_of]
    phrases = np.unique(keys(trees.starts + base, trees.ends + base))
    subtrees = keys(*_subtrees(above))
    found = subtrees[np.isin(subtrees, phrases)]
    headed = phrases[_leaving(phrases, above, punctuation) == 1]
    columns = [
        np.bincount(sentence[numbers // (words + 1)], minlength=count)
        for numbers in (headed, phrases, found, subtrees)
    ]
    return np.stack(columns, axis=1)


def _leaving(
    keys: NDArray[np.int64], above: NDArray[np.int64], punctuation: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Count the words of each span whose heads lie outside."""
    starts, ends = np.divmod(keys, len(above) + 1)
    lengths = ends - starts
    span = np.repeat(np.arange(keys.size), lengths)
    word = np.arange(span.size) - np.repeat(np.cumsum(lengths) - lengths - starts, lengths)
    outside = (above[word] < starts[span]) | (above[word] >= ends[span])
    return np.bincount(span[outside & ~punctuation[word]], minlength=keys.size)


def _subtrees(above: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the starts and ends of the subtrees that are spans."""
    place = np.arange(above.size)
    low, high, size = place.copy(), place.copy(), np.ones_like(place)
    ancestor = above.copy()
    while (below := np.flatnonzero(ancestor >= 0)).size:
        at = ancestor[below]
        np.minimum.at(low, at, below)
        np.maximum.at(high, at, below)
        size += np.bincount(at, minlength=size.size)
        ancestor[below] = above[at]
    spans = size == high + 1 - low
    return low[spans], high[spans] + 1
