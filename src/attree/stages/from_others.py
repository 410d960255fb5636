"""Write tables of parses from a file of trees, or as the average of other tables of parses."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from attree.base.errors import AttreeError
from attree.base.schemas import PARSES_SCHEMA, SENTENCES_SCHEMA, read_table
from attree.base.terminal import say
from attree.decoding.average import average
from attree.treebank.check import MOST_SENTENCES
from attree.treebank.pairing import as_parses, has_labels, paired, read_whole
from attree.treebank.sentence import SplitSettings
from attree.treebank.table import from_table
from attree.trees import OK, SKIPPED
from attree.trees.parses import Parses, write_parsed

#: The most sentences without a tree that are named one by one.
_NAMED = 20


def write_imported(
    predictions: Sequence[Path],
    sentences: Path,
    output: Path,
    settings: SplitSettings,
    *,
    accept_loss: float = 0.0,
) -> None:
    """Write another parser's trees as parses of a sentence table.

    A tree belongs to the sentence with its words, in the order of both files. Punctuation that
    the table's cleaning removed is removed from the tree too. A sentence without a tree gets the
    status ``skipped`` and is named. Labels are kept if the file has some, without functions unless
    the table has them. Tags are dropped, since they may be the gold tags that the parser read.

    Args:
        predictions: files of trees in a treebank format.
        sentences: the SENTENCES table.
        output: the PARSES table to write.
        settings: how the files are read.
        accept_loss: the share of sentences that may lack a tree, if more than ``MOST_SENTENCES``.

    Raises:
        AttreeError: a file cannot be read, no tree has the words of a sentence, or too many
            sentences lack a tree.
    """
    table, metadata = read_table(sentences, schema=SENTENCES_SCHEMA)
    gold = list(from_table(table))
    refused: list[str] = []
    functions = metadata.get("settings", {}).get("functions", settings.functions)
    how = replace(settings, functions=functions)
    predicted = [tree for file in predictions for tree in read_whole([file], how, refused.append)]
    trees = paired(gold, predicted, refused, predictions[0])
    more = [f"and {len(refused) - _NAMED:,} more"] if len(refused) > _NAMED else []
    names = ", ".join(map(str, predictions))
    total = f"{names}: trees of {len(trees):,} of {len(gold):,} sentences"
    for line in (*refused[:_NAMED], *more, total):
        say(f"attree: {line}")
    if len(gold) - len(trees) > max(MOST_SENTENCES, accept_loss) * len(gold):
        problem = f"only {len(trees):,} of {len(gold):,} sentences have a tree"
        problem += f" (first: {refused[0]})"
        fix = "give the missing trees, or set --accept-loss (accept_loss in config.yaml)"
        raise AttreeError("missing-trees", problem, file=predictions[0], fix=fix)
    parses = as_parses(gold, trees, labelled=has_labels(trees.values(), predictions[0]))
    parses = replace(parses, sentence=table["sentence"].to_numpy())
    details = {"file": ", ".join(path.name for path in predictions), "refused": len(refused)}
    code = ["attree.cli.decode:import_command"]
    write_parsed(output, parses.table(), metadata, code=code, settings=details)


def write_average(
    members: Sequence[Path],
    output: Path,
    *,
    threshold: float | None,
    weights: Sequence[float] | None = None,
) -> None:
    """Write consensus trees of several tables of parses, those that agree best with them.

    Args:
        members: PARSES tables of the same sentences.
        output: the PARSES table to write.
        threshold, weights: as for :func:`attree.decoding.average.average`.

    Raises:
        AttreeError: the tables are of different sentences, or a weight is missing.
    """
    tables = [read_table(path, schema=PARSES_SCHEMA) for path in members]
    parses = [Parses.of_table(table) for table, _ in tables]
    for path, part in zip(members[1:], parses[1:], strict=True):
        pairs = (part.sentence, parses[0].sentence), (part.n_words, parses[0].n_words)
        if not all(np.array_equal(*pair) for pair in pairs):
            problem = f"these are not the sentences of {members[0]}"
            fix = "average parsers of one split"
            raise AttreeError("other-sentences", problem, file=path, fix=fix)
    parsed = np.logical_and.reduce([part.status != SKIPPED for part in parses])
    trees = average([part.trees for part in parses], threshold=threshold, weights=weights)
    trees = trees.keep(np.repeat(parsed, trees.n_spans))
    status = np.where(parsed, parses[0].status, SKIPPED)
    for part in parses[1:]:
        status = np.where(parsed & (status == OK), part.status, status)
    made = Parses(parses[0].sentence, trees, status)
    how = {"members": [str(path) for path in members], "threshold": threshold, "weights": weights}
    # an average rests on the trees that its members rest on
    facts = [facts for _, facts in tables]
    seen = max(one.get("provenance", {}).get("settings", {}).get("overlap", 0) for one in facts)
    chosen = dict.fromkeys(one["selection"] for one in facts if one.get("selection"))
    details = {"settings": how | {"overlap": seen}, "selection": ", ".join(chosen) or None}
    code = ["attree.cli.decode:average_command"]
    write_parsed(output, made.table(), facts[0], code=code, **details)
