"""A treebank's sentences, parsed by a grammar."""

from __future__ import annotations

from pathlib import Path

from attree.grammar.folder import read_grammar
from attree.grammar.parser import GrammarModel
from attree.parser import Parser
from attree.parses import Parses
from attree.progress import progress
from attree.provenance import provenance
from attree.schemas import OK, PARSES, SENTENCES, read_table, write_table


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
    prepared = parser.prepare(table["words"].to_pylist())
    found = []
    with progress("parsing", total=len(table)) as advance:
        for batch in prepared.batches:
            found.append(parser.decode(prepared, batch, parser.encode(prepared, batch)))
            advance(len(batch))
    trees, parsed = parser.assemble(prepared, found), prepared.status == OK
    parses = Parses.with_policy(table["sentence"].to_numpy(), trees, parsed, "right_branching")
    made = provenance(
        code=["attree.grammar.command:parse"],
        settings=about.provenance,
        treebank=metadata.get("provenance"),
    )
    own = {key: metadata.get(key) for key in ("language", "split")}
    own |= {"selection": about.made_from, "provenance": made}
    write_table(output, parses.table(), schema=PARSES, metadata=own)
