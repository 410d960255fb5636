"""Parses that were made elsewhere: trees of a file, or the average of several tables of parses."""

from __future__ import annotations

import dataclasses
import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from attree.decoding.average import average
from attree.errors import AttreeError
from attree.parses import Parses
from attree.provenance import provenance
from attree.schemas import OK, PARSES, SENTENCES, SKIPPED, read_table, write_table
from attree.text import safe, unescape
from attree.tree import NO_LABEL
from attree.treebank.check import MOST_SENTENCES
from attree.treebank.cleaning import clean
from attree.treebank.reading import read_whole
from attree.treebank.sentence import Sentence, Settings, Span
from attree.treebank.table import from_table
from attree.trees import Trees

#: Sentences named one by one where no tree of a file fits them.
_NAMED = 20


def write_imported(
    predictions: Path,
    sentences: Path,
    output: Path,
    settings: Settings,
    *,
    accept_loss: float = 0.0,
) -> None:
    """Write another parser's trees as parses of a sentence table.

    A tree belongs to the sentence whose words it has, in the order of both files. It may have
    punctuation that the table has not: what the table's cleaning took out is taken out of it too.
    A sentence without a tree is ``skipped``, and named. Labels are kept where the file has some,
    without functions unless the table has them. Tags are not: they may be the gold ones that the
    parser was given.

    Args:
        predictions: trees in a treebank format.
        sentences: the SENTENCES table.
        output: the PARSES table to write.
        settings: how the file is read.
        accept_loss: the share of the sentences that may be without a tree, if more than
            ``MOST_SENTENCES``.

    Raises:
        AttreeError: a file that cannot be read, none of its trees has a sentence, or more sentences
            than that have none.
    """
    table, metadata = read_table(sentences, schema=SENTENCES)
    gold = list(from_table(table))
    refused: list[str] = []
    functions = metadata.get("settings", {}).get("functions", settings.functions)
    how = dataclasses.replace(settings, functions=functions)
    found = dict(paired(gold, read_whole(predictions, how, refused), refused))
    if not found:
        first = f" (first: {refused[0]})" if refused else ""
        raise AttreeError(
            f"no tree has the words of a sentence{first}",
            file=predictions,
            fix=f"check that it parses the sentences of {sentences}",
        )
    more = [f"and {len(refused) - _NAMED:,} more"] if len(refused) > _NAMED else []
    total = f"{predictions}: trees of {len(found):,} of {len(gold):,} sentences"
    for line in (*refused[:_NAMED], *more, total):
        print(f"attree: {safe(line)}", file=sys.stderr)
    if len(gold) - len(found) > max(MOST_SENTENCES, accept_loss) * len(gold):
        raise AttreeError(
            f"only {len(found):,} of {len(gold):,} sentences have a tree (first: {refused[0]})",
            file=predictions,
            fix="give the trees of the same sentences; if this is right, --accept-loss SHARE"
            " (accept_loss under systems in config.yaml)",
        )
    trees = _trees(gold, found, labelled=_has_labels(found.values(), predictions))
    status = np.where([row in found for row in range(len(gold))], OK, SKIPPED)
    parses = Parses(table["sentence"].to_numpy(), trees, status)
    about = {"file": predictions.name, "refused": len(refused)}
    _write(output, parses.table(), metadata, "attree.parsing.command:import_command", about)


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
    for what, first, last, start, stop in matcher.get_opcodes():
        if what == "equal":
            for row, one in zip(range(first, last), read[start:stop], strict=True):
                if fitted := _fit(gold[row], one):
                    yield row, fitted
                else:
                    refused.append(f"{_at(one)}: its words are not those of {_at(gold[row])}")
            continue
        refused += [
            f"{_at(one)}: no such sentence among the gold trees" for one in read[start:stop]
        ]
        refused += [f"{_at(one)}: no tree of this sentence" for one in gold[first:last]]


def _at(one: Sentence) -> str:
    return f"{one.file}:{one.line}"


def _key(one: Sentence) -> tuple[str, ...]:
    """Return the words that no cleaning takes for punctuation."""
    return tuple(word for word in map(unescape, one.words) if any(map(str.isalnum, word)))


def _fit(gold: Sentence, one: Sentence) -> Sentence | None:
    """Take the words out of a tree that its gold sentence lacks; None if that has others."""
    wanted, stays = list(map(unescape, gold.words)), []
    at = 0
    for word in map(unescape, one.words):
        stays.append(at < len(wanted) and word == wanted[at])
        at += stays[-1]
    return clean(one, lambda _: stays) if at == len(wanted) else None


def _has_labels(trees: Iterable[Sentence], file: Path) -> bool:
    """Tell whether labels say something: one that stands on every phrase is a mere sign for it."""
    names = {label for one in trees for *_, label in one.spans} - {"", NO_LABEL}
    if len(names) == 1:
        line = f"{file}: every phrase is labelled {names.pop()}: taken for trees without labels"
        print(f"attree: {safe(line)}", file=sys.stderr)
        return False
    return bool(names)


def _trees(gold: Sequence[Sentence], found: Mapping[int, Sentence], *, labelled: bool) -> Trees:
    """Return the tree of each gold sentence, without spans where none was found."""
    n_words = [len(one.words) for one in gold]
    nodes = _labelled if labelled else _unlabelled
    each = [nodes(found[row]) if row in found else [] for row in range(len(gold))]
    labels = [[label for *_, label in one] for one in each] if labelled else None
    return Trees.from_spans(n_words, [[span[:2] for span in one] for one in each], labels)


def _labelled(one: Sentence) -> list[Span]:
    """Return every node in pre-order, as gold trees have them; a top without a label is none."""
    top = (0, len(one.words), "")
    nodes = (span for span in one.spans if span != top)
    return sorted(nodes, key=lambda span: (span[0], -span[1]))


def _unlabelled(one: Sentence) -> list[Span]:
    """Return the distinct spans of two words and more in pre-order, the whole sentence first."""
    every = [(0, len(one.words)), *(span[:2] for span in one.spans)]
    distinct = {(start, end, "") for start, end in every if end - start > 1}
    return sorted(distinct, key=lambda span: (span[0], -span[1]))


def write_average(
    members: Sequence[Path],
    output: Path,
    *,
    threshold: float | None,
    weights: Sequence[float] | None = None,
) -> None:
    """Write the trees that agree best with those of several tables of parses.

    Args:
        members: PARSES tables of the same sentences.
        output: the PARSES table to write.
        threshold, weights: as for :func:`attree.decoding.average.average`.

    Raises:
        AttreeError: tables of different sentences, or other than a weight for each.
    """
    read = [read_table(path, schema=PARSES) for path in members]
    parses = [Parses.of_table(table) for table, _ in read]
    for path, one in zip(members[1:], parses[1:], strict=True):
        if not np.array_equal(one.sentence, parses[0].sentence):
            raise AttreeError(
                f"these are not the sentences of {members[0]}",
                file=path,
                fix="average parsers of one split",
            )
    parsed = np.logical_and.reduce([one.status != SKIPPED for one in parses])
    trees = average([one.trees for one in parses], threshold=threshold, weights=weights)
    trees = trees.keep(np.repeat(parsed, trees.n_spans))
    status = np.where(parsed, parses[0].status, SKIPPED)
    for one in parses[1:]:
        status = np.where(parsed & (status == OK), one.status, status)
    made = Parses(parses[0].sentence, trees, status)
    about = {"members": [str(path) for path in members], "threshold": threshold, "weights": weights}
    _write(output, made.table(), read[0][1], "attree.parsing.command:average_command", about)


def _write(
    output: Path,
    parses: pa.Table,
    metadata: Mapping[str, Any],
    entry: str,
    about: Mapping[str, Any],
) -> None:
    own = {key: metadata.get(key) for key in ("language", "split")}
    made = provenance(code=[entry], settings=about, treebank=metadata.get("provenance"))
    write_table(output, parses, schema=parses.schema, metadata={**own, "provenance": made})
