"""How fast parsers are, side by side: sentences a second from words to trees."""

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
        encoder: its description; it is loaded once, outside the times, and once for each parser
            that has adapted it.
        output: the JSON to write.
        first: how many sentences of the table are parsed.
        device: as for :func:`attree.encoder.load.load_encoder`.
    """
    table, about = read_table(sentences, schema=SENTENCES_SCHEMA)
    words = table["words"].slice(0, first).to_pylist()
    chosen = Overrides(encoder=str(encoder))
    found = {name: find_parser(path, chosen) for name, path in parsers.items()}
    loaded = load_encoder(encoder, device=device, threads=1)
    speeds = {}
    for name, one in found.items():
        alike = one.encoder.fingerprint == loaded.fingerprint
        own = loaded if alike else load_encoder(one.encoder, device=device, threads=1)
        speeds[name] = Parser(one.on(own)).sentences_a_second(words)
    made = {
        "language": about.get("language"),
        "split": about.get("split"),
        "encoder": loaded.slug,
        "sentences": len(words),
        "sentences_a_second": speeds,
        "provenance": provenance(code=["attree.stages.speed"], settings={"first": first}),
    }
    write_json(output, made)
    return made
