"""Features in memory and on disk: the same, and those of the encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attree.errors import AttreeError
from attree.fewshot import features
from attree.fewshot.features import Layout, ShardStore, in_memory, on_disk, run
from attree.fewshot.recipes import RECIPES
from attree.fewshot.scorer import BatchSource, Scorer

SENTENCES = [
    ["the", "old", "harbour"],
    ["misunderstandings"],
    ["cat", "chased", "the", "mice", "again"],
    ["a", "b"],
]
LAYOUT = Layout((0, 2), 12, 32)


def shapes(*, specials: bool = False) -> dict[str, dict[str, Any]]:
    """Settings of every part, over the layers of the layout."""
    size = {"hidden": 32, "size": 32, "heads": 1, "specials": specials}
    return {
        "projection": {"layers": [2], **size},
        "boundary": {"layers": [0, 2], "hidden": 32},
        "heads": {"heads": 12},
    }


def test_features_are_the_encoders(encoder):
    store = in_memory(encoder, SENTENCES, LAYOUT)
    heads = [(layer, head) for layer in range(3) for head in range(4)]
    for place, words in enumerate(SENTENCES):
        (pieces,) = encoder.tokenise([words])
        found = encoder.run([pieces], states=[0, 2], heads=heads)
        record = store.record(place)
        for row, layer in enumerate((0, 2)):
            expected = found.states[layer][0].numpy()
            np.testing.assert_allclose(record.states[row], expected, atol=4e-3, rtol=2e-3)
        np.testing.assert_allclose(record.attention, found.attention[0].numpy(), atol=1e-3)
        assert store.word_of[place].tolist() == pieces.word_of.tolist()


def test_shards_hold_what_memory_holds(encoder, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(features, "_SHARD", 3)
    kept = in_memory(encoder, SENTENCES, LAYOUT)
    on_disk(encoder, SENTENCES, LAYOUT, tmp_path)
    assert len(list(tmp_path.glob("*.f16"))) == 2
    read = ShardStore(tmp_path)
    for place in (3, 0, 2, 1):
        np.testing.assert_array_equal(read.record(place).states, kept.record(place).states)
        np.testing.assert_array_equal(read.record(place).attention, kept.record(place).attention)
        np.testing.assert_array_equal(read.word_of[place], kept.word_of[place])


def test_a_shard_cut_short_is_told(encoder, tmp_path: Path):
    on_disk(encoder, SENTENCES, LAYOUT, tmp_path)
    (path,) = tmp_path.glob("*.f16")
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(AttreeError, match="cut short"):
        ShardStore(tmp_path)


def test_bad_layers_and_long_sentences_are_told(encoder):
    with pytest.raises(AttreeError, match="no hidden states of layer 9"):
        in_memory(encoder, SENTENCES, Layout((9,), 0, 32))
    with pytest.raises(AttreeError, match=r"sentence 1 has \d+ word pieces"):
        in_memory(encoder, [["a"], ["harbour"] * 100], LAYOUT)


@pytest.mark.parametrize("specials", [False, True])
def test_batches_lay_out_what_each_part_reads(encoder, specials: bool):
    store = in_memory(encoder, SENTENCES, LAYOUT)
    scorer = Scorer(RECIPES["tree-crf-full"], shapes(specials=specials))
    batch = BatchSource(store, scorer).batch([2, 0])
    projection, (before, after), attention = (
        batch.features[name] for name in ("projection", "boundary", "heads")
    )
    assert batch.n_words.tolist() == [5, 3]
    for row, place in enumerate((2, 0)):
        record, words = store.record(place), store.word_of[place]
        n = int(words.max()) + 1
        kept = (words >= 0) | specials
        assert projection.pieces.mask[row].sum() == kept.sum()
        np.testing.assert_allclose(attention[row, :, :n, :n], record.attention)
        assert attention[row, :, n:].sum() == 0
        for boundary in range(n + 1):
            # the last piece of the word before, the first of the word after, specials at the ends
            left = np.flatnonzero(words == boundary - 1)[-1] if boundary else 0
            right = np.flatnonzero(words == boundary)[0] if boundary < n else len(words) - 1
            for side, piece in ((before, left), (after, right)):
                expected = record.states[:, piece].ravel().astype(np.float32)
                np.testing.assert_array_equal(side[row, boundary], expected)


def test_places_choose_sentences(encoder):
    store = in_memory(encoder, SENTENCES, LAYOUT)
    scorer = Scorer(RECIPES["fpio"], shapes())
    chosen = BatchSource(store, scorer, [3, 0])
    assert len(chosen) == 2
    ours, theirs = chosen.batch([0]), BatchSource(store, scorer).batch([3])
    assert torch.equal(ours.features["projection"].states, theirs.features["projection"].states)


@pytest.mark.parametrize("specials", [False, True])
def test_what_is_read_back_scores_as_what_the_encoder_just_said(encoder, specials: bool):
    """Features that stay on the device, against the same through a store (rounded to float16)."""
    scorer = Scorer(RECIPES["tree-crf-full"], shapes(specials=specials))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in scorer.parameters():
            parameter.normal_(0, 0.1, generator=generator)
        stored = BatchSource(in_memory(encoder, SENTENCES, LAYOUT), scorer).batch(range(4))
        direct = scorer.lay_out(run(encoder, encoder.tokenise(SENTENCES), scorer.layout()))
        assert direct.n_words.tolist() == stored.n_words.tolist()
        ours, theirs = scorer.scores(direct).span, scorer.scores(stored).span
    assert ours.abs().max() > 1
    torch.testing.assert_close(ours, theirs, atol=2e-2, rtol=1e-2)
