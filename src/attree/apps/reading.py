"""Read the trees of any input: treebank files, folders, tables, output of ``attree parse``."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.patterns import distinct
from attree.base.terminal import say
from attree.base.text import name_of
from attree.bulk.output import is_output, read_shards
from attree.treebank.formats import together
from attree.treebank.pairing import read_whole
from attree.treebank.sentence import Sentence, SplitSettings
from attree.trees import OK
from attree.trees.trees import Trees

#: Number of sentences of a treebank that are read at a time.
_AT_A_TIME = 1000
_PLACE = ("file", "line", "sentence", "status")


@dataclass(frozen=True, slots=True)
class SentenceTrees:
    """Some sentences and their trees.

    Attributes:
        file, line, sentence, status: of each sentence; ``sentence`` counts within a line of bulk
            output, else from the beginning of the input.
        words: words of each sentence.
        trees: tree of each sentence.
    """

    file: Sequence[str]
    line: Sequence[int]
    sentence: Sequence[int]
    status: Sequence[str]
    words: Sequence[Sequence[str]]
    trees: Trees


@dataclass(slots=True)
class Reading:
    """Reads inputs.

    Attributes:
        settings: settings for treebank files.
        refused: number of sentences that could not be read; each is told on stderr.
    """

    settings: SplitSettings = field(default_factory=lambda: SplitSettings(punctuation="keep"))
    refused: int = field(default=0, init=False)

    def all(self, inputs: Iterable[Path]) -> Iterator[SentenceTrees]:
        """Yield the trees of inputs, some sentences at a time.

        Raises:
            AttreeError: an input is missing or has no trees.
        """
        for path in distinct(inputs):
            if is_output(path):
                yield from _of_folder(path)
                continue
            for files in together(path, format=self.settings.format):
                yield from self._of_files(files)

    def _of_files(self, files: Sequence[Path]) -> Iterator[SentenceTrees]:
        path = files[0]
        policy = self.settings.punctuation
        sentences = read_whole(files, self.settings, self.refuse, punctuation=policy)
        first = 0
        while some := list(islice(sentences, _AT_A_TIME)):
            yield _of_sentences(some, first)
            first += len(some)
        if not first:
            raise AttreeError("no-sentences", "no sentence could be read", file=path)

    def refuse(self, line: str) -> None:
        """Say why a sentence is left out, and count it."""
        self.refused += 1
        say(line)


def _of_sentences(some: Sequence[Sentence], first: int) -> SentenceTrees:
    words = [sentence.words for sentence in some]
    spans = [[(start, end) for start, end, _ in sentence.spans] for sentence in some]
    labels = [[label for _, _, label in sentence.spans] for sentence in some]
    tags = [tag for sentence in some for tag in sentence.tags]
    return SentenceTrees(
        [name_of(sentence.file) for sentence in some],
        [sentence.line for sentence in some],
        range(first, first + len(some)),
        [OK] * len(some),
        words,
        Trees.from_spans(list(map(len, words)), spans, labels).tagged(tags),
    )


def _of_folder(folder: Path) -> Iterator[SentenceTrees]:
    """Yield the trees of an output folder of ``attree parse``, a shard at a time.

    Raises:
        AttreeError: the folder has no trees, or a shard is damaged.
    """
    shards = 0
    for table, trees in read_shards(folder):
        columns: dict[str, Any] = {name: table[name].to_pylist() for name in _PLACE}
        words = [text.split(" ") if text else [] for text in table["words"].to_pylist()]
        yield SentenceTrees(**columns, words=words, trees=trees)
        shards += 1
    if not shards:
        problem = "this folder has no trees of `attree parse`"
        fix = "give its --output folder, or treebank files"
        raise AttreeError("no-run", problem, file=folder, fix=fix)
