"""Baselines on real treebanks, to the hundredth of what they are known to get."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from attree.base.patterns import find
from attree.evaluation.baselines import fixed_parses
from attree.evaluation.metrics import Counts, score, upper_bound
from attree.treebank.cleaning import CleaningCounts as Read
from attree.treebank.cleaning import prepare
from attree.treebank.formats import read_files, resolve
from attree.treebank.sentence import Sentence, SplitSettings
from attree.treebank.table import to_table
from attree.trees.parses import Parses


def gold_of(files: Iterable[Path], **settings: object) -> Parses:
    paths = sorted(files)
    resolved = resolve(SplitSettings(**settings), paths)  # type: ignore[arg-type]
    items = prepare(read_files(paths, resolved), resolved, Read())
    return Parses.gold(to_table(item for item in items if isinstance(item, Sentence)))


def f1(counts: Counts) -> tuple[float, ...]:
    each = (counts.corpus_f1, counts.corpus_f1_no_root, counts.sentence_f1)
    return tuple(round(value or 0.0, 2) for value in each)


@pytest.mark.parametrize(
    ("files", "right", "left", "ceiling"),
    [
        ("0125..0149", (40.21, 36.5, 40.47), (11.88, 6.42, 9.28), 84.20),
        ("0150..0174", (39.04, 35.45, 38.61), (11.76, 6.56, 7.45), 86.67),
    ],
)
def test_wsj_sample(
    data: Path,
    files: str,
    right: tuple[float, ...],
    left: tuple[float, ...],
    ceiling: float,
) -> None:
    folder = data / "constituency/en_wsj_sample"
    gold = gold_of(find([f"wsj_{{{files}}}.mrg"], folder).files)
    counts = score(gold, fixed_parses("right_branching", gold)).counts
    assert f1(counts) == right
    assert counts.one_word == 2
    assert f1(score(gold, fixed_parses("left_branching", gold)).counts) == left
    assert f1(upper_bound(gold).counts)[0] == ceiling


@pytest.mark.full
@pytest.mark.parametrize(
    ("file", "settings", "right", "left"),
    [
        ("fr_sequoia/sequoia.mrg", {"format": "spmrl", "max_words": 100}, 7.69, 10.24),
        ("he_htb/hebrew_script.ptb", {"max_words": 100, "first": 1500}, 4.62, 9.17),
        ("de_squoia/de_squoia.spmrl_style.ptb", {"max_words": 100}, 8.90, 18.96),
    ],
)
def test_other_languages(
    data: Path, file: str, settings: dict[str, object], right: float, left: float
) -> None:
    gold = gold_of([data / "constituency" / file], **settings)
    for name, wanted in (("right_branching", right), ("left_branching", left)):
        assert round(score(gold, fixed_parses(name, gold)).counts.corpus_f1 or 0.0, 2) == wanted
