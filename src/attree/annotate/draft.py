"""Drafts: the corrections that an annotator has made to a sentence's tree, and the tree shown.

A draft is immutable: each correction returns a new one, so that undo goes back to the previous
draft. The newest correction counts: it removes those that it contradicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from attree.base.errors import AttreeError
from attree.treebank.sentence import Sentence
from attree.trees.constraints import MARKS, Constraints, Span, find_crossing
from attree.trees.tree import CHAIN, NO_LABEL, Tree, joined, parted

_LONGEST_LABEL = 80


@dataclass(frozen=True, slots=True)
class ShownPhrase:
    """A phrase as the page shows it: its words, its joined labels, whether it is fixed or flat."""

    start: int
    end: int
    label: str
    fixed: bool
    flat: bool


@dataclass(frozen=True, slots=True)
class Draft:
    """The corrections of a sentence.

    Attributes:
        n_words: number of words of the sentence.
        fixed: fixed phrase → its label, or a chain's (see ``trees/tree.py``); an empty label is
            left to the parser.
        broken: spans that are no phrases, which the parser must avoid.
        dissolved: spans that are not shown; their children belong to the phrase above.
        flat: fixed phrases whose children are only words and fixed phrases.
        tags: position of a word → its tag; other tags are left to the parser.
    """

    n_words: int
    fixed: Mapping[Span, str] = field(default_factory=dict)
    broken: frozenset[Span] = frozenset()
    dissolved: frozenset[Span] = frozenset()
    flat: frozenset[Span] = frozenset()
    tags: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, sentence: Sentence) -> Draft:
        """Return the draft that shows a tree of a treebank as it is."""
        n_words = len(sentence.words)
        fixed = {(0, n_words): ""} if n_words > 1 else {}
        # among others X is a name, which the parser must not replace
        fixed |= proposed(sentence.spans, _unknown(label for *_, label in sentence.spans))
        none = "", _unknown(sentence.tags)
        tags = {index: tag for index, tag in enumerate(sentence.tags) if tag not in none}
        flat = frozenset(span for span in fixed if _width(span) > 1)
        return cls(n_words, fixed, flat=flat, tags=tags)

    def tag(self, span: Span, tag: str) -> Draft:
        """Set the tag of a word; an empty tag leaves it to the parser again.

        Raises:
            AttreeError: brackets cannot hold the tag, or the span is no word.
        """
        self._check(span)
        if _width(span) != 1:
            raise AttreeError("tag-of-phrase", "only a word has a tag", fix="choose one word")
        name = checked_label(tag)
        others = {index: old for index, old in self.tags.items() if index != span[0]}
        return replace(self, tags={**others, span[0]: name} if name else others)

    def tags_of(self, tree: Tree) -> list[str]:
        """Return the tag of each word: of this draft, else as the parser proposes."""
        tags = ["" if tag == NO_LABEL else tag for tag in tree.tags or ("",) * self.n_words]
        return [self.tags.get(index, tag) for index, tag in enumerate(tags)]

    def join(self, span: Span, label: str = "") -> Draft:
        """Make a span a phrase; an empty label keeps the one that it has."""
        self._check(span)
        kept = (other for other in self.fixed if not find_crossing((span, other)))
        fixed = {other: self.fixed[other] for other in kept}
        fixed[span] = label or fixed.get(span, "")
        broken, dissolved = self.broken - {span}, self.dissolved - {span}
        flat = self.flat & set(fixed)
        return replace(self, fixed=fixed, broken=broken, dissolved=dissolved, flat=flat)

    def label(self, span: Span, label: str) -> Draft:
        """Set the label of a phrase, or those of a chain (``S+VP``); an empty one removes it.

        Raises:
            AttreeError: brackets cannot hold the label.
        """
        name, draft = checked_label(label), self.join(span)
        return replace(draft, fixed={**draft.fixed, span: name})

    def flatten(self, span: Span) -> Draft:
        """Make a span a flat phrase, with only words and fixed phrases right below it."""
        self._check(span)
        if _width(span) < 2:
            problem = "a flat phrase needs two words"
            raise AttreeError("short-phrase", problem, fix="choose more words")
        draft = self.join(span)
        return replace(draft, flat=draft.flat | {span})

    def clear(self, span: Span) -> Draft:
        """Leave out every proposed phrase below a phrase, at any depth."""
        draft = self.flatten(span)
        return replace(draft, flat=draft.flat | {sub for sub in draft.fixed if _holds(span, sub)})

    def break_up(self, span: Span) -> Draft:
        """Forbid a span: the parser proposes another."""
        self._inner(span)
        return replace(self._without(span), broken=self.broken | {span})

    def dissolve(self, span: Span) -> Draft:
        """Leave a phrase out, and give its children to the phrase above."""
        self._inner(span)
        return replace(self._without(span), dissolved=self.dissolved | {span})

    def move(self, span: Span, to: Span) -> Draft:
        """Move the ends of a phrase.

        A proposed span becomes forbidden; a span that was only passed on the way does not.
        """
        self._inner(span)
        draft = self._without(span).join(to, self.fixed.get(span, ""))
        flat = draft.flat | {to} if span in self.flat else draft.flat
        return replace(draft, broken=draft.broken | ({span} - {to, *self.fixed}), flat=flat)

    def constraints(self) -> Constraints:
        """Return the constraints on the parser."""
        fixed = sorted(self.fixed.items())
        required = tuple(
            (*span, name or None) for span, label in fixed for name in parted(label) or [""]
        )
        return Constraints(required, tuple(sorted(self.broken)))

    def nodes(self, tree: Tree) -> list[ShownPhrase]:
        """Return the phrases shown, given the proposed tree, in pre-order.

        The whole sentence is always a phrase.
        """
        spans = proposed(tree.labelled())
        labels = {span: label for span, label in spans.items() if self._is_shown(span)}
        for span, label in self.fixed.items():
            labels[span] = label or labels.get(span, "")
        if self.n_words > 1:
            labels.setdefault((0, self.n_words), "")
        return [
            ShownPhrase(*span, labels[span], span in self.fixed, span in self.flat)
            for span in sorted(labels, key=lambda span: (span[0], -span[1]))
        ]

    def _is_shown(self, span: Span) -> bool:
        if span in self.fixed:
            return True
        above = [other for other in self.fixed if _holds(other, span)]
        below_flat = bool(above) and min(above, key=_width) in self.flat
        return not below_flat and span not in self.broken | self.dissolved

    def _without(self, span: Span) -> Draft:
        fixed = {other: label for other, label in self.fixed.items() if other != span}
        return replace(self, fixed=fixed, flat=self.flat - {span})

    def _check(self, span: Span) -> None:
        if not 0 <= span[0] < span[1] <= self.n_words:
            problem = "these words are not in the sentence"
            raise AttreeError("span-outside", problem, fix="choose other words")

    def _inner(self, span: Span) -> None:
        self._check(span)
        if span == (0, self.n_words):
            problem = "the whole sentence is always a phrase"
            raise AttreeError("whole-sentence", problem, fix="choose another phrase")


def proposed(spans: Iterable[tuple[int, int, str]], unknown: str = NO_LABEL) -> dict[Span, str]:
    """Return span → label of a tree; the labels of a unary chain are joined."""
    chains: dict[Span, list[str]] = {}
    for start, end, label in spans:
        chains.setdefault((start, end), []).append("" if label == unknown else label)
    return {span: joined(chain) for span, chain in chains.items()}


def _unknown(names: Iterable[str]) -> str:
    """Return what stands for a name that is not known: X only where all are that."""
    return NO_LABEL if {*names} <= {"", NO_LABEL} else ""


def tree_of(words: tuple[str, ...], nodes: Iterable[ShownPhrase], tags: Sequence[str] = ()) -> Tree:
    """Return the tree to save of the phrases shown: each label of a chain becomes a node."""
    labelled = [(node, label) for node in nodes for label in parted(node.label) or [NO_LABEL]]
    labels = tuple(label for _, label in labelled)
    spans = tuple((node.start, node.end) for node, _ in labelled)
    return Tree(words, spans, labels, tuple(tag or NO_LABEL for tag in tags) or None)


def checked_label(label: str) -> str:
    """Strip a label and check it.

    Raises:
        AttreeError: it has white space, brackets or ``##`` in it, an empty part of a chain, or is a
            name that treebanks reserve, or is too long.
    """
    label = label.strip()
    wrong = next((sign for sign in ("(", ")", "##") if sign in label), "")
    if wrong or len(label.split()) > 1 or not label.isprintable():
        problem = f"a label cannot have {wrong} in it" if wrong else "a label is one word"
        fix = "write it with letters, digits and signs such as - _ /"
        raise AttreeError("label-characters", problem, fix=fix)
    if not all(label.split(CHAIN)) and label:
        fix = "write a chain as S+VP, and %2B for + in a label"
        raise AttreeError("empty-label", "a label is missing beside +", fix=fix)
    if {"-NONE-", NO_LABEL, *MARKS} & set(parted(label)):
        problem = f"{label} stands for no label in treebanks"
        raise AttreeError("label-reserved", problem, fix="choose another")
    if len(label) > _LONGEST_LABEL:
        problem = f"a label has at most {_LONGEST_LABEL} characters"
        raise AttreeError("label-too-long", problem, fix="choose a shorter one")
    return label


def _width(span: Span) -> int:
    return span[1] - span[0]


def _holds(outer: Span, inner: Span) -> bool:
    return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]


#: Action of the page → its correction, given a draft, a span, a target span and a label.
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
