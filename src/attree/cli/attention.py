"""``attree attention``: word × word attention of a sentence table; ``heads``: its best heads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from attree.association.columns import RANKED_BY, HeadSelection, parse_heads
from attree.association.compute import StageSettings
from attree.association.sources import HEADS
from attree.base import options
from attree.base.errors import AttreeError
from attree.base.registry import check_name
from attree.decoding import DECODERS
from attree.scoring import SCORES

_SOURCES = [HEADS]


def attention_command(
    sentences: options.Trees,
    /,
    *,
    encoder: options.Encoder,
    output: options.Output,
    heads: options.Words | None = None,
    selection: options.Paths | None = None,
    source: options.Sources = _SOURCES,
    precision: str = "float32",
    settings: Annotated[StageSettings, Parameter(name="*")] = StageSettings(),
) -> None:
    """Run an encoder over sentences and keep the attention of its heads, word by word.

    Args:
        output: Where to write: the manifest, its shards beside it.
        heads: Heads: all, each by itself; list:1.7,2.8, their mean. A layer is written 4.0.
        selection: Selection of heads: what `attree heads` wrote; the mean of its heads.
        precision: float32; float16 halves the shards and changes one tree in 900.
    """
    from attree.encoder.source import find_encoder
    from attree.stages.attention import columns_for, compute_attention
    from attree.treebank.as_table import as_table

    described = find_encoder(encoder)
    sets = []
    for text in heads or []:
        if text == "all":
            continue
        if (head_set := parse_heads(text.removeprefix("list:"))) is None:
            problem = "only `attree heads` can choose heads by their F1"
            fix = "give --heads all, --heads list:LAYER.HEAD,… or --selection"
            raise AttreeError("heads-by-f1", problem, fix=fix)
        sets.append(head_set)
    columns = columns_for(
        described,
        every="all" in (heads or []),
        sets=sets,
        selections=selection or [],
        sources=source,
        precision=precision,
    )
    with as_table(sentences) as table:
        compute_attention(table, described, columns, output, settings)


def heads_command(
    attention: Path,
    /,
    *,
    sentences: options.Trees,
    score: Annotated[options.Score, Parameter(help=f"Split score: {', '.join(SCORES)}.")],
    decoder: Annotated[
        options.Decoder,
        Parameter(help=f"Decoder: {', '.join(DECODERS)}.", completer=options.decoders),
    ],
    output: options.Output,
    output_selection: Path,
    association: Annotated[str, Parameter(completer=options.associations)] = "raw",
    source: options.Source = HEADS,
    heads: options.Heads = "above:30",
    rank_by: Annotated[
        str,
        Parameter(
            help=f"What heads are chosen by: {', '.join(RANKED_BY)}. The last needs no tree."
        ),
    ] = RANKED_BY[0],
    trees: str = "all",
    seed: options.Seed = 0,
) -> None:
    """Score every head as a parser of its own on gold trees, and select heads.

    With --rank-by agreement the choice looks at no gold tree: a head is as good as its trees
    agree with those of the other heads.

    Example:
      attree heads all.json --sentences dev.mrg --score inside_outside
        --decoder chart --heads best:20 --rank-by agreement --output heads.parquet
        --output-selection upio.json

    Args:
        attention: Attention: a manifest of `attree attention --heads all`.
        output: Where to write: the table of all heads (Parquet).
        output_selection: Where to write the selection (JSON).
        association: How attention becomes association: raw or log.
        trees: How many trees are drawn at random: a number, or all.
    """
    from attree.association.ranking import rank_heads
    from attree.decoding import Recipe
    from attree.treebank.as_table import as_table

    check_name(rank_by, RANKED_BY, f"heads are not ranked by {rank_by!r}")
    if not re.fullmatch("all|[1-9][0-9]{0,8}", trees):
        problem = f"--trees {trees} is not a number of trees"
        raise AttreeError("not-a-number", problem, fix="give a number, or all")
    with as_table(sentences) as gold:
        rank_heads(
            attention,
            gold,
            Recipe(association, score, decoder),
            HeadSelection.parse(heads),
            source=source,
            rank_by=rank_by,
            trees=None if trees == "all" else int(trees),
            seed=seed,
            table=output,
            selection=output_selection,
        )
