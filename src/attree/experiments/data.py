"""Sets of sentences that rows draw trees from and are scored on; the records of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from attree.base.errors import AttreeError
from attree.base.provenance import code_hash, digest
from attree.base.reading import read_json
from attree.base.schemas import SENTENCES_SCHEMA, read_table
from attree.encoder.source import ResolvedEncoder
from attree.evaluation.metrics import score
from attree.evaluation.summary import percentages
from attree.parsers.parser import Parser
from attree.plan.rows import APART, CODE, NOT_RUN, ExperimentRow, Set
from attree.ready import folder_of_start
from attree.training.recipes import WEIGHTS
from attree.trees.parses import Parses
from attree.trees.sampling import draw_trees, fingerprints

#: The seed of the trees set apart, far from those of the draws.
_APART_SEED = 1_000_003


@dataclass(frozen=True, slots=True)
class SentenceSet:
    """A set of sentences with gold trees, and a hash of its content.

    Attributes:
        name: language/split.
        path: of the table.
        table: SENTENCES.
        gold: its gold trees.
        about: the table's metadata.
        hash: hash of words, tags, brackets, labels, and how these were made.
    """

    name: Set
    path: Path
    table: pa.Table
    gold: Parses
    about: Mapping[str, Any]
    hash: str

    @classmethod
    def read(cls, name: Set, path: Path) -> SentenceSet:
        """Read a set."""
        table, metadata = read_table(path, schema=SENTENCES_SCHEMA)
        made = [metadata.get("punctuation"), metadata.get("derived")]
        content = table.drop_columns(["file", "line"]).to_pydict()
        return cls(name, path, table, Parses.gold(table), metadata, digest([made, content]))

    def words_of(self, rows: Sequence[int]) -> list[list[str]]:
        """Return the words of some rows of the table."""
        words: list[list[str]] = self.table["words"].take(pa.array(rows, pa.int64())).to_pylist()
        return words

    @property
    def words(self) -> list[list[str]]:
        """The words of every sentence, in the order of ``gold``."""
        return self.words_of(np.argsort(self.table["sentence"].to_numpy(), kind="stable").tolist())


def drawn(row: ExperimentRow, sentences: SentenceSet) -> list[int]:
    """Return the rows of the table that a row trains or ranks on, drawn at random.

    Draws of one seed are nested. If the set has fewer trees than asked for, all are taken, and the
    record says how many.
    """
    aside = set_apart(row, sentences)
    if row.trees == APART:
        return aside
    all_rows = draw_trees(sentences.table, None, seed=row.seed, apart_from=aside)
    if row.trees == "all":
        return all_rows
    wanted = min(int(row.trees), len(all_rows))
    return draw_trees(sentences.table, wanted, seed=row.seed, apart_from=aside)


def set_apart(row: ExperimentRow, sentences: SentenceSet) -> list[int]:
    """Return the rows of the trees that are kept out of every draw, ``apart`` of them."""
    return draw_trees(sentences.table, row.apart, seed=_APART_SEED) if row.apart else []


def overlap(
    row: ExperimentRow, sets: Mapping[Set, SentenceSet], rows: list[int], before: ArrayLike = ()
) -> int:
    """Count test sentences that a row, or the parser it starts from, is trained or tuned on.

    Args:
        row: the row.
        sets: the sets that it reads.
        rows: rows of its training set that it is trained or tuned on.
        before: fingerprints of what the parser it starts from was trained on.

    Raises:
        AttreeError: the test set is a training set.
    """
    if row.test == row.train:
        problem = f"{row.parser}: trees of {row.test} are both trained on and scored"
        raise AttreeError("overlap", problem, fix="name another set in `test`")
    seen = fingerprints(sets[row.train].words_of(rows))
    tested = fingerprints(sets[row.test].words)
    return int((np.isin(tested, seen) | np.isin(tested, before)).sum())


def scores(gold: Parses, parses: Parses, *, max_words: int | None) -> dict[str, Any]:
    """Return F1 and counts of parses of every sentence of ``gold``, as a record has them."""
    scored = score(gold, parses, max_words=max_words)
    counts = scored.counts
    return {**percentages(scored), "sentences": counts.scored, "fallback": counts.fallback}


def sentences_a_second(parser: Parser, test: SentenceSet, max_words: int | None) -> float:
    """Time the parsing of a set; see :meth:`attree.parsers.parser.Parser.sentences_a_second`."""
    short = [words for words in test.words if len(words) <= (max_words or len(words))]
    return parser.sentences_a_second(short)


def key(row: ExperimentRow, *, encoder: ResolvedEncoder, sets: Mapping[str, str], used: int) -> str:
    """Return the name of a row's record: a hash of everything that decides its numbers.

    Args:
        row: the row; the number of trees used counts in place of the number asked for.
        encoder: the row's encoder; its files and its dtype count.
        sets: set → hash of its content, see :func:`content`.
        used: how many trees the row draws.
    """
    fields = asdict(row) | {"trees": row.trees if row.trees in ("all", APART) else used}
    hashes = {name: sets[name] for name in row.sets} | first_weights(row)
    return digest([fields, encoder.fingerprint, encoder.dtype, hashes, code(row.kind)])


def first_weights(row: ExperimentRow) -> dict[str, str]:
    """Return the hash of the parser that ``start`` names, if it names one."""
    folder = folder_of_start(row.settings.get("start"))
    if folder is None:
        return {}
    return {"start": hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()}


def code(kind: str) -> str:
    """Return a hash of the code that rows of a kind run."""
    return code_hash(*CODE[kind], not_run=NOT_RUN[kind])


def content(trees: str, manifest: Path | None) -> str:
    """Return a hash of what rows read for a set.

    Args:
        trees: the hash of its sentences and gold trees.
        manifest: the attention of every head, for rows of heads. The code, the encoder and the
            settings that made it count; its division into shards does not.
    """
    if manifest is None:
        return trees
    description = read_json(manifest, what="attention manifest")
    made = description["provenance"]
    settings = [made["code"], made["encoder"], description["columns"], description["too_long"]]
    return digest([trees, settings])


def read_record(records: Path, name: str) -> dict[str, Any] | None:
    """Return a record of the folder of all records, or None if the row has not run."""
    path = records / f"{name}.json"
    return read_json(path, what="record of a row") if path.is_file() else None
