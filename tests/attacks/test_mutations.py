"""Mutations of every file that attree writes: no command that reads one ends in a raw error."""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attree.apps.measures import check_output
from attree.association.columns import ALL as ALL_HEADS
from attree.association.columns import read_selection
from attree.association.shards import read, read_manifest
from attree.base.errors import AttreeError
from attree.base.languages import rules_for
from attree.base.reading import read_described, read_json
from attree.base.schemas import (
    HEADS_SCHEMA,
    PARSES_SCHEMA,
    SENTENCES_SCHEMA,
    read_table,
)
from attree.base.tables import saved_tables
from attree.bulk.folder import status
from attree.bulk.manifest import Manifest
from attree.bulk.output import read_shards, read_trees
from attree.encoder.source import ResolvedEncoder
from attree.evaluation.labels import confusion_of
from attree.evaluation.rows import SCORES_SCHEMA
from attree.grammar.folder import read_grammar
from attree.reports.tables.summaries import crosslingual, language, score_rows, summary_table
from attree.training.recipes import read_description
from attree.trees.parses import Parses
from tests.attacks.harness import Server

pytestmark = pytest.mark.xdist_group("attacks")

#: Mutations of each file in `make test` and in all: that a command reads, and that a reader reads
#: in a small part of the time. Seeds number them, so that one can be run again.
QUICK, ALL, QUICK_OF_READER, ALL_OF_READER = 1, 100, 60, 1000


@dataclass(frozen=True, slots=True)
class Target:
    """A file that attree writes, and a command that reads it.

    Args:
        file: of the base; the file or the folder that it lies in is copied.
        command: with ``{base}`` for the good files; it runs where the copy lies.
        copied: what is copied: the folder that holds the file, or else the file itself.
    """

    file: str
    command: str
    copied: str = ""


_TRY = "try 'the old man' --tokenizer whitespace --brackets --parser"
_HEADS = "--score outside --decoder greedy --output o.parquet --output-selection o.json"
TARGETS = [
    Target("bert.json", f"{_TRY} {{base}}/parser --encoder bert.json"),
    Target("all.json", f"heads all.json --sentences {{base}}/dev.parquet {_HEADS}"),
    Target("selection.json", f"{_TRY} selection.json --encoder {{base}}/bert.json"),
    Target("summary.json", "table language summary.json --output-prefix o"),
    Target("summary.json", "figure labels --scores summary.json --output o.svg"),
    Target("summary.json", "table show summary.json"),
    Target("baselines.json", "table crosslingual {base}/summary.json baselines.json "
           "--output-prefix o"),
    Target("speed.json", "table comparison {base}/summary.json --speeds speed.json "
           "--sentences {base}/dev.parquet --output-prefix o"),
    Target("parser/parser.json", f"{_TRY} parser --encoder {{base}}/bert.json", "parser"),
    Target("parser/parser.json", "evaluate --test {base}/dev.mrg --parser parser "
           "--allow-overlap", "parser"),
    Target("parser/parser.json", "train --sentences {base}/dev.parquet --start parser --encoder "
           "{base}/bert.json --output o --trees 4 --steps 1", "parser"),
    Target("grammar/grammar.json", f"{_TRY} grammar", "grammar"),
    Target("bulk/manifest.json", "parse {base}/lines.txt --parser {base}/parser --tokenizer "
           "whitespace --output bulk", "bulk"),
    Target("bulk/summary.json", "parse {base}/lines.txt --parser {base}/parser --tokenizer "
           "whitespace --output bulk", "bulk"),
    Target("bulk/trees/shard-00000.parquet", "evaluate --test {base}/dev.mrg --parser bulk",
           "bulk"),
    Target("bulk/trees/shard-00000.parquet", "measures bulk --output o", "bulk"),
    Target("dev.parquet", "score {base}/parses.parquet --sentences dev.parquet --output o.parquet "
           "--summary o.json"),
    Target("dev.parquet", "baselines dev.parquet --output o.json"),
    Target("dev.parquet", "train --sentences dev.parquet --encoder {base}/bert.json --output o "
           "--trees 4 --steps 1"),
    Target("dev.parquet", "attention dev.parquet --encoder {base}/bert.json --heads all "
           "--output o.json"),
    Target("heads.parquet", "figure heads --ranking heads.parquet --output o.svg"),
    Target("parses.parquet", "score parses.parquet --sentences {base}/dev.parquet --output "
           "o.parquet --summary o.json"),
    Target("parses.parquet", "average parses.parquet {base}/parses.parquet --output o.parquet"),
    Target("table.parquet", "table show table.parquet"),
    Target("measures/words.parquet", "measures {base}/dev.mrg --output measures --overwrite",
           "measures"),
    Target("all.shards/*-00000.parquet", "heads all.json --sentences {base}/dev.parquet "
           + _HEADS, "all.shards"),
]  # fmt: skip

#: What somebody may write in place of a value.
VALUES: list[Any] = [
    *(None, True, -1, 0, 1, 2**31, 2**63, 10**30, -0.5, 1e308, 9e99),
    *("", "x", "../../x", "\x1b[31m", "é\ud800", "1", "x" * 5000, "(", "a b"),
    *([], {}, [[]], [None], {"x": {}}, ["x", 1]),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside a JSON value."""
    keys: Any = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield (*path, key)
        if isinstance(value[key], dict | list):
            yield from places(value[key], (*path, key))


def mutated_json(text: bytes, chance: random.Random) -> bytes:
    """Change one value, leave it out, or damage the bytes."""
    if chance.random() < 0.15:
        return mutated_bytes(text, chance)
    whole = copy.deepcopy(json.loads(text))
    every = list(places(whole))
    if not every:
        return mutated_bytes(text, chance)
    *above, last = chance.choice(every)
    inside = whole
    for key in above:
        inside = inside[key]
    if chance.random() < 0.2:
        del inside[last]
    else:
        inside[last] = chance.choice(VALUES)
    return json.dumps(whole).encode("utf-8", "surrogatepass")


def mutated_bytes(data: bytes, chance: random.Random) -> bytes:
    """Cut a file, or change some bytes."""
    if chance.random() < 0.3 or not data:
        return data[: chance.randrange(len(data) + 1)]
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 8])):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def mutated_parquet(path: Path, chance: random.Random) -> None:
    """Change a column, its type, the rows or the metadata of a table, or damage the bytes."""
    if chance.random() < 0.3:
        path.write_bytes(mutated_bytes(path.read_bytes(), chance))
        return
    table = pq.read_table(path, partitioning=None)
    metadata = dict(table.schema.metadata or {})
    rows = table.to_pylist()
    place = chance.randrange(table.num_columns)
    name = table.schema.names[place]
    what = chance.choice(["drop", "type", "cell", "cell", "cell", "rows", "metadata", "metadata"])
    if what == "drop":
        table = table.drop_columns([name])
    elif what == "type":
        kind = chance.choice([pa.int64(), pa.string(), pa.float64(), pa.list_(pa.string())])
        values = (
            [chance.choice([None, [None]]) for _ in rows]
            if pa.types.is_list(kind)
            else [None if chance.random() < 0.1 else 1 for _ in rows]
        )
        column = pa.array(map(str, values) if pa.types.is_string(kind) else values, kind)
        table = table.set_column(place, name, column)
    elif what == "cell" and rows:
        row = chance.choice(rows)
        values = [other[name] for other in rows]
        at = chance.randrange(len(rows))
        values[at] = changed_cell(row[name], chance)
        try:
            table = table.set_column(
                place, table.schema.field(place), pa.array(values, table.schema.field(place).type)
            )
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError):
            table = table.slice(0, at)
    elif what == "rows":
        order = [
            chance.randrange(max(len(rows), 1)) for _ in range(chance.randrange(len(rows) + 1))
        ]
        table = pa.Table.from_pylist([rows[row] for row in order], table.schema)
    else:
        for key in (key for key in metadata if key != b"ARROW:schema"):
            metadata[key] = mutated_json(metadata[key], chance)
    pq.write_table(table.replace_schema_metadata(metadata), path)


def changed_cell(value: Any, chance: random.Random) -> Any:
    """Return another value of the same type, or none at all."""
    if isinstance(value, list) and value and chance.random() < 0.7:
        position = chance.randrange(len(value))
        part = changed_cell(value[position], chance)
        return chance.choice(
            [
                [*value[:position], part, *value[position + 1 :]],
                value[:position],
                [*value, part],
                value[::-1],
            ]
        )
    if isinstance(value, str):
        return chance.choice(["", "x", "(", "\x1b[1m", "a b", "é" * 300])
    if isinstance(value, int):
        return chance.choice([-1, 0, 1, 10**5, 2**31 - 1])
    if isinstance(value, float):
        return chance.choice([float("nan"), float("inf"), -1.0, 1e308])
    return chance.choice([None, []])


def _mutate(file: Path, chance: random.Random) -> None:
    if file.suffix == ".parquet":
        mutated_parquet(file, chance)
    else:
        file.write_bytes(mutated_json(file.read_bytes(), chance))


def check(target: Target, seed: int, server: Server, folder: Path) -> None:
    """Mutate a file by a seed and run the command that reads it."""
    work = folder / "work"
    work.mkdir(parents=True)
    copied = target.copied or target.file
    source, place = server.base / copied, work / copied
    if source.is_dir():
        shutil.copytree(source, place)
    else:
        shutil.copyfile(source, place)
    if copied == "all.shards":
        shutil.copyfile(server.base / "all.json", work / "all.json")
    (file,) = work.glob(target.file)
    _mutate(file, random.Random(f"{target.file} {seed}"))
    ran = server.run(work, target.command, environment={"HOME": str(folder)}, seconds=60.0)
    output = f"{ran['stdout']}\n{ran['stderr']}"
    shown = f"{target.command}\nseed {seed}, status {ran['status']}\n{output[-2000:]}"
    assert ran["status"] in (0, 1, 2), shown
    for word in ("unexpected", "Traceback", "panicked", "\x1b"):
        assert word not in output, shown
    assert ran["megabytes"] < 2000, shown
    shutil.rmtree(work)


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(QUICK), id="quick"),
        pytest.param(range(QUICK, ALL), id="all", marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize(
    "target", TARGETS, ids=lambda target: f"{target.command.split()[0]}-{target.file}"
)
def test_no_mutation_ends_in_a_raw_error(
    target: Target, seeds: range, server: Server, tmp_path: Path
) -> None:
    for seed in seeds:
        check(target, seed, server, tmp_path / str(seed))


def _rows(file: Path) -> None:
    rows = score_rows([file], {})
    crosslingual(rows, "Title")
    language(rows)


def _language(folder: Path) -> None:
    rules_for(read_description(folder).about.language or "xx")


#: What reads a file, given its folder or itself, and the file.
READERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "encoder": (ResolvedEncoder.read, "bert.json"),
    "selection": (read_selection, "selection.json"),
    "attention": (read_manifest, "all.json"),
    "parser": (lambda file: _language(file.parent), "parser/parser.json"),
    "manifest": (Manifest.read, "bulk/manifest.json"),
    "grammar": (lambda file: read_grammar(file.parent), "grammar/grammar.json"),
    "confusion": (
        lambda file: confusion_of(read_described(file, dict[str, Any], what="summary"), file),
        "summary.json",
    ),
    "table": (_rows, "summary.json"),
    "baselines": (_rows, "baselines.json"),
    "shown": (lambda file: summary_table(read_json(file)), "summary.json"),
    "sentences": (lambda file: read_table(file, schema=SENTENCES_SCHEMA)[0].to_pylist(),
                  "dev.parquet"),
    "parses": (lambda file: Parses.of_table(read_table(file, schema=PARSES_SCHEMA)[0]),
               "parses.parquet"),
    "heads": (lambda file: read_table(file, schema=HEADS_SCHEMA)[0].to_pylist(), "heads.parquet"),
    "scores": (lambda file: read_table(file, schema=SCORES_SCHEMA)[0].to_pylist(),
               "scores.parquet"),
    "trees": (lambda file: list(read_trees(file.parents[1])), "bulk/trees/shard-00000.parquet"),
    "shards": (lambda file: list(read_shards(file.parents[1])), "bulk/trees/shard-00000.parquet"),
    "saved": (saved_tables, "table.parquet"),
    "associations": (lambda file: list(read(file.parents[1] / "all.json", ALL_HEADS)),
                     "all.shards/*-00000.parquet"),
    "measures": (lambda file: check_output(file.parent, overwrite=True), "measures/words.parquet"),
    "summary of a corpus": (lambda file: status(file.parent), "bulk/summary.json"),
}  # fmt: skip


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(QUICK_OF_READER), id="quick"),
        pytest.param(range(QUICK_OF_READER, ALL_OF_READER), id="all", marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_a_mutation_or_tells_what_is_wrong(
    name: str, seeds: range, server: Server, tmp_path: Path
) -> None:
    reader, place = READERS[name]
    (file,) = shutil.copytree(server.base, tmp_path / "base").glob(place)
    good = file.read_bytes()
    for seed in seeds:
        file.write_bytes(good)
        _mutate(file, random.Random(f"{place} {seed}"))
        try:
            reader(file)
        except (AttreeError, OSError):
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed} of {place}: {error!r}") from error
