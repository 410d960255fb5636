"""Reading and cleaning PTB brackets, against ``nltk.Tree.fromstring`` and the same cleaning."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attree.treebank.brackets import bracketed
from attree.treebank.cleaning import CleaningCounts, prepare
from attree.treebank.formats import read_files, resolve
from attree.treebank.layout import pieces
from attree.treebank.sentence import Sentence, SplitSettings
from tests.benchmarks import Row
from tests.treebank.reference import nltk_sentences

_REPEATS = 7
_DATA = Path(os.environ.get("ATTREE_TREEBANKS") or Path(__file__).parents[3] / "shared/data")


def ours(files: list[Path]) -> Iterator[Sentence]:
    """Read the same with attree."""
    settings = resolve(SplitSettings(), files)
    for item in prepare(read_files(files, settings), settings, CleaningCounts()):
        if isinstance(item, Sentence):
            yield item


def seconds(function: Callable[[], Any]) -> float:
    """Time one call, with the garbage collector out of the way of either side."""
    gc.collect()
    began = time.perf_counter()
    for _ in function():
        pass
    return time.perf_counter() - began


def rows() -> list[Row]:
    """Sentences a second on the WSJ sample (on a made-up treebank where it is absent)."""
    files = sorted(_DATA.glob("constituency/en_wsj_sample/*.mrg")) or _made_up()

    def baseline() -> Iterator[Any]:
        for file in files:
            text = file.read_text(encoding="utf-8")
            yield from nltk_sentences([text[begin:end] for begin, end in pieces(text)])

    n = sum(1 for _ in ours(files))
    assert n == sum(1 for _ in baseline())
    times = [(seconds(lambda: ours(files)), seconds(baseline)) for _ in range(_REPEATS)]
    fast, slow = (statistics.median(column) for column in zip(*times, strict=True))
    what = "reading and cleaning PTB brackets ÷ nltk.Tree.fromstring and the same"
    return [Row(what, ">= 2.0", "sentences/s", n / fast, n / slow)]


def _made_up() -> list[Path]:
    """Write a treebank of one long-ish tree, many times over."""
    import tempfile

    words = ["the", "dog", "that", "barked", "at", "the", "old", "man", "ran", "home"] * 2
    spans = [(0, 20, "S"), (0, 8, "NP"), (2, 8, "SBAR"), (4, 8, "PP"), (8, 20, "VP")]
    file = Path(tempfile.mkdtemp()) / "made_up.mrg"
    tree = f"( {bracketed(words, ['NN'] * 20, spans)})\n"
    file.write_text(tree * 4000, encoding="utf-8")
    return [file]
