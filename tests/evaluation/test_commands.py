"""``attree score`` and ``attree baselines``: tables in, tables and summaries out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attree.base.reading import read_json
from attree.base.schemas import (
    PARSES_SCHEMA,
    SENTENCES_SCHEMA,
    read_table,
    write_table,
)
from attree.cli.main import app
from attree.decoding import FIXED
from attree.evaluation import DEFAULT_LABELS
from attree.evaluation.rows import SCORES_SCHEMA
from tests.command_line import CliRunner
from tests.evaluation.reference import Labelled, Spans, parses, sentences
from tests.refusals import refused

GOLD: list[tuple[int, Labelled]] = [
    (4, [(0, 4, "S"), (0, 2, "NP"), (2, 4, "VP")]),
    (1, [(0, 1, "NP")]),
    (6, [(0, 6, "S"), (1, 6, "VP"), (2, 6, "NP")]),
    (3, [(0, 2, "NP")]),
]
FOUND: list[tuple[int, Spans]] = [
    (4, [(0, 4), (0, 2), (2, 4)]),
    (1, []),
    (6, [(i, 6) for i in range(5)]),
    (3, []),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    about = {"language": "english", "split": "test"}
    about |= {"punctuation": "ptb", "derived": "constituency"}
    write_table(tmp_path / "t.parquet", sentences(GOLD), schema=SENTENCES_SCHEMA, metadata=about)
    made = {"encoder": "tiny", "selection": "english dev", "provenance": {"code": "c"}}
    table = parses(FOUND, status=["ok", "ok", "right_branching", "skipped"])
    write_table(tmp_path / "p.parquet", table, schema=PARSES_SCHEMA, metadata=made)
    return tmp_path


def run(*arguments: object) -> None:
    given = list(map(str, arguments))
    CliRunner().invoke(app, given, catch_exceptions=False)


def score(folder: Path, *options: object) -> dict[str, Any]:
    files = ("--sentences", folder / "t.parquet", "--output", folder / "o.parquet")
    run("score", folder / "p.parquet", *files, "--summary", folder / "s.json", *options)
    found = read_json(folder / "s.json")
    assert isinstance(found, dict)
    return found


def test_score_writes_percentages_and_the_protocol(folder: Path) -> None:
    found = score(folder, "--parser-name", "upoa")
    assert (found["parser"], found["encoder"]) == ("upoa", "tiny")
    assert (found["language"], found["split"]) == ("english", "test")
    assert found["corpus_f1"] == pytest.approx(100 * 2 * 6 / (6 + 8))
    assert found["corpus_f1_no_root"] == pytest.approx(100 * 2 * 4 / (4 + 6))
    assert found["sentence_f1"] == pytest.approx(100 * (1 + 2 * 2 / (2 + 4)) / 2)
    assert found["label_recall"]["NP"] == {"count": 2, "recall": 100}
    assert found["label_recall"]["PP"] == {"count": 0, "recall": None}
    protocol = found["protocol"]
    assert (protocol["punctuation"], protocol["derived"]) == ("ptb", "constituency")
    assert protocol["selection"] == "english dev"
    counted = {"total": 4, "longer": 0, "scored": 2, "one_word": 1, "skipped": 1, "fallback": 1}
    assert protocol["sentences"] == counted
    assert found["provenance"]["parses"] == {"code": "c"}


def test_score_writes_a_row_a_sentence(folder: Path) -> None:
    score(folder)
    table, about = read_table(folder / "o.parquet", schema=SCORES_SCHEMA)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert rows == [
        (0, 4, "ok", 3, 3, 3, 100.0),
        (1, 1, "ok", 0, 0, 0, None),
        (2, 6, "right_branching", 3, 5, 3, pytest.approx(200 / 3)),
        (3, 3, "skipped", 0, 0, 0, None),
    ]
    assert about["language"] == "english"


def test_score_takes_labels_and_a_length(folder: Path) -> None:
    options = ("--recall", "S,VP", "--recall", "NP", "--max-words", 4)
    found = score(folder, *options)
    assert list(found["label_recall"]) == ["NP", "S", "VP"]  # keys are sorted
    assert found["sentence_f1"] == pytest.approx(100.0)
    assert found["protocol"]["sentences"]["longer"] == 1
    assert found["protocol"]["max_words"] == 4


def test_labels_may_be_repeated_or_joined(folder: Path) -> None:
    mine = score(folder, "--recall", "NP, VP", "--recall", "NP", "--recall", "X")
    assert sorted(mine["label_recall"]) == ["NP", "VP", "X"]
    assert sorted(score(folder)["label_recall"]) == sorted(DEFAULT_LABELS)


def test_baselines_have_all_kinds_and_their_spread(folder: Path) -> None:
    run("baselines", folder / "t.parquet", "--output", folder / "b.json", "--seeds", 3)
    found = read_json(folder / "b.json")
    assert set(found["baselines"]) == {*FIXED, "upper_bound"}
    right = found["baselines"]["right_branching"]
    assert right["corpus_f1"] == pytest.approx(100 * 2 * (2 + 3 + 1) / (8 + 10))
    assert right["label_recall"]["VP"] == {"count": 2, "recall": 100}
    bound = found["baselines"]["upper_bound"]
    assert bound["corpus_f1"] == pytest.approx(100 * 2 * 8 / (8 + 10))
    assert bound["label_recall"]["NP"] == {"count": 3, "recall": 100}
    for name in FIXED:
        one = found["baselines"][name]
        if name.startswith("random_"):
            assert one["seeds"] == 3
            assert one["corpus_f1"] <= one["max"]["corpus_f1"] <= bound["corpus_f1"]
            assert one["std"]["corpus_f1"] >= 0
        else:
            assert "std" not in one
    assert found["protocol"]["sentences"]["scored"] == 3
    assert found["protocol"]["sentences"]["one_word"] == 1


def test_sentences_of_one_word_give_null_scores(folder: Path) -> None:
    one = [(1, GOLD[1][1])]
    write_table(folder / "t.parquet", sentences(one), schema=SENTENCES_SCHEMA, metadata={})
    write_table(folder / "p.parquet", parses([(1, [])]), schema=PARSES_SCHEMA, metadata={})
    assert score(folder)["corpus_f1"] is None
    run("baselines", folder / "t.parquet", "--output", folder / "b.json")
    random = read_json(folder / "b.json")["baselines"]["random_uniform_tree"]
    assert random["corpus_f1"] is None
    assert random["std"] == {}


def test_what_is_no_table_of_parses_is_refused(folder: Path) -> None:
    (folder / "p.parquet").write_bytes((folder / "t.parquet").read_bytes())
    with refused("other-table", file="p.parquet"):
        score(folder)
