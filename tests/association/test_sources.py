"""Sources of association against plain code, a sentence at a time."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from attree.association.columns import all_of
from attree.association.shards import read_manifest
from attree.association.sources import SOURCES, load_source, units
from attree.base.reading import read_json
from attree.decoding import Recipe
from attree.decoding.batch import decode
from attree.encoder.load import Encoder, EncoderOutput
from attree.encoder.source import ResolvedEncoder
from attree.parsers.heads import HeadsModel
from attree.parsers.parser import Parser
from attree.stages.attention import columns_for
from attree.stages.from_shards import write_parses
from attree.trees.parses import Parses
from tests.association.conftest import WORDS, Stage
from tests.association.test_ranking import choose
from tests.refusals import refused

#: those whose matrices compare every two words
SIMILARITIES = sorted(name for name in SOURCES if re.match(r"states|heads-(jsd|hellinger)", name))
#: ensemble → what a head of it parses by, by measure
TREES = {
    "trees-top-down": (("heads-jsd", "heads-hellinger"), ("adjacent", "greedy")),
    "trees-pair": (("heads-jsd", "heads-hellinger"), ("pair", "chart")),
    "trees-characteristic": (("heads-characteristic",), ("spans", "chart")),
}
KIM = Recipe("raw", "adjacent", "greedy")


def test_an_encoder_has_units_of_every_source(encoder: ResolvedEncoder) -> None:
    found = {source: len(units(source, encoder.n_layers, encoder.n_heads)) for source in SOURCES}
    assert {found[source] for source in SOURCES if source.startswith("heads")} == {12}
    assert {found[source] for source in SOURCES if source.startswith("states")} == {4}
    with refused("unknown-name", "embeddings", "heads"):
        load_source("embeddings")


def naive_states(loaded: Encoder, words: list[str], layer: int) -> torch.Tensor:
    pieces = loaded.tokenise([words])
    output = loaded.run(pieces, states=[layer])
    states, word_of = output.states[layer][0].float(), output.batch.word_of[0]
    return torch.stack([states[word_of == word].mean(0) for word in range(len(words))])


def similarity(source: str, p: torch.Tensor, q: torch.Tensor) -> float:
    """Return how much alike two vectors are, as the papers write it."""
    if source == "states":
        return float((1 + torch.cosine_similarity(p, q, dim=0)) / 2)
    p, q = p.double() / p.double().sum(), q.double() / q.double().sum()
    if source == "heads-hellinger":
        return -float((p.sqrt() - q.sqrt()).norm() / 2**0.5)
    m = (p + q) / 2
    divergence = ((p * (p / m).log()).nansum() + (q * (q / m).log()).nansum()) / 2
    return -float(divergence.clamp(min=0).sqrt())


@pytest.mark.parametrize("source", SIMILARITIES)
def test_matrices_are_the_similarity_of_every_two_words(source: str, loaded: Encoder) -> None:
    sentences = [words for words in WORDS if len(words) > 1]
    chosen = units(source, loaded.n_layers, loaded.n_heads)
    found = load_source(source).matrices(loaded, loaded.tokenise(sentences), chosen)
    assert found.dtype == torch.float32
    for place, words in enumerate(sentences):
        attention = loaded.run(loaded.tokenise([words]), heads=units("heads", 3, 4)).attention[0]
        for number, (layer, _) in enumerate(chosen):
            rows = attention[number] if source.startswith("heads") else None
            vectors = naive_states(loaded, words, layer) if rows is None else rows
            wanted = [[similarity(source, p, q) for q in vectors] for p in vectors]
            n = len(words)
            np.testing.assert_allclose(found[place, number, :n, :n], wanted, rtol=1e-4, atol=2e-3)


def test_the_characteristic_score_is_the_mean_distance_to_the_mean(
    loaded: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces, chosen = loaded.tokenise(WORDS), [(0, 1), (2, 3)]
    source = load_source("heads-characteristic")
    found = source.matrices(loaded, pieces, chosen)
    for place, words in enumerate(WORDS):
        attention = loaded.run(loaded.tokenise([words]), heads=chosen).attention[0].double()
        for number, matrix in enumerate(attention / attention.sum(-1, keepdim=True)):
            wanted = np.zeros((len(words), len(words)))
            for i, j in itertools.combinations(range(len(words) + 1), 2):
                centre = matrix[i:j].mean(0)
                inside = (matrix[i:j].sqrt() - centre.sqrt()).norm(dim=1) / 2**0.5
                wanted[i, j - 1] = -inside.mean()
            n = len(words)
            np.testing.assert_allclose(found[place, number, :n, :n], wanted, atol=2e-3)
    monkeypatch.setattr("attree.association.head_trees._CELLS", 1)
    torch.testing.assert_close(source.matrices(loaded, pieces, chosen), found)


@pytest.mark.parametrize("name", TREES)
def test_a_unit_is_the_tree_of_a_head_by_a_measure(name: str, loaded: Encoder) -> None:
    sources, (score, decoder) = TREES[name]
    found = load_source(name)
    assert found.shape(3, 4) == (3, 4 * len(sources))
    chosen, pieces = [(0, 1), (0, 4 * len(sources) - 1), (2, 3)], loaded.tokenise(WORDS)
    matrices = found.matrices(loaded, pieces, chosen)
    for place, words in enumerate(WORDS):
        n = len(words)
        own = matrices[place, :, :n, :n].numpy()
        assert own.dtype == np.float32
        assert not np.triu(own, 2).any() and (own == own.transpose(0, 2, 1)).all()
        trees = decode(own.ravel(), [n], 3, score="adjacent", decoder="greedy")
        for number, (layer, unit) in enumerate(chosen):
            source = load_source(sources[unit // 4])
            one = source.matrices(loaded, loaded.tokenise([words]), [(layer, unit % 4)])
            alone = decode(one.numpy().ravel(), [n], score=score, decoder=decoder)
            tree = trees.take(np.array([number]))
            np.testing.assert_array_equal((tree.starts, tree.ends), (alone.starts, alone.ends))


def test_a_sentence_that_is_no_number_costs_only_itself(
    loaded: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, pieces = load_source("trees-pair"), loaded.tokenise(WORDS[:3])
    good, run = source.matrices(loaded, pieces, [(1, 1)]), loaded.run

    def broken(*args: Any, **more: Any) -> EncoderOutput:
        output = run(*args, **more)
        attention = output.attention.clone()
        attention[1] = torch.nan
        return replace(output, attention=attention)

    monkeypatch.setattr(loaded, "run", broken)
    found = source.matrices(loaded, pieces, [(1, 1)])
    n = len(WORDS[1])
    assert found[1, :, :n, :n].isnan().all()
    torch.testing.assert_close(found[[0, 2]], good[[0, 2]])


@pytest.fixture
def both(stage: Stage) -> Stage:
    """The stage with a manifest of two sources."""
    stage.compute(name="all", every=True, sources=["heads", "states"])
    return stage


def test_one_manifest_holds_several_sources(both: Stage, loaded: Encoder) -> None:
    found = read_manifest(both.folder / "all.json")
    assert list(found["columns"]) == ["all", "states:all"]
    heads, states = both.matrices("all"), both.matrices("all", "states:all")
    for number, words in enumerate(WORDS):
        assert heads[number].shape == (12, len(words), len(words))
        vectors = naive_states(loaded, words, 2)
        wanted = [[similarity("states", p, q) for q in vectors] for p in vectors]
        np.testing.assert_allclose(states[number][2], wanted, atol=1e-5)
    # another source is another shard
    again = both.compute(name="all", every=True, sources=["heads", "heads-jsd"])
    files = [{shard["file"] for shard in manifest["shards"]} for manifest in (found, again)]
    assert files[0].isdisjoint(files[1])


def test_layers_of_states_are_a_parser_from_ranking_to_trees(both: Stage, loaded: Encoder) -> None:
    table, selection = both.folder / "dev.parquet", both.folder / "heads.json"
    ranking = choose(both.folder / "all.json", table, KIM, "list:1.0,3.0", source="states")
    assert ranking.grid().shape == (4, 1)
    assert read_json(selection, what="selection")["source"] == "states"
    manifest = both.compute(name="selected", selections=[selection])
    assert list(manifest["columns"]) == ["states:1.0+3.0"]
    own = dict.fromkeys(["association", "score", "decoder"])
    chosen, output = both.folder / "selected.json", both.folder / "p.parquet"
    parses = Parses.of_table(write_parses(chosen, selection, output, recipe=own))
    every = both.matrices("all", all_of("states"))
    for number, words in enumerate(WORDS):
        mean = every[number][[1, 3]].mean(0).ravel()
        assert parses.trees.take([number]) == decode(mean, [len(words)], **KIM.settings())
    model = HeadsModel(loaded, [(1, 0), (3, 0)], KIM, "states")
    assert Parser(model).trees(WORDS)[0] == parses.trees
    both.encoder.write(both.folder / "bert.json")
    parser = Parser.load(str(selection), encoder=str(both.folder / "bert.json"), device="cpu")
    assert parser.trees(WORDS)[0] == parses.trees


@pytest.mark.parametrize(("source", "unit"), [("states", (2, 1)), ("heads", (3, 0))])
def test_a_unit_that_a_source_does_not_have_is_one_line(
    source: str, unit: tuple[int, int], encoder: ResolvedEncoder
) -> None:
    with refused("no-such-head", "{}.{}".format(*unit)):
        columns_for(encoder, sets=[[unit]], sources=[source])
