"""Yield the sentences of raw text, or the trees of treebanks, with their file and line."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from attree.base.errors import AttreeError
from attree.base.terminal import say
from attree.base.text import bracket_form, name_of
from attree.raw_text.inputs import InputFile
from attree.raw_text.lines import EMPTY, read_sentences
from attree.raw_text.words import Tokeniser
from attree.treebank.formats import format_of, read_files, resolve
from attree.treebank.language_file import settings_of
from attree.treebank.sentence import Rejected, Sentence
from attree.trees import FAILED, OK, TOO_LONG

#: Shorter sentences have only one tree.
LEAST_WORDS = 2

#: Reasons for passing over a sentence, besides the statuses of lines.
ONE_WORD, REPEATED = "one word", "repeated"


@dataclass(frozen=True, slots=True)
class OriginalSentence:
    """A sentence with its file and line, and the tree that is to be corrected, if any."""

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
    """Yield the trees of treebanks that are to be corrected, in order, one for each sentence.

    A tree that cannot be read is reported; sentences without a tree are passed over.

    Args:
        files: treebank files, read as ``attree treebank`` does, with all words and functions.
        done, passed: as for :func:`text_sentences`.
        labels: as ``labels`` of ``language.yaml``.
    """
    asked = settings_of(punctuation="keep", functions="keep", nonprojective="lift", labels=labels)
    pairs = [(file, resolve(asked, [file])) for file in files]
    known, shown = set(done), set[tuple[str, ...]]()
    for tree in (tree for file, how in pairs for tree in read_files([file], how)):
        if isinstance(tree, Rejected):
            say(str(tree))
            passed[FAILED] += 1
        elif tree.partial:
            problem = "only some brackets of these trees are known"
            raise AttreeError("partly-known-trees", problem, file=tree.file, fix="give whole trees")
        elif tree.words in shown:
            passed[REPEATED] += 1
        elif not {tree.words, tuple(map(bracket_form, tree.words))} & known:
            shown.add(tree.words)
            yield OriginalSentence(name_of(Path(tree.file).name), tree.line, tree.words, tree)


def are_treebanks(paths: Sequence[Path]) -> bool:
    """Tell by the extensions of files whether they hold trees.

    Raises:
        AttreeError: some files hold trees and others do not.
    """
    trees = [path.is_file() and format_of(path) not in (None, "parquet") for path in paths]
    if any(trees) and not all(trees):
        problem, fix = "this is a treebank, and other inputs are text", "give one kind at a time"
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
    """Yield the sentences of a text that are worth annotating, in order.

    Args:
        files: files of the text.
        split: splits lines into sentences of words.
        done: words of the sentences that are done, which are left out.
        passed: reason → number of sentences passed over, without those that are done; is updated.
        max_words: longer sentences are passed over.
        column: field of JSON Lines, column of Parquet.
    """
    known, shown = set(done), set[tuple[str, ...]]()
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
            elif not {words, tuple(map(bracket_form, words))} & known:
                shown.add(words)
                yield OriginalSentence(file.name, line, words)
