"""The distances that Kim et al. choose among, against their program told again."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from attree.association.sources import load_source, units
from attree.encoder.load import Encoder, load_encoder
from attree.encoder.source import ResolvedEncoder
from tests.association import kim_program as program
from tests.association.conftest import WORDS

NAMES = ["cos", "l1", "l2", "avg_hellinger", "avg_jsd"]


@pytest.fixture(scope="module")
def loaded(encoder: ResolvedEncoder) -> Encoder:
    return load_encoder(encoder, device="cpu")


def candidate(unit: tuple[int, int], n_heads: int) -> program.Candidate:
    layer, number = unit
    if number < len(NAMES):
        return NAMES[number], layer + 1, None
    head = number - len(NAMES)
    return ("hellinger", "jsd")[head // n_heads], layer + 1, head % n_heads


def test_every_candidate_is_that_of_the_program(encoder: ResolvedEncoder, loaded: Encoder) -> None:
    model = AutoModel.from_pretrained(encoder.folder, attn_implementation="eager").eval()
    tokeniser = AutoTokenizer.from_pretrained(encoder.folder)
    sentences = [words for words in WORDS if len(words) > 1 and "\u200b" not in words]
    chosen = units("neighbours", loaded.n_layers, loaded.n_heads)
    assert len(chosen) == 3 * (5 + 2 * 4)
    found = load_source("neighbours").matrices(loaded, loaded.tokenise(sentences), chosen)
    assert found.dtype == torch.float32
    for place, words in enumerate(sentences):
        wanted = program.distances(model, tokeniser, words)
        n = len(words)
        for number, unit in enumerate(chosen):
            matrix = found[place, number, :n, :n].numpy()
            np.testing.assert_array_equal(matrix, matrix.T)
            own = -np.diagonal(matrix, 1)
            expected = wanted[candidate(unit, loaded.n_heads)]
            np.testing.assert_allclose(own, expected, rtol=1e-3, atol=2e-4, err_msg=str(unit))
            beside = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) == 1
            assert (matrix[~beside] == 0).all()


def test_some_units_are_those_of_all(loaded: Encoder) -> None:
    source, pieces = load_source("neighbours"), loaded.tokenise(WORDS[:2])
    every = units("neighbours", loaded.n_layers, loaded.n_heads)
    some = [(0, 1), (1, 3), (2, 4), (2, 6), (1, 12)]
    found = source.matrices(loaded, pieces, some)
    wanted = source.matrices(loaded, pieces, every)[:, [every.index(unit) for unit in some]]
    torch.testing.assert_close(found, wanted)


def test_a_sentence_of_one_word_has_no_distance(loaded: Encoder) -> None:
    found = load_source("neighbours").matrices(loaded, loaded.tokenise([["a"]]), [(0, 0), (1, 9)])
    assert found.shape == (1, 2, 1, 1)
    assert (found == 0).all()
