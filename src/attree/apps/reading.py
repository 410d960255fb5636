"""Read the trees of any input: treebank files, folders, tables, output of ``attree parse``."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from attree.base.errors import AttreeError
from attree.base.patterns import distinct
from attree.base.terminal import say
from attree.bulk.folder import MANIFEST, status
from attree.bulk.manifest import whole_shards
from attree.bulk.output import Rows, is_output, read_shards
from attree.treebank.formats import together
from attree.treebank.pairing import read_whole
from attree.treebank.sentence import SplitSettings
from attree.treebank.table import to_table
from attree.trees import OK
from attree.trees.parses import Parses

#: Number of sentences of a treebank that are read at a time.
_AT_A_TIME = 1000


@dataclass(slots=True)
class Reading:
    """Reads inputs.

    Attributes:
        settings: settings for treebank files.
        refused: number of sentences that could not be read; each is told on stderr.
    """

    settings: SplitSettings = field(default_factory=lambda: SplitSettings(punctuation="keep"))
    refused: int = field(default=0, init=False)

    def all(self, inputs: Iterable[Path]) -> Iterator[Rows]:
        """Yield the trees of inputs, some sentences at a time.

        Raises:
            AttreeError: an input is missing, has no trees, or has none as the settings want them.
        """
        read: list[Path] = []
        for path in distinct(map(_run_of, inputs)):
            if is_output(path):
                if self.settings.punctuation != "keep":
                    problem, fix = "parsed text keeps its punctuation", "leave --punctuation out"
                    raise AttreeError("option-without-effect", problem, file=path, fix=fix)
                _tell_missing(path)
                yield from read_shards(path)
            else:
                for files in together(path, format=self.settings.format):
                    if files := distinct(files, without=read):
                        read += files
                        yield from self._of_files(files)

    def _of_files(self, files: Sequence[Path]) -> Iterator[Rows]:
        policy = self.settings.punctuation
        sentences = read_whole(files, self.settings, self.refuse, punctuation=policy)
        first = 0
        while some := list(islice(sentences, _AT_A_TIME)):
            table, numbers = to_table(some), list(range(first, first + len(some)))
            file, line, words = (table[name].to_pylist() for name in ("file", "line", "words"))
            yield Rows(file, line, numbers, [OK] * len(some), words, Parses.gold(table).trees)
            first += len(some)
        if not first:
            raise AttreeError("no-sentences", "no sentence could be read", file=files[0])

    def refuse(self, line: str) -> None:
        """Say why a sentence is left out, and count it."""
        self.refused += 1
        say(line)


def _run_of(path: Path) -> Path:
    """Return the output folder of a bulk run if ``path`` is ``trees`` in it, else the path."""
    return path.parent if path.name == "trees" and whole_shards(path) else path


def _tell_missing(folder: Path) -> None:
    """Say how many lines a bulk run has not parsed."""
    if (folder / MANIFEST).is_file():
        run = status(folder)
        if missing := run["lines"] - run["lines_whole"]:
            say(f"attree: {folder}: {missing:,} of {run['lines']:,} lines are not parsed yet")
