"""Bulk parsing, raw lines to written trees, against a plain forward of the same batches."""

from __future__ import annotations

import contextlib
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from transformers import AutoModel, BertConfig, BertModel

from attree.bulk.manifest import LinesOfFile
from attree.bulk.options import RowSettings
from attree.bulk.output import read_trees
from attree.bulk.pipeline import Pipeline
from attree.decoding import Recipe
from attree.encoder.load import Encoder, load_encoder
from attree.encoder.pieces import batches, pad
from attree.encoder.source import EncoderSource, resolve
from attree.parsers.heads import HeadsModel
from attree.parsers.parser import Parser
from attree.raw_text.words import tokeniser
from attree.training.fit import fit
from attree.training.gold import read_trees as gold_trees
from attree.training.parser import TrainedModel
from attree.training.recipes import RECIPES, TrainingPlan
from attree.treebank.as_table import Treebank
from attree.treebank.sentence import SplitSettings
from tests.benchmarks import MINILM, Row, cores, in_turn, timed
from tests.conftest import DATA

LANGUAGES = ("de", "en", "fr", "sv")
LINES, LINES_OF_PROCESSES, LINES_OF_A_SHARD = 80, 300, 30
ROUNDS = 3
TOP, BELOW = ((5, 0), (5, 3), (5, 7)), ((2, 3), (3, 1), (3, 4))


def texts(lines: int) -> list[bytes]:
    """Return so many first lines of some languages of ``data/text``, one of each in turn."""
    with contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(lzma.open(DATA / f"text/{language}.txt.xz"))
            for language in LANGUAGES
        ]
        return [next(file) for _ in range(lines) for file in files]


def parser(encoder: Encoder, heads: Any) -> Parser:
    """Return UPIO on some heads."""
    return Parser(HeadsModel(encoder, heads, Recipe("raw", "inside_outside", "chart")))


def parse(
    loaded: Parser, lines: list[bytes], *, shard_lines: int, settings: RowSettings = RowSettings()
) -> tuple[float, float]:
    """Parse lines into a new folder; return the seconds, and the encoder's part of them."""
    with tempfile.TemporaryDirectory() as folder:
        words = tokeniser(settings.tokenizer, split=settings.sentences)
        pipeline = Pipeline(loaded, words, settings, Path(folder))
        began = time.perf_counter()
        futures = []
        for number, first in enumerate(range(0, len(lines), shard_lines)):
            payload = b"".join(lines[first : first + shard_lines])
            futures.append(pipeline.submit(number, [LinesOfFile("a", "text", 1, payload)]))
        done = [future.result() for future in futures]
        return time.perf_counter() - began, sum(one.encoder_seconds for one in done)


def parsing(loaded: Parser, lines: list[bytes]) -> Callable[[], float]:
    """Return a function that parses lines and returns the seconds."""
    return lambda: parse(loaded, lines, shard_lines=160)[0]


def forward(encoder: Encoder, lines: list[bytes], *, shard_lines: int) -> Callable[[], float]:
    """Return a plain SDPA forward of the full encoder over the batches that parsing makes."""
    model = AutoModel.from_pretrained(resolve(MINILM).folder, attn_implementation="sdpa").eval()
    ready = []
    for first in range(0, len(lines), shard_lines):
        words = [line.decode().split() for line in lines[first : first + shard_lines]]
        pieces = [p for p in encoder.tokenise(words) if not p.too_long and p.n_words > 1]
        lengths = [len(p.ids) for p in pieces]
        for group in batches(lengths, tokens_per_batch=encoder.tokens_per_batch):
            batch = pad([pieces[position] for position in group], encoder.pad_id)
            ready.append((batch.ids, batch.mask))

    @torch.inference_mode()
    def run() -> None:
        for ids, mask in ready:
            model(input_ids=ids, attention_mask=mask)

    return timed(run)


def labelled() -> Row:
    """Bulk parsing by a parser with labels and tags, to the same structure without, in turn."""
    folder = Path(__file__).parents[2] / "workflow/resources/treebanks/english"
    table = Treebank.read([folder / "dev.mrg"], SplitSettings()).table
    gold = gold_trees(table, range(min(10, len(table))))
    lines = texts(LINES)
    with cores(1):
        encoder = load_encoder(resolve(MINILM), device="cpu", threads=1)

        def parsing_by(name: str) -> Callable[[], float]:
            plan = TrainingPlan(RECIPES[name], (2, 3, 4), steps=100)
            trained = Parser(TrainedModel(fit(encoder, gold, plan), encoder))
            return parsing(trained, lines)

        seconds = in_turn(*map(parsing_by, ("tree-crf-labelled", "tree-crf-full")), rounds=ROUNDS)
    what = "raw lines to written trees, tree-crf-labelled ÷ tree-crf-full"
    return Row(what, ">= 0.9", "sentences/s", *len(lines) / seconds)


def speed() -> list[Row]:
    """Rates end to end, with heads in the top layer and below it, in either type of numbers."""
    lines, found = texts(LINES), []
    with cores(1):
        encoder = load_encoder(resolve(MINILM), device="cpu", threads=1)
        narrow = load_encoder(resolve(replace(MINILM, dtype="auto")), device="cpu", threads=1)
        plain = forward(encoder, lines, shard_lines=160)
        cases = [("top layer", TOP, encoder, 0.9), ("layers 2 and 3", BELOW, encoder, 1.0)]
        if narrow.dtype == torch.bfloat16:
            cases += [("top layer", TOP, narrow, 2.0), ("layers 2 and 3", BELOW, narrow, 3.0)]
        else:
            print("bench_corpus: bfloat16 skipped, this processor does not multiply it")
        for where, heads, chosen, goal in cases:
            seconds = in_turn(parsing(parser(chosen, heads), lines), plain, rounds=ROUNDS)
            what = f"raw lines to written trees, heads in {where}, {chosen.dtype}"
            rates = len(lines) / seconds
            found.append(
                Row(
                    f"{what} ÷ plain float32 forward", f">= {goal}", "sentences/s, one core", *rates
                )
            )
        found.append(_overhead(parser(encoder, BELOW), lines))
    return found


def _overhead(loaded: Parser, lines: list[bytes]) -> Row:
    """What a shard costs beyond the encoder's own time: 1,000 shards of 10 lines."""
    short = [b" ".join(line.split()[:8]) + b"\n" for line in lines]
    many = (short * (10_000 // len(short) + 1))[:10_000]
    began = time.perf_counter()
    for first in range(0, len(many), 10):
        words = [line.decode().split() for line in many[first : first + 10]]
        loaded.model.features([one for one in loaded.encoder.tokenise(words) if one.n_words > 1])
    alone = time.perf_counter() - began
    seconds, _ = parse(loaded, many, shard_lines=10)
    each = seconds - alone  # of a thousand shards in seconds: of one in milliseconds
    what = "a shard beyond the encoder's time, 1,000 shards of 10 lines ÷ 20 ms"
    return Row(what, "<= 1.0", "ms a shard", each, 20)


def command(folder: Path, source: Path, *options: str, cores: int = 0) -> dict[str, Any]:
    """Run ``attree parse``, on so many cores if that is said; return its summary."""
    program = Path(sys.executable).with_name("attree")
    heads = ",".join(f"{layer}.{head}" for layer, head in BELOW)
    allowed = sorted(os.sched_getaffinity(0))[: cores or None]
    how = f"--encoder {MINILM.id} --heads list:{heads} --tokenizer whitespace"
    subprocess.run(
        [program, "parse", source, "--output", folder, *how.split(), *options],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return summary


def steady_rate(folder: Path, workers: int) -> float:
    """Return lines a second once each worker has written a shard: loading takes no part in it."""
    written = sorted(path.stat().st_mtime for path in (folder / "trees").iterdir())
    return (len(written) - workers) * LINES_OF_A_SHARD / (written[-1] - written[workers - 1])


def processes() -> list[Row]:
    """Two workers beside one, the way to the first shard, and the size of what is written."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "lines.txt"
        source.write_bytes(b"".join(texts(10 * LINES_OF_PROCESSES)))
        threads, shards_of = ("--threads", "1"), ("--shard-lines", str(LINES_OF_A_SHARD))
        tenth = ("--limit", str(LINES_OF_PROCESSES * len(LANGUAGES)))
        options = (*threads, *shards_of, *tenth)
        # a worker also reads, decodes and writes in threads: it has one core, and two workers two
        one = command(folder / "1", source, *options, cores=1)["run"]
        command(folder / "2", source, "--workers", "2", *options, cores=2)
        whole = command(folder / "whole", source, *threads, *shards_of, cores=1)["run"]
        began = time.time()
        command(folder / "start", source, *threads, *tenth)
        shards = list((folder / "start/trees").iterdir())
        first = min(path.stat().st_mtime for path in shards) - began
        written = sum(path.stat().st_size for path in shards)
        text = "".join(" ".join(row["words"]) + "\n" for row in read_trees(folder / "start"))
        words = len(pa.Codec("zstd", 3).compress(text.encode()))  # 3 is what zstd itself takes
        rates = [steady_rate(folder / str(n), n) for n in (2, 1)]
    peaks = [run["peak_memory_mb"] for run in (whole, one)]
    return [
        Row("two one-thread workers ÷ one, once they run", ">= 1.7", "lines/s", *rates),
        Row("peak memory on ten times as much ÷ on a tenth", "<= 1.1", "MB", *peaks),
        Row("start to first written shard ÷ 15 s", "<= 1.0", "s", first, 15),
        Row("trees ÷ the compressed words", "<= 1.5", "bytes", written, words),
    ]


def rows() -> list[Row]:
    """Return every ratio of bulk parsing on a CPU."""
    return [*speed(), labelled(), *processes()]


def gpu_rows() -> Iterator[Row]:
    """Yield rates in bfloat16, on sentences of about 24 words, of one process on one GPU."""
    words = b" ".join(texts(2000)).split()
    lines = [b" ".join(words[at : at + 5 + at % 39]) + b"\n" for at in range(0, len(words), 4)]
    lines = (lines * 4)[:50_000]
    with tempfile.TemporaryDirectory() as name:
        config = BertConfig(vocab_size=30_522)
        BertModel(config).save_pretrained(name)
        for pattern in ("*tok*", "vocab*"):
            for file in Path(resolve(MINILM).folder).glob(pattern):
                (Path(name) / file.name).write_bytes(file.read_bytes())
        source = resolve(EncoderSource(slug="base", kind="path", id=name, dtype="bfloat16"))
        encoder = load_encoder(source, device="cuda")
        base = parser(encoder, ((7, 10), (9, 3), (4, 5)))
        yield _gpu_row("UPIO, BERT-base shape", base, lines, 10_000)
    ready = Parser.load("universal", device="cuda", dtype="bfloat16")
    yield _gpu_row("universal, with labels and tags", ready, lines[:20_000], 5_000)


def _gpu_row(what: str, loaded: Parser, lines: list[bytes], goal: int) -> Row:
    parse(loaded, lines[:5000], shard_lines=5000)
    seconds, encoder_seconds = parse(loaded, lines, shard_lines=10_000)
    what += f", bf16, end to end ÷ {goal:,} (encoder {encoder_seconds / seconds:.0%} of the time)"
    return Row(what, ">= 1.0", "sentences/s", len(lines) / seconds, goal)
