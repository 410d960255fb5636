"""Constrain trees before their sentences are parsed: spans that are phrases, or are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from attree.base.errors import AttreeError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Span = tuple[int, int]

#: Marks in place of labels of partly bracketed trees: a phrase whose label is not known, a span
#: that is no phrase, a span inside which all phrases are given.
UNKNOWN, NO_PHRASE, COMPLETE = MARKS = ("?", "!", "=")

#: Added to the score of a forbidden span, and of a span that crosses a required one: far beyond any
#: score of a tree, so that constraints come first.
AVOIDED, CROSSED = -1e6, -1e10

#: The most words of a region in which all phrases are given, and of all regions of a sentence.
LONGEST, _LONGEST_ALL = 300, 3_000

_UNDO = "undo one of the two"


@dataclass(frozen=True, slots=True)
class Constraints:
    """Spans that a tree must have, and spans that it must not have.

    Several labels of one span are a unary chain, the upper first. Spans of one word can be required
    or forbidden too; this has an effect on labelled trees.

    Attributes:
        required: start, end and label of each phrase; the label is None if it is not known.
        forbidden: start and end of each span that is no phrase.

    Raises:
        AttreeError: two required spans cross, or a span is both required and forbidden, is empty,
            or has both a label and an unknown one.
    """

    required: tuple[tuple[int, int, str | None], ...] = ()
    forbidden: tuple[Span, ...] = ()

    def __post_init__(self) -> None:
        """Check the constraints, apart from the sentence."""
        # a generator can be read once only
        object.__setattr__(self, "required", tuple(self.required))
        object.__setattr__(self, "forbidden", tuple(self.forbidden))
        spans = [(start, end) for start, end, _ in self.required]
        for start, end in (*spans, *self.forbidden):
            if not 0 <= start < end:
                problem = f"{_name((start, end))} is no span"
                raise AttreeError("not-a-span", problem, fix="give start < end")
        if any(label is not None and not label.strip() for _, _, label in self.required):
            raise AttreeError("empty-label", "a label is empty", fix="name it, or leave it unknown")
        if shared := set(spans) & set(self.forbidden):
            problem = f"{_name(min(shared))} is both required and forbidden"
            raise AttreeError("contradiction", problem, fix=_UNDO)
        for span, labels in self.chains().items():
            if None in labels and len(labels) > 1:
                label = labels[labels[0] is None]
                problem = f"{_name(span)} has the label {label} and an unknown one"
                raise AttreeError("contradiction", problem, fix=_UNDO)
        if (crossed := find_crossing(spans)) is not None:
            problem = f"{_name(crossed[0])} and {_name(crossed[1])} are required, and cross"
            raise AttreeError("crossing-spans", problem, fix=_UNDO)

    @classmethod
    def of_marks(cls, spans: Iterable[tuple[int, int, str]]) -> Constraints:
        """Return the constraints of the brackets of a partly bracketed tree.

        Args:
            spans: start, end and label, or a mark in :data:`MARKS`.

        Raises:
            AttreeError: they contradict each other.
        """
        required: list[tuple[int, int, str | None]] = []
        forbidden: dict[Span, None] = {}
        regions: set[Span] = set()
        for start, end, label in spans:
            if label == COMPLETE:
                regions.add((start, end))
            elif label == NO_PHRASE:
                forbidden[start, end] = None
            else:
                required.append((start, end, None if label == UNKNOWN else label))
        phrases = {(start, end) for start, end, _ in required}
        for start, end in _outermost(regions):
            inside = ((i, j) for i in range(start, end) for j in range(i + 1, end + 1))
            left = (span for span in inside if span not in phrases and span != (start, end))
            forbidden |= dict.fromkeys(left)
        return cls(tuple(required), tuple(forbidden))

    @classmethod
    def of_tree(
        cls, n_words: int, spans: Iterable[tuple[int, int, str]], *, partial: bool
    ) -> Constraints:
        """Return the constraints of a whole tree, or with ``partial`` of a partly bracketed one.

        Raises:
            AttreeError: its spans contradict each other.
        """
        return cls.of_marks(spans if partial else [(0, n_words, COMPLETE), *spans])

    def __bool__(self) -> bool:
        """Tell whether there is any constraint."""
        return bool(self.required or self.forbidden)

    def chains(self) -> dict[Span, list[str | None]]:
        """Return the labels of each required span, the upper first; ``[None]`` if not known."""
        labels_of: dict[Span, list[str | None]] = {}
        for start, end, label in self.required:
            labels = labels_of.setdefault((start, end), [])
            if label is not None or None not in labels:
                labels.append(label)
        return labels_of

    def check(self, n_words: int) -> None:
        """Refuse constraints that a sentence of ``n_words`` cannot meet.

        Raises:
            AttreeError: a span is outside the sentence, or the whole sentence is forbidden.
        """
        for start, end in (*self.chains(), *self.forbidden):
            if end > n_words:
                problem = f"{_name((start, end))} is outside a sentence of {n_words} words"
                raise AttreeError("span-outside", problem, fix="leave it out")
        if (0, n_words) in self.forbidden:
            problem = f"{_name((0, n_words))} is the whole sentence, and is always a phrase"
            raise AttreeError("whole-sentence", problem, fix="leave it out")

    def crossed(self, n_words: int) -> NDArray[np.bool_]:
        """Return the spans that cross a required one: (n + 1, n + 1) bool.

        Raises:
            AttreeError: as :meth:`check`.
        """
        self.check(n_words)
        return crossing(list(self.chains()), n_words + 1)

    def penalties(self, n_words: int) -> NDArray[np.float64]:
        """Return penalties to add to span scores, so that the best tree obeys: (n + 1, n + 1).

        The best tree has a forbidden span only if no binary tree is without one: in three words,
        for example, either the first two are a span or the last two.
        """
        import numpy as np

        penalties = np.where(self.crossed(n_words), CROSSED, 0.0)
        for start, end in set(self.forbidden):
            if end - start > 1:
                penalties[start, end] += AVOIDED
        return penalties


#: Row of a sentence → constraints on its tree. Nothing is known of the other sentences.
Known = Mapping[int, Constraints]
NOTHING_KNOWN: Known = MappingProxyType({})


def crossing(spans: Sequence[Span] | NDArray[np.int64], side: int) -> NDArray[np.bool_]:
    """Return which spans cross one of ``spans``: (side, side) bool."""
    import numpy as np

    pairs = np.asarray(spans, np.int64).reshape(-1, 2)
    start, end = pairs[:, :1], pairs[:, 1:]
    boundary = np.arange(side)
    # floats, since only float matrix products are fast
    inside = ((start < boundary) & (boundary < end)).astype(np.float32)
    before, after = (boundary < start).astype(np.float32), (boundary > end).astype(np.float32)
    # a crossing span begins before a bracket and ends inside it, or begins inside and ends after
    crosses: NDArray[np.bool_] = before.T @ inside + inside.T @ after > 0
    return crosses


def _outermost(regions: Iterable[Span]) -> list[Span]:
    """Return the regions that lie in no other region.

    Raises:
        AttreeError: one of them, or all together, are so long that their spans would fill memory.
    """
    outermost: list[Span] = []
    for start, end in sorted(regions, key=lambda region: (region[0], -region[1])):
        if end - start > LONGEST:
            problem = f"{end - start:,} words are too many to be known completely"
            raise AttreeError("too-long", problem, fix=f"mark parts of at most {LONGEST} words")
        if not outermost or end > outermost[-1][1]:
            outermost.append((start, end))
    if (words := sum(end - start for start, end in outermost)) > _LONGEST_ALL:
        problem = f"{words:,} words are too many to be known completely in one sentence"
        raise AttreeError("too-long", problem, fix=f"mark at most {_LONGEST_ALL:,}")
    return outermost


def find_crossing(spans: Iterable[Span]) -> tuple[Span, Span] | None:
    """Return two spans that cross, if any do."""
    open_spans: list[Span] = []
    for start, end in sorted(set(spans), key=lambda span: (span[0], -span[1])):
        while open_spans and open_spans[-1][1] <= start:
            open_spans.pop()
        if open_spans and open_spans[-1][1] < end:
            return open_spans[-1], (start, end)
        open_spans.append((start, end))
    return None


def _name(span: Span) -> str:
    return f"span [{span[0]}, {span[1]})"
