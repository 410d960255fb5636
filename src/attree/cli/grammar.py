"""``attree grammar``: learn a grammar from raw words, and parse by it."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from attree.base import options
from attree.grammar.options import GrammarRecipe

app = App(name="grammar", help="Learn a grammar from words; parse by it.")


@app.command
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


@app.command
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
        write_parsed(output, parses, metadata, code=["attree.cli.grammar:parse"], **how)
