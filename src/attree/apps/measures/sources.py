"""Where trees come from: treebanks, sentence tables, folders of bulk parsing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from attree.base.errors import AttreeError
from attree.base.schemas import OK
from attree.base.text import name_of, say
from attree.bulk.output import is_output, read_shards
from attree.treebank.formats import together
from attree.treebank.pairing import read_whole
from attree.treebank.sentence import Sentence, SplitSettings
from attree.trees.trees import Trees

#: Sentences that are measured at a time.
_AT_A_TIME = 1000


@dataclass(frozen=True, slots=True)
class MeasuredTrees:
    """Some sentences and their trees.

    Attributes:
        file, line, sentence, status: of each; ``sentence`` counts within a line of bulk output,
            else from the beginning of the input.
        words: of each.
        trees: of each.
    """

    file: Sequence[str]
    line: Sequence[int]
    sentence: Sequence[int]
    status: Sequence[str]
    words: Sequence[Sequence[str]]
    trees: Trees


@dataclass(slots=True)
class Reading:
    """How inputs are read.

    Attributes:
        settings: of treebank files.
        refused: sentences that could not be read, each told on stderr.
    """

    settings: SplitSettings = field(default_factory=lambda: SplitSettings(punctuation="keep"))
    refused: int = field(default=0, init=False)

    def all(self, inputs: Iterable[Path]) -> Iterator[MeasuredTrees]:
        """Yield what inputs hold, some sentences at a time.

        Raises:
            AttreeError: an input that is not there, or no trees.
        """
        for path in inputs:
            if is_output(path):
                yield from of_folder(path)
                continue
            for files in together(path, self.settings.format):
                yield from self._of_files(files)

    def _of_files(self, files: Sequence[Path]) -> Iterator[MeasuredTrees]:
        path = files[0]
        if not path.exists():
            raise AttreeError("this file does not exist", file=path)
        number, sentences = (
            0,
            read_whole(files, self.settings, self._refuse, punctuation=self.settings.punctuation),
        )
        while some := list(islice(sentences, _AT_A_TIME)):
            yield _of_sentences(some, number)
            number += len(some)
        if not number:
            raise AttreeError("no sentence could be read", file=path)

    def _refuse(self, line: str) -> None:
        self.refused += 1
        say(line)


def _of_sentences(some: Sequence[Sentence], first: int) -> MeasuredTrees:
    spans = [[(start, end) for start, end, _ in one.spans] for one in some]
    labels = [[label for _, _, label in one.spans] for one in some]
    return MeasuredTrees(
        [name_of(one.file) for one in some],
        [one.line for one in some],
        range(first, first + len(some)),
        [OK] * len(some),
        [one.words for one in some],
        Trees.from_spans([len(one.words) for one in some], spans, labels),
    )


def of_folder(folder: Path) -> Iterator[MeasuredTrees]:
    """Yield what a folder of ``attree parse`` holds, a shard at a time.

    Raises:
        AttreeError: no such folder, or a damaged shard.
    """
    shards = 0
    for table, trees in read_shards(folder):
        names = ("file", "line", "sentence", "status", "words")
        file, line, sentence, status, texts = (table[name].to_pylist() for name in names)
        words = [text.split(" ") if text else [] for text in texts]
        yield MeasuredTrees(file, line, sentence, status, words, trees)
        shards += 1
    if not shards:
        raise AttreeError(
            "this folder has no trees of `attree parse`",
            file=folder,
            fix="give its --output folder, or treebank files",
        )
