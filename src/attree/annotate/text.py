"""Raw text → sentences of words, one after the other, each with the place that it came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
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


def trees_to_correct(
    files: Sequence[Path],
    done: Collection[tuple[str, ...]],
    passed: Counter[str],
    labels: str | None = None,
) -> Iterator[OriginalSentence]:
    """Yield the trees of treebanks that are to be corrected, in their order, one of each sentence.

    What cannot be read is told, and sentences without a tree are passed over.

    Args:
        files: of treebanks, as ``attree treebank`` reads them, with all words and functions.
        done, passed: as of :func:`text_sentences`.
        labels: as ``labels`` of ``language.yaml``.
    """
    keep = {"punctuation": "keep", "functions": "keep"}
    settings = settings_of(**keep, nonprojective="lift", labels=labels)
    each = [(file, resolve(settings, [file])) for file in files]
    shown: set[tuple[str, ...]] = set()
    for one in (one for file, how in each for one in read_files([file], how)):
        if isinstance(one, Rejected):
            say(str(one))
            passed[FAILED] += 1
        elif one.half:
            problem = "only some brackets of these trees are known"
            raise AttreeError("partly-known-trees", problem, file=one.file, fix="give whole trees")
        elif one.words in shown:
            passed[REPEATED] += 1
        elif one.words not in done:
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
        fix = "give one kind at a time"
        raise AttreeError("treebank-among-texts", problem, file=paths[trees.index(True)], fix=fix)
    return all(trees)


def text_sentences(
    files: Sequence[InputFile],
    split: Tokeniser,
    done: Collection[tuple[str, ...]],
    passed: Counter[str],
    *,
    max_words: int,
    column: str = "text",
) -> Iterator[OriginalSentence]:
    """Yield the sentences of a text that are worth annotating, in their order.

    Args:
        files: of the text.
        split: lines into sentences of words.
        done: the words of sentences that were done before, which are not shown again.
        passed: why sentences were passed over so far → how many; those done before not counted.
        max_words: longer sentences are passed over.
        column: of JSON Lines and Parquet.
    """
    shown: set[tuple[str, ...]] = set()
    for file, line, status, sentences in read_sentences(files, column, split):
        if status not in (OK, EMPTY):
            passed[status] += 1
        for words in filter(None, map(tuple, sentences)):
            if len(words) > max_words:
                passed[TOO_LONG] += 1
            elif len(words) < LEAST_WORDS:
                passed[ONE_WORD] += 1
            elif words in shown:
                passed[REPEATED] += 1
            elif words not in done:
                shown.add(words)
                yield OriginalSentence(file.name, line, words)
