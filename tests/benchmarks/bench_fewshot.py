"""Few-shot training against its bare matrix products, inside-outside against chart decoding."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch

from attree.decoding.batch import decode
from attree.encoder.load import Encoder, load_encoder
from attree.encoder.pieces import Pieces
from attree.encoder.source import resolve
from attree.training import features
from attree.training.features import Features, Layout, SentenceFeatures
from attree.training.fit import build_scorer
from attree.training.gold import GoldTrees, gold_tree
from attree.training.inside import marginals
from attree.training.objectives import batches, train
from attree.training.parser import TrainedModel, TrainedParser
from attree.training.parts import BatchSource, SpanScorer
from attree.training.recipes import RECIPES, TrainingPlan
from tests.benchmarks import MINILM, Row, cores, in_turn, timed

HIDDEN, HEADS, TREES, STEPS = 384, 12, 80, 200


def rows() -> list[Row]:
    """Measure on one core."""
    with cores(1):
        return [
            _training("full projection (FPIO)", "fpio", 1, 1),
            _training("twelve heads (tree CRF)", "tree-crf", 1, HEADS),
            _training("twelve heads, three layers (tree CRF)", "tree-crf", 3, HEADS),
            _inside_outside(),
            _inference(),
        ]


def _sentences(layers: int) -> tuple[Features, list[Any]]:
    """Random states and trees, of lengths like those of newspaper sentences."""
    generator = np.random.default_rng(0)
    records, gold = [], []
    for number in range(TREES):
        n = int(np.clip(generator.normal(21, 10), 3, 50))
        pieces = np.repeat(np.arange(n), generator.choice([1, 1, 1, 1, 2], n))
        words = np.concatenate([[-1], pieces, [-1]]).astype(np.int32)
        states = generator.normal(size=(layers, len(words), HIDDEN)).astype(np.float16)
        sentence = Pieces(words, words, n, 0, False)
        records.append(SentenceFeatures(sentence, states, np.empty((0, n, n), np.float16)))
        spans = [(i, n) for i in range(0, n - 1, 2)]
        gold.append(gold_tree(n, spans, name=str(number)))
    return Features(Layout(tuple(range(layers)), 0), records), gold


def _training(what: str, name: str, layers: int, heads: int) -> Row:
    store, gold = _sentences(layers)
    recipe = RECIPES[name]
    sizes = {"hidden": HIDDEN, "size": HIDDEN, "heads": heads, "specials": False}
    shape = {"projection": {"layers": list(range(layers)), **sizes}}
    source = BatchSource(store, SpanScorer(recipe, shape))

    def ours() -> None:
        scorer = SpanScorer(recipe, shape)
        for part in scorer.parts.values():
            for parameter in part.parameters():
                torch.nn.init.normal_(parameter, 0, 0.02)
        train(scorer, source, GoldTrees([], [], gold), TrainingPlan(recipe, steps=STEPS))

    generator = torch.Generator().manual_seed(0)
    padded = []
    for chosen in batches(TREES, 10, STEPS, generator):
        batch = source.batch(chosen).features["projection"]
        kept = batch.pieces.mask.flatten().bool()
        grid = torch.zeros(layers, len(kept), HIDDEN)
        grid[:, kept] = batch.states
        padded.append((grid, len(chosen)))
    weights = [torch.randn(layers, HIDDEN, HIDDEN, requires_grad=True) for _ in range(2)]

    def baseline() -> None:
        for grid, sentences in padded:
            query, key = (
                (grid @ weight).view(layers, sentences, -1, heads, HIDDEN // heads).transpose(2, 3)
                for weight in weights
            )
            (query @ key.transpose(-1, -2)).sum().backward()

    seconds = in_turn(timed(ours), timed(baseline), rounds=2)
    name = f"few-shot training, {TREES} trees × {STEPS} steps, {what}, over matrix products"
    return Row(name, "<= 2.0", "s", *seconds)


def _inside_outside() -> Row:
    n, count = 25, 2000
    generator = np.random.default_rng(0)
    lengths = np.full(count, n)
    tables = np.triu(generator.normal(size=(count, n + 1, n + 1)), 1)
    values = generator.random(count * n * n)

    seconds = in_turn(
        timed(lambda: marginals(tables, lengths)),
        timed(lambda: decode(values, lengths, score="inside_outside", decoder="chart")),
        rounds=3,
    )
    what = f"inside-outside, {n} words, to chart decoding"
    return Row(what, ">= 0.1", "sentences/s", *count / seconds)


def _inference() -> Row:
    """``tree-crf-full`` as a trained folder is loaded, against float32 and records through numpy.

    A folder takes the type that the device multiplies fastest, and lays its features out there.
    """
    encoder = load_encoder(resolve(MINILM), device="cpu", threads=1)
    fast = load_encoder(resolve(dataclasses.replace(MINILM, dtype="auto")), device="cpu", threads=1)
    plan = TrainingPlan(RECIPES["tree-crf-full"], layers=(2, 3, 4))
    scorer = build_scorer(encoder, plan, 80)
    generator = torch.Generator().manual_seed(0)
    for parameter in scorer.parameters():
        torch.nn.init.normal_(parameter, 0, 0.02, generator=generator)
    trained = TrainedParser(plan.recipe, scorer, {"fingerprint": encoder.fingerprint})
    model = TrainedModel(trained, fast)
    lengths = np.random.default_rng(0).integers(5, 40, 256)
    words = ["the", "old", "man", "lived", "near", "harbour", "misunderstandings"]
    sentences = [[words[(n * k) % 7] for k in range(n)] for n in sorted(lengths.tolist())]
    pieces = encoder.tokenise(sentences)
    batched = [pieces[first : first + 32] for first in range(0, len(pieces), 32)]

    def ours() -> None:
        for batch in batched:
            model.trees(model.features(batch))

    def through_records() -> None:
        for batch in batched:
            model.trees(_by_records(encoder, scorer, batch))

    seconds = in_turn(timed(ours), timed(through_records), rounds=3)
    dtype = str(fast.dtype).removeprefix("torch.")
    what = f"tree-crf-full inference in {dtype}, to float32 through records"
    return Row(what, ">= 1.3", "sentences/s", *len(sentences) / seconds)


def _by_records(encoder: Encoder, scorer: SpanScorer, pieces: list[Pieces]) -> Any:
    """Features as they were before they stayed on the device."""
    layout = scorer.layout()
    records = features._compute(encoder, pieces, layout, lambda count: None)
    return BatchSource(Features(layout, records), scorer).batch(range(len(pieces)))
