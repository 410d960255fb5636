"""Pair predicted trees with gold trees by their words; report every sentence without a partner.

Predicted trees are read with punctuation (:func:`read_whole`). Words that cleaning removed from a
gold sentence are removed from its partner too. So the tags of predictions do not matter, and
predictions without punctuation can be paired as well.
"""

import dataclasses
import difflib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, repeat, zip_longest
from pathlib import Path
from types import MappingProxyType

import numpy as np

from attree.base.errors import AttreeError
from attree.base.terminal import say
from attree.base.text import bracket_form
from attree.treebank.cleaning import CleaningCounts, clean, prepare
from attree.treebank.formats import read_files, resolve
from attree.treebank.sentence import Rejected, Sentence, Span, SplitSettings
from attree.trees import OK, SKIPPED
from attree.trees.parses import Parses
from attree.trees.tree import NO_LABEL
from attree.trees.trees import Trees

#: Words of a sentence before cleaning → which of them it left.
_Stays = Mapping[tuple[str, ...], list[bool]]


def read_whole(
    files: Sequence[Path],
    settings: SplitSettings,
    refuse: Callable[[str], object],
    *,
    partial: bool = False,
    punctuation: str | None = "keep",
) -> Iterator[Sentence]:
    """Yield the sentences of treebank files, by default with all their words.

    Args:
        files: of one format.
        settings: how they are read.
        refuse: called with a line for each sentence that cannot be read.
        partial: whether partly bracketed trees are accepted; else they are refused.
        punctuation: the policy that replaces that of the settings.

    Raises:
        AttreeError: a file cannot be read.
    """
    how = resolve(dataclasses.replace(settings, punctuation=punctuation), files)
    for item in prepare(read_files(files, how), how, CleaningCounts()):
        if isinstance(item, Rejected):
            refuse(str(item))
        elif item.partial and not partial:
            refuse(f"{_at(item)}: only some of this tree is known")
        else:
            yield item


def paired(
    gold: Sequence[Sentence],
    read: Sequence[Sentence],
    refused: list[str],
    name: str | Path,
    whole: _Stays = MappingProxyType({}),
) -> dict[int, Sentence]:
    """Return row in ``gold`` → tree over the same words, for each sentence with a tree.

    Args:
        gold: sentences, cleaned.
        read: trees in the same order; some may be missing, and there may be others.
        refused: gets a line for each sentence and each tree without a partner.
        name: of what the trees were read from.
        whole: words of the gold sentences before cleaning → which of them it left, if known.

    Raises:
        AttreeError: no tree has the words of a sentence.
    """
    pairs = {}
    stays = {tuple(map(bracket_form, words)): left for words, left in whole.items()}
    of_gold, of_trees = [_key(one, {}) for one in gold], [_key(one, stays) for one in read]
    matcher = difflib.SequenceMatcher(a=of_gold, b=of_trees, autojunk=False)
    for _, first, last, start, stop in matcher.get_opcodes():
        for row, tree in zip_longest(range(first, last), read[start:stop]):
            if row is None:
                refused.append(f"{_at(tree)}: no such sentence among the gold trees")
            elif tree is None:
                refused.append(f"{_at(gold[row])}: no tree of this sentence")
            elif fitted := _fit_words(gold[row], tree, stays):
                pairs[row] = fitted
            else:
                refused += [_differ(gold[row], tree), f"{_at(gold[row])}: no tree of this sentence"]
    if not pairs:
        example = f" (first: {refused[0]})" if refused else ""
        problem = f"no tree has the words of a sentence{example}"
        fix = "give trees of the same sentences"
        raise AttreeError("other-sentences", problem, file=name, fix=fix)
    return pairs


def _at(tree: Sentence) -> str:
    return f"{tree.file}:{tree.line}"


def _key(tree: Sentence, stays: _Stays) -> tuple[str, ...]:
    """Return the words by which a sentence is known, before and after cleaning."""
    forms = tuple(map(bracket_form, tree.words))
    return tuple(filter(_is_kept, compress(forms, stays.get(forms, repeat(True)))))


def _is_kept(word: str) -> bool:
    """Tell whether no policy removes a word as punctuation; ptb removes currencies, US$ too."""
    return any(map(str.isalnum, word)) and "Sc" not in map(unicodedata.category, word)


def _fit_words(gold: Sentence, tree: Sentence, stays: _Stays) -> Sentence | None:
    """Remove the words from a tree that its gold sentence lacks; None if words differ."""
    words, forms = (tuple(map(bracket_form, sentence.words)) for sentence in (gold, tree))
    keep = stays.get(forms, [])
    if tuple(compress(forms, keep)) != words:
        keep, matched = [], 0
        for word in forms:
            keep.append(matched < len(words) and word == words[matched])
            matched += keep[-1]
    left = [word for word, kept in zip(forms, keep, strict=True) if not kept]
    fits = sum(keep) == len(words) and (forms in stays or not any(map(_is_kept, left)))
    return clean(tree, lambda _: keep) if fits else None


def _differ(gold: Sentence, tree: Sentence) -> str:
    """Say how the words of a tree differ from those of a gold sentence."""
    a, b = _key(gold, {}), _key(tree, {})
    if len(a) != len(b) or a == b:
        a, b = gold.words, tree.words
    if len(a) != len(b):
        return f"{_at(tree)}: {len(b)} words, but {_at(gold)} has {len(a)}"
    index = next((i for i, pair in enumerate(zip(a, b, strict=True)) if len({*pair}) > 1), 0)
    return f"{_at(tree)}: word {b[index]!r} is {a[index]!r} in {_at(gold)}"


def has_labels(trees: Iterable[Sentence], file: Path) -> bool:
    """Tell whether trees have labels; a single label on all phrases counts as none."""
    names = {label for tree in trees for *_, label in tree.spans} - {"", NO_LABEL}
    if len(names) == 1:
        label = names.pop()
        say(f"attree: {file}: every phrase is labelled {label}: taken for trees without labels")
        return False
    return bool(names)


def as_parses(
    gold: Sequence[Sentence], pairs: Mapping[int, Sentence], *, labelled: bool, tagged: bool = False
) -> Parses:
    """Return the tree of each gold sentence, numbered from 0; without spans where it has none.

    Args:
        gold: the sentences.
        pairs: row in ``gold`` → tree over the same words.
        labelled: whether labels are kept.
        tagged: whether tags are kept.
    """
    n_words = [len(sentence.words) for sentence in gold]
    trees = [pairs.get(row) for row in range(len(gold))]
    nodes = [_nodes(tree, labelled=labelled) if tree else [] for tree in trees]
    labels = [[label for *_, label in spans] for spans in nodes] if labelled else None
    made = Trees.from_spans(n_words, [[span[:2] for span in spans] for spans in nodes], labels)
    if tagged:
        pairs_of = zip(trees, n_words, strict=True)
        tags = [tree.tags if tree else [NO_LABEL] * n for tree, n in pairs_of]
        made = made.tagged(list(chain.from_iterable(tags)))
    status = np.where([tree is not None for tree in trees], OK, SKIPPED)
    return Parses(np.arange(len(gold), dtype=np.int32), made, status)


def _nodes(tree: Sentence, *, labelled: bool) -> list[Span]:
    """Return a tree's spans in pre-order.

    With labels, these are all nodes except a top node without a label; else the distinct spans of
    two words and more, and the whole sentence.
    """
    top = (0, len(tree.words), "")
    if labelled:
        spans = [span for span in tree.spans if span != top]
    else:
        every = {(start, end, "") for start, end, _ in (top, *tree.spans)}
        spans = [span for span in every if span[1] - span[0] > 1]
    return sorted(spans, key=lambda span: (span[0], -span[1]))
