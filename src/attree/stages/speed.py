"""Measure the speed of parsers, in sentences a second from words to trees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attree.base.files import write_json
from attree.base.provenance import provenance
from attree.base.schemas import SENTENCES_SCHEMA, read_table
from attree.encoder.load import load_encoder
from attree.parsers.find import Overrides, find_parser
from attree.parsers.parser import Parser


def write_speeds(
    parsers: Mapping[str, str],
    sentences: Path,
    encoder: str | Path,
    output: Path,
    *,
    first: int,
    device: str | None,
) -> dict[str, Any]:
    """Time parsers of one encoder in turn on the same sentences, on one thread of a CPU.

    Args:
        parsers: name → a selection of ``attree heads`` or a folder of ``attree train``.
        sentences: a SENTENCES table.
        encoder: description of the encoder; it is loaded before timing, and again for each parser
            with an adapted encoder.
        output: the JSON file to write.
        first: how many sentences of the table are parsed.
        device: as for :func:`attree.encoder.load.load_encoder`.
    """
    table, metadata = read_table(sentences, schema=SENTENCES_SCHEMA)
    words = table["words"].slice(0, first).to_pylist()
    chosen = Overrides(encoder=str(encoder))
    sources = {name: find_parser(path, chosen) for name, path in parsers.items()}
    loaded = load_encoder(encoder, device=device, threads=1)
    speeds = {}
    for name, source in sources.items():
        alike = source.encoder.fingerprint == loaded.fingerprint
        used = loaded if alike else load_encoder(source.encoder, device=device, threads=1)
        speeds[name] = Parser(source.on(used)).sentences_a_second(words)
    made = {
        "language": metadata.get("language"),
        "split": metadata.get("split"),
        "encoder": loaded.slug,
        "sentences": len(words),
        "sentences_a_second": speeds,
        "provenance": provenance(code=["attree.stages.speed"], settings={"first": first}),
    }
    write_json(output, made)
    return made
