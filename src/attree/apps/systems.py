"""Evaluate parsers, files of trees and bulk output against gold trees, or on simple sentences.

Simple sentences have phrases that any analysis has, and spans that none has. Their table is
tab-separated UTF-8. Its first line names the columns::

    language  words                    phrases  impossible
    en        The cat chased the mouse .  0-2 2-5  1-3

Words are separated by single spaces, and so are spans: ``2-5`` is the third word to the fifth, of
two words or more. A sentence is right if the tree has every phrase and no impossible span.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attree.base.errors import AttreeError
from attree.base.patterns import matching
from attree.base.reading import opened
from attree.base.tables import Table
from attree.base.terminal import safe, say
from attree.bulk.output import is_output, read_shards
from attree.evaluation.side_by_side import Evaluation, Gold, System, sentence_of
from attree.parsers.parser import Parser
from attree.treebank.formats import format_of, in_folder
from attree.treebank.labels import UNIVERSAL, Labelling, with_labels
from attree.treebank.pairing import has_labels, read_whole
from attree.treebank.sentence import Sentence, SplitSettings
from attree.treebank.table import to_table
from attree.trees import SKIPPED
from attree.trees.constraints import Constraints, Span
from attree.trees.sampling import fingerprints
from attree.trees.tree import Tree

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
    others = [name for name in names if name not in trees]
    parsers = {name: Parser.load(name, encoder=how.encoder, device=how.device) for name in others}
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
        f"{name} was trained on {count:,} of the {len(hashes):,} sentences: left out "
        "(--allow-overlap keeps them)."
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
        for some in read_shards(path):
            trees = zip(some.trees.each(some.words), some.file, some.line, strict=True)
            read += [sentence_of(tree, (file, line)) for tree, file, line in trees if tree.words]
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
    if not read and path.suffix and (refused or path.is_file()):  # it was meant to hold trees
        fix = "correct it, or name a parser"
        raise AttreeError("no-trees", "no tree in it can be read", file=path, fix=fix)
    return (read, False) if read else None


#: The first line of a table.
HEADER = "language\twords\tphrases\timpossible"
_COLUMNS = len(HEADER.split())
_SPANS = re.compile(r"(?:[0-9]{1,6}-[0-9]{1,6}(?: (?!$)|$))*")


@dataclass(frozen=True, slots=True)
class Simple:
    """A sentence: its line, language and words, its phrases, and spans that are impossible."""

    line: int
    language: str
    words: tuple[str, ...]
    phrases: tuple[Span, ...]
    impossible: tuple[Span, ...]


def read(path: Path) -> list[Simple]:
    """Read a table.

    Raises:
        AttreeError: it is absent or no such table; a span is of one word or outside its sentence;
            or spans contradict each other. Each names its line.
    """
    with opened(path, what="table of simple sentences") as handle:
        lines = re.split("\r\n?|\n", handle.read().decode("utf-8-sig", "replace"))
    if lines[0] != HEADER:
        problem = "this is no table of simple sentences"
        fix = f"its first line is {HEADER.split()}, separated by tabs"
        raise AttreeError("other-table", problem, file=path, line=1, fix=fix)
    sentences = []
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            try:
                sentences.append(_sentence(number, line))
            except AttreeError as error:
                raise error.replace(file=path, line=number) from None
    if not sentences:
        raise AttreeError("no-sentences", "this table is empty", file=path, fix="add sentences")
    return sentences


def _sentence(number: int, line: str) -> Simple:
    columns = line.split("\t")
    if len(columns) != _COLUMNS:
        problem = f"expected {_COLUMNS} columns, found {len(columns)}"
        raise AttreeError("other-columns", problem, fix="separate them by single tabs")
    language, text, *written = columns
    words = tuple(text.split(" "))
    if "" in words or "\ufffd" in line:
        problem = "a word is empty" if "" in words else "this line is not UTF-8"
        raise AttreeError("bad-words", problem, fix="separate words by single spaces, in UTF-8")
    phrases, impossible = map(_spans, written)
    Constraints(tuple((start, end, None) for start, end in phrases), impossible).check(len(words))
    return Simple(number, language, words, phrases, impossible)


def _spans(text: str) -> tuple[Span, ...]:
    fix = "write 0-2 3-5: the first two words, the fourth and the fifth"
    if not _SPANS.fullmatch(text):
        raise AttreeError("not-a-span", f"{safe(text[:40])!r} is no list of spans", fix=fix)
    spans = tuple((int(start), int(end)) for start, end in re.findall("([0-9]+)-([0-9]+)", text))
    for start, end in spans:
        if end - start == 1:
            problem = f"the span {start}-{end} is one word"
            raise AttreeError("not-a-span", problem, fix="name spans of two words or more")
    return spans


@dataclass(frozen=True, slots=True)
class Verdict:
    """A sentence and a tree: phrases that it lacks, impossible spans that it has."""

    sentence: Simple
    missing: tuple[Span, ...]
    drawn: tuple[Span, ...]

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.missing and not self.drawn

    def __str__(self) -> str:
        """Say what is wrong."""
        parts = [("no phrase", self.missing), ("impossible", self.drawn)]
        return "; ".join(f"{what}: {self._named(spans)}" for what, spans in parts if spans)

    def _named(self, spans: Sequence[Span]) -> str:
        return ", ".join(f"[{' '.join(self.sentence.words[slice(*span)])}]" for span in spans)


def evaluate_simple(
    path: Path, names: Sequence[str], how: How
) -> tuple[Table, list[str], Evaluation]:
    """Score parsers, and trees in files, on a table of simple sentences.

    Args:
        path: of the table.
        names: see :func:`attree.apps.systems.evaluate`.
        how: settings.

    Returns:
        the table to print, a line for each sentence that is wrong, and what was scored.

    Raises:
        AttreeError: see :func:`read` and :func:`attree.apps.systems.evaluate`.
    """
    sentences = {item.line: item for item in read(path)}
    trees = ((Tree(one.words, one.phrases), (str(path), one.line)) for one in sentences.values())
    done = evaluate(Gold.of_table(to_table(sentence_of(*tree) for tree in trees)), names, how)
    asked = [sentences[tree.line] for tree in done.gold.sentences]
    verdicts = {system.name: list(_judge(asked, system)) for system in done.systems}
    lines = [
        safe(f"{name}: {path}:{verdict.sentence.line}: {verdict}")
        for name, judged in verdicts.items()
        for verdict in judged
        if not verdict.right
    ]
    return _table(verdicts), lines, done


def _judge(asked: Sequence[Simple], system: System) -> Iterator[Verdict]:
    parses = system.runs[0]
    for row, sentence in enumerate(asked):
        if parses.status[row] == SKIPPED:
            yield Verdict(sentence, ((0, len(sentence.words)),), ())
            continue
        spans = set(parses.trees.of(row, sentence.words).spans)
        missing = tuple(span for span in sentence.phrases if span not in spans)
        drawn = tuple(span for span in sentence.impossible if span in spans)
        yield Verdict(sentence, missing, drawn)


def _table(verdicts: dict[str, list[Verdict]]) -> Table:
    """Count right sentences and impossible spans by language."""
    languages = {x.sentence.language for judged in verdicts.values() for x in judged}
    rows = []
    for language in (*sorted(languages), None):
        cells = []
        for judged in verdicts.values():
            here = [x for x in judged if language in (x.sentence.language, None)]
            right, drawn = sum(x.right for x in here), sum(len(x.drawn) for x in here)
            possible = sum(len(x.sentence.impossible) for x in here)
            cells += [f"{right:,} of {len(here):,}", f"{drawn:,} of {possible:,}"]
        rows.append([language or "all", *cells])
    headings = [f"{name}: {what}" for name in verdicts for what in ("right", "impossible")]
    note = "Right: sentences whose trees have every phrase of the table and no impossible span. "
    note += "Impossible: spans drawn that no analysis has."
    return Table("Simple sentences", ["language", *headings], rows, note)
