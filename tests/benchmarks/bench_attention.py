"""The attention stage against a plain `AutoModel` forward over the same batches and threads.

The stage tokenises, runs the encoder, merges pieces to words and writes its shard; the baseline
only runs the encoder on batches that are tokenised and padded already. Sentences are as long as
those of the WSJ's section 23 (23.5 words on average), made of common words and rarer ones, so that
about one word in ten has several pieces.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import torch
from transformers import AutoModel

from attree.association.columns import Column
from attree.association.compute import ShardTask, StageSettings, content_of, run_task
from attree.encoder.load import Encoder, load_encoder
from attree.encoder.pieces import batches, pad
from attree.encoder.source import resolve
from attree.stages.attention import columns_for
from tests.benchmarks import MINILM, Row, cores, in_turn, timed

#: The three best heads of the demo's encoder on the WSJ sample.
THREE = [(1, 7), (2, 8), (4, 7)]
SENTENCES = 128
ROUNDS = 5

_COMMON = ("the", "a", "of", "to", "in", "and", "that", "it", "was", "with", "company", "market")
_RARER = ("reorganization", "junk-bond", "underwriters", "nonperforming", "Dutch-speaking")


def rows() -> list[Row]:
    """Return a row for the three best heads and one for all heads, on one thread and on two."""
    if importlib.util.find_spec(MINILM.id.replace("-", "_")) is None:
        print(f"bench_attention: skipped, the package {MINILM.id} is not installed")
        return []
    described = resolve(MINILM)
    encoder = load_encoder(described)
    narrow = load_encoder(replace(described, dtype="auto"))
    three = columns_for(described, sets=[THREE])
    every = columns_for(described, every=True)
    cases = [
        (f"{what}, {threads} thread(s)", goal, threads, encoder, columns)
        for threads in (1, 2)
        for what, goal, columns in (
            ("three best heads", "<= 1.0", three),
            ("all heads, merged and written", "<= 1.6", every),
        )
    ]
    if narrow.dtype == torch.bfloat16:
        cases.append(("three best heads in bfloat16, 1 thread", "<= 0.5", 1, narrow, three))
    sentences = _sentences()
    plain = _plain_forward(described.folder, encoder, sentences)
    found = []
    for what, goal, threads, loaded, columns in cases:
        with cores(threads):
            seconds = in_turn(_stage(loaded, sentences, columns), plain, rounds=ROUNDS)
        name = f"attention stage, {what} ÷ plain float32 SDPA forward"
        found.append(Row(name, goal, f"s for {SENTENCES} sentences", *seconds))
    return found


def _sentences() -> pa.Table:
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.normal(23.5, 10.5, SENTENCES).round(), 2, 60).astype(int)
    words = [
        [str(generator.choice(_RARER if generator.random() < 0.1 else _COMMON)) for _ in range(n)]
        for n in lengths
    ]
    return pa.table({"sentence": np.arange(SENTENCES, dtype=np.int32), "words": words})


def _plain_forward(folder: str, encoder: Encoder, sentences: pa.Table) -> Callable[[], float]:
    pieces = encoder.tokenise(sentences["words"].to_pylist())
    lengths = [len(one.ids) for one in pieces]
    padded = [
        pad([pieces[position] for position in positions], encoder.pad_id).to(encoder.device)
        for positions in batches(lengths, tokens_per_batch=encoder.tokens_per_batch)
    ]
    model = AutoModel.from_pretrained(folder, attn_implementation="sdpa")
    model = model.eval().to(encoder.device, encoder.dtype)

    @torch.inference_mode()
    def forward() -> None:
        for batch in padded:
            output = model(input_ids=batch.ids, attention_mask=batch.mask)
        output.last_hidden_state.sum().item()  # a GPU has finished

    return timed(forward)


def _stage(
    encoder: Encoder, sentences: pa.Table, columns: dict[str, Column]
) -> Callable[[], float]:
    content = content_of(sentences.slice(0, SENTENCES))

    def write() -> None:
        with tempfile.TemporaryDirectory() as folder:
            shard = f"{folder}/shard.parquet"
            task = ShardTask("", 0, SENTENCES, shard, columns, StageSettings(), {}, content)
            with patch("attree.association.compute._table", lambda *_: sentences):
                run_task(task, encoder)

    return timed(write)
