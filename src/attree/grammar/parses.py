"""A treebank's sentences, parsed by a grammar."""

from __future__ import annotations

from pathlib import Path

from attree.grammar.folder import read_grammar
from attree.grammar.parser import GrammarModel
from attree.parser import Parser
from attree.parses import Parses, write_parsed
from attree.progress import progress
from attree.schemas import OK, SENTENCES, read_table


def write_parses(grammar: Path, sentences: Path, output: Path) -> None:
    """Parse every sentence of a table by a grammar and write the parses.

    Args:
        grammar: a folder of :func:`attree.grammar.learning.learn`.
        sentences: a SENTENCES table.
        output: the PARSES table to write.
    """
    learnt, vocabulary, about = read_grammar(grammar)
    parser = Parser(GrammarModel(learnt, vocabulary))
    table, metadata = read_table(sentences, schema=SENTENCES)
    with progress("parsing", total=len(table)) as advance:
        trees, status = parser.trees(table["words"].to_pylist(), advance=advance)
    numbers = table["sentence"].to_numpy()
    parses = Parses.with_policy(numbers, trees, status == OK, "right_branching").table()
    how = {"settings": about.provenance, "selection": about.made_from}
    write_parsed(output, parses, metadata, code=["attree.grammar.command:parse"], **how)
