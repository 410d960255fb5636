"""The table of scores: a row per sentence, which tables and report of the workflow read."""

from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc

from attree.base import schemas
from attree.evaluation.metrics import WRITTEN, Scored, f1_counts

#: One row per scored sentence: distinct spans of two words and more, with the whole sentence
#: (0 where there is no tree to score), and F1 in percent without it (null where it does not count).
SCORES_SCHEMA = schemas.schema_of(
    "sentence_f1",
    **dict.fromkeys(("sentence", "n_words"), schemas.INT),
    status=schemas.TEXT,
    **dict.fromkeys(WRITTEN, schemas.INT),
    sentence_f1=schemas.FLOAT,
)
schemas.KINDS["table of scores"] = (SCORES_SCHEMA,)


def read_scored(path: Path) -> Scored:
    """Read the rows that `attree score` wrote of each sentence, which have the counts of F1."""
    table = schemas.read_table(path, schema=SCORES_SCHEMA)[0]
    table = table.take(pc.sort_indices(table["sentence"]))  # sort_by imports pyarrow.acero
    sentence, n_words, status, *counts, f1 = (column.to_numpy() for column in table.columns)
    each = dict(zip(WRITTEN, counts, strict=True))
    known = f1_counts(each["gold"], each["predicted"], each["matched"], f1=f1.astype(float) / 100)
    return Scored(sentence, n_words, status, replace(known, **each))
