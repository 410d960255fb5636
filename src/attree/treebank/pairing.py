"""Anyone's trees beside gold trees, paired by their words; every sentence left out is reported.

Trees to be paired are read whole, punctuation included (:func:`read_whole`). What cleaning
took out of a gold sentence is taken out of its partner too, so that tags of the predictions do not
matter, and predictions without punctuation pair as well.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np

from attree.base.schemas import OK, SKIPPED
from attree.base.text import say, unescape
from attree.treebank.cleaning import CleaningCounts, clean, prepare
from attree.treebank.formats import read_files, resolve
from attree.treebank.sentence import Rejected, Sentence, Span, SplitSettings
from attree.trees.parses import Parses
from attree.trees.tree import NO_LABEL
from attree.trees.trees import Trees


def read_whole(
    files: Sequence[Path],
    settings: SplitSettings,
    refuse: Callable[[str], object],
    *,
    half: bool = False,
    punctuation: str | None = "keep",
) -> Iterator[Sentence]:
    """Yield the sentences of treebank files, by default with all their words.

    Args:
        files: of one format.
        settings: how they are read.
        refuse: is told a line for each sentence that cannot be read.
        half: whether half-known trees will do; else they are refused.
        punctuation: the policy in place of that of the settings.

    Raises:
        AttreeError: a file cannot be read.
    """
    how = resolve(dataclasses.replace(settings, punctuation=punctuation), files)
    for item in prepare(read_files(files, how), how, CleaningCounts()):
        if isinstance(item, Rejected):
            refuse(str(item))
        elif item.half and not half:
            refuse(f"{_at(item)}: only some of this tree is known")
        else:
            yield item


def paired(
    gold: Sequence[Sentence], read: Sequence[Sentence], refused: list[str]
) -> Iterator[tuple[int, Sentence]]:
    """Yield sentences' places in ``gold``, and their trees over the same words.

    Args:
        gold: sentences, cleaned.
        read: trees in the same order; of some sentences there may be none, and some more.
        refused: gets a line for each sentence and each tree that is left over.
    """
    keys = [[_key(one) for one in side] for side in (gold, read)]
    matcher = difflib.SequenceMatcher(a=keys[0], b=keys[1], autojunk=False)
    for _, first, last, start, stop in matcher.get_opcodes():
        for row, one in zip_longest(range(first, last), read[start:stop]):
            if row is None:
                refused.append(f"{_at(one)}: no such sentence among the gold trees")
            elif one is None:
                refused.append(f"{_at(gold[row])}: no tree of this sentence")
            elif fitted := _fit(gold[row], one):
                yield row, fitted
            else:
                refused += [_unequal(gold[row], one), f"{_at(gold[row])}: no tree of this sentence"]


def _at(one: Sentence) -> str:
    return f"{one.file}:{one.line}"


def _key(one: Sentence) -> tuple[str, ...]:
    """Return the words that no cleaning takes for punctuation."""
    return tuple(word for word in map(unescape, one.words) if any(map(str.isalnum, word)))


def _fit(gold: Sentence, one: Sentence) -> Sentence | None:
    """Take the words out of a tree that its gold sentence lacks; None if that has others."""
    wanted, stays = list(map(unescape, gold.words)), []
    matched = 0
    for word in map(unescape, one.words):
        stays.append(matched < len(wanted) and word == wanted[matched])
        matched += stays[-1]
    left = [word for word, stay in zip(one.words, stays, strict=True) if not stay]
    whole = matched == len(wanted) and not any(map(str.isalnum, "".join(left)))
    return clean(one, lambda _: stays) if whole else None


def _unequal(gold: Sentence, one: Sentence) -> str:
    """Say how the words of a tree differ from those of the gold sentence in its place."""
    a, b = _key(gold), _key(one)
    if len(a) != len(b) or a == b:
        a, b = gold.words, one.words
        return f"{_at(one)}: {len(b)} words, but {_at(gold)} has {len(a)}"
    place = next(at for at, pair in enumerate(zip(a, b, strict=True)) if len({*pair}) > 1)
    return f"{_at(one)}: word {b[place]!r} is {a[place]!r} in {_at(gold)}"


def has_labels(trees: Iterable[Sentence], file: Path) -> bool:
    """Tell whether labels say something: one that stands on every phrase is a mere sign for it."""
    names = {label for one in trees for *_, label in one.spans} - {"", NO_LABEL}
    if len(names) == 1:
        label = names.pop()
        say(f"attree: {file}: every phrase is labelled {label}: taken for trees without labels")
        return False
    return bool(names)


def as_parses(
    gold: Sequence[Sentence],
    found: Mapping[int, Sentence],
    *,
    labelled: bool,
    tagged: bool = False,
) -> Parses:
    """Return the tree of each gold sentence, numbered from 0; without spans where none was found.

    Args:
        gold: the sentences.
        found: places among them → trees over the same words.
        labelled: whether labels are taken.
        tagged: whether tags are.
    """
    n_words = [len(sentence.words) for sentence in gold]
    trees = [found.get(row) for row in range(len(gold))]
    nodes = [_nodes(tree, labelled=labelled) if tree else [] for tree in trees]
    labels = [[label for *_, label in spans] for spans in nodes] if labelled else None
    made = Trees.from_spans(n_words, [[span[:2] for span in spans] for spans in nodes], labels)
    if tagged:
        tags = [
            tree.tags if tree else [NO_LABEL] * n for tree, n in zip(trees, n_words, strict=True)
        ]
        made = made.tagged(list(chain.from_iterable(tags)))
    status = np.where([tree is not None for tree in trees], OK, SKIPPED)
    return Parses(np.arange(len(gold), dtype=np.int32), made, status)


def _nodes(tree: Sentence, *, labelled: bool) -> list[Span]:
    """Return a tree's spans in pre-order.

    With labels every node as gold trees have them, where a top without a label is none; else the
    distinct spans of two words and more, the whole sentence among them.
    """
    top = (0, len(tree.words), "")
    if labelled:
        spans = [span for span in tree.spans if span != top]
    else:
        every = {(start, end, "") for start, end, _ in (top, *tree.spans)}
        spans = [span for span in every if span[1] - span[0] > 1]
    return sorted(spans, key=lambda span: (span[0], -span[1]))
