"""``attree parse``: trees for every line of a corpus; ``attree corpus``: how far a run is."""

import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from attree.base import options
from attree.base.options import TextOptions
from attree.base.terminal import in_json, safe, say, unread
from attree.bulk.options import Place, RowSettings, RunSettings
from attree.parsers.find import Overrides, find_parser
from attree.ready import default_parser

#: Standard input, as an input's name.
STANDARD_INPUT = Path("-")
_PARSER, _INPUT, _PLACE = "Parser", "Input and output", "Where it runs"


@dataclass(frozen=True, slots=True)
class _Chosen(Overrides):
    """The choices as options of the command line."""

    encoder: options.Encoder | None = None
    heads: options.Heads | None = None
    association: options.Association | None = None
    score: options.Score | None = None
    decoder: options.Decoder | None = None
    dtype: options.Dtype | None = None


@options.excludes("scheduler slurm")
def parse_command(
    inputs: Annotated[options.Paths, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    output: Annotated[options.Output | None, Parameter(group=_INPUT)] = None,
    rows: Annotated[RowSettings, Parameter(name="*", group=_INPUT)] = RowSettings(),
    parser: Annotated[options.Parser | None, Parameter(group=_PARSER)] = None,
    overrides: Annotated[_Chosen, Parameter(name="*", group=_PARSER)] = _Chosen(),
    text: Annotated[TextOptions, Parameter(name="*")] = TextOptions(),
    where: Annotated[Place, Parameter(name="*", group=_PLACE)] = Place(),
    threads: Annotated[options.Threads | None, Parameter(group=_PLACE)] = None,
    device: Annotated[options.Device | None, Parameter(group=_PLACE)] = None,
    run: Annotated[RunSettings, Parameter(name="*")] = RunSettings(),
) -> None:
    """Parse a corpus; run again, it continues where it was interrupted.

    Text is split into words and sentences. Of a file .half each line is the words of a sentence,
    in brackets where something is known of its tree, as for attree train; the tree keeps it.

    Example:
      attree parse corpora/de.txt.xz --language de --output trees/de
      cat text.txt | attree parse - --to brackets

    Exit status: 0 all lines have their rows, 1 an error or failed shards, 130 after Ctrl-C.

    Args:
        inputs: Files or folders: text, JSON Lines, Parquet, partly bracketed trees (.half); - reads
            text from standard input.
        output: Where to write: a folder for the trees; an interrupted run continues there.
    """
    from attree.base.errors import AttreeError
    from attree.bulk.pipeline import WorkerSetup
    from attree.bulk.run import first_lines, how_split, parse_corpus, stream
    from attree.encoder.device import settle_dtype

    if parser is None:
        parser = default_parser(encoder=overrides.encoder, heads=overrides.heads)
    source = find_parser(parser, overrides)
    if rows.marginals and (not source.has_distribution or output is None):
        fix = "use a tree CRF of `attree train`, such as tree-crf-full"
        problem = "--marginals needs --output, and a parser with a distribution over trees"
        code = "no-output" if source.has_distribution else "no-distribution"
        raise AttreeError(code, problem, fix=fix)
    elsewhere = where.cluster is not None
    source = replace(source, encoder=settle_dtype(source.encoder, device, elsewhere=elsewhere))
    if all(".half" in path.suffixes for path in inputs):  # their words are given
        text = replace(text, tokenizer=text.tokenizer or "whitespace")
    if inputs == [STANDARD_INPUT]:
        heeded = RowSettings(max_words=rows.max_words, formats=rows.formats)
        usual = asdict(heeded) | asdict(Place()) | asdict(RunSettings())
        given = asdict(rows) | asdict(where) | asdict(run) | {"column": text.column}
        for name, value in given.items():
            if value != usual[name]:
                problem = f"standard input has no use for --{name.replace('_', '-')}"
                fix = "leave it out, or parse a file"
                raise AttreeError("option-without-effect", problem, fix=fix)
        stream(source, output, rows, text, device, threads)
        return
    if output is None or output == STANDARD_INPUT:
        fix = "add --output FOLDER, or: cat FILE | attree parse - --to brackets"
        raise AttreeError("no-output", "there is no folder to write to", fix=fix)
    how = how_split(source, text, first_lines(inputs, text.column, output))
    rows = replace(rows, tokenizer=how.name, sentences=how.sentences, column=text.column)
    setup = WorkerSetup(source, rows, str(output.absolute()), device, threads)
    summary = parse_corpus(inputs, setup, where, run)
    _show(summary, output)
    if summary["lines"] and not summary["status"].keys() - {"undecodable", "control", "malformed"}:
        raise AttreeError("nothing-read", "no line could be read", fix="write them in UTF-8")
    if not summary["complete"]:
        sys.exit(130 if summary["stopped"] else 1)


def _show(summary: dict[str, Any], output: Path) -> None:
    run = summary["run"]
    states = ", ".join(f"{count:,} {name}" for name, count in summary["status"].items())
    print(f"{summary['lines']:,} of {summary['lines_of_input']:,} lines: {states}")
    print(
        f"{run['sentences']:,} sentences in {run['parsing_seconds']:,} s: "
        f"{run['sentences_per_second']:,} sentences, {run['pieces_per_second']:,} pieces a second; "
        f"{run['peak_memory_mb']:,.0f} MB at most"
    )
    if warning := unread(summary["unknown_words"], summary["words"]):
        say(warning)
    if summary["malformed"]:
        print(safe(f"malformed lines, the first of them: {'; '.join(summary['malformed'])}"))
    for why in summary["failed"].values():
        print(safe(f"failed shard: {why}"))
    print(safe(f"{output}/summary.json; trees: {output}/trees/shard-*.parquet"))


app = App(name="corpus", help="Bulk runs of attree parse.")


@app.command(name="status")
def show(folder: Path, /, *, as_json: options.AsJson = False) -> None:
    """Show how far a run is, during it or afterwards.

    Args:
        folder: Output folder of attree parse.
    """
    from attree.bulk.folder import status

    run = status(folder)
    if as_json:
        print(in_json(run, indent=2))
        return
    whole, lines = run["lines_whole"], run["lines"]
    percent = 100.0 * whole / lines if lines else 100.0
    print(safe(f"{run['folder']}: {run['state']}"))
    shards = f"{run['shards_whole']:,} of {run['shards']:,} shards"
    print(f"{whole:,} of {lines:,} lines ({percent:.1f} %), {shards}")
    now = run["progress"]
    if run["state"] == "running" and now:
        left = (lines - whole) * now["seconds"] / now["lines"] / 60 if now["lines"] else None
        print(
            f"{now['sentences_per_second']:,} sentences a second, "
            f"{now['shards_in_flight']} shards in flight"
            + ("" if left is None else f", about {left:,.0f} min left")
        )
    for why in run["failed"].values():
        print(safe(f"failed shard: {why}"))
