"""Counts on real treebanks: published ones, ones counted by other means, the demo's data card."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import pytest

from attree.base.patterns import find
from attree.treebank.cleaning import CleaningCounts, prepare
from attree.treebank.formats import read_files, resolve
from attree.treebank.language import discover
from attree.treebank.layout import pieces
from attree.treebank.sentence import Rejected, Sentence, SplitSettings
from tests.treebank.reference import nltk_sentences


@pytest.fixture(scope="module")
def trees(data: Path) -> Path:
    return data / "constituency"


def load(
    files: Iterable[Path], **settings: object
) -> tuple[list[Sentence], list[Rejected], CleaningCounts]:
    files = sorted(files)
    assert files
    resolved = resolve(SplitSettings(**settings), files)  # type: ignore[arg-type]
    counts = CleaningCounts()
    items = list(prepare(read_files(files, resolved), resolved, counts))
    read = [item for item in items if isinstance(item, Sentence)]
    return read, [item for item in items if isinstance(item, Rejected)], counts


def one_word(sentences: list[Sentence]) -> int:
    return sum(len(sentence.words) == 1 for sentence in sentences)


@pytest.mark.parametrize(
    ("numbers", "sentences", "words"), [("0125..0149", 459, 9531), ("0150..0174", 316, 6705)]
)
def test_wsj_sample(trees: Path, numbers: str, sentences: int, words: int) -> None:
    files = find([f"en_wsj_sample/wsj_{{{numbers}}}.mrg"], trees).files
    read, rejected, counts = load(files)
    assert (len(read), counts.words, one_word(read)) == (sentences, words, 2)
    assert not rejected


def test_wsj_sample_is_what_nltk_reads(trees: Path) -> None:
    for file in sorted(trees.glob("en_wsj_sample/wsj_01[2-7]*.mrg")):
        text = file.read_text(encoding="utf-8")
        blocks = [text[begin:end] for begin, end in pieces(text)]
        read, _, _ = load([file])
        theirs = list(nltk_sentences(blocks))
        assert [(list(s.words), list(s.tags), list(s.spans)) for s in read] == theirs


def test_wsj_sentence_of_249_words(trees: Path) -> None:
    read, _, counts = load(trees.glob("en_wsj_sample/*.mrg"), punctuation="keep")
    assert counts.read == 3569
    assert max(len(sentence.words) for sentence in read) == 249


#: File → settings; sentences read, those of one word, skipped, failed.
SIZES = {
    "fr_sequoia/sequoia.mrg": ({"punctuation": "keep"}, 2673, 69, 4, 0),
    "de_squoia/de_squoia.spmrl_style.ptb": ({}, 2695, 65, 0, 0),
    "he_htb/hebrew_script.ptb": ({"first": 1500}, 1500, 0, 3500, 0),
}


@pytest.mark.parametrize("file", SIZES)
def test_sizes(trees: Path, file: str) -> None:
    settings, *sizes = SIZES[file]
    read, _, counts = load([trees / file], max_words=100, **settings)
    assert [len(read), one_word(read), counts.skipped, counts.failed] == sizes
    assert max(len(sentence.words) for sentence in read) <= 100
    assert not any(label in ("", "VROOT") for sentence in read for _, _, label in sentence.spans)


@pytest.mark.parametrize("folder", ["he_htb", "en_gum"])
def test_literal_star_or_zero_is_a_word(trees: Path, folder: str) -> None:
    read, rejected, _ = load(trees.glob(f"{folder}/**/*.ptb"))
    assert not rejected
    literal = [word for sentence in read for word in sentence.words if word in ("*", "0")]
    assert literal


def test_portuguese(trees: Path) -> None:
    files = [trees / "pt_floresta/Floresta_7.4.ptb"]
    read, rejected, _ = load(files, encoding="latin-1")
    assert (len(read), len(rejected)) == (9195, 131)
    assert all(item.status == "failed" and item.line > 1 for item in rejected)
    assert read[0].words == ("Um", "revivalismo", "refrescante")
    assert read[1].words[-1] == "."
    lines = files[0].read_text(encoding="latin-1").split("\n")
    assert all(lines[item.line - 1].startswith("(") for item in [*read, *rejected])


def test_portuguese_under_the_wrong_encoding(trees: Path) -> None:
    files = [trees / "pt_floresta/Floresta_7.4.ptb"]
    read, rejected, _ = load(files, encoding="utf-8")
    assert len(read) + len(rejected) == 9326
    assert "latin-1" in rejected[-1].reason


def test_icelandic(trees: Path) -> None:
    read, rejected, _ = load(trees.glob("is_greynir/devset/psd/*.gld"))
    assert (len(read), len(rejected)) == (4500, 0)
    (odd,) = [s for s in read if s.file.endswith("00200.gld") and s.line == 459]
    assert odd.words.count("(") == 2  # it opens one bracket twice, escaped; naively, two unclosed
    assert not any(word == "\\" for sentence in read for word in sentence.words)
    assert not any(label in ("META", "lemma", "") for s in read for _, _, label in s.spans)
    assert any(words == ("Þvert", "á") for s in read for words in itertools.pairwise(s.words))


def test_spmrl_shaped(trees: Path) -> None:
    for file in sorted(trees.glob("spmrl_pseudo/*.ptb")):
        read, rejected, _ = load([file])
        assert not rejected
        assert len(read) == len(file.read_text(encoding="utf-8").splitlines())
        assert not any("##" in tag for sentence in read for tag in sentence.tags)
    english, _, _ = load([trees / "spmrl_pseudo/en.dev.ptb"])
    assert ("\\\\", "//") in [sentence.words for sentence in english]


def crossing(text: str) -> int:
    """Count the trees that cross: those in which two words' subtrees interleave."""
    found = 0
    for block in text.strip().split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if line[:1].isdigit()]
        heads = [int(row[6]) for row in rows if row[0].isdigit()]
        arcs = [(min(a, b), max(a, b)) for a, b in enumerate(heads, start=1)]
        found += any(a < c < b < d for a, b in arcs for c, d in arcs)
    return found


@pytest.mark.parametrize("parts", [8, pytest.param(0, marks=pytest.mark.full)])
def test_universal_dependencies(data: Path, parts: int) -> None:
    every = sorted(data.glob("ud/*/dev.conllu" if parts else "ud/*/*.conllu"))
    for file in every[:: len(every) // parts if parts else 1]:
        text = file.read_text(encoding="utf-8")
        sentences = text.count("# text = ")
        _, rejected, counts = load([file])
        assert counts.total == sentences, file
        assert counts.failed == 0
        assert counts.skipped == len(rejected) == crossing(text) < sentences / 3
        lifted, rejected, counts = load([file], nonprojective="lift")
        assert (len(lifted), len(rejected)) == (sentences, 0)
        forms = sum(line.split("\t")[0].isdigit() for line in text.splitlines())
        assert counts.words == forms


#: The demo's treebanks, and their card.
FOLDER = Path(__file__).parents[2] / "workflow/resources/treebanks"


def sentences(file: Path) -> list[Sentence]:
    """Read a file of which no sentence is lost; nothing is cleaned."""
    found = list(read_files([file], resolve(SplitSettings(), [file])))
    assert all(isinstance(one, Sentence) for one in found)
    return found  # type: ignore[return-value]


def counted(file: Path) -> list[str]:
    """Return a file's line of the card."""
    found = sentences(file)
    lengths = [len(one.words) for one in found]
    spans = [span for one in found for span in one.spans]
    phrases = sum(end - start > 1 for start, end, _ in spans)
    numbers = [len(found), sum(lengths), min(lengths), max(lengths), phrases]
    labels = len({label for _, _, label in spans})
    return [file.parent.name, file.stem, *map(str, [*numbers, labels])]


def test_every_file_is_in_the_card_with_its_sizes() -> None:
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    table = [row for row in cells if len(row) == 8 and row[2].isdigit()]
    assert sorted(table) == sorted(counted(file) for file in FOLDER.glob("*/*"))


def test_no_sentence_of_english_stands_twice() -> None:
    each = [one.words for file in FOLDER.glob("english/*") for one in sentences(file)]
    assert len(set(each)) == len(each) == 150


def test_the_card_is_no_treebank() -> None:
    found = discover([FOLDER])
    assert len(found) == 9
    assert not found.warnings and not found.problems


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*/test.*")), ids=lambda file: file.parent.name)
def test_styles_are_as_the_card_says(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    if file.parent.name == "english":
        assert file.suffix == ".mrg" and "-NONE-" in text and "(. .)" in text
    else:
        assert file.suffix == ".ptb" and len(text.splitlines()) == len(sentences(file))
