"""Labels and tags that are told apart in training: rare ones are folded where there are too many.

The treebanks of some languages have a thousand tags, most of them seen a few times: nothing is
learned of these, and each costs as much as a frequent one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from attree.fewshot.gold import CHAIN, GoldTrees
from attree.tree import NO_LABEL

#: How many labels, those of unary chains joined, and how many tags are told apart at most.
MOST = 150


def folded(counts: Counter[str], most: int, coarser: Callable[[str], str]) -> dict[str, str]:
    """Return the class of each name: itself, and of rare names what they are folded into.

    Names that are seen fewer than so many times are made coarser, together with others of the same
    coarser name, and what is still seen fewer times is the rest, ``X``; so many times are as few as
    leave ``most`` classes.

    Args:
        counts: how often each name occurs.
        most: how many classes there are at most, 1 or more.
        coarser: name → a coarser one, or the same if it has none.
    """
    least, found = 1, {name: name for name in counts}
    while len(set(found.values())) > most:
        least += 1 + least // 4
        found = _folded(counts, least, coarser)
    return found


def _folded(counts: Counter[str], least: int, coarser: Callable[[str], str]) -> dict[str, str]:
    found = {name: name for name in counts}
    while True:
        total: Counter[str] = Counter()
        for name, count in counts.items():
            total[found[name]] += count
        up = {name: coarser(name) for name, count in total.items() if count < least}
        if all(name == other for name, other in up.items()):
            rest = dict.fromkeys(up, NO_LABEL)
            return {name: rest.get(one, one) for name, one in found.items()}
        found = {name: up.get(one, one) for name, one in found.items()}


def coarse_tag(tag: str) -> str:
    """Return the part of a tag before its first punctuation sign: ``NN`` of ``NN-Masc``."""
    return re.match(r".?[^\W_]*", tag, re.DOTALL)[0]  # type: ignore[index]


def coarse_label(label: str) -> str:
    """Return a label or chain without functions, ``NP+QP`` of ``NP-SBJ+QP``; then its upper one."""
    chain = label.split(CHAIN)
    coarse = CHAIN.join(map(coarse_tag, chain))
    return coarse if coarse != label else chain[0] or label


#: The parts of speech of Universal Dependencies.
# fmt: off
UNIVERSAL_TAGS = frozenset((
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SYM", "VERB", "X",
))
# fmt: on


def with_one_tagset(trees: GoldTrees) -> GoldTrees:
    """Return trees of several treebanks without tags that are not universal, if some trees' are.

    Each treebank has tags of its own, of which a parser of many languages would guess one or other.
    """
    universal = [UNIVERSAL_TAGS.issuperset(tree.tags) and bool(tree.tags) for tree in trees.gold]
    if len(trees.sources) < 2 or not any(universal):
        return trees
    kept = zip(trees.gold, universal, strict=True)
    return replace(trees, gold=[one if keep else replace(one, tags=()) for one, keep in kept])


def with_classes(trees: GoldTrees, most: int = MOST) -> GoldTrees:
    """Return trees with at most so many labels and as many tags; the same if there are no more."""
    trees = with_one_tagset(trees)
    labels = Counter(label for tree in trees.gold for _, _, label in tree.labels)
    tags = Counter(tag for tree in trees.gold for tag in tree.tags)
    if max(len(labels), len(tags)) <= most:
        return trees
    label_of, tag_of = folded(labels, most, coarse_label), folded(tags, most, coarse_tag)
    gold = [
        replace(
            tree,
            labels=tuple((start, end, label_of[label]) for start, end, label in tree.labels),
            tags=tuple(tag_of[tag] for tag in tree.tags),
        )
        for tree in trees.gold
    ]
    return replace(trees, gold=gold)
