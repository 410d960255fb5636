"""Features in memory and on disk: the same, and those of the encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from attree.errors import AttreeError
from attree.fewshot import features
from attree.fewshot.features import Layout, ShardStore, in_memory, on_disk
from attree.fewshot.scorer import Shape, Source

SENTENCES = [
    ["the", "old", "harbour"],
    ["misunderstandings"],
    ["cat", "chased", "the", "mice", "again"],
    ["a", "b"],
]
LAYOUT = Layout((0, 2), 12, 32)


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
    shape = Shape((2,), (0, 2), 12, 32, 32, 1, specials)
    batch = Source(store, shape).batch([2, 0])
    assert batch.n_words.tolist() == [5, 3]
    for row, place in enumerate((2, 0)):
        record, words = store.record(place), store.word_of[place]
        n = int(words.max()) + 1
        kept = (words >= 0) | specials
        assert batch.states.pieces.mask[row].sum() == kept.sum()
        np.testing.assert_allclose(batch.attention[row, :, :n, :n], record.attention)
        assert batch.attention[row, :, n:].sum() == 0
        for boundary in range(n + 1):
            # the last piece of the word before, the first of the word after, specials at the ends
            left = np.flatnonzero(words == boundary - 1)[-1] if boundary else 0
            right = np.flatnonzero(words == boundary)[0] if boundary < n else len(words) - 1
            for side, piece in ((batch.before, left), (batch.after, right)):
                expected = record.states[:, piece].ravel().astype(np.float32)
                np.testing.assert_array_equal(side[row, boundary], expected)


def test_places_choose_sentences(encoder):
    store = in_memory(encoder, SENTENCES, LAYOUT)
    shape = Shape((2,), (), 0, 32, 32, 1)
    chosen = Source(store, shape, [3, 0])
    assert len(chosen) == 2
    ours, theirs = chosen.batch([0]).states, Source(store, shape).batch([3]).states
    assert torch.equal(ours.states, theirs.states)
