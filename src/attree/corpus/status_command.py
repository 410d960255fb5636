"""``attree corpus status``: how far a bulk run is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Bulk runs of attree parse.")


@app.callback()
def _group() -> None:
    """Bulk runs of attree parse."""


@app.command("status")
def show(
    folder: Path = typer.Argument(..., help="Output folder of attree parse."),
    as_json: bool = typer.Option(False, "--json", help="All of it, as JSON."),
) -> None:
    """Say how far a run is, while it goes on or after it."""
    from attree.corpus.folder import status

    found = status(folder)
    if as_json:
        print(json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False))
        return
    for line in _lines(found):
        print(line)


def _lines(found: dict[str, Any]) -> list[str]:
    whole, lines = found["lines_whole"], found["lines"]
    percent = 100.0 * whole / lines if lines else 100.0
    said = [
        f"{found['folder']}: {found['state']}",
        f"{whole:,} of {lines:,} lines ({percent:.1f} %), "
        f"{found['shards_whole']:,} of {found['shards']:,} shards",
    ]
    now = found["progress"]
    if found["state"] == "running" and now:
        left = (lines - whole) * now["seconds"] / now["lines"] if now["lines"] else None
        time_left = "" if left is None else f", about {left / 60:,.0f} min left"
        said.append(
            f"{now['sentences_per_second']:,} sentences a second, "
            f"{now['shards_in_hand']} shards in hand{time_left}"
        )
    said += [f"set aside: {why}" for why in found["set_aside"].values()]
    return said
