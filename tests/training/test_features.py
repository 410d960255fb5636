"""Features in memory and on disk: the same, and those of the encoder."""

from __future__ import annotations

import mmap
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attree.encoder.pieces import Pieces
from attree.training import features
from attree.training.features import Layout, SentenceFeatures, features_of, read_back, run
from attree.training.parts import BatchSource, SpanScorer
from attree.training.recipes import RECIPES
from tests.refusals import refused

SENTENCES = [
    ["the", "old", "harbour"],
    ["misunderstandings"],
    ["cat", "chased", "the", "mice", "again"],
    ["a", "b"],
]
LAYOUT = Layout((0, 2), 12)
STATUS = Path("/proc/self/status")


def mapped_bytes() -> int:
    """How much of mapped files is in this process's memory."""
    (kilobytes,) = re.findall(r"RssFile:\s+(\d+)", STATUS.read_text())
    return 1024 * int(kilobytes)


def shapes(*, specials: bool = False) -> dict[str, dict[str, Any]]:
    """Settings of every part, over the layers of the layout."""
    size = {"hidden": 32, "size": 32, "heads": 1, "specials": specials}
    return {
        "projection": {"layers": [2], **size},
        "boundary": {"layers": [0, 2], "hidden": 32},
        "heads": {"heads": 12},
    }


def test_features_are_the_encoders(encoder):
    records = features_of(encoder, SENTENCES, LAYOUT).records
    heads = [(layer, head) for layer in range(3) for head in range(4)]
    for place, words in enumerate(SENTENCES):
        (pieces,) = encoder.tokenise([words])
        found = encoder.run([pieces], states=[0, 2], heads=heads)
        record = records[place]
        for row, layer in enumerate((0, 2)):
            expected = found.states[layer][0].numpy()
            np.testing.assert_allclose(record.states[row], expected, atol=4e-3, rtol=2e-3)
        np.testing.assert_allclose(record.attention, found.attention[0].numpy(), atol=1e-3)
        assert record.pieces.word_of.tolist() == pieces.word_of.tolist()


@pytest.mark.parametrize("block", [3, 1000])
def test_a_file_holds_what_memory_holds(encoder, tmp_path: Path, monkeypatch, block: int):
    kept = features_of(encoder, SENTENCES, LAYOUT, folder=tmp_path)
    assert kept.records[0].file is None
    monkeypatch.setattr(features, "IN_MEMORY", 1000)
    monkeypatch.setattr(features, "_BLOCK", block)
    read = features_of(encoder, SENTENCES, LAYOUT, folder=tmp_path / "new")
    assert not list((tmp_path / "new").iterdir()), "the file goes with what reads it"
    for one, other in zip(read.records, kept.records, strict=True):
        assert one.file is not None
        np.testing.assert_allclose(one.states, other.states, atol=2e-3)
        np.testing.assert_allclose(one.attention, other.attention, atol=1e-3)
        np.testing.assert_array_equal(one.pieces.word_of, other.pieces.word_of)


@pytest.mark.skipif(not STATUS.exists(), reason="no /proc")
def test_pages_of_the_file_are_given_back(tmp_path: Path):
    with (tmp_path / "states").open("wb+") as file:
        file.truncate(64_000_000)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    states = np.frombuffer(mapped, np.float16).reshape(400, 1, 20, -1)
    word, none = np.arange(20, dtype=np.int32), np.empty((0, 5, 5), np.float16)
    pieces = Pieces(word, word, len(word), 0, False)
    records = [SentenceFeatures(pieces, part, none, mapped) for part in states]
    before = mapped_bytes()
    for first in range(0, 400, 10):
        read_back(records[first : first + 10], Layout((0,), 0), Layout((0,), 0))
    assert mapped_bytes() - before < 10_000_000
    assert int(states.sum()) == 0
    assert mapped_bytes() - before > 50_000_000, "this test would not see them"


def test_bad_layers_and_long_sentences_are_told(encoder):
    with refused("no-such-layer", "9"):
        features_of(encoder, SENTENCES, Layout((9,), 0))
    with refused("too-many-pieces", "harbour harbour"):
        features_of(encoder, [["a"], ["harbour"] * 100], LAYOUT)


@pytest.mark.parametrize("specials", [False, True])
def test_batches_lay_out_what_each_part_reads(encoder, specials: bool):
    kept = features_of(encoder, SENTENCES, LAYOUT)
    scorer = SpanScorer(RECIPES["tree-crf-full"], shapes(specials=specials))
    batch = BatchSource(kept, scorer).batch([2, 0])
    projection, (before, after), attention = (
        batch.features[name] for name in ("projection", "boundary", "heads")
    )
    assert batch.n_words.tolist() == [5, 3]
    for row, place in enumerate((2, 0)):
        record, words = kept.records[place], kept.records[place].pieces.word_of
        n = int(words.max()) + 1
        read = (words >= 0) | specials
        assert projection.pieces.mask[row].sum() == read.sum()
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
    kept = features_of(encoder, SENTENCES, LAYOUT)
    scorer = SpanScorer(RECIPES["fpio"], shapes())
    chosen = BatchSource(kept, scorer, [3, 0])
    assert len(chosen.lengths()) == 2
    ours, theirs = chosen.batch([0]), BatchSource(kept, scorer).batch([3])
    assert torch.equal(ours.features["projection"].states, theirs.features["projection"].states)


@pytest.mark.parametrize("specials", [False, True])
def test_what_is_read_back_scores_as_what_the_encoder_just_said(encoder, specials: bool):
    """Features that stay on the device, against the same through a store (rounded to float16)."""
    scorer = SpanScorer(RECIPES["tree-crf-full"], shapes(specials=specials))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in scorer.parameters():
            parameter.normal_(0, 0.1, generator=generator)
        stored = BatchSource(features_of(encoder, SENTENCES, LAYOUT), scorer).batch(range(4))
        direct = scorer.lay_out(run(encoder, encoder.tokenise(SENTENCES), scorer.layout()))
        assert direct.n_words.tolist() == stored.n_words.tolist()
        ours, theirs = scorer.scores(direct).span, scorer.scores(stored).span
    assert ours.abs().max() > 1
    torch.testing.assert_close(ours, theirs, atol=2e-2, rtol=1e-2)
