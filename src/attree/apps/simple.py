"""Score parsers on a table of simple sentences: phrases that any analysis has, spans that none has.

The table is tab-separated UTF-8. Its first line names the columns::

    language  words                    phrases  impossible
    en        The cat chased the mouse .  0-2 2-5  1-3

Words are separated by single spaces, and so are spans: ``2-5`` is the third word to the fifth, of
two words or more. A sentence is right if the tree has every phrase and no impossible span.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from attree.apps.systems import How, evaluate
from attree.base.errors import AttreeError
from attree.base.reading import opened
from attree.base.tables import Table
from attree.base.text import safe
from attree.evaluation.side_by_side import Gold, System, sentence_of
from attree.treebank.table import to_table
from attree.trees import SKIPPED
from attree.trees.constraints import Constraints, Span

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


def is_simple(paths: Sequence[Path]) -> bool:
    """Tell whether what is to be scored on is one table of simple sentences, by its suffix."""
    return len(paths) == 1 and paths[0].suffix == ".tsv"


def read(path: Path) -> list[Simple]:
    """Read a table.

    Raises:
        AttreeError: it is absent or no such table; a span is of one word or outside its sentence;
            or spans contradict each other. Each names its line.
    """
    with opened(path, what="table of simple sentences") as handle:
        lines = handle.read().decode("utf-8-sig", "replace").splitlines()
    if not lines or lines[0] != HEADER:
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
    known = tuple((start, end, None) for start, end in phrases)
    Constraints(known, impossible).check(len(words))
    return Simple(number, language, words, phrases, impossible)


def _spans(text: str) -> tuple[Span, ...]:
    fix = "write 0-2 3-5: the first two words, the fourth and the fifth"
    if not _SPANS.fullmatch(text):
        raise AttreeError("not-a-span", f"{safe(text[:40])!r} is no list of spans", fix=fix)
    numbers = [tuple(map(int, span.split("-"))) for span in text.split()]
    spans = tuple((start, end) for start, end in numbers)
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


def evaluate_simple(path: Path, names: Sequence[str], how: How) -> tuple[Table, list[str]]:
    """Score parsers, and trees in files, on a table of simple sentences.

    Args:
        path: of the table.
        names: see :func:`attree.apps.systems.evaluate`.
        how: settings.

    Returns:
        the table to print, and a line for each sentence that is wrong.

    Raises:
        AttreeError: see :func:`read` and :func:`attree.apps.systems.evaluate`.
    """
    sentences = {item.line: item for item in read(path)}
    gold = Gold.of_table(
        to_table(
            sentence_of(item.words, item.phrases, None, None, (str(path), item.line))
            for item in sentences.values()
        )
    )
    done = evaluate(gold, names, how)
    asked = [sentences[tree.line] for tree in done.gold.sentences]
    verdicts = {system.name: list(_judge(asked, system)) for system in done.systems}
    lines = [
        safe(f"{name}: {path}:{verdict.sentence.line}: {verdict}")
        for name, judged in verdicts.items()
        for verdict in judged
        if not verdict.right
    ]
    return _table(verdicts), lines


def _judge(asked: Sequence[Simple], system: System) -> Iterator[Verdict]:
    parses = system.runs[0]
    for row, sentence in enumerate(asked):
        if parses.status[row] != SKIPPED:
            spans = set(parses.trees.of(row, sentence.words).spans)
            missing = tuple(span for span in sentence.phrases if span not in spans)
            drawn = tuple(span for span in sentence.impossible if span in spans)
            yield Verdict(sentence, missing, drawn)


def _table(verdicts: dict[str, list[Verdict]]) -> Table:
    """Count right sentences and impossible spans by language."""
    languages = dict.fromkeys(
        verdict.sentence.language for judged in verdicts.values() for verdict in judged
    )
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
    note = (
        "Right: sentences whose trees have every phrase of the table and no impossible span. "
        "Impossible: spans drawn that no analysis has."
    )
    return Table("Simple sentences", ["language", *headings], rows, note)
