"""Whatever somebody kept, as trees of gold sentences: parsers, files of trees, bulk output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attree.base.errors import AttreeError
from attree.base.patterns import matching
from attree.base.text import say
from attree.bulk.output import is_output, read_trees
from attree.evaluation.side_by_side import Evaluation, Gold, System, sentence_of
from attree.parsers.parser import Parser
from attree.treebank.formats import format_of, in_folder
from attree.treebank.labels import UNIVERSAL, Labelling, with_labels
from attree.treebank.pairing import has_labels, read_whole
from attree.treebank.sentence import Sentence, SplitSettings
from attree.trees.sampling import fingerprints

#: Lines on stderr about sentences of one file without a partner.
_NAMED = 20


@dataclass(frozen=True, slots=True)
class How:
    """How systems are made and scored.

    Attributes:
        settings: how files are read.
        encoder: of parsers; by default each one's own.
        device: ``cpu`` or ``cuda``.
        max_words: only sentences of at most this many words are scored.
        allow_overlap: score sentences that a parser was trained on too.
    """

    settings: SplitSettings
    encoder: str | None = None
    device: str | None = None
    max_words: int | None = None
    allow_overlap: bool = False


def evaluate(gold: Gold, names: Sequence[str], how: How) -> Evaluation:
    """Score whatever names stand for: parsers that :meth:`Parser.load` finds, and trees in files.

    Args:
        gold: the trees to score by.
        names: folders of ``attree train``, ready parsers, selections; files and folders of trees
            in a treebank format; output folders of ``attree parse``.
        how: settings.

    Raises:
        AttreeError: a name that stands for nothing, no sentence in common, or every gold sentence
            was trained on.
    """
    if len(set(names)) < len(names):
        raise AttreeError("named-twice", "a parser is named twice", fix="name each once")
    trees = {name: found for name in names if (found := _trees_of(Path(name), how.settings))}
    parsers = {
        name: Parser.load(name, encoder=how.encoder, device=how.device)
        for name in names
        if name not in trees
    }
    short = _short(names)
    computed = {short[name]: _dtype(one) for name, one in parsers.items()}
    notes = [f"{name} computes in {kind}." for name, kind in computed.items() if kind]
    untested = {one.words for one in gold.sentences}
    if not how.allow_overlap:
        gold, left_out = _not_trained_on(gold, parsers)
        notes += left_out
    untested -= {one.words for one in gold.sentences}
    systems, labels = [], Labelling.of(how.settings.labels)
    for name in names:
        if name in parsers:
            systems.append(parsers[name].parse_gold(gold, short[name], labels))
            continue
        whole, ours = trees[name]
        read = [one for one in whole if one.words not in untested]
        labelled = has_labels(read, Path(name))
        systems.append(System.of_trees(short[name], gold, read, labelled=labelled, tagged=ours))
    for one in systems:
        more = len(one.refused) - _NAMED
        for line in (*one.refused[:_NAMED], *([f"and {more:,} more"] if more > 0 else [])):
            say(line if len(systems) == 1 else f"{one.name}: {line}")
    return Evaluation(gold, systems, how.max_words, notes)


def _short(names: Sequence[str]) -> dict[str, str]:
    """Return what tables call each: the last part of a path, where no other ends alike."""
    last = [Path(name).name for name in names]
    return {
        name: short if last.count(short) == 1 and short else name
        for name, short in zip(names, last, strict=True)
    }


def _dtype(parser: Parser) -> str:
    """Return what a parser's encoder computes in; nothing of a grammar, which has none."""
    return str(getattr(parser.encoder, "dtype", "")).removeprefix("torch.")


def _not_trained_on(gold: Gold, parsers: Mapping[str, Parser]) -> tuple[Gold, list[str]]:
    """Leave out sentences that one of the parsers was trained on, and say so."""
    own = fingerprints(sentence.words for sentence in gold.sentences)
    seen, counts = np.zeros(len(own), bool), {}
    for name, parser in parsers.items():
        trained = getattr(parser.model, "trained", None)
        if trained is not None and (shared := np.isin(own, trained.trained_on)).any():
            seen |= shared
            counts[name] = int(shared.sum())
    if not counts:
        return gold, []
    if seen.all():
        raise AttreeError(
            "all-trained-on",
            f"every sentence is among the training trees of {', '.join(counts)}",
            fix="score other trees, or pass --allow-overlap",
        )
    notes = [
        f"{count:,} sentences that {name} was trained on are left out (--allow-overlap keeps them)."
        for name, count in counts.items()
    ]
    for line in notes:
        say(f"attree: {line}")
    return gold.take(np.flatnonzero(~seen).tolist()), notes


def _trees_of(path: Path, settings: SplitSettings) -> tuple[list[Sentence], bool] | None:
    """Return the trees of a file or folder, and whether attree wrote them in bulk; None of none."""
    if is_output(path):
        labelling, read = Labelling.of(settings.labels), list(_bulk(path))
        universal = labelling.kind == UNIVERSAL and has_labels(read, path)
        return with_labels(read, labelling) if universal else read, True
    if path.is_dir() and not (path / "parser.json").exists():
        found = _treebank_files(path, settings)
    elif matching(path)[0].is_file() and path.suffix != ".json":
        found = matching(path)
    else:
        return None
    refused: list[str] = []
    read = [one for file in found for one in _read(file, settings, refused)]
    for line in refused:
        say(line)
    return (read, False) if read else None


def _treebank_files(folder: Path, settings: SplitSettings) -> list[Path]:
    groups, others = in_folder(folder, settings.format)
    found = sorted(file for files in groups.values() for file in files)
    return found or sorted(file for file in others if file.suffix == ".txt")


def _read(file: Path, settings: SplitSettings, refused: list[str]) -> list[Sentence]:
    """Read a file; of text whose name tells no format, as attree's own brackets."""
    if settings.format is None and format_of(file) is None and file.suffix in (".txt", ""):
        settings = replace(settings, format="ptb")
    return list(read_whole([file], settings, refused.append))


def _bulk(folder: Path) -> Iterator[Sentence]:
    """Yield the trees of all shards, of the lines that have one."""
    for row in read_trees(folder):
        if row["words"]:
            own = (row["words"], row["spans"], row.get("labels"), row.get("tags"))
            yield sentence_of(*own, (row["file"], row["line"]))
