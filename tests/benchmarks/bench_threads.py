"""Two threads against one, with ``universal``: in Python, in bulk and in a spaCy pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np
import spacy

from attree.apps.spacy_pipe import TreePipe
from attree.bulk.options import RowSettings
from attree.parsers import batches
from attree.parsers.parser import Parser
from tests.benchmarks import Row, cores, in_turn, timed
from tests.benchmarks.bench_corpus import ROUNDS, parse, texts

LINES = 40
SHARD = 500


def rows() -> Iterator[Row]:
    """Yield the rates on two cores beside those on one, and beside threads within products."""
    if len(os.sched_getaffinity(0)) < 2:
        print("bench_threads: skipped, there is one core")
        return
    lines = texts(LINES)
    words = [line.decode().split()[:60] for line in lines]
    parser = Parser.load("universal", device="cpu", max_words=500)
    nlp = spacy.blank("en")
    assert isinstance(nlp.add_pipe("attree", config={"device": "cpu"}), TreePipe)
    docs = [line.decode().rstrip("\n") for line in lines]

    def on(count: int, work: Callable[[], float]) -> Callable[[], float]:
        def run() -> float:
            with cores(count):
                return work()

        return run

    def one_after_the_other(
        work: Callable[[np.ndarray], object], items: list[np.ndarray], count: int
    ) -> Iterator[object]:
        yield from map(work, items)

    def within_products() -> float:
        """Parse with torch's threads sharing each product, one batch after the other."""
        before = batches.in_threads
        batches.in_threads = one_after_the_other  # type: ignore[assignment]
        try:
            return timed(lambda: parser.trees(words))()
        finally:
            batches.in_threads = before

    ways: dict[str, Callable[[], float]] = {
        "Parser.trees": timed(lambda: parser.trees(words)),
        "bulk": lambda: parse(
            parser, lines, shard_lines=SHARD, settings=RowSettings("en", sentences=True)
        )[0],
        "nlp.pipe": timed(lambda: list(nlp.pipe(docs))),
    }
    for name, work in ways.items():
        seconds = in_turn(on(2, work), on(1, work), rounds=ROUNDS)
        what = f"{name} with universal, two threads ÷ one"
        yield Row(what, ">= 1.7", "lines/s", *len(lines) / seconds)
    seconds = in_turn(on(2, ways["Parser.trees"]), on(2, within_products), rounds=ROUNDS)
    what = "Parser.trees on two cores, a batch each ÷ a product shared"
    yield Row(what, ">= 1.0", "lines/s", *len(lines) / seconds)
