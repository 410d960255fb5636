"""Every treebank there is: read and counted, and what is written of it is read back."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.base.schemas import SENTENCES_SCHEMA, write_table
from attree.treebank import convert as convert_module
from attree.treebank.cleaning import untraced
from attree.treebank.convert import convert, writable
from attree.treebank.crossing import Graph, continuous
from attree.treebank.formats import FORMATS, in_folder, read_files, read_trees, resolve
from attree.treebank.half import no_label
from attree.treebank.sentence import (
    Rejected,
    Sentence,
    SplitSettings,
    cut_label,
    join_label,
    split_label,
)
from attree.treebank.table import to_table
from attree.trees.constraints import COMPLETE, MARKS
from tests.conftest import DATA
from tests.treebank.test_roundtrip import sentences

#: Format that is written → an extension that tells it.
EXTENSIONS = {
    "ptb": "mrg", "spmrl": "ptb", "stanza": "conllu", "export": "export",
    "discbracket": "discbracket", "tigerxml": "xml", "half": "half", "parquet": "parquet",
}  # fmt: skip
KEPT = SplitSettings(functions="keep", punctuation="keep")
FEW = 150  # sentences of a treebank in the quick tests


def treebanks() -> dict[str, list[Path]]:
    """Return the constituency treebanks by title."""
    folders = [DATA / "cases", *sorted((DATA / "constituency").glob("??*_[!e]*"))]
    found = [in_folder(folder)[0] for folder in folders if folder.is_dir()]
    tops = re.compile(rf"{re.escape(str(DATA))}/(constituency/)?")
    return {tops.sub("", name): files for each in found for name, files in each.items()}


TREEBANKS = treebanks()
#: Title → its format, and the sentences read, the trees left out, words and phrases: of the first
#: trees, and of all.
COUNTS = json.loads((Path(__file__).parent / "counts.json").read_text(encoding="utf-8"))
each_treebank = pytest.mark.parametrize("title", COUNTS)


@functools.cache
def how(title: str) -> SplitSettings:
    return resolve(KEPT, TREEBANKS[title])


@functools.cache
def first_trees(title: str) -> list[Any]:
    return list(itertools.islice(read_trees(TREEBANKS[title], how(title)), FEW))


def few_trees(title: str) -> Iterator[Any]:
    return iter(copy.deepcopy(first_trees(title)))


def few_sentences(title: str) -> Iterator[Any]:
    settings = how(title)
    return (
        continuous(one, settings) if isinstance(one, Graph) else one for one in few_trees(title)
    )


def count(items: Iterable[Any]) -> list[int]:
    """Return the numbers of sentences, of trees left out, of words and of phrases."""
    counts = [0, 0, 0, 0]
    for item in items:
        if isinstance(item, Rejected):
            counts[1] += 1
        else:
            counts[0] += 1
            counts[2] += len(item.words)
            counts[3] += len(item.spans)
    return counts


@pytest.fixture
def files(data: Path, title: str) -> list[Path]:
    return TREEBANKS[title]


def test_no_treebank_is_left_out(data: Path) -> None:
    assert set(COUNTS) == set(TREEBANKS)


@each_treebank
def test_the_first_trees_are_counted(files: list[Path], title: str) -> None:
    assert how(title).format == COUNTS[title]["format"]
    assert count(few_sentences(title)) == COUNTS[title]["first"]


@pytest.mark.full
@each_treebank
def test_every_tree_is_counted(files: list[Path], title: str) -> None:
    assert count(read_files(files, how(title))) == COUNTS[title]["all"]


@pytest.mark.full
@pytest.mark.parametrize(
    "title", ["id_icon", "ja_jacy", "nl_alpino", "fr_sequoia", "en_wsj_sample"]
)
def test_words_are_those_that_two_brackets_hold(files: list[Path], title: str) -> None:
    """A leaf is a blank, what is no bracket, and a bracket; a no-break space is of the word."""
    found = sum(
        tag != "-NONE-"
        for file in files
        for tag in re.findall(
            r"\(([^ \t\n()]+)[ \t\n]+[^ \t\n()]+\)", file.read_text(encoding="utf-8")
        )
    )
    assert COUNTS[title]["all"][2] == found


def kept(tree: Sentence, to: str, words: Sequence[str]) -> tuple[object, ...]:
    """Return what a format keeps: not that all is known of a partial tree, and no mark as tag."""
    tags = ["X" if to == "half" and tag in MARKS else tag for tag in tree.tags]
    whole = (0, len(words), COMPLETE)
    return tuple(words), tags, [span for span in tree.spans if span != whole]


def held(tree: Sentence) -> bool:
    """Tell whether a partly bracketed tree can hold a tree: it says something, without marks."""
    known = tree.spans or not (tree.partial or len(tree.words) == 1)
    blank = not all(map(str.strip, tree.words))
    return bool(known) and not blank and not any(map(no_label, tree.spans))


def check_there_and_back(
    before: Iterable[Any], files: Sequence[Path], settings: SplitSettings, to: str, folder: Path
) -> None:
    """Write trees in a format, read them again, and compare them with those before."""
    made = folder / f"x.{EXTENSIONS[to]}"
    convert([(files, settings)], made, to)
    back = resolve(KEPT, [made])
    assert back.format == to
    after = read_files([made], back)
    trees = (untraced(tree, settings) for tree in before if isinstance(tree, Sentence))
    written = (one for one in trees if isinstance(one, Sentence) and (to != "half" or held(one)))
    for tree, again in itertools.zip_longest(written, after):
        assert isinstance(again, Sentence), again
        words = [FORMATS[to].held(word) for word in tree.words]
        assert kept(again, to, again.words) == kept(tree, to, words), (tree.file, tree.line)


@pytest.mark.parametrize("to", EXTENSIONS)
@each_treebank
def test_the_first_trees_there_and_back(
    files: list[Path], title: str, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert_module, "read_trees", lambda *_: few_trees(title))
    monkeypatch.setattr(convert_module, "read_files", lambda *_: few_sentences(title))
    check_there_and_back(few_sentences(title), files, how(title), to, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("to", EXTENSIONS)
@each_treebank
def test_every_tree_there_and_back(files: list[Path], title: str, to: str, tmp_path: Path) -> None:
    settings = replace(how(title), dependencies="half" if to == "half" else "whole")
    check_there_and_back(read_files(files, settings), files, settings, to, tmp_path)


def test_every_format_that_is_written_is_tested() -> None:
    assert set(EXTENSIONS) == set(writable())


LABELS = st.text("NPSa=-+*:|.0", min_size=1, max_size=6).filter(
    # marks, and what treebanks keep for what is no phrase
    lambda label: label not in {*MARKS, "-NONE-"}
)


@pytest.mark.parametrize("to", EXTENSIONS)
@hypothesis.settings(max_examples=20)
@given(drawn=st.data())
def test_any_labels_there_and_back(
    to: str, drawn: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    few = st.lists(sentences(words=st.text("abc0$", min_size=1)), min_size=1, max_size=9)
    trees = [
        replace(
            tree,
            tags=tuple(drawn.draw(LABELS) for _ in tree.tags),
            spans=tuple((start, end, drawn.draw(LABELS)) for start, end, _ in tree.spans),
        )
        for tree in drawn.draw(few)
    ]
    hypothesis.assume(to != "half" or any(map(held, trees)))
    write_table(folder / "a.parquet", to_table(trees), schema=SENTENCES_SCHEMA, metadata={})
    settings = resolve(KEPT, [folder / "a.parquet"])
    check_there_and_back(trees, [folder / "a.parquet"], settings, to, folder)


@given(st.text("NP-=a", max_size=8))
def test_a_label_is_its_name_and_its_function(label: str) -> None:
    name, function = split_label(label)
    assert join_label(name, function) == label
    assert function != "--"
    assert cut_label(name) == cut_label(label)
