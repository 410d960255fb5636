"""``attree encoder``: find or tune an encoder; ``attention``: what it attends to; ``heads``."""

import re
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from attree.association.columns import RANKED_BY, HeadSelection, parse_heads
from attree.association.compute import StageSettings
from attree.association.sources import HEADS
from attree.base import options
from attree.base.errors import AttreeError
from attree.base.registry import check_name
from attree.decoding import DECODERS, Recipe
from attree.encoder.source import DTYPES, EncoderSource, find_encoder, resolve
from attree.encoder.tuning import TuningRecipe, tune
from attree.scoring import SCORES

app = App(name="encoder", help="Find, describe and tune encoders.")

_Texts = Annotated[
    list[Path],
    Parameter(
        converter=options.paths,
        help="Text: sentence tables, text files (also .xz, .gz) or folders of them.",
    ),
]


@app.command(name="resolve")
@options.excludes("hub path package")
@options.needs(revision="hub")
def resolve_command(
    *,
    slug: str,
    output: options.Output,
    hub: str | None = None,
    revision: str | None = None,
    path: str | None = None,
    package: str | None = None,
    dtype: options.Dtype = DTYPES[0],
) -> None:
    """Find an encoder, check it, and write its description with a hash of its files.

    Args:
        slug: Its name in the configuration and in results.
        output: Where to write: the description (JSON).
        hub: Its id on the Hugging Face hub.
        revision: Commit of the hub. Default: the current one, recorded at the first run.
        path: A folder that save_pretrained wrote.
        package: A Python package that carries a checkpoint.
    """
    sources = {"hub": hub, "path": path, "package": package}
    chosen = [(kind, id) for kind, id in sources.items() if id is not None]
    if not chosen:
        problem = f"encoder {slug} has no source"
        raise AttreeError("no-source", problem, fix="use --hub, --path or --package")
    ((kind, id),) = chosen
    source = EncoderSource(slug=slug, kind=kind, id=id, revision=revision, dtype=dtype)
    # next to the output, not in it: a workflow deletes outputs before it repeats a job
    resolve(source, record=output.with_name(f"{output.stem}.revision.json")).write(output)


@app.command(name="tune")
def tune_command(
    *,
    encoder: options.Encoder,
    text: _Texts,
    output: options.Output,
    recipe: Annotated[TuningRecipe, Parameter(name="*")] = TuningRecipe(),
    seed: options.Seed = 0,
    device: options.Device | None = None,
    restart: options.Restart = False,
) -> None:
    """Tune an encoder on raw text as a masked language model (BERT's recipe).

    A run that was killed resumes after its last epoch when the command is repeated. An encoder
    without a language-model head gets a new one, warmed up with the encoder frozen; the provenance
    says so.

    Args:
        output: Where to write: a folder, whole or not.
    """

    base = find_encoder(encoder)
    tune(base, text, output, seed=seed, recipe=recipe, device=device, restart=restart)


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
