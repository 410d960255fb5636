"""Represent the trees of many sentences as flat arrays, from decoders to later stages.

A tree is the spans of its nodes, half-open word intervals ``[start, end)``. It need not be binary,
and its nodes may have labels and scores. :class:`~.tree.Tree` is one sentence's tree for users.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from attree.trees.tree import Tree

Spans = NDArray[np.int32]

#: Attributes of :class:`Trees` that have a value for each span, and those that may be None.
_ALWAYS, _NUMBERS = ("starts", "ends"), ("scores", "marginals")
_OF_SPANS = (*_ALWAYS, "labels", *_NUMBERS)
#: Attributes that have a value for each word, or are None.
_OF_WORDS = ("tags", "heads")


def binary_offsets(n_words: ArrayLike) -> NDArray[np.int64]:
    """Return where the spans of binary trees begin, and the end of the last.

    Args:
        n_words: words of each sentence; its tree has ``max(n - 1, 0)`` spans of two words and more.
    """
    return np.concatenate(([0], np.cumsum(np.maximum(np.asarray(n_words, dtype=np.int64) - 1, 0))))


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
        tags: int32 (words,), codes into ``tag_names`` for the words of all trees, or None.
        tag_names: what the codes mean.
        heads: int32 (words,), of gold trees made of dependencies, the head of each word in its
            sentence, -1 for a root, -2 where it is not known; else None.
    """

    n_words: NDArray[np.int64]
    offsets: NDArray[np.int64]
    starts: Spans
    ends: Spans
    labels: NDArray[np.int32] | None = None
    label_names: tuple[str, ...] = ()
    scores: NDArray[np.float64] | None = None
    marginals: NDArray[np.float64] | None = None
    tags: NDArray[np.int32] | None = None
    tag_names: tuple[str, ...] = ()
    heads: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        """Freeze the arrays, and check that their sizes agree."""
        n_spans = self.starts.size
        if self.offsets.size != self.n_words.size + 1 or self.offsets[-1] != n_spans:
            raise ValueError(f"offsets of {self.n_words.size} trees end at {n_spans} spans")
        for name in ("n_words", "offsets", *_OF_SPANS, *_OF_WORDS):
            if (values := getattr(self, name)) is None:
                continue
            frozen = np.asarray(values).view()
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)
            if name in _OF_SPANS and frozen.size != n_spans:
                raise ValueError(f"{n_spans} spans need as many {name}")
            if name in _OF_WORDS and frozen.size != self.n_words.sum():
                raise ValueError(f"{self.n_words.sum()} words need as many {name}")

    @classmethod
    def binary(cls, n_words: ArrayLike, starts: Spans, ends: Spans, **more: Any) -> Trees:
        """Return binary trees: ``max(n - 1, 0)`` spans of two words and more a sentence."""
        words = np.asarray(n_words, dtype=np.int64)
        return cls(words, binary_offsets(words), starts, ends, **more)

    @classmethod
    def from_spans(
        cls,
        n_words: Iterable[int],
        spans: Iterable[Iterable[tuple[int, int]]],
        labels: Iterable[Iterable[str]] | None = None,
    ) -> Trees:
        """Return trees of spans in pre-order, with their labels if given."""
        trees = [[tuple(span) for span in tree] for tree in spans]
        pairs = np.array([span for tree in trees for span in tree], np.int32).reshape(-1, 2)
        offsets = np.concatenate(([0], np.cumsum([*map(len, trees)], dtype=np.int64)))
        made = cls(np.array([*n_words], np.int64), offsets, pairs[:, 0], pairs[:, 1])
        return made if labels is None else made.labelled([x for tree in labels for x in tree])

    @classmethod
    def concatenate(cls, parts: Sequence[Trees]) -> Trees:
        """Return the trees of all parts in order, with the attributes that all parts have."""
        if not parts:
            return cls.binary([], np.empty(0, np.int32), np.empty(0, np.int32))
        ends = np.cumsum([part.starts.size for part in parts])
        shifted = [
            part.offsets[1:] + end - part.starts.size for part, end in zip(parts, ends, strict=True)
        ]
        columns = {name: [getattr(part, name) for part in parts] for name in _ALWAYS + _NUMBERS}
        labels, names = _recode([(part.labels, part.label_names) for part in parts])
        tags, tag_names = _recode([(part.tags, part.tag_names) for part in parts])
        return cls(
            np.concatenate([part.n_words for part in parts]),
            np.concatenate([np.zeros(1, np.int64), *shifted]),
            labels=labels,
            label_names=names,
            tags=tags,
            tag_names=tag_names,
            **{
                name: np.concatenate(arrays)
                for name, arrays in columns.items()
                if all(values is not None for values in arrays)
            },
        )

    def __len__(self) -> int:
        """Return the number of trees."""
        return self.n_words.size

    def __eq__(self, other: object) -> bool:
        """Tell whether words, spans, labels and tags are the same; scores do not count."""
        if not isinstance(other, Trees):
            return NotImplemented
        same = all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("n_words", "offsets", "starts", "ends")
        )
        labels = self.label_of_each() == other.label_of_each()
        return same and labels and self.tag_of_each() == other.tag_of_each()

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_spans(self) -> NDArray[np.int64]:
        """int64 (trees,), spans of each tree."""
        return np.diff(self.offsets)

    @property
    def word_offsets(self) -> NDArray[np.int64]:
        """int64 (trees + 1,), where each tree's words begin among all words."""
        return np.concatenate(([0], np.cumsum(self.n_words)))

    @property
    def tree_of(self) -> NDArray[np.int64]:
        """int64 (spans,), the tree that each span belongs to."""
        return np.repeat(np.arange(len(self)), self.n_spans)

    def label_of_each(self) -> list[str] | None:
        """Return the label of every span, None for unlabelled trees."""
        return _decode(self.labels, self.label_names)

    def tag_of_each(self) -> list[str] | None:
        """Return the tag of every word of all trees, None for trees without tags."""
        return _decode(self.tags, self.tag_names)

    def labelled(self, labels: Sequence[str]) -> Trees:
        """Return the same trees with a label on every span."""
        codes, names = _encode(labels)
        return replace(self, labels=codes, label_names=names)

    def tagged(self, tags: Sequence[str]) -> Trees:
        """Return the same trees with a tag on every word."""
        codes, names = _encode(tags)
        return replace(self, tags=codes, tag_names=names)

    def take(self, rows: ArrayLike) -> Trees:
        """Return the trees at ``rows``, in that order."""
        rows = np.asarray(rows, dtype=np.int64)
        offsets, spans = _runs(self.offsets, rows)
        chosen = self._at(_OF_SPANS, spans) | self._at(_OF_WORDS, _runs(self.word_offsets, rows)[1])
        return replace(self, n_words=self.n_words[rows], offsets=offsets, **chosen)

    def keep(self, spans: NDArray[np.bool_]) -> Trees:
        """Return the same trees with only some of their spans: (spans,) bool."""
        before = np.concatenate(([0], np.cumsum(spans)))
        kept = self._at(_OF_SPANS, np.flatnonzero(spans))
        return replace(self, offsets=before[self.offsets], **kept)

    def _at(self, names: Sequence[str], places: NDArray[np.int64]) -> dict[str, Any]:
        """Return the attributes of these names at some places: of spans, or of words."""
        columns = {name: getattr(self, name) for name in names}
        return {name: None if x is None else x[places] for name, x in columns.items()}

    def replaced(self, others: Mapping[int, Trees]) -> Trees:
        """Replace the trees at some rows by one tree each."""
        if not others:
            return self
        order = np.arange(len(self))
        order[list(others)] = len(self) + np.arange(len(others))
        return Trees.concatenate([self, *others.values()]).take(order)

    def mean_scores(self) -> NDArray[np.float32]:
        """Return the mean score of each tree's spans, NaN without spans: float32 (trees,)."""
        if self.scores is None:
            return np.full(len(self), np.nan, np.float32)
        means = np.full(len(self), np.nan)
        if (nonempty := np.flatnonzero(self.n_spans)).size:
            sums = np.add.reduceat(self.scores, self.offsets[nonempty])
            means[nonempty] = sums / self.n_spans[nonempty]
        return means.astype(np.float32)

    def of(self, place: int, words: Sequence[str] | None = None, **more: Any) -> Tree:
        """Return one tree; its words are ``w0``, ``w1`` and so on if not given.

        Args:
            place: which tree.
            words: of its sentence.
            more: ``tags`` and ``status``, as of :class:`attree.trees.tree.Tree`.
        """
        from attree.trees.tree import Tree

        here = slice(self.offsets[place], self.offsets[place + 1])
        if self.tags is not None:
            first = int(self.n_words[:place].sum())
            codes = self.tags[first : first + int(self.n_words[place])].tolist()
            more.setdefault("tags", tuple(self.tag_names[code] for code in codes))
        if words is None:
            words = [f"w{number}" for number in range(int(self.n_words[place]))]
        if self.labels is not None:
            more["labels"] = tuple(self.label_names[code] for code in self.labels[here].tolist())
        scores = None if self.scores is None else tuple(self.scores[here].tolist())
        if self.marginals is not None and not np.isnan(self.marginals[here]).any():
            more["marginals"] = tuple(self.marginals[here].tolist())
        pairs = zip(self.starts[here].tolist(), self.ends[here].tolist(), strict=True)
        return Tree(tuple(words), tuple(pairs), span_scores=scores, **more)

    def each(self, words: Iterable[Sequence[str]]) -> Iterator[Tree]:
        """Yield every tree over its sentence's words."""
        return (self.of(row, sentence) for row, sentence in enumerate(words))

    def bracketed(self, words: Iterable[Sequence[str]]) -> list[str]:
        """Return every tree on one line, see :meth:`attree.trees.tree.Tree.brackets`."""
        return [tree.brackets() for tree in self.each(words)]


def _encode(names: Sequence[str]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return a number for each name, and what the numbers mean."""
    distinct = tuple(dict.fromkeys(names))
    code = {name: number for number, name in enumerate(distinct)}
    return np.array([code[name] for name in names], np.int32), distinct


def _decode(codes: NDArray[np.int32] | None, names: tuple[str, ...]) -> list[str] | None:
    return None if codes is None else np.array(names, object)[codes].tolist()


def _recode(
    parts: Sequence[tuple[NDArray[np.int32] | None, tuple[str, ...]]],
) -> tuple[NDArray[np.int32] | None, tuple[str, ...]]:
    """Recode the parts with shared names; return codes and names, or None if a part has none."""
    shared = tuple(dict.fromkeys(name for _, names in parts for name in names))
    code_of = {name: code for code, name in enumerate(shared)}
    recoded = []
    for codes, names in parts:
        if codes is None:
            return None, ()
        recoded.append(np.array([code_of[name] for name in names] or [0], np.int32)[codes])
    return np.concatenate(recoded), shared


def _runs(
    offsets: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return offsets of the runs of ``rows`` put together, and their positions in the original."""
    lengths = np.diff(offsets)[rows]
    after = np.concatenate(([0], np.cumsum(lengths)))
    return after, np.arange(after[-1]) + np.repeat(offsets[rows] - after[:-1], lengths)
