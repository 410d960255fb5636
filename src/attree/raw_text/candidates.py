"""Draw a random pool of distinct sentences from raw text, within bounds of length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attree.base.errors import AttreeError
from attree.base.status import OK
from attree.raw_text.inputs import find_inputs
from attree.raw_text.lines import read_sentences, refuse_treebanks
from attree.raw_text.words import Tokeniser


@dataclass(frozen=True, slots=True)
class Window:
    """Bounds on the number of words of a sentence, both included."""

    least: int
    most: int

    def __post_init__(self) -> None:
        """Refuse bounds that no sentence fits.

        Raises:
            AttreeError: the least number of words is larger than the most, or below 2.
        """
        if not 2 <= self.least <= self.most:
            problem = f"no sentence to annotate has {self.least} to {self.most} words"
            raise AttreeError("bad-words", problem, fix="give a smaller number first, from 2 on")


@dataclass(slots=True)
class Pool:
    """Sentences to choose from.

    Attributes:
        words: of each sentence, in random order.
        seen: the number of distinct sentences within the window.
        left_out: reason → number of sentences or lines left out.
    """

    words: list[list[str]]
    seen: int
    left_out: Counter[str]


def read_pool(
    inputs: Iterable[Path],
    split: Tokeniser,
    window: Window,
    *,
    size: int,
    seed: int,
    column: str = "text",
) -> Pool:
    """Draw sentences from files; only one hash per sentence seen stays in memory.

    Args:
        inputs: files and folders, as for :func:`attree.raw_text.inputs.find_inputs`.
        split: splits texts into sentences of words.
        window: of their lengths.
        size: how many are drawn at most; all sentences are equally likely.
        seed: of the draw.
        column: of Parquet and JSON Lines.

    Raises:
        AttreeError: an input cannot be read, is a treebank, or no sentence is left.
    """
    generator, pool, seen = np.random.default_rng(seed), Pool([], 0, Counter()), set[int]()
    files, _ = find_inputs(inputs)
    refuse_treebanks(files)
    for _, _, status, sentences in read_sentences(files, column, split):
        if status != OK:
            pool.left_out[f"lines {status}"] += 1
        for words in sentences:
            if not window.least <= len(words) <= window.most:
                pool.left_out["too short or too long"] += 1
            elif hash(tuple(words)) in seen:
                pool.left_out["repeated"] += 1
            else:
                seen.add(hash(tuple(words)))
                _draw(pool, words, size, generator)
    if not pool.words:
        why = ", ".join(f"{count:,} {reason}" for reason, count in pool.left_out.items())
        problem = f"no sentence to choose from ({why or 'no line'})"
        fix = "give another --min-words or --max-words, or other text"
        raise AttreeError("no-sentences", problem, file=files[0].path, fix=fix)
    generator.shuffle(pool.words)
    return pool


def _draw(pool: Pool, words: list[str], size: int, generator: np.random.Generator) -> None:
    """Add a sentence to the pool; once it is full, maybe replace another (reservoir sampling)."""
    pool.seen += 1
    if len(pool.words) < size:
        pool.words.append(words)
    elif (position := int(generator.integers(pool.seen))) < size:
        pool.words[position] = words
