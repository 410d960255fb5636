"""``attree decode``: from shards of associations to the table of parses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attree.association.columns import mean_column
from attree.association.shards import open_shard
from attree.base.files import write_json
from attree.base.schemas import PARSES_SCHEMA, read_table
from attree.cli.main import app
from attree.decoding.batch import decode
from attree.stages.from_shards import selection_data
from tests.command_line import CliRunner
from tests.refusals import refused
from tests.scoring.reference import Spans, attention, pairs

HEADS = [(4, 7), (1, 7)]
#: number and words of the sentences that have an association, and of those that have none
ASSOCIATED, WITHOUT = [(5, 4), (2, 9), (0, 1), (6, 2)], [(3, 5), (1, 1)]


def matrix(number: int, words: int) -> np.ndarray[Any, Any]:
    return attention(words, number).astype(np.float16)


def lay_out(folder: Path, *, too_long: str = "right_branching", counted: int = 6) -> Path:
    """Write two shards and their manifest."""
    column, described = mean_column(HEADS)
    shards = []
    for index, (sentences, status) in enumerate(((ASSOCIATED, "ok"), (WITHOUT, "too_long"))):
        file = f"a.shards/{index}.parquet"
        with open_shard(folder / file, {column: described}, metadata={}) as shard:
            numbers, words = np.array(sentences, np.int32).T
            values = [matrix(*sentence).ravel() for sentence in sentences if status == "ok"]
            flat = np.concatenate([*values, np.zeros(0)]).astype(np.float32)
            shard.add(numbers, words, np.zeros_like(words), status=status, values={column: flat})
        shards.append({"file": file})
    manifest = {
        "columns": {column: {"units": described.units, "mean": True, "matrices": 1}},
        "shards": shards,
        "counts": {"sentences": counted},
        "too_long": too_long,
        "encoder": {"slug": "tiny", "fingerprint": "f1"},
        "language": "english",
        "split": "test",
        "provenance": {"made": "attention"},
    }
    write_json(folder / "a.json", manifest)
    return folder / "a.json"


def select(folder: Path, **changes: Any) -> Path:
    chosen = {
        "encoder": "f1",
        "association": "raw",
        "score": "outside",
        "decoder": "greedy",
        "heads": HEADS,
        "language": "english",
        "split": "dev",
        "trees": None,
        "seed": 0,
    }
    write_json(folder / "s.json", chosen | changes)
    return folder / "s.json"


def run(attention: Path, selection: Path, *options: str) -> dict[int, tuple[int, str, Spans]]:
    """Decode by the command line; return words, status and spans of each sentence, in row order."""
    output = attention.with_name("p.parquet")
    arguments = ["decode", attention, "--selection", selection, "--output", output, *options]
    CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    table, _ = read_table(output, schema=PARSES_SCHEMA)
    return {
        row["sentence"]: (
            row["n_words"],
            row["status"],
            list(zip(row["starts"], row["ends"], strict=True)),
        )
        for row in table.to_pylist()
    }


def test_every_sentence_gets_its_tree_in_order(tmp_path: Path) -> None:
    found = run(lay_out(tmp_path), select(tmp_path))
    assert list(found) == [0, 1, 2, 3, 5, 6]
    for number, words in ASSOCIATED:
        tree = decode(matrix(number, words).ravel(), [words], score="outside", decoder="greedy")
        assert found[number] == (words, "ok", pairs(tree))
    assert found[3] == (5, "right_branching", [(0, 5), (1, 5), (2, 5), (3, 5)])
    assert found[1] == (1, "right_branching", [])


def test_too_long_sentences_may_be_skipped(tmp_path: Path) -> None:
    found = run(lay_out(tmp_path, too_long="skip"), select(tmp_path))
    assert len(found) == 6
    assert found[3] == (5, "skipped", [])
    assert found[5][1] == "ok"


def test_options_override_the_selection(tmp_path: Path) -> None:
    options = ("--association", "log", "--score", "inside_outside", "--decoder", "chart")
    found = run(lay_out(tmp_path), select(tmp_path), *options)
    recipe = {"association": "log", "score": "inside_outside", "decoder": "chart"}
    assert found[2][2] == pairs(decode(matrix(2, 9).ravel(), [9], **recipe))


def test_metadata_says_what_the_heads_were_chosen_on(tmp_path: Path) -> None:
    run(lay_out(tmp_path), select(tmp_path, trees=20, sentences=12, seed=3))
    _, about = read_table(tmp_path / "p.parquet")
    assert about["selection"] == "english dev (12 trees, seed 3)"  # all there are
    assert (about["language"], about["split"], about["encoder"]) == ("english", "test", "tiny")
    assert selection_data({"language": None}) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"encoder": "f2"}, "other-encoder tiny"),
        ({"heads": [(0, 0)]}, "unknown-association 0.0"),
        ({"score": None}, "bad-selection --score"),
    ],
)
def test_a_selection_that_does_not_fit_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with refused(*said.split()):
        run(lay_out(tmp_path), select(tmp_path, **changes))
    assert not (tmp_path / "p.parquet").exists()


def test_sentences_that_do_not_add_up_are_refused(tmp_path: Path) -> None:
    with refused("sentence-count", "6", "7", file="a.json"):
        run(lay_out(tmp_path, counted=7), select(tmp_path))
