"""Evaluate parsers, files of trees and bulk output against gold trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attree.base.errors import AttreeError
from attree.base.patterns import matching
from attree.base.terminal import say
from attree.bulk.output import is_output, read_trees
from attree.evaluation.side_by_side import Evaluation, Gold, System, sentence_of
from attree.parsers.parser import Parser
from attree.treebank.formats import format_of, in_folder
from attree.treebank.labels import UNIVERSAL, Labelling, with_labels
from attree.treebank.pairing import has_labels, read_whole
from attree.treebank.sentence import Sentence, SplitSettings
from attree.trees.sampling import fingerprints

#: Most lines on stderr about sentences of a system that have no partner.
_NAMED = 20


@dataclass(frozen=True, slots=True)
class How:
    """Settings for loading and scoring systems.

    Attributes:
        settings: how files are read.
        encoder: encoder of the parsers; by default each parser's own.
        device: ``cpu`` or ``cuda``.
        max_words: score only sentences of at most this many words.
        allow_overlap: score also sentences that a parser was trained on.
    """

    settings: SplitSettings
    encoder: str | None = None
    device: str | None = None
    max_words: int | None = None
    allow_overlap: bool = False


def evaluate(gold: Gold, names: Sequence[str], how: How) -> Evaluation:
    """Score parsers that :meth:`Parser.load` finds, and trees in files.

    Args:
        gold: the gold trees.
        names: folders of ``attree train``, ready parsers, selections; files and folders of trees
            in a treebank format; output folders of ``attree parse``.
        how: settings.

    Raises:
        AttreeError: a name is unknown, no sentence is shared, or parsers were trained on every
            gold sentence.
    """
    if len(set(names)) < len(names):
        raise AttreeError("named-twice", "a parser is named twice", fix="name each parser once")
    trees = {name: loaded for name in names if (loaded := _trees_of(Path(name), how.settings))}
    parsers = {
        name: Parser.load(name, encoder=how.encoder, device=how.device)
        for name in names
        if name not in trees
    }
    # tables show the last part of a path, if no other path ends in it
    last = [Path(name).name for name in names]
    short = {
        name: part if part and last.count(part) == 1 else name
        for name, part in zip(names, last, strict=True)
    }
    notes = []
    for name, parser in parsers.items():
        # a grammar has no encoder
        if dtype := str(getattr(parser.encoder, "dtype", "")).removeprefix("torch."):
            notes.append(f"{short[name]} computes in {dtype}.")
    untested = {sentence.words for sentence in gold.sentences}
    if not how.allow_overlap:
        gold, left_out = _leave_out_trained(gold, parsers)
        notes += left_out
    untested -= {sentence.words for sentence in gold.sentences}
    systems, labels = [], Labelling.parse(how.settings.labels)
    for name in names:
        if name in parsers:
            systems.append(parsers[name].parse_gold(gold, short[name], labels))
            continue
        sentences, ours = trees[name]
        read = [sentence for sentence in sentences if sentence.words not in untested]
        labelled = has_labels(read, Path(name))
        systems.append(System.of_trees(short[name], gold, read, labelled=labelled, tagged=ours))
    for system in systems:
        more = len(system.refused) - _NAMED
        for line in (*system.refused[:_NAMED], *([f"and {more:,} more"] if more > 0 else [])):
            say(line if len(systems) == 1 else f"{system.name}: {line}")
    return Evaluation(gold, systems, how.max_words, notes)


def _leave_out_trained(gold: Gold, parsers: Mapping[str, Parser]) -> tuple[Gold, list[str]]:
    """Leave out sentences that a parser was trained on, and say how many."""
    hashes = fingerprints(sentence.words for sentence in gold.sentences)
    trained_on, counts = np.zeros(len(hashes), bool), {}
    for name, parser in parsers.items():
        trained = parser.model.trained
        if trained is not None and (shared := np.isin(hashes, trained.trained_on)).any():
            trained_on |= shared
            counts[name] = int(shared.sum())
    if not counts:
        return gold, []
    if trained_on.all():
        problem = f"every sentence is among the training trees of {', '.join(counts)}"
        fix = "score other trees, or pass --allow-overlap"
        raise AttreeError("all-trained-on", problem, fix=fix)
    notes = [
        f"{count:,} sentences that {name} was trained on are left out (--allow-overlap keeps them)."
        for name, count in counts.items()
    ]
    for line in notes:
        say(f"attree: {line}")
    return gold.take(np.flatnonzero(~trained_on).tolist()), notes


def _trees_of(path: Path, settings: SplitSettings) -> tuple[list[Sentence], bool] | None:
    """Read the trees of a file or folder; tell whether attree wrote them. None if it has none."""
    read: list[Sentence] = []
    if is_output(path):
        labelling = Labelling.parse(settings.labels)
        for row in read_trees(path):
            if row["words"]:
                tree = (row["words"], row["spans"], row.get("labels"), row.get("tags"))
                read.append(sentence_of(*tree, (row["file"], row["line"])))
        universal = labelling.kind == UNIVERSAL and has_labels(read, path)
        return with_labels(read, labelling) if universal else read, True
    if path.is_dir() and not (path / "parser.json").exists():
        groups, others = in_folder(path, settings.format)
        files = sorted(file for group in groups.values() for file in group)
        files = files or sorted(file for file in others if file.suffix == ".txt")
    else:
        files = matching(path)
        if not files[0].is_file() or path.suffix == ".json":
            return None
    refused: list[str] = []
    for file in files:
        # a file name that tells no format: brackets as attree writes them
        plain = settings.format is None and format_of(file) is None and file.suffix in (".txt", "")
        reading = replace(settings, format="ptb") if plain else settings
        read += read_whole([file], reading, refused.append)
    for line in refused:
        say(line)
    if refused and not read and path.suffix:  # it was meant to hold trees
        fix = "correct it, or name a parser"
        raise AttreeError("no-trees", "no tree in it can be read", file=path, fix=fix)
    return (read, False) if read else None
