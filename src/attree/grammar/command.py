"""``attree grammar``: learn a grammar from raw words, and parse by it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Learn a grammar from words; parse by it."
)

_TEXT, _SIZES = "Which text", "Sizes"


@app.command("train")
def train(
    sentences: Annotated[
        list[Path],
        typer.Argument(help="Treebank files or sentence tables, or .txt, a sentence a line."),
    ],
    output: Annotated[Path, typer.Option(help="Folder to write, whole or not at all.")],
    seed: Annotated[int, typer.Option(min=0, help="Of weights, order and noise.")] = 0,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the sentences.")] = 20,
    batch: Annotated[int, typer.Option(min=1, help="Sentences in a step.")] = 4,
    learning_rate: Annotated[float, typer.Option(min=0, help="Of Adam.")] = 1e-3,
    longest: Annotated[
        int,
        typer.Option(
            min=2, max=250, help="Leave out longer sentences (words).", rich_help_panel=_TEXT
        ),
    ] = 40,
    least: Annotated[
        int,
        typer.Option(
            min=1, help="Rarer words are one unknown word (times).", rich_help_panel=_TEXT
        ),
    ] = 2,
    held_out: Annotated[
        float, typer.Option(help="Share of sentences kept to measure on.", rich_help_panel=_TEXT)
    ] = 0.05,
    nonterminals: Annotated[
        int, typer.Option(min=1, max=1000, help="Kinds of phrases.", rich_help_panel=_SIZES)
    ] = 30,
    preterminals: Annotated[
        int, typer.Option(min=1, max=1000, help="Kinds of words.", rich_help_panel=_SIZES)
    ] = 60,
    symbol: Annotated[
        int, typer.Option(min=1, max=10_000, help="Of their embeddings.", rich_help_panel=_SIZES)
    ] = 256,
    latent: Annotated[
        int, typer.Option(min=1, max=10_000, help="Of z.", rich_help_panel=_SIZES)
    ] = 64,
    hidden: Annotated[
        int, typer.Option(min=1, max=10_000, help="Of the LSTM.", rich_help_panel=_SIZES)
    ] = 256,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Of the CPU; by default torch's choice.")
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Replace the result of other settings, text or code.")
    ] = False,
) -> None:
    """Learn a compound PCFG from raw words (Kim, Dyer and Rush 2019).

    No tree is looked at. Words are taken in lower case, each number as 0. A run that was killed
    resumes when the command is repeated.

    Example:
      attree grammar train mine.mrg --output grammars/mine
    """
    from attree import process

    process.follow()
    import torch

    from attree.given import as_tables
    from attree.grammar.learning import Recipe, is_text, learn
    from attree.grammar.model import Sizes

    if threads is not None:
        torch.set_num_threads(threads)
    sizes = Sizes(nonterminals, preterminals, symbol, latent, hidden)
    recipe = Recipe(sizes, epochs, batch, learning_rate, longest, least, held_out)
    texts = [path for path in sentences if is_text(path)]
    with as_tables(path for path in sentences if not is_text(path)) as tables:
        learn([*tables, *texts], output, seed=seed, recipe=recipe, restart=restart)


@app.command("parse")
def parse(
    sentences: Annotated[Path, typer.Argument(help="A sentence table or a treebank file.")],
    grammar: Annotated[Path, typer.Option(help="A folder of `attree grammar train`.")],
    output: Annotated[Path, typer.Option(help="The table of parses to write (Parquet).")],
) -> None:
    """Parse every sentence by a grammar: most spans expected to be right.

    Example:
      attree grammar parse test.mrg --grammar grammars/mine --output parses.parquet
    """
    from attree import process

    process.follow()
    from attree.given import as_tables
    from attree.grammar.parses import write_parses

    with as_tables([sentences]) as (table,):
        write_parses(grammar, table, output)
