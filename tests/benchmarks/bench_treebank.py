"""Reading and cleaning PTB brackets, against ``nltk.Tree.fromstring`` and the same cleaning."""

from __future__ import annotations

import tempfile
from pathlib import Path

from attree.treebank.brackets import bracketed
from attree.treebank.cleaning import CleaningCounts, prepare
from attree.treebank.formats import read_files, resolve
from attree.treebank.layout import pieces
from attree.treebank.sentence import Sentence, SplitSettings
from tests.benchmarks import Row, in_turn, timed
from tests.conftest import DATA
from tests.treebank.reference import nltk_sentences

_ROUNDS = 7


def rows() -> list[Row]:
    """Sentences a second on the WSJ sample (on a made-up treebank where it is absent)."""
    files = sorted(DATA.glob("constituency/en_wsj_sample/*.mrg")) or _made_up()
    settings = resolve(SplitSettings(), files)

    def ours() -> int:
        prepared = prepare(read_files(files, settings), settings, CleaningCounts())
        return sum(isinstance(item, Sentence) for item in prepared)

    def baseline() -> int:
        texts = (file.read_text(encoding="utf-8") for file in files)
        return sum(
            1
            for text in texts
            for _ in nltk_sentences([text[begin:end] for begin, end in pieces(text)])
        )

    n = ours()
    assert n == baseline()
    seconds = in_turn(timed(ours), timed(baseline), rounds=_ROUNDS)
    what = "reading and cleaning PTB brackets ÷ nltk.Tree.fromstring and the same"
    return [Row(what, ">= 2.0", "sentences/s", *n / seconds)]


def _made_up() -> list[Path]:
    """Write a treebank of one long-ish tree, many times over."""
    words = ["the", "dog", "that", "barked", "at", "the", "old", "man", "ran", "home"] * 2
    spans = [(0, 20, "S"), (0, 8, "NP"), (2, 8, "SBAR"), (4, 8, "PP"), (8, 20, "VP")]
    file = Path(tempfile.mkdtemp()) / "made_up.mrg"
    tree = f"( {bracketed(words, ['NN'] * 20, spans)})\n"
    file.write_text(tree * 4000, encoding="utf-8")
    return [file]
