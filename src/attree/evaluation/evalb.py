"""EVALB, the scorer of labelled brackets by Sekine and Collins, with Ellis' repair of quotes.

A line holds a tree. Words and brackets with a deleted label do not count, what follows ``-`` or
``=`` in the label of a bracket is cut off, brackets over no word are left out, and two brackets are
the same if start, end and, unless told otherwise, label are. A bracket without a label around the
whole sentence, as treebanks put it around a tree, counts nowhere. Several of the same span and
label count as many times as both trees have them. Nothing limits the length of a line, word or
label. A tree that cannot be read costs its sentence alone, where the C program may end.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.evaluation.evalb_parameters import COLLINS, Parameters
from attree.evaluation.label_pairs import label_pairs
from attree.trees import Trees

#: status of a sentence: scored, an error in it or between the two trees, no tree by the parser
OK, ERROR, SKIPPED = 0, 1, 2

_QUOTES = ("'", '"', "/")
_SPACE = " \t\n\v\f\r"
_OPEN = re.compile(rf"\(([^{_SPACE}()]*)(?:[{_SPACE}]+([^{_SPACE}()]*))?")


@dataclass(slots=True)
class _Quote:
    """A quotation mark: where it is among the words, and the brackets that are open there."""

    word: str
    tag: str
    place: int
    brackets_before: int
    open: list[int]


@dataclass(slots=True)
class Bracketing:
    """What EVALB sees of a tree.

    Attributes:
        words: (word, tag) of those that count.
        brackets: [start, end, label] in the order in which they open.
        length: words of the sentence, deleted ones included but for ``delete_for_length``.
    """

    words: list[tuple[str, str]] = field(default_factory=list)
    brackets: list[list[Any]] = field(default_factory=list)
    quotes: list[_Quote] = field(default_factory=list)
    length: int = 0

    @property
    def outer(self) -> bool:
        """Whether a bracket without a label is around the whole sentence."""
        return [0, len(self.words), ""] in self.brackets

    def without(self, stays: Sequence[bool]) -> Bracketing:
        """Return the tree without some of its words."""
        new = list(itertools.accumulate(stays, initial=0))
        words = list(itertools.compress(self.words, stays))
        brackets = [[new[start], new[end], label] for start, end, label in self.brackets]
        return Bracketing(words, brackets, length=len(words))

    def put_back(self, which: int) -> None:
        """Make a deleted quotation mark a word again."""
        quote = self.quotes[which]
        self.words.insert(quote.place, (quote.word, quote.tag))
        for bracket in self.brackets[quote.brackets_before :]:
            bracket[0] += 1
            bracket[1] += 1
        for number in quote.open:
            self.brackets[number][1] += 1
        for later in self.quotes[which:]:
            later.place += 1


def read_tree(line: str, parameters: Parameters) -> Bracketing:
    """Read a tree, or several, of one line.

    Raises:
        ValueError: its brackets are unbalanced, or a word stands outside a bracket of its own.
    """
    tree, open_brackets, at = Bracketing(), list[int](), 0
    while at < len(line):
        if line[at] in _SPACE:
            at += 1
        elif line[at] == ")":
            if not open_brackets:
                raise ValueError("a bracket closes that was not opened")
            tree.brackets[open_brackets.pop()][1] = len(tree.words)
            at += 1
        elif found := _OPEN.match(line, at):
            label, word = found.groups()
            if word is not None and line.startswith(")", found.end()):
                _add_word(tree, word, label, open_brackets, parameters)
                at = found.end() + 1
                continue
            if word:
                raise ValueError(f"more than two elements in the bracket of {label} {word}")
            open_brackets.append(len(tree.brackets))
            tree.brackets.append([len(tree.words), -1, label])
            at = found.end(1)
        else:
            raise ValueError(f"{line[at:].split()[0]} stands outside a bracket of its own")
    if open_brackets:
        raise ValueError("a bracket is not closed")
    return tree


def _add_word(
    tree: Bracketing, word: str, tag: str, open_brackets: list[int], parameters: Parameters
) -> None:
    tree.length += tag not in parameters.delete_for_length
    if tag in parameters.quotes and word in _QUOTES:
        here = (len(tree.words), len(tree.brackets))
        tree.quotes.append(_Quote(word, tag, *here, list(open_brackets)))
    if tag not in parameters.delete:
        tree.words.append((word, tag))


@dataclass(frozen=True, slots=True)
class Result:
    """A sentence's counts, as in a row of EVALB; 0 but for ``length``, ``words`` if not scored.

    ``outer`` says of the gold tree and of the other whether an unlabelled bracket was around it.
    """

    length: int
    status: int = OK
    matched: int = 0
    gold: int = 0
    test: int = 0
    crossing: int = 0
    words: int = 0
    tags: int = 0
    problem: str = ""
    outer: tuple[bool, bool] = (False, False)

    @property
    def complete(self) -> bool:
        """Whether both trees have the same brackets."""
        return self.gold == self.test == self.matched


def compare(gold: Bracketing, test: Bracketing, parameters: Parameters) -> Result:
    """Score a tree; deleted quotation marks are put back where that makes both of one length."""
    if not test.words:
        return Result(gold.length, SKIPPED, words=len(gold.words))
    if len(gold.words) != len(test.words):
        _mend_quotes(gold, test, parameters)
    if len(gold.words) != len(test.words):
        problem = f"Length unmatch ({len(gold.words)}|{len(test.words)})"
        return Result(gold.length, ERROR, words=len(gold.words), problem=problem)
    pairs = list(zip(gold.words, test.words, strict=True))
    for (one, _), (other, _) in pairs:
        if not parameters.same_word(one, other):
            problem = f"Words unmatch ({one}|{other})"
            return Result(gold.length, ERROR, words=len(pairs), problem=problem)
    right, found = _counted(gold, parameters), _counted(test, parameters)
    return Result(
        gold.length,
        matched=_matched(right, found, parameters),
        gold=len(right),
        test=len(found),
        crossing=_crossing(right, found),
        words=len(pairs),
        tags=sum(parameters.same_label(one, other) for (_, one), (_, other) in pairs),
        outer=(gold.outer, test.outer),
    )


def _mend_quotes(gold: Bracketing, test: Bracketing, parameters: Parameters) -> None:
    for i, there in enumerate(test.quotes):
        place = there.place  # the others are compared with where it was
        for j, here in enumerate(gold.quotes):
            deleted = here.tag in parameters.delete
            if here.place != place or deleted == (there.tag in parameters.delete):
                continue
            gold.put_back(j) if deleted else test.put_back(i)


def _counted(tree: Bracketing, parameters: Parameters) -> list[tuple[Any, ...]]:
    """Return (start, end, label) of the brackets that count, their labels without functions."""
    around = [0, len(tree.words), ""]
    found = (
        (start, end, _cut(label))
        for start, end, label in tree.brackets
        if [start, end, label] != around
    )
    return [one for one in found if one[0] != one[1] and not parameters.deletes(one[2])]


def _cut(label: str) -> str:
    return re.split("[-=]", label, maxsplit=1)[0]


def _matched(
    gold: Iterable[tuple[Any, ...]], test: Iterable[tuple[Any, ...]], parameters: Parameters
) -> int:
    labels: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for start, end, label in test:
        labels[start, end].append(label)
    count = 0
    for start, end, label in gold:
        left = labels[start, end]
        for place, other in enumerate(left):
            if not parameters.labelled or parameters.same_label(label, other):
                del left[place]
                count += 1
                break
    return count


def _crossing(gold: Sequence[tuple[Any, ...]], test: Sequence[tuple[Any, ...]]) -> int:
    """Count the brackets of ``test`` that cross any of ``gold``."""
    if not gold or not test:
        return 0
    a, b = np.array([one[:2] for one in gold])[:, :, None], np.array([one[:2] for one in test]).T
    left = (a[:, 0] < b[0]) & (a[:, 1] > b[0]) & (a[:, 1] < b[1])
    right = (a[:, 0] > b[0]) & (a[:, 0] < b[1]) & (a[:, 1] > b[1])
    return int((left | right).any(axis=0).sum())


def labelled_results(gold: Trees, predicted: Trees) -> NDArray[np.int64]:
    """Score labelled trees of the same sentences by EVALB's rules, with what `COLLINS` deletes.

    Brackets of one word and unary chains count, and the whole sentence if it has a label.

    Args:
        gold: the gold trees, with labels.
        predicted: the others, with labels; words are taken to be the same.

    Returns:
        int64 (trees, 3): brackets in both, in gold, in predicted. Corpus F1 is
        ``2 * both / (gold + predicted)`` over the sums; a match is exact where all are equal.
    """
    if not np.array_equal(gold.n_words, predicted.n_words):
        raise ValueError("the trees have unequal numbers of words")
    known: dict[str, int] = {}
    right, found = (label_classes(trees, known) for trees in (gold, predicted))
    return label_pairs(gold, right, predicted, found, len(known))[1]


def label_classes(trees: Trees, known: dict[str, int]) -> NDArray[np.int64]:
    """Return a number for the label of each span, the same for equal ones, -1 if none counts."""
    found = []
    for label in trees.label_names if trees.labels is not None else ("",):
        name = _cut(label)
        equal = {name}.union(*(pair for pair in COLLINS.same_labels if name in pair))
        found.append(-1 if COLLINS.deletes(name) else known.setdefault(min(equal), len(known)))
    codes = np.zeros(trees.starts.size, np.int64) if trees.labels is None else trees.labels
    classes = np.array(found or [-1], np.int64)[codes]
    if trees.labels is not None and "" in trees.label_names:
        whole = (trees.starts == 0) & (trees.ends == trees.n_words[trees.tree_of])
        classes[whole & (codes == trees.label_names.index(""))] = -1
    return classes
