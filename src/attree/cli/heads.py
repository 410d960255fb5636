"""``attree heads``: rank attention heads by F1 and select some."""

from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from attree.association.selection import RANKED_BY, HeadSelection
from attree.association.sources import HEADS
from attree.base import options
from attree.base.registry import check_name
from attree.decoding import DECODERS, Recipe
from attree.scoring import SCORES

_DECODER = Parameter(help=f"Decoder: {', '.join(DECODERS)}.", completer=options.decoders)
_RANK_BY = f"What heads are chosen by: {', '.join(RANKED_BY)}. The last needs no tree."


def heads_command(
    attention: Path,
    /,
    *,
    sentences: options.Trees,
    score: Annotated[options.Score, Parameter(help=f"Split score: {', '.join(SCORES)}.")],
    decoder: Annotated[options.Decoder, _DECODER],
    output: options.Output,
    output_selection: Path,
    association: Annotated[str, Parameter(completer=options.associations)] = "raw",
    source: options.Source = HEADS,
    heads: options.Heads = "above:30",
    rank_by: Annotated[str, Parameter(help=_RANK_BY)] = RANKED_BY[0],
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
    from attree.treebank.as_table import as_table
    from attree.trees.sampling import count_of

    check_name(rank_by, RANKED_BY, f"heads are not ranked by {rank_by!r}")
    recipe, select = Recipe(association, score, decoder), HeadSelection.parse(heads)
    rank = partial(rank_heads, attention, rank_by=rank_by, trees=count_of(trees), seed=seed)
    with as_table(sentences) as gold:
        rank(gold, recipe, select, source=source, table=output, selection=output_selection)
