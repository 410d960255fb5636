"""Sequences, their order, and their masks, against what they are defined to be."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.encoder.mlm.data import proportions
from attree.encoder.mlm.examples import (
    IGNORED,
    Examples,
    Masking,
    Schedule,
    Specials,
    collate,
    encode,
    sequences,
)
from attree.errors import AttreeError
from tests.encoder import checkpoints

TOKENISER = checkpoints.FAMILIES["bert"][1]()
SPECIALS = Specials.of(TOKENISER)
CLS, SEP = SPECIALS.first, SPECIALS.last


def plain(line: str) -> list[int]:
    return list(TOKENISER(line, add_special_tokens=False)["input_ids"])


def made(sizes: list[int], length: int = 6) -> list[Examples]:
    """Corpora of the sizes given; all pieces of one sequence are alike, and unlike any other's."""
    found, number = [], 10
    for size in sizes:
        ids = np.repeat(np.arange(number, number + size), length).astype(np.int32)
        found.append(Examples(ids, np.arange(size + 1) * length))
        number += size
    return found


def wide(size: int) -> Masking:
    """Masking with a vocabulary of ``size`` plain pieces."""
    return Masking(Specials(0, 1, 2, 3, np.ones(size, dtype=bool)))


def test_a_line_is_a_sequence_and_a_long_one_several() -> None:
    long, short = " ".join(checkpoints.TEXT[:2]), checkpoints.TEXT[2]
    found = encode([short, long], TOKENISER, length=12)
    assert found[0].tolist() == [CLS, *plain(short), SEP][:12] or len(plain(short)) > 10
    assert all(3 <= len(found[n]) <= 12 for n in range(len(found)))
    assert all((found[n][0], found[n][-1]) == (CLS, SEP) for n in range(len(found)))
    inner = [piece for n in range(len(found)) for piece in found[n][1:-1].tolist()]
    assert inner == plain(short) + plain(long)


@given(st.lists(st.sampled_from(checkpoints.TEXT), min_size=1, max_size=9), st.integers(8, 40))
def test_packed_sequences_are_full_and_lose_nothing(lines: list[str], length: int) -> None:
    found = encode(lines, TOKENISER, length=length, packed=True)
    assert all(len(found[n]) == length for n in range(len(found) - 1))
    inner = [piece for n in range(len(found)) for piece in found[n][1:-1].tolist()]
    stream: list[int] = []
    for line in lines:
        stream += [*plain(line), SEP]
    assert inner in (stream[:-1], stream)


def test_text_that_spells_a_special_piece_is_text() -> None:
    ids = encode(["the [MASK] walked"], TOKENISER, length=30)[0]
    assert SPECIALS.mask not in ids
    assert ids.tolist().count(SEP) == 1


def test_lines_with_nothing_to_mask_are_left_out_and_too_little_is_an_error() -> None:
    assert len(encode(["", "漢字", " "], TOKENISER, length=30)) == 0
    with pytest.raises(AttreeError, match=r"too little text \(en\): 1 sequences .* at least 5"):
        sequences("en", ["one", "漢"], TOKENISER, length=30, least=5)


def test_a_tokeniser_without_mask_is_refused() -> None:
    tokeniser = checkpoints.FAMILIES["bert"][1]()
    tokeniser.mask_token = None
    with pytest.raises(AttreeError, match="no mask_token"):
        Specials.of(tokeniser)


def test_masking_is_bert_s() -> None:
    ids = np.array([CLS, *range(20, 60), SPECIALS.pad, SEP], dtype=np.int32)
    masking, fates = Masking(SPECIALS), Counter[str]()
    for number in range(2_000):
        inputs, labels = masking(ids, np.random.default_rng(number))
        chosen = labels != IGNORED
        assert chosen.sum() == 6  # 15 % of the forty that are no specials
        assert not chosen[[0, -2, -1]].any()
        assert (labels[chosen] == ids[chosen]).all()
        assert (inputs[~chosen] == ids[~chosen]).all()
        fates["mask"] += int((inputs[chosen] == SPECIALS.mask).sum())
        fates["kept"] += int((inputs[chosen] == ids[chosen]).sum())
    assert fates["mask"] / 12_000 == pytest.approx(0.8, abs=0.015)
    assert fates["kept"] / 12_000 == pytest.approx(0.1, abs=0.012)
    short = np.array([CLS, 20, SEP], dtype=np.int32)
    assert (masking(short, np.random.default_rng(0))[1] != IGNORED).sum() == 1


def test_collate_pads() -> None:
    batch = collate(7)([(np.array([1, 2, 3]), np.array([-100, 2, -100])), (np.array([4]),) * 2])
    assert batch["input_ids"].tolist() == [[1, 2, 3], [4, 7, 7]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch["labels"].tolist() == [[-100, 2, -100], [4, -100, -100]]


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 5))
def test_no_sequence_is_seen_more_often_than_another(size: int, batch: int, epochs: int) -> None:
    schedule = Schedule(made([size]), wide(100), seed=3, batch=batch, epochs=epochs)
    assert len(schedule) == epochs * -(-size // batch) * batch
    counts = Counter(n for epoch in range(epochs) for n in schedule.order(epoch).tolist())
    assert set(counts) == set(range(size))
    assert min(counts.values()) >= epochs
    assert max(counts.values()) - min(counts.values()) <= 1


@given(st.lists(st.integers(1, 200), min_size=2, max_size=6), st.floats(0, 1))
def test_languages_are_drawn_in_proportion_to_a_power_of_their_size(
    sizes: list[int], exponent: float
) -> None:
    schedule = Schedule(made(sizes), wide(2_000), seed=0, batch=4, steps=1, exponent=exponent)
    drawn = np.bincount(
        np.searchsorted(schedule.bounds, schedule.order(2), side="right") - 1, minlength=len(sizes)
    )
    weights = np.array([size**exponent for size in sizes])
    assert np.abs(drawn - len(schedule.order(2)) * weights / weights.sum()).max() <= 1
    assert (drawn >= 1).all()


def test_the_exponent_s_ends() -> None:
    assert proportions([100, 300], 1.0).tolist() == [0.25, 0.75]
    assert proportions([100, 300], 0.0).tolist() == [0.5, 0.5]
    assert proportions([100, 10_000], 0.5).tolist() == pytest.approx([1 / 11, 10 / 11])


def test_a_small_language_is_repeated_evenly() -> None:
    schedule = Schedule(made([10, 190]), wide(400), seed=0, batch=8, steps=1, exponent=0.0)
    orders = np.concatenate([schedule.order(epoch) for epoch in range(4)])
    small = Counter(orders[orders < 10].tolist())
    assert len(small) == 10
    assert max(small.values()) - min(small.values()) <= 1


def test_what_is_at_a_place_depends_on_nothing_but_seed_and_place() -> None:
    named = {"seed": 5, "batch": 4, "epochs": 3}
    one, other = (Schedule(made([30]), wide(100), **named) for _ in range(2))
    forwards = [one[place] for place in range(len(one))]
    backwards = [other[place] for place in reversed(range(len(other)))][::-1]
    for (a, b), (c, d) in zip(forwards, backwards, strict=True):
        assert (a == c).all()
        assert (b == d).all()
    another = Schedule(made([30]), wide(100), seed=6, batch=4, epochs=3)
    assert (one.order(0) != another.order(0)).any()
    assert (one.order(0) != one.order(1)).any()


def test_sequences_of_like_length_share_a_batch() -> None:
    lengths = np.random.default_rng(0).integers(3, 60, size=400)
    corpus = Examples(
        np.full(lengths.sum(), 9, dtype=np.int32), np.concatenate(([0], np.cumsum(lengths)))
    )
    schedule = Schedule([corpus], wide(20), seed=0, batch=8)
    batches = schedule.lengths[schedule.order(0)].reshape(-1, 8)
    padded = (batches.max(1) * 8).sum() / lengths.sum()
    assert padded < 1.1
    assert np.abs(np.diff(batches.mean(1))).max() > 10  # but not one length after the other
