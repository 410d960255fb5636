"""Trees in a spaCy pipeline, against ``attree parse`` on the same text."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import spacy

from attree.apps.spacy_pipe import TreePipe
from attree.bulk.pipeline import LinesOfFile, Pipeline, RowSettings, Work
from attree.parsers.parser import Parser
from attree.raw_text.words import tokeniser
from tests.benchmarks import Row
from tests.benchmarks.bench_corpus import ROUNDS, one_core, texts

LINES = 100
SHARD = 500  # as `attree parse` cuts on a CPU


def in_bulk(parser: Parser, lines: list[bytes]) -> float:
    """Parse lines as ``attree parse --language en`` does; return the seconds."""
    with tempfile.TemporaryDirectory() as folder:
        words = tokeniser("en", split=True)
        settings = RowSettings("en", sentences=True)
        pipeline = Pipeline(parser, words, settings, Path(folder))
        began = time.perf_counter()
        done = [
            pipeline.submit(
                Work(at, (LinesOfFile("a", "text", 1, b"".join(lines[at : at + SHARD])),))
            )
            for at in range(0, len(lines), SHARD)
        ]
        for one in done:
            one.result()
        return time.perf_counter() - began


def in_spacy(nlp: Any, lines: list[bytes]) -> float:
    """Parse lines by ``nlp.pipe``; return the seconds."""
    began = time.perf_counter()
    for doc in nlp.pipe(line.decode().rstrip("\n") for line in lines):
        assert doc.user_data["attree"]
    return time.perf_counter() - began


def rows() -> list[Row]:
    """Return the rate of spaCy's pipeline beside that of bulk parsing, on one core and float32."""
    lines = texts(LINES)
    with one_core():
        parser = Parser.load("upio-log", device="cpu", threads=1, max_words=500)
        nlp = spacy.blank("en")
        assert isinstance(nlp.add_pipe("attree", config={"device": "cpu", "threads": 1}), TreePipe)
        in_bulk(parser, lines[:50]), in_spacy(nlp, lines[:50])
        pairs = [(in_bulk(parser, lines), in_spacy(nlp, lines)) for _ in range(ROUNDS)]
    base, ours = (len(lines) / min(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    what = "nlp.pipe with attree ÷ attree parse, the same lines"
    return [Row(what, ">= 0.8", "lines/s, one core", ours, base, ratio)]
