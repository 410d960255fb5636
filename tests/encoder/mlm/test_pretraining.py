"""A tiny encoder from nothing but text."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attree.encoder.load import load_encoder
from attree.encoder.mlm.data import balanced_lines, by_language
from attree.encoder.mlm.models import train_tokeniser
from attree.encoder.mlm.pretraining import PretrainingRecipe, pretrain
from attree.encoder.source import EncoderSource
from attree.errors import AttreeError
from tests.encoder import checkpoints
from tests.encoder.mlm.test_tuning import kill_while_saving

RECIPE = PretrainingRecipe(
    vocabulary=120,
    layers=2,
    heads=2,
    hidden=16,
    length=24,
    batch=8,
    steps=60,
    learning_rate=1e-2,
    held_out=0.1,
    exponent=0.5,
)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "de.txt").write_text("\n".join([checkpoints.TEXT[2]] * 40), encoding="utf-8")
    (folder / "en.txt").write_text("\n".join(checkpoints.TEXT[:2] * 90), encoding="utf-8")
    return folder


def run(texts: Path, output: Path, recipe: PretrainingRecipe = RECIPE) -> dict[str, Any]:
    pretrain([texts], output, seed=0, recipe=recipe, device="cpu")
    found: dict[str, Any] = json.loads((output / "provenance.json").read_text())
    return found


def test_a_pretrained_encoder_parses_words(texts: Path, tmp_path: Path) -> None:
    made = run(texts, tmp_path / "out")
    first, last = made["curve"][0]["held_out"], made["curve"][-1]["held_out"]
    assert set(first) == {"de", "en"}
    assert all(first[name] == pytest.approx(math.log(120), abs=0.5) for name in first)
    assert all(last[name] < 0.85 * first[name] for name in last)
    assert made["drawn"]["de"] + made["drawn"]["en"] == pytest.approx(1)
    assert made["data"]["en"]["lines"] == 180
    assert made["new_head"] is False
    encoder = load_encoder(EncoderSource("mine", "path", str(tmp_path / "out")), device="cpu")
    assert (encoder.n_layers, encoder.n_heads, encoder.hidden_size) == (2, 2, 16)
    assert encoder.max_pieces == 24
    pieces = encoder.tokenise([["the", "Übersetzung", "walked"]])
    assert pieces[0].n_unknown == 0
    assert encoder.run(pieces, heads=[(0, 1)]).attention.shape == (1, 1, 3, 3)


def test_a_killed_run_ends_as_one_undisturbed(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(texts, tmp_path / "whole")
    kill_while_saving(monkeypatch, 33)
    with pytest.raises(KeyboardInterrupt):
        run(texts, tmp_path / "out")
    monkeypatch.undo()
    assert run(texts, tmp_path / "out") == whole
    for name in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_text_for_the_tokeniser_is_balanced(texts: Path) -> None:
    corpora = by_language([texts])
    sizes = [sum(map(len, corpus.lines())) for corpus in corpora]
    for exponent in (0.0, 0.5, 1.0):
        drawn = Counter[bool]()
        for line in balanced_lines(corpora, sizes, characters=4_000, exponent=exponent):
            drawn[line == checkpoints.TEXT[2]] += len(line)
        weights = [size**exponent for size in sizes]
        assert drawn.total() == pytest.approx(4_000, abs=200)
        assert drawn[True] / drawn.total() == pytest.approx(weights[0] / sum(weights), abs=0.03)


def test_tokenisers_are_cased_or_not_and_keep_accents_and_syllables() -> None:
    text = [*checkpoints.TEXT * 3, "한국어 문장 입니다 " * 4]
    lower = train_tokeniser(lambda: iter(text), vocabulary=200, cased=False)
    cased = train_tokeniser(lambda: iter(text), vocabulary=200, cased=True)
    assert lower.encode("THE").tokens == lower.encode("the").tokens
    assert cased.encode("Die").tokens != cased.encode("die").tokens
    assert "é" in "".join(lower.encode("invités").tokens)
    assert "한" in "".join(lower.encode("한국어").tokens)
    assert lower.encode("the").tokens[0] == "[CLS]"
    assert lower.encode("the").tokens[-1] == "[SEP]"
    assert lower.get_vocab_size() <= 200
    assert [lower.id_to_token(n) for n in range(5)] == [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
    ]


def test_the_same_text_gives_the_same_tokeniser() -> None:
    text = checkpoints.TEXT * 3
    made = {
        train_tokeniser(lambda: iter(text), vocabulary=150, cased=True).to_str() for _ in "12345"
    }
    assert len(made) == 1


def test_rare_characters_give_way() -> None:
    text = ["abcdefghij klmnopqrst"] * 5 + ["uvwxyz"]
    made = train_tokeniser(lambda: iter(text), vocabulary=80, cased=True)
    assert made.get_vocab_size() <= 80
    assert "[UNK]" in made.encode("z").tokens
    assert "[UNK]" not in made.encode("abt").tokens


def test_recipes_that_cannot_be() -> None:
    with pytest.raises(AttreeError, match="hidden size of 16 cannot be shared by 3 heads"):
        replace(RECIPE, heads=3)
    with pytest.raises(AttreeError, match="exponent"):
        replace(RECIPE, exponent=1.5)
    with pytest.raises(AttreeError, match="held-out share"):
        replace(RECIPE, held_out=0.0)


def test_too_little_text_of_a_language(texts: Path, tmp_path: Path) -> None:
    (texts / "eu.txt").write_text("bat\n")
    with pytest.raises(AttreeError, match=r"too little text \(eu\)"):
        run(texts, tmp_path / "out")
