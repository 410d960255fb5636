"""What is known of a tree before its sentence is parsed: spans that are phrases, or are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING

from attree.base.errors import AttreeError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Span = tuple[int, int]

#: What stands in place of a label where a tree is half known: a phrase whose label is not known, a
#: span that is no phrase, a span of which all phrases inside are given.
UNKNOWN, NO_PHRASE, COMPLETE = MARKS = ("?", "!", "=")

#: Added to the score of a span that a tree should avoid, and of one that it cannot have beside the
#: required ones: far beyond any score of a tree, so that avoiding comes first.
AVOIDED, CROSSED = -1e6, -1e10

#: Words of a region in which all phrases are given, and of all regions of one sentence.
LONGEST, _LONGEST_ALL = 300, 3_000

_UNDO = "undo one of the two"


@dataclass(frozen=True, slots=True)
class Constraints:
    """Spans that a tree must have, and spans that it must not have.

    Several labels of one span are a unary chain, the upper first. A span of one word can be
    required or forbidden too: it has an effect where trees have labels.

    Attributes:
        required: start, end, label of each phrase; None where the label is not known.
        forbidden: start, end of each span that is no phrase.

    Raises:
        AttreeError: two required spans cross, a span is both required and forbidden, is empty, or
            has a label and is said to have an unknown one.
    """

    required: tuple[tuple[int, int, str | None], ...] = ()
    forbidden: tuple[Span, ...] = ()

    def __post_init__(self) -> None:
        """Check all that can be checked without the sentence."""
        spans = [(start, end) for start, end, _ in self.required]
        for start, end in (*spans, *self.forbidden):
            if not 0 <= start < end:
                problem = f"{_named((start, end))} is no span"
                raise AttreeError("not-a-span", problem, fix="give start < end")
        if any(label is not None and not label.strip() for _, _, label in self.required):
            raise AttreeError("empty-label", "a label is empty", fix="name it, or leave it unknown")
        both = set(spans) & set(self.forbidden)
        if both:
            problem = f"{_named(min(both))} is both required and forbidden"
            raise AttreeError("contradiction", problem, fix=_UNDO)
        for span, labels in self.chains().items():
            if None in labels and len(labels) > 1:
                label = labels[labels[0] is None]
                problem = f"{_named(span)} has the label {label} and an unknown one"
                raise AttreeError("contradiction", problem, fix=_UNDO)
        crossed = _crossed(spans)
        if crossed is not None:
            problem = f"{_named(crossed[0])} and {_named(crossed[1])} are required, and cross"
            raise AttreeError("crossing-spans", problem, fix=_UNDO)

    @classmethod
    def of_marks(cls, spans: Iterable[tuple[int, int, str]]) -> Constraints:
        """Return what the brackets of a half-known tree say.

        Args:
            spans: start, end, label, of which :data:`MARKS` have a meaning of their own.

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
        taken = {(start, end) for start, end, _ in required}
        for start, end in _outermost(regions):
            inside = ((i, j) for i in range(start, end) for j in range(i + 1, end + 1))
            left = (span for span in inside if span not in taken and span != (start, end))
            forbidden |= dict.fromkeys(left)
        return cls(tuple(required), tuple(forbidden))

    @classmethod
    def of_tree(
        cls, n_words: int, spans: Iterable[tuple[int, int, str]], *, half: bool
    ) -> Constraints:
        """Return what a tree says: all of it, or what the marks of a half-known one say.

        Raises:
            AttreeError: its spans contradict each other.
        """
        whole = [] if half else [(0, n_words, COMPLETE)]
        return cls.of_marks([*whole, *spans])

    def __bool__(self) -> bool:
        """Tell whether anything is known."""
        return bool(self.required or self.forbidden)

    def chains(self) -> dict[Span, list[str | None]]:
        """Return the labels of each required span, the upper first; ``[None]``: not known."""
        labels_of: dict[Span, list[str | None]] = {}
        for start, end, label in self.required:
            labels = labels_of.setdefault((start, end), [])
            if label is not None or None not in labels:
                labels.append(label)
        return labels_of

    def check(self, n_words: int) -> None:
        """Refuse what cannot be in a sentence of ``n_words``.

        Raises:
            AttreeError: a span outside the sentence, or a whole sentence that is no phrase.
        """
        for start, end in (*self.chains(), *self.forbidden):
            if end > n_words:
                problem = f"{_named((start, end))} is outside a sentence of {n_words} words"
                raise AttreeError("span-outside", problem, fix="leave it out")
        if (0, n_words) in self.forbidden:
            problem = f"{_named((0, n_words))} is the whole sentence, and is always a phrase"
            raise AttreeError("whole-sentence", problem, fix="leave it out")

    def crossed(self, n_words: int) -> NDArray[np.bool_]:
        """(n + 1, n + 1) bool: the spans that cross a required one.

        Raises:
            AttreeError: as :meth:`check`.
        """
        self.check(n_words)
        return crossing(list(self.chains()), n_words + 1)

    def allowed(self, n_words: int) -> NDArray[np.bool_]:
        """(n + 1, n + 1) bool: the spans that cross no required one and are not forbidden.

        Raises:
            AttreeError: as :meth:`check`.
        """
        allowed = ~self.crossed(n_words)
        allowed[_columns(self.forbidden)] = False
        return allowed

    def penalties(self, n_words: int) -> NDArray[np.float64]:
        """(n + 1, n + 1): what to add to span scores, so that the best tree keeps to these.

        A forbidden span is in the best tree only where no binary tree can be without: of three
        words, for one, either the first two are a span or the last two.
        """
        import numpy as np

        penalties = np.where(self.crossed(n_words), CROSSED, 0.0)
        penalties[_columns(span for span in self.forbidden if span[1] - span[0] > 1)] += AVOIDED
        return penalties


#: Position of a sentence → what is known of its tree. Sentences that are not in it are unknown.
Known = Mapping[int, Constraints]
NOTHING_KNOWN: Known = MappingProxyType({})


def paired(
    sentences: Iterable[str | Sequence[str]],
    constraints: Iterable[Constraints | None] | None,
    words: Callable[[str | Sequence[str]], list[str]],
) -> Iterator[tuple[list[str], Constraints | None]]:
    """Yield the words of each sentence and what is known of its tree.

    Args:
        sentences: texts, or lists of words.
        constraints: of each sentence; None where nothing is known.
        words: gives those of a sentence.

    Raises:
        AttreeError: there are not as many constraints as sentences, a span lies outside its
            sentence, or a word is empty.
    """
    if constraints is None:
        yield from ((words(sentence), None) for sentence in sentences)
        return
    for number, (sentence, known) in enumerate(zip_longest(sentences, constraints, fillvalue=...)):
        if sentence is ... or known is ...:
            problem = "there are not as many constraints as sentences"
            raise AttreeError("constraint-count", problem, fix="give None where nothing is known")
        split = words(sentence)
        if known:
            if not isinstance(sentence, str) and len(split) < len(sentence):
                problem = f"sentence {number} has an empty word, and constraints count words"
                raise AttreeError("empty-word", problem, fix="leave the word out")
            try:
                known.check(len(split))
            except AttreeError as error:
                raise error.but(problem=f"sentence {number}: {error.problem}") from None
        yield split, known


def crossing(spans: Sequence[Span] | NDArray[np.int64], side: int) -> NDArray[np.bool_]:
    """(side, side) bool: True for spans that cross one of ``spans``."""
    import numpy as np

    pairs = np.asarray(spans, np.int64).reshape(-1, 2)
    start, end = pairs[:, :1], pairs[:, 1:]
    boundary = np.arange(side)
    # in floats, since only their products are fast
    inside = ((start < boundary) & (boundary < end)).astype(np.float32)
    before, after = (boundary < start).astype(np.float32), (boundary > end).astype(np.float32)
    # a crossing span begins before a bracket and ends inside it, or begins inside and ends after
    crosses: NDArray[np.bool_] = before.T @ inside + inside.T @ after > 0
    return crosses


def _outermost(regions: Iterable[Span]) -> list[Span]:
    """Return the regions that are in no other one.

    Raises:
        AttreeError: one is so long, or all of them are, that their spans would fill the memory.
    """
    outermost: list[Span] = []
    for start, end in sorted(regions, key=lambda region: (region[0], -region[1])):
        if end - start > LONGEST:
            problem = f"{end - start:,} words are too many to be known completely"
            raise AttreeError("too-long", problem, fix=f"mark parts of at most {LONGEST} words")
        if not outermost or end > outermost[-1][1]:
            outermost.append((start, end))
    words = sum(end - start for start, end in outermost)
    if words > _LONGEST_ALL:
        problem = f"{words:,} words are too many to be known completely in one sentence"
        raise AttreeError("too-long", problem, fix=f"mark at most {_LONGEST_ALL:,}")
    return outermost


def _crossed(spans: Iterable[Span]) -> tuple[Span, Span] | None:
    """Return two spans that cross, if any do."""
    open_spans: list[Span] = []
    for start, end in sorted(set(spans), key=lambda span: (span[0], -span[1])):
        while open_spans and open_spans[-1][1] <= start:
            open_spans.pop()
        if open_spans and open_spans[-1][1] < end:
            return open_spans[-1], (start, end)
        open_spans.append((start, end))
    return None


def _columns(spans: Iterable[Span]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the starts and the ends of spans."""
    import numpy as np

    pairs = np.array(list(spans), np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _named(span: Span) -> str:
    return f"span [{span[0]}, {span[1]})"
