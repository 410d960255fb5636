"""``attree train``: a parser from trees; ``publish``: a copy of it; ``grammar``: one from words."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from attree.base import options
from attree.base.errors import AttreeError
from attree.grammar.options import GrammarRecipe
from attree.training.options import MORE, PARSER, TREES, Changes, Choice, Fitting

_AS_IT_IS = options.ReadingOptions()


@options.needs(allow_overlap="evaluate_on")
def train_command(
    *,
    sentences: options.Trees,
    output: options.Output,
    encoder: options.Encoder | None = None,
    choice: Annotated[Choice, Parameter(name="*", group=TREES)] = Choice(),
    structure: Annotated[options.TreebankFiles | None, Parameter(group=TREES)] = None,
    reading: Annotated[options.ReadingOptions, Parameter(name="*", group=TREES)] = _AS_IT_IS,
    dependencies: Annotated[options.Dependencies | None, Parameter(group=TREES)] = None,
    language: Annotated[options.Language | None, Parameter(group=TREES)] = None,
    evaluate_on: Annotated[options.TreebankFiles | None, Parameter(group=TREES)] = None,
    allow_overlap: Annotated[options.AllowOverlap, Parameter(group=TREES)] = False,
    parser: Annotated[str | None, Parameter(group=PARSER, completer=options.recipes)] = None,
    layer: Annotated[list[int] | None, Parameter(converter=options.numbers, group=PARSER)] = None,
    changes: Annotated[Changes, Parameter(name="*")] = Changes(),
    fitting: Annotated[Fitting, Parameter(name="*", group=MORE)] = Fitting(),
    half_precision: Annotated[bool, Parameter(group=MORE)] = False,
    overwrite: Annotated[options.Overwrite, Parameter(group=MORE)] = False,
    device: Annotated[options.Device | None, Parameter(group=MORE)] = None,
) -> None:
    """Train a few-shot parser and write its folder.

    Trees with labels make tree-crf-labelled, whose trees have labels and nodes of any number of
    children; those without make tree-crf-full, whose trees are binary. Both start from the ready
    parser universal. --parser chooses another: tree-crf-adapted, for thousands of trees, adapts
    the encoder to them too, which takes long.

    Punctuation of treebank files is kept, for text to be parsed has it; tables are taken as they
    are. With --held-out the last line says its F1 on those trees. In a file .half trees are known
    in part: (? the old man) is a phrase, (! old man) is none, in (= …) all phrases are given.
    README.md in the folder is the parser's model card, its licence left for you to fill in.

    Example:
      attree train --sentences mine.mrg --output parsers/mine

    Args:
        output: Where to write: a folder for the parser.
        structure: Further trees, whose labels are not learned.
        evaluate_on: Trees that will be scored on, whose sentences are not trained on.
        parser: Parser: tree-crf-labelled, tree-crf-full, fpio… Default: with labels if the trees
            have labels.
        layer: Hidden states: 3, or 2,3,4. Default: the middle.
        half_precision: Keep weights in 16 bits each.
    """
    from attree.base.schemas import PARTLY_BRACKETED, read_table
    from attree.base.terminal import progress, say
    from attree.stages import train as session
    from attree.training.choice import choose_trees
    from attree.training.gold import default_recipe
    from attree.training.recipes import WITHOUT_LABELS, adapted, recipe
    from attree.treebank.as_table import as_tables, check_files, check_once, is_table
    from attree.treebank.language_file import settings_of

    # checked before reading, although the trees may choose another parser
    chosen = adapted(recipe(parser or WITHOUT_LABELS), **changes.given())
    projects = "projection" in chosen.parts
    unused = {
        "--size": fitting.size and not projects and "spans" not in chosen.parts,
        "--specials": fitting.specials and not projects,
        "--association": changes.association and not projects,
    }
    for option in (name for name, is_so in unused.items() if is_so):
        fix = "leave it out, or choose another --parser"
        raise AttreeError("option-without-effect", f"{parser} has no use for {option}", fix=fix)
    session.check_output(output, overwrite=overwrite)
    trained = [*sentences, *(structure or ())]
    files = [*trained, *(evaluate_on or ())]
    how_read = reading.given() | ({} if dependencies is None else {"dependencies": dependencies})
    check_once(trained)
    for name in how_read:
        check_files(trained if name == "punctuation" else files, f"--{name}")
    settings = None  # no reader is imported for tables: stages of the workflow depend on none
    if not all(map(is_table, files)):
        settings = settings_of(**{"punctuation": "keep", **how_read})
    with as_tables(files, partial=trained, settings=settings) as paths:
        (first, *also), rest = paths[: len(sentences)], paths[len(sentences) :]
        more, evaluated = rest[: len(structure or ())], rest[len(structure or ()) :]
        if parser is None:
            read = (read_table(path, schema=PARTLY_BRACKETED) for path in (first, *also))
            best = default_recipe(table for table, _ in read)
            say(f"attree: training {best}; --parser chooses another")
            chosen = adapted(recipe(best), **changes.given())
        request = session.TrainingRequest(
            chosen,
            encoder,
            fitting,
            choice.seed,
            layers=tuple(layer or ()),
            device=device,
            half_precision=half_precision,
            source=", ".join(map(str, trained)),
            language=language,
            given=changes.given(),
        )
        others = {"also": also, "structure": more}
        drawn = choose_trees(first, choice, evaluated, allow_overlap=allow_overlap, **others)
        result = session.train_parser(request, drawn, output, progress=progress)
    for line in session.summary(result, output):
        print(line)


def publish_command(
    parser: Path,
    /,
    *,
    output: options.Output,
    licence: str,
    sources: Annotated[str, Parameter(allow_leading_hyphen=True)],
    table: options.Paths | None = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Copy a trained parser, with its licence, its sources and its F1 in its model card.

    Example:
      attree publish my-parser --licence cc-by-sa-4.0
        --sources "My treebank (CC BY 4.0)" --output published/my-parser

    Args:
        parser: Folder of attree train.
        output: Where to write: a folder for the copy.
        licence: Of the weights: cc-by-4.0 …; cc-by-sa-4.0 if training began from universal.
        sources: Treebanks and their licences, in Markdown.
        table: Tables in Markdown; of languages with dependency trees, the CSV beside tells which
            ones the parser reads badly.
    """
    import shutil

    from attree.base.files import whole_file, write_json, write_text
    from attree.base.reading import read_json, read_text
    from attree.parsers.reading import figures
    from attree.stages.train import check_output
    from attree.training.card import fill_in
    from attree.training.parser import load_parser
    from attree.training.recipes import ABOUT, CARD, WEIGHTS

    load_parser(parser)
    files = {parser / "README.md": "model card"} | dict.fromkeys(table or (), "table of F1")
    texts = [read_text(path, what=name) for path, name in files.items()]
    card = fill_in(texts[0], licence=licence, sources=sources, tables=texts[1:])
    check_output(output, overwrite=overwrite)
    output.mkdir(parents=True, exist_ok=True)
    for name in (WEIGHTS, ABOUT):
        with whole_file(output / name) as part:
            shutil.copyfile(parser / name, part)
    if languages := figures((path.with_suffix(".csv") for path in table or ()), parser.name):
        described = read_json(parser / ABOUT)
        described["about"]["languages"] = languages
        write_json(output / ABOUT, described)
    write_text(output / CARD, card)
    print(f"{output}: {licence}")


grammar = App(name="grammar", help="Learn a grammar from words; parse by it.")


@grammar.command
def train(
    sentences: options.Paths,
    /,
    *,
    output: options.Output,
    recipe: Annotated[GrammarRecipe, Parameter(name="*")] = GrammarRecipe(),
    seed: options.Seed = 0,
    threads: options.Threads | None = None,
    restart: options.Restart = False,
) -> None:
    """Learn a compound PCFG from raw words (Kim, Dyer and Rush 2019).

    No tree is looked at. Words are taken in lower case, each number as 0. A run that was killed
    resumes when the command is repeated.

    Example:
      attree grammar train mine.mrg --output grammars/mine

    Args:
        sentences: Sentences with trees: treebank files or sentence tables; or .txt, a sentence a
            line, for no tree is looked at.
        output: Where to write: a folder, whole or not.
    """
    from attree.base.process import use_threads
    from attree.grammar.learning import is_text, learn
    from attree.treebank.as_table import as_tables

    use_threads(threads)
    texts = [path for path in sentences if is_text(path)]
    with as_tables(path for path in sentences if not is_text(path)) as tables:
        learn([*tables, *texts], output, seed=seed, recipe=recipe, restart=restart)


@grammar.command
def parse(sentences: options.Trees, /, *, grammar: Path, output: options.ParsesOutput) -> None:
    """Parse every sentence by a grammar: most spans expected to be right.

    Example:
      attree grammar parse test.mrg --grammar grammars/mine
        --output parses.parquet

    Args:
        grammar: A folder of `attree grammar train`.
    """

    from attree.base.schemas import SENTENCES_SCHEMA, read_table
    from attree.base.terminal import progress
    from attree.grammar.folder import GrammarModel, read_grammar
    from attree.parsers.parser import Parser
    from attree.treebank.as_table import as_table
    from attree.trees import OK
    from attree.trees.parses import Parses, write_parsed

    learnt, vocabulary, card = read_grammar(grammar)
    with as_table(sentences) as path:
        table, metadata = read_table(path, schema=SENTENCES_SCHEMA)
        parser = Parser(GrammarModel(learnt, vocabulary))
        with progress("parsing", total=len(table)) as advance:
            trees, status = parser.trees(table["words"].to_pylist(), advance=advance)
        numbers = table["sentence"].to_numpy()
        parses = Parses.with_policy(numbers, trees, status == OK, "right_branching").table()
        how = {"settings": card.provenance, "selection": card.made_from}
        write_parsed(output, parses, metadata, code=["attree.cli.train:parse"], **how)
