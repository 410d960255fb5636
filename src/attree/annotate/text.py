"""Raw text → sentences of words, one after the other, each with the place that it came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from attree.base.errors import AttreeError
from attree.base.schemas import FAILED, OK, TOO_LONG
from attree.base.text import name_of, say
from attree.raw_text.inputs import InputFile
from attree.raw_text.lines import EMPTY, read_sentences
from attree.raw_text.words import Tokeniser
from attree.treebank.formats import format_of, read_files, resolve
from attree.treebank.language_file import settings_of
from attree.treebank.sentence import Rejected, Sentence

#: Shorter sentences have one tree only.
LEAST_WORDS = 2

#: What becomes of sentences that are passed over, beside the statuses of lines.
ONE_WORD, REPEATED = "one word", "repeated"


@dataclass(frozen=True, slots=True)
class OriginalSentence:
    """A sentence, the file and line that it came from, and its tree if that is to be corrected."""

    file: str
    line: int
    words: tuple[str, ...]
    given: Sentence | None = None


class TreesToCorrect:
    """The trees of treebanks that are to be corrected, in their order, one of each sentence.

    Args:
        files: of treebanks, as ``attree treebank`` reads them, with all words and functions.
        done: as of :class:`TextSentences`.
        labels: as ``labels`` of ``language.yaml``.

    Attributes:
        passed: as of :class:`TextSentences`.
    """

    def __init__(
        self, files: Sequence[Path], done: set[tuple[str, ...]], labels: str | None = None
    ) -> None:
        keep = {"punctuation": "keep", "functions": "keep"}
        settings = settings_of(**keep, nonprojective="lift", labels=labels)
        self._files = [(file, resolve(settings, [file])) for file in files]
        self._done = frozenset(done)
        self.passed: Counter[str] = Counter()

    def __iter__(self) -> Iterator[OriginalSentence]:
        """Yield them; what cannot be read is told, and sentences without a tree are passed over."""
        shown: set[tuple[str, ...]] = set()
        for one in (one for file, how in self._files for one in read_files([file], how)):
            if isinstance(one, Rejected):
                say(str(one))
                self.passed[FAILED] += 1
            elif one.half:
                problem = "only some brackets of these trees are known"
                raise AttreeError(
                    "partly-known-trees", problem, file=one.file, fix="give whole trees"
                )
            elif one.words in shown:
                self.passed[REPEATED] += 1
            elif one.words not in self._done:
                shown.add(one.words)
                yield OriginalSentence(name_of(Path(one.file).name), one.line, one.words, one)


def are_treebanks(paths: Sequence[Path]) -> bool:
    """Tell by their extensions whether files hold trees.

    Raises:
        AttreeError: some do, and some do not.
    """
    trees = [path.is_file() and format_of(path) not in (None, "parquet") for path in paths]
    if any(trees) and not all(trees):
        problem = "this is a treebank, and other inputs are text"
        raise AttreeError(
            "treebank-among-texts",
            problem,
            file=paths[trees.index(True)],
            fix="give one kind at a time",
        )
    return all(trees)


class TextSentences:
    """The sentences of a text that are worth annotating, in their order.

    Args:
        files: of the text.
        split: lines into sentences of words.
        max_words: longer sentences are passed over.
        column: of JSON Lines and Parquet.
        done: the words of sentences that were done before, which are not shown again.

    Attributes:
        passed: why sentences were passed over so far → how many, those done before not counted.
    """

    def __init__(
        self,
        files: Sequence[InputFile],
        split: Tokeniser,
        *,
        max_words: int,
        column: str = "text",
        done: set[tuple[str, ...]] | None = None,
    ) -> None:
        self._files, self._split, self._column = files, split, column
        self._max_words, self._done = max_words, frozenset(done or ())
        self._shown: set[tuple[str, ...]] = set()
        self.passed: Counter[str] = Counter()

    def __iter__(self) -> Iterator[OriginalSentence]:
        """Yield them; a sentence that was done, or stood before, is passed over."""
        for file, line, status, sentences in read_sentences(self._files, self._column, self._split):
            if status not in (OK, EMPTY):
                self.passed[status] += 1
            for words in map(tuple, sentences):
                reason = self._reason(words)
                if reason:
                    self.passed[reason] += 1
                elif words and words not in self._done:
                    self._shown.add(words)
                    yield OriginalSentence(file.name, line, words)

    def _reason(self, words: tuple[str, ...]) -> str:
        if len(words) > self._max_words:
            return TOO_LONG
        if len(words) < LEAST_WORDS:
            return ONE_WORD if words else ""
        return REPEATED if words in self._shown else ""
