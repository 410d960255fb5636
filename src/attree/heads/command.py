"""``attree heads``: rank attention heads by F1 and select some."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from attree import completion
from attree.attention.sources import HEADS, SOURCES
from attree.decoding import DECODERS
from attree.heads.selection import RANKED_BY, HeadSelection
from attree.scoring import ASSOCIATIONS, SCORES


def heads_command(
    attention: Annotated[Path, Parameter(help="A manifest of `attree attention --heads all`.")],
    /,
    *,
    sentences: Annotated[
        Path, Parameter(help="The sentence table or treebank file it was made from.")
    ],
    score: Annotated[
        str,
        Parameter(help=f"Split score: {', '.join(SCORES)}.", completer=completion.scores),
    ],
    decoder: Annotated[
        str,
        Parameter(help=f"Decoder: {', '.join(DECODERS)}.", completer=completion.decoders),
    ],
    output: Annotated[Path, Parameter(help="The table of all heads to write (Parquet).")],
    selection: Annotated[Path, Parameter(help="The selection to write (JSON).")],
    association: Annotated[
        str,
        Parameter(help=", ".join(ASSOCIATIONS) + ".", completer=completion.associations),
    ] = "raw",
    source: Annotated[
        str,
        Parameter(help=f"What is ranked: {', '.join(SOURCES)}.", completer=completion.sources),
    ] = HEADS,
    heads: Annotated[
        str, Parameter(help="all, best, best:K, above:PERCENT or list:LAYER.HEAD,…")
    ] = "above:30",
    rank_by: Annotated[
        str,
        Parameter(
            help=f"What heads are chosen by: {', '.join(RANKED_BY)}. The last needs no tree."
        ),
    ] = RANKED_BY[0],
    trees: Annotated[
        str, Parameter(help="all, or the number of trees drawn to rank heads on.")
    ] = "all",
    seed: Annotated[int, Parameter(help="Seed of the draw.")] = 0,
) -> None:
    """Score every head as a parser of its own on gold trees, and select heads.

    With --rank-by agreement the choice looks at no gold tree: a head is as good as its trees
    agree with those of the other heads.

    Example:
      attree heads all.json --sentences dev.mrg --score inside_outside --decoder chart
        --heads best:20 --rank-by agreement --output heads.parquet --selection upio.json
    """
    from attree import process
    from attree.decoding import Recipe
    from attree.errors import AttreeError
    from attree.given import as_tables
    from attree.heads.ranking import rank_heads

    process.follow()
    if rank_by not in RANKED_BY:
        raise AttreeError(
            f"heads are not ranked by {rank_by!r}", fix=f"choose one of {', '.join(RANKED_BY)}"
        )
    if not re.fullmatch("all|[1-9][0-9]{0,8}", trees):
        raise AttreeError(f"--trees {trees} is not a number of trees", fix="give a number, or all")
    with as_tables([sentences]) as (gold,):
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
            selection=selection,
        )
