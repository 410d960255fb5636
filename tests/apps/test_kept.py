"""``attree evaluate --parser``: parsers that somebody kept, beside what was parsed with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.conftest import TREES, evaluate, run, write
from tests.refusals import refused


@pytest.fixture
def kept(tmp_path: Path, encoder: Path) -> Path:
    """A parser trained on the first six of nine French trees, and what it makes of all nine."""
    train, every = write(tmp_path / "train.mrg", TREES[:6]), write(tmp_path / "all.mrg", TREES)
    how = ("--encoder", encoder, "--steps", 1, "--device", "cpu")
    run("train", "--sentences", train, *how, "--output", tmp_path / "mine")
    run("treebank", every, "--output", tmp_path / "words.parquet")
    parser = ("--column", "words", "--parser", tmp_path / "mine", "--device", "cpu")
    run("parse", tmp_path / "words.parquet", *parser, "--output", tmp_path / "trees")
    return tmp_path


def figures(shown: str, row: str) -> list[str]:
    return next(line.split()[1:] for line in shown.splitlines() if line.split()[:1] == [row])


def test_a_kept_parser_and_its_trees_have_the_same_figures(kept: Path) -> None:
    """Sentences that it was trained on are left out, of its trees too, and so not missed there."""
    names = f"{kept / 'mine'},{kept / 'trees'}"
    for labels in ("treebank", "universal"):
        done = evaluate("--test", kept / "all.mrg", "--parser", names, "--labels", labels)
        assert (
            "trained on 6 of the 9 sentences" in done.stderr
            and "no such sentence" not in done.stderr
        )
        assert figures(done.stdout, "mine") == figures(done.stdout, "trees")
        assert "3 sentences; punctuation: keep." in done.stdout


def test_only_parsers_that_were_trained_on_the_sentences_are_named(kept: Path) -> None:
    rest = write(kept / "rest.mrg", TREES[6:])
    how = ("--encoder", kept / "bert.json", "--steps", 1, "--device", "cpu")
    run("train", "--sentences", rest, *how, "--output", kept / "other")
    names = f"{kept / 'mine'},{kept / 'other'}"
    with refused("all-trained-on"):
        evaluate("--test", kept / "train.mrg", "--parser", names)


def test_universal_labels_of_a_parser_are_mapped_as_those_of_gold_trees(kept: Path) -> None:
    """French labels of the parser against universal ones of the gold trees would never be right."""
    own, universal = (
        evaluate("--test", kept / "all.mrg", "--parser", kept / "mine", "--labels", labels)
        for labels in ("treebank", "universal")
    )
    assert "no gold tree has" not in own.stdout + universal.stdout
    # its labels, and those of the gold trees, are as many as before: no two of them become one
    assert own.stdout == universal.stdout


def test_a_folder_without_a_parser_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with refused("no-parser", file="empty"):
        evaluate("--test", write(tmp_path / "gold.mrg", TREES), "--parser", tmp_path / "empty")
