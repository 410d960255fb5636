"""Trees of many sentences as flat arrays: what decoders return and every later stage reads.

A tree is the spans of its nodes, half-open word intervals ``[start, end)``. It need not be binary,
and its nodes may have labels and scores. :class:`attree.tree.Tree` is one sentence's tree as people
want it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from attree.tree import Tree

Spans = NDArray[np.int32]

#: Attributes of :class:`Trees` that are numbers of spans.
_NUMBERS = ("scores", "marginals")


def binary_offsets(n_words: ArrayLike, each: int = 1) -> NDArray[np.int64]:
    """Return where the spans of binary trees begin, and the end of the last.

    Args:
        n_words: words of each sentence; its tree has ``max(n - 1, 0)`` spans of two words and more.
        each: trees of each sentence, one after the other.
    """
    spans = np.maximum(np.asarray(n_words, dtype=np.int64) - 1, 0)
    return np.concatenate(([0], np.cumsum(np.repeat(spans, each))))


@dataclass(frozen=True, eq=False)
class Trees:
    """The trees of some sentences, immutable.

    Attributes:
        n_words: int64 (trees,), words of each sentence.
        offsets: int64 (trees + 1,), where each tree's spans begin, and the end of the last.
        starts, ends: int32 (spans,), the spans of all trees, of each in pre-order (a span before
            those inside it; of equal spans the upper node first).
        labels: int32 (spans,), codes into ``label_names``, or None for unlabelled trees.
        label_names: what the codes mean.
        scores: float64 (spans,), the parser's score of each span, or None.
        marginals: float64 (spans,), the probability of each span under the parser's distribution
            over trees, NaN in trees that it did not make; None where it has no distribution.
    """

    n_words: NDArray[np.int64]
    offsets: NDArray[np.int64]
    starts: Spans
    ends: Spans
    labels: NDArray[np.int32] | None = None
    label_names: tuple[str, ...] = ()
    scores: NDArray[np.float64] | None = None
    marginals: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        """Freeze the arrays, and check that their sizes belong together."""
        for name in ("n_words", "offsets", "starts", "ends", "labels", *_NUMBERS):
            values = getattr(self, name)
            if values is not None:
                frozen = np.asarray(values).view()
                frozen.flags.writeable = False
                object.__setattr__(self, name, frozen)
        n_spans = self.starts.size
        if self.offsets.size != self.n_words.size + 1 or self.offsets[-1] != n_spans:
            raise ValueError(f"offsets of {self.n_words.size} trees end at {n_spans} spans")
        for name in ("ends", "labels", *_NUMBERS):
            values = getattr(self, name)
            if values is not None and values.size != n_spans:
                raise ValueError(f"{n_spans} spans need as many {name}")

    @classmethod
    def binary(cls, n_words: ArrayLike, starts: Spans, ends: Spans, **more: Any) -> Trees:
        """Return binary trees: ``max(n - 1, 0)`` spans of two words and more a sentence."""
        words = np.asarray(n_words, dtype=np.int64)
        return cls(words, binary_offsets(words), starts, ends, **more)

    @classmethod
    def from_spans(
        cls,
        n_words: Sequence[int],
        spans: Sequence[Iterable[tuple[int, int]]],
        labels: Sequence[Sequence[str]] | None = None,
    ) -> Trees:
        """Return trees of lists of spans, each in pre-order, with their labels where given."""
        flat = [tuple(span) for tree in spans for span in tree]
        lengths = [len(list(tree)) for tree in spans]
        pairs = np.array(flat, np.int32).reshape(-1, 2)
        offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        found = cls(np.array(n_words, np.int64), offsets, pairs[:, 0], pairs[:, 1])
        return found if labels is None else found.labelled([x for one in labels for x in one])

    @classmethod
    def concatenate(cls, parts: Sequence[Trees]) -> Trees:
        """Return the trees of all parts, in their order; with labels and numbers if all have."""
        if not parts:
            return cls.binary([], np.empty(0, np.int32), np.empty(0, np.int32))
        ends = np.cumsum([part.starts.size for part in parts])
        shifted = [
            part.offsets[1:] + end - part.starts.size for part, end in zip(parts, ends, strict=True)
        ]
        names = tuple(dict.fromkeys(name for part in parts for name in part.label_names))
        code = {name: place for place, name in enumerate(names)}
        labels = None
        if all(part.labels is not None for part in parts):
            recoded = [
                np.array([code[name] for name in part.label_names] or [0], np.int32)[part.labels]
                for part in parts
            ]
            labels = np.concatenate(recoded)
        numbers = {}
        for one in _NUMBERS:
            values = [getattr(part, one) for part in parts]
            if all(each is not None for each in values):
                numbers[one] = np.concatenate(values)
        return cls(
            np.concatenate([part.n_words for part in parts]),
            np.concatenate([np.zeros(1, np.int64), *shifted]),
            np.concatenate([part.starts for part in parts]),
            np.concatenate([part.ends for part in parts]),
            labels,
            names if labels is not None else (),
            **numbers,
        )

    def __len__(self) -> int:
        """Return the number of trees."""
        return self.n_words.size

    def __eq__(self, other: object) -> bool:
        """Tell whether words, spans and labels are the same; scores do not count."""
        if not isinstance(other, Trees):
            return NotImplemented
        same = all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("n_words", "offsets", "starts", "ends")
        )
        return same and self.label_of_each() == other.label_of_each()

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_spans(self) -> NDArray[np.int64]:
        """int64 (trees,), spans of each tree."""
        return np.diff(self.offsets)

    @property
    def tree_of(self) -> NDArray[np.int64]:
        """int64 (spans,), the tree that each span belongs to."""
        return np.repeat(np.arange(len(self)), self.n_spans)

    def label_of_each(self) -> list[str] | None:
        """Return the label of every span, None for unlabelled trees."""
        if self.labels is None:
            return None
        return [self.label_names[code] for code in self.labels.tolist()]

    def labelled(self, labels: Sequence[str]) -> Trees:
        """Return the same trees with a label on every span."""
        names = tuple(dict.fromkeys(labels))
        code = {name: place for place, name in enumerate(names)}
        codes = np.array([code[label] for label in labels], np.int32)
        return replace(self, labels=codes, label_names=names)

    def take(self, rows: ArrayLike) -> Trees:
        """Return the trees at ``rows``, in that order."""
        rows = np.asarray(rows, dtype=np.int64)
        lengths = self.n_spans[rows]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        spans = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        return self._of_spans(self.n_words[rows], offsets, spans)

    def keep(self, spans: NDArray[np.bool_]) -> Trees:
        """Return the same trees with only some of their spans: (spans,) bool."""
        before = np.concatenate(([0], np.cumsum(spans)))
        return self._of_spans(self.n_words, before[self.offsets], np.flatnonzero(spans))

    def _of_spans(
        self, n_words: NDArray[np.int64], offsets: NDArray[np.int64], spans: NDArray[np.int64]
    ) -> Trees:
        return Trees(
            n_words,
            offsets,
            self.starts[spans],
            self.ends[spans],
            None if self.labels is None else self.labels[spans],
            self.label_names,
            None if self.scores is None else self.scores[spans],
            None if self.marginals is None else self.marginals[spans],
        )

    def mean_scores(self) -> NDArray[np.float32]:
        """float32 (trees,), the mean score of each tree's spans, NaN of a tree without any."""
        if self.scores is None:
            return np.full(len(self), np.nan, np.float32)
        found = np.full(len(self), np.nan)
        some = np.flatnonzero(self.n_spans)
        if some.size:
            sums = np.add.reduceat(self.scores, self.offsets[some])
            found[some] = sums / self.n_spans[some]
        return found.astype(np.float32)

    def of(self, place: int, words: Sequence[str] | None = None, **more: Any) -> Tree:
        """Return one tree; without ``words`` they are called ``w0``, ``w1`` and so on.

        Args:
            place: which tree.
            words: of its sentence.
            more: ``tags`` and ``status``, as of :class:`attree.tree.Tree`.
        """
        from attree.tree import Tree

        here = slice(self.offsets[place], self.offsets[place + 1])
        if words is None:
            words = [f"w{number}" for number in range(int(self.n_words[place]))]
        labels = None
        if self.labels is not None:
            labels = tuple(self.label_names[code] for code in self.labels[here].tolist())
        scores = None if self.scores is None else tuple(self.scores[here].tolist())
        if self.marginals is not None and not np.isnan(self.marginals[here]).any():
            more["marginals"] = tuple(self.marginals[here].tolist())
        pairs = zip(self.starts[here].tolist(), self.ends[here].tolist(), strict=True)
        return Tree(tuple(words), tuple(pairs), labels=labels, span_scores=scores, **more)

    def each(self, words: Iterable[Sequence[str]]) -> Iterator[Tree]:
        """Yield every tree over its sentence's words."""
        for place, sentence in enumerate(words):
            yield self.of(place, sentence)

    def bracketed(self, words: Iterable[Sequence[str]]) -> list[str]:
        """Return every tree on one line, as :meth:`attree.tree.Tree.brackets` has it."""
        return [tree.brackets() for tree in self.each(words)]

    def to_nltk(self, words: Iterable[Sequence[str]]) -> list[Any]:
        """Return every tree as an ``nltk.Tree``."""
        return [tree.to_nltk() for tree in self.each(words)]


def _recoded(trees: Trees, code: dict[str, int]) -> NDArray[np.int32]:
    """Return the labels of trees in the codes of other names."""
    codes = np.array([code[name] for name in trees.label_names] or [0], np.int32)
    assert trees.labels is not None
    found: NDArray[np.int32] = codes[trees.labels]
    return found
