"""``attree attention``: compute word × word attention matrices of a sentence table."""

from typing import Annotated

from cyclopts import Parameter

from attree.association.compute import StageSettings
from attree.association.sources import HEADS
from attree.base import options
from attree.base.errors import AttreeError

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
    settings: Annotated[StageSettings, Parameter(name="*")] = StageSettings(),
) -> None:
    """Run an encoder over sentences and keep the attention of its heads, word by word.

    Args:
        output: Where to write: the manifest, its shards beside it.
        heads: Heads: all, each by itself; list:1.7,2.8, their mean. A layer is written 4.0.
        selection: Selection of heads: what `attree heads` wrote; the mean of its heads.
    """
    from attree.association.columns import parse_heads
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
    every = "all" in (heads or [])
    columns = columns_for(
        described, every=every, sets=sets, selections=selection or [], sources=source
    )
    with as_table(sentences) as table:
        compute_attention(table, described, columns, output, settings)
