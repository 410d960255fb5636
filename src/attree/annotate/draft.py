"""What an annotator has settled of one sentence's tree, and the tree that a proposal makes of it.

A draft is never changed: each correction returns a new one, so that undo is going back to the one
before. The newest correction counts: what it contradicts is given up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from attree.base.errors import AttreeError
from attree.treebank.sentence import Sentence
from attree.trees.constraints import MARKS, Constraints
from attree.trees.tree import NO_LABEL, Tree

Span = tuple[int, int]

#: Joins the labels of a unary chain, upper first, as in ``S+VP``.
CHAIN = "+"

_LONGEST_LABEL = 80


@dataclass(frozen=True, slots=True)
class ShownPhrase:
    """A phrase as the page shows it: its words, its labels (joined), what is settled about it."""

    start: int
    end: int
    label: str
    fixed: bool
    flat: bool


@dataclass(frozen=True, slots=True)
class Draft:
    """What is settled of a sentence.

    Attributes:
        n_words: of the sentence.
        fixed: phrases, with their labels; an empty label is left to the parser.
        broken: spans that are no phrases, and that the parser is to avoid.
        dissolved: spans that are not shown; what is in them belongs to the phrase above.
        flat: those of the fixed phrases that have only words and fixed phrases right below them.
        tags: of words, by their places; those of the other words are left to the parser.
    """

    n_words: int
    fixed: Mapping[Span, str] = field(default_factory=dict)
    broken: frozenset[Span] = frozenset()
    dissolved: frozenset[Span] = frozenset()
    flat: frozenset[Span] = frozenset()
    tags: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Sentence) -> Draft:
        """Return the draft by which a tree of a treebank is shown as it is."""
        n_words = len(given.words)
        fixed = {(0, n_words): ""} if n_words > 1 else {}
        fixed |= proposed(given.spans)
        tags = {place: tag for place, tag in enumerate(given.tags) if tag not in ("", NO_LABEL)}
        flat = frozenset(span for span in fixed if _width(span) > 1)
        return cls(n_words, fixed, flat=flat, tags=tags)

    def tag(self, span: Span, tag: str) -> Draft:
        """Give a word its tag; an empty one leaves it to the parser again.

        Raises:
            AttreeError: a tag that brackets cannot hold, or a span that is no word.
        """
        self._check(span)
        if _width(span) != 1:
            raise AttreeError("tag-of-phrase", "a tag is a word's", fix="choose one word")
        name = checked_label(tag)
        others = {place: one for place, one in self.tags.items() if place != span[0]}
        return replace(self, tags={**others, span[0]: name} if name else others)

    def tags_of(self, tree: Tree) -> list[str]:
        """Return the tag of each word: what is settled, else what the parser proposes."""
        found = ["" if tag == NO_LABEL else tag for tag in tree.tags or ("",) * self.n_words]
        return [self.tags.get(place, tag) for place, tag in enumerate(found)]

    def join(self, span: Span, label: str = "") -> Draft:
        """Make words a phrase; a label already settled stays where none is given."""
        self._check(span)
        fixed = {other: name for other, name in self.fixed.items() if not _cross(span, other)}
        fixed[span] = label or fixed.get(span, "")
        apart = frozenset((span,))
        return replace(
            self,
            fixed=fixed,
            broken=self.broken - apart,
            dissolved=self.dissolved - apart,
            flat=self.flat & set(fixed),
        )

    def label(self, span: Span, label: str) -> Draft:
        """Give a phrase its label, or several (``S+VP``) of a chain; an empty one takes it away.

        Raises:
            AttreeError: a label that brackets cannot hold.
        """
        name, found = checked_label(label), self.join(span)
        return replace(found, fixed={**found.fixed, span: name})

    def flatten(self, span: Span) -> Draft:
        """Make words one phrase of many: what is below it and not settled is left out."""
        self._check(span)
        if _width(span) < 2:
            problem = "a phrase of many needs two words"
            raise AttreeError("short-phrase", problem, fix="choose more words")
        found = self.join(span)
        return replace(found, flat=found.flat | {span})

    def clear(self, span: Span) -> Draft:
        """Leave out all that is below a phrase and not settled, however deep."""
        found = self.flatten(span)
        return replace(found, flat=found.flat | {one for one in found.fixed if _holds(span, one)})

    def break_up(self, span: Span) -> Draft:
        """Say that a span is no phrase: the parser proposes another."""
        self._inner(span)
        found = self._without(span)
        return replace(found, broken=self.broken | {span})

    def dissolve(self, span: Span) -> Draft:
        """Leave a phrase out, and what is in it to the phrase above."""
        self._inner(span)
        found = self._without(span)
        return replace(found, dissolved=self.dissolved | {span})

    def move(self, span: Span, to: Span) -> Draft:
        """Give a phrase other words at its ends.

        The span that the parser proposed is no phrase; one that was only passed on the way may be.
        """
        self._inner(span)
        proposed = {span} - {to, *self.fixed}
        found = self._without(span).join(to, self.fixed.get(span, ""))
        flat = found.flat | {to} if span in self.flat else found.flat
        return replace(found, broken=found.broken | proposed, flat=flat)

    def constraints(self) -> Constraints:
        """Return what the parser must keep to."""
        fixed = sorted(self.fixed.items())
        required = tuple(
            (*span, name or None) for span, label in fixed for name in label.split(CHAIN)
        )
        return Constraints(required, tuple(sorted(self.broken)))

    def nodes(self, tree: Tree) -> list[ShownPhrase]:
        """Return what is shown of the tree that the parser proposes, in pre-order.

        The whole sentence is always a phrase.
        """
        spans = proposed(labelled_spans(tree))
        found = {span: label for span, label in spans.items() if self._is_shown(span)}
        for span, label in self.fixed.items():
            found[span] = label or found.get(span, "")
        if self.n_words > 1:
            found.setdefault((0, self.n_words), "")
        return [
            ShownPhrase(*span, found[span], span in self.fixed, span in self.flat)
            for span in sorted(found, key=lambda span: (span[0], -span[1]))
        ]

    def _is_shown(self, span: Span) -> bool:
        if span in self.fixed:
            return True
        above = [one for one in self.fixed if _holds(one, span)]
        below_flat = bool(above) and min(above, key=_width) in self.flat
        return not below_flat and span not in self.broken | self.dissolved

    def _without(self, span: Span) -> Draft:
        fixed = {other: label for other, label in self.fixed.items() if other != span}
        return replace(self, fixed=fixed, flat=self.flat - {span})

    def _check(self, span: Span) -> None:
        if not 0 <= span[0] < span[1] <= self.n_words:
            problem = "these words are not in the sentence"
            raise AttreeError("span-outside", problem, fix="choose others")

    def _inner(self, span: Span) -> None:
        self._check(span)
        if span == (0, self.n_words):
            problem = "the whole sentence is always a phrase"
            raise AttreeError("whole-sentence", problem, fix="choose another phrase")


def proposed(spans: Iterable[tuple[int, int, str]]) -> dict[Span, str]:
    """Return the spans of a tree with their labels, those of a unary chain joined."""
    chains: dict[Span, list[str]] = {}
    for start, end, label in spans:
        chains.setdefault((start, end), []).append("" if label == NO_LABEL else label)
    return {span: CHAIN.join(filter(None, chain)) for span, chain in chains.items()}


def labelled_spans(tree: Tree) -> list[tuple[int, int, str]]:
    """Return the spans of a tree with a label each."""
    labels = tree.labels or (NO_LABEL,) * len(tree.spans)
    return [(*span, label) for span, label in zip(tree.spans, labels, strict=True)]


def tree_of(words: tuple[str, ...], nodes: Iterable[ShownPhrase], tags: Sequence[str] = ()) -> Tree:
    """Return the tree that the page shows, as it is saved: a chain is a node for each label."""
    each = [(node, label or NO_LABEL) for node in nodes for label in node.label.split(CHAIN)]
    labels = tuple(label for _, label in each)
    spans = tuple((node.start, node.end) for node, _ in each)
    return Tree(words, spans, labels, tuple(tag or NO_LABEL for tag in tags) or None)


def checked_label(label: str) -> str:
    """Return a label without white space around it.

    Raises:
        AttreeError: it has white space, brackets or ``##`` in it, ends with ``+``, or stands for no
            phrase in treebanks.
    """
    label = label.strip()
    wrong = next((sign for sign in ("(", ")", "##") if sign in label), "")
    if wrong or len(label.split()) > 1 or not label.isprintable():
        problem = f"a label cannot have {wrong} in it" if wrong else "a label is one word"
        raise AttreeError(
            "label-characters", problem, fix="write it with letters, digits and signs such as - _ /"
        )
    if not all(label.split(CHAIN)) and label:
        raise AttreeError("empty-label", "a label is missing beside +", fix="write a chain as S+VP")
    if {"-NONE-", NO_LABEL, *MARKS} & set(label.split(CHAIN)):
        raise AttreeError(
            "label-reserved", f"{label} stands for no label in treebanks", fix="choose another"
        )
    if len(label) > _LONGEST_LABEL:
        problem = f"a label has at most {_LONGEST_LABEL} characters"
        raise AttreeError("label-too-long", problem, fix="choose a shorter one")
    return label


def _width(span: Span) -> int:
    return span[1] - span[0]


def _holds(outer: Span, inner: Span) -> bool:
    return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]


def _cross(one: Span, other: Span) -> bool:
    first, second = sorted((one, other))
    return first[0] < second[0] < first[1] < second[1]


#: action of the page → the correction, of a draft, a span, and what belongs to it
CORRECTIONS: dict[str, Callable[[Draft, Span, Span, str], Draft]] = {
    "join": lambda draft, span, to, label: draft.join(span),
    "label": lambda draft, span, to, label: draft.label(span, label),
    "flat": lambda draft, span, to, label: draft.flatten(span),
    "clear": lambda draft, span, to, label: draft.clear(span),
    "break": lambda draft, span, to, label: draft.break_up(span),
    "dissolve": lambda draft, span, to, label: draft.dissolve(span),
    "move": lambda draft, span, to, label: draft.move(span, to),
    "tag": lambda draft, span, to, label: draft.tag(span, label),
}
