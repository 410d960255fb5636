"""Trees in a spaCy pipeline, against ``attree parse`` on the same text."""

from __future__ import annotations

import spacy

from attree.apps.spacy_pipe import TreePipe
from attree.bulk.options import RowSettings
from attree.parsers.parser import Parser
from tests.benchmarks import Row, cores, in_turn, timed
from tests.benchmarks.bench_corpus import ROUNDS, parse, texts

LINES = 100
SHARD = 500  # as `attree parse` cuts on a CPU


def rows() -> list[Row]:
    """Return the rate of spaCy's pipeline beside that of bulk parsing, on one core and float32."""
    lines = texts(LINES)
    settings = RowSettings("en", sentences=True)
    with cores(1):
        parser = Parser.load("upio-log", device="cpu", threads=1, max_words=500)
        nlp = spacy.blank("en")
        assert isinstance(nlp.add_pipe("attree", config={"device": "cpu", "threads": 1}), TreePipe)

        def in_spacy() -> None:
            for doc in nlp.pipe(line.decode().rstrip("\n") for line in lines):
                assert doc.user_data["attree"]

        def in_bulk() -> float:
            return parse(parser, lines, shard_lines=SHARD, settings=settings)[0]

        seconds = in_turn(timed(in_spacy), in_bulk, rounds=ROUNDS)
    what = "nlp.pipe with attree ÷ attree parse, the same lines"
    return [Row(what, ">= 0.8", "lines/s, one core", *len(lines) / seconds)]
