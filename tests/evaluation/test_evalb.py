"""EVALB's own outputs, line by line, and its rules one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.cli.main import app
from attree.evaluation.evalb import (
    COLLINS,
    ERROR,
    OK,
    SKIPPED,
    Parameters,
    Result,
    compare,
    read_parameters,
    read_tree,
    results,
)
from attree.evaluation.labels import label_confusion
from attree.treebank.as_table import Treebank
from attree.treebank.sentence import SplitSettings
from attree.trees.parses import Parses
from attree.trees.trees import Trees
from tests.command_line import CliRunner
from tests.evaluation.reference import labelled_trees
from tests.refusals import refused


@pytest.fixture
def evalb(data: Path) -> Path:
    return data / "constituency/fixtures_evalb/EVALB"


def printed(*arguments: object) -> list[str]:
    given = ["evalb", *map(str, arguments)]
    found = CliRunner().invoke(app, given, catch_exceptions=False)
    return found.stdout.split("\n")


def test_the_sample_is_that_of_the_first_release(evalb: Path) -> None:
    """But for the line of totals, F, and the words of sentences that are not scored."""
    sample = evalb / "sample"
    files = (sample / "sample.gld", sample / "sample.tst", "--prm", sample / "sample.prm")
    found = printed(*files)
    wanted = (sample / "sample.rsl").read_text().split("\n")
    begin = wanted.index("=== Summary ===")
    assert found.index("=== Summary ===") == begin
    rows = list(zip(found[: begin - 1], wanted[: begin - 1], strict=True))
    status = [row.split()[2:3] for row in wanted[: begin - 1]]
    unscored = [at for at, shown in enumerate(status) if shown in (["1"], ["2"])]
    assert 0 < len(unscored) < len(rows) / 2
    assert all(a == b or at in unscored for at, (a, b) in enumerate(rows))
    assert all(a.split()[:9] == b.split()[:9] for a, b in rows)
    assert [line for line in found[begin:] if "FMeasure" not in line] == wanted[begin:]


def test_the_repaired_quotes_are_those_of_the_second_release(evalb: Path) -> None:
    """But for the line of totals."""
    bug = evalb / "bug"
    found = printed(bug / "bug.gld", bug / "bug.tst", "--prm", evalb / "new.prm")
    wanted = (bug / "bug.rsl-new").read_text().split("\n")
    begin = wanted.index("=== Summary ===")
    # the file has lost blanks at the beginning of lines
    rows = [[line.lstrip() for line in lines[: begin - 1]] for lines in (found, wanted)]
    assert rows[0] == rows[1]
    assert found[begin:] == wanted[begin:]


def test_the_last_release_counts_crossing_brackets_in_its_totals(evalb: Path) -> None:
    bug = evalb / "bug"
    found = printed(bug / "bug.gld", bug / "bug.tst", "--prm", evalb / "new.prm")
    crossing = [int(row.split()[8]) for row in found[3:8]]
    assert found[9].split() == ["62.83", "57.72", "71", "113", "123", str(sum(crossing)), "161",
                                "129", "80.12"]  # fmt: skip


def score(gold: str, test: str, parameters: Parameters = COLLINS) -> Result:
    return compare(read_tree(gold, parameters), read_tree(test, parameters), parameters)


def counts(result: Result) -> tuple[int, int, int]:
    assert result.status == OK
    return result.matched, result.gold, result.test


def test_functions_of_labels_and_equal_labels_do_not_matter() -> None:
    gold = "(TOP (S (NP-SBJ-1 (P a)) (PRT=2 (R up))))"
    assert counts(score(gold, "(S1 (S (NP (P a)) (ADVP (R up))))")) == (3, 3, 3)
    assert counts(score(gold, "(S (VP (P a)) (X (R up)))")) == (1, 3, 3)


def test_without_labels_spans_count() -> None:
    found = score("(S (A (P a)) (P b))", "(T (B (P a)) (P b))", Parameters(labelled=False))
    assert counts(found) == (2, 2, 2)


def test_as_many_of_a_span_match_as_both_have() -> None:
    assert counts(score("(NP (NP (P a)))", "(NP (P a))")) == (1, 2, 1)
    assert counts(score("(NP (P a))", "(NP (NP (NP (P a))))")) == (1, 1, 3)


def test_deleted_words_take_empty_brackets_with_them() -> None:
    gold = "(S (NP (P a)) (VP (V b) (SBAR (-NONE- 0) (S (-NONE- *T*-1)))) (. .))"
    found = score(gold, "(S (NP (P a)) (VP (V b)) (. .))")
    assert counts(found) == (3, 3, 3)
    assert (found.length, found.words, found.tags) == (3, 2, 2)


def test_an_outer_bracket_without_a_label_counts_nowhere() -> None:
    assert counts(score("( (S (P a)))", "(S (P a))")) == (1, 1, 1)
    assert counts(score("( (S (P a)) (P b))", "( (S (P a) (P b)))")) == (0, 1, 1)
    # quotation marks that are put back count brackets
    quotes = Parameters(delete=frozenset({"Q"}), quotes=frozenset({"Q", "P"}))
    gold, test = "( (S (Q ') (NP (P a)) (Q ')))", "( (S (P ') (NP (P a)) (P ')))"
    assert counts(score(gold, test, quotes)) == (2, 2, 2)


_WRAPPED = ("{}", "( {})", "( ( {}))", "(TOP {})", "(TOP ( {}))", "(X {})", "( (X ( {})))")
#: Of one word, with brackets that have no label within, with punctuation around one, a forest.
_GOLD = ["(T a)", "(S (NP (T a) (T b)) ((VP (T c))))", "(S (NP (T a) (T b)) (T .))", "(T a) (T b)"]
_OTHER = [
    "(N (T a))",
    "(S (NP (T a)) (VP (T b) (T c)))",
    "(( (T a) (T b)) (T .))",
    "(S (T a) (T b))",
]


@pytest.mark.parametrize("punctuation", ["keep", "unicode"])
@pytest.mark.parametrize("outer", _WRAPPED)
@pytest.mark.parametrize("around", _WRAPPED)
def test_files_score_as_their_trees_do_whatever_is_around_them(
    outer: str, around: str, punctuation: str, tmp_path: Path
) -> None:
    files, trees = (tmp_path / "gold.mrg", tmp_path / "other.mrg"), []
    for file, wrapped, lines in zip(files, (outer, around), (_GOLD, _OTHER), strict=True):
        whole = lines if wrapped != "{}" else [*lines[:3], "(S (T a) (T b))"]
        file.write_text("".join(f"{wrapped.format(line)}\n" for line in whole))
        settings = SplitSettings(punctuation=punctuation, accept_loss=0.5)
        trees.append(Parses.gold(Treebank.read([file], settings).table).trees)
    gold, other = files
    found = list(results([gold], [other], COLLINS, punctuation=punctuation))
    assert [counts(one) for one in found] == list(map(tuple, label_confusion(*trees)[1].tolist()))


@pytest.mark.parametrize("name", ["auto", "none"])
def test_a_policy_that_lines_cannot_have_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "g").write_text("(S (P a))\n")
    with refused("unknown-policy", name):
        printed(tmp_path / "g", tmp_path / "g", "--punctuation", name)


def test_that_one_side_has_an_outer_bracket_is_said(tmp_path: Path) -> None:
    (tmp_path / "g").write_text("( (S (P a)))\n" * 3)
    (tmp_path / "t").write_text("(S (P a))\n" * 3)
    run = CliRunner().invoke(app, ["evalb", str(tmp_path / "g"), str(tmp_path / "t")])
    assert "an outer bracket without a label: 3 gold trees, 0 others" in run.stderr
    assert "Bracketing FMeasure       = 100.00" in run.stdout


def test_crossing_brackets_are_counted_in_the_test_tree() -> None:
    words = [f"(P {letter})" for letter in "abcd"]
    gold = f"(S (X {words[0]} {words[1]}) (Y {words[2]} {words[3]}))"
    test = f"(S {words[0]} (X (Y {words[1]} {words[2]}) {words[3]}))"
    found = score(gold, test)
    assert counts(found) == (1, 3, 3)
    assert found.crossing == 2


def test_sentences_that_cannot_be_scored_say_why() -> None:
    assert score("(S (P a))", "").status == SKIPPED
    assert score("(S (P a))", "(S (P a) (P b))").problem == "Length unmatch (1|2)"
    assert score("(S (P a))", "(S (P b))").problem == "Words unmatch (a|b)"


@pytest.mark.parametrize("bad", ["(S (P a)", "(S (P a)))", "(S (P a b))", "(S a (P b))", "x"])
def test_a_tree_that_cannot_be_read_costs_its_sentence_alone(tmp_path: Path, bad: str) -> None:
    (tmp_path / "g").write_text("(S (P a))\n(S (P a))\n")
    (tmp_path / "t").write_text(f"{bad}\n(S (P a))\n")
    found = printed(tmp_path / "g", tmp_path / "t")
    assert [row.split()[2] for row in found[3:5]] == [str(ERROR), str(OK)]
    assert "Number of Valid sentence  =      1" in found


def test_a_file_that_ends_early_is_said(tmp_path: Path) -> None:
    (tmp_path / "g").write_text("(S (P a))\n" * 3)
    (tmp_path / "t").write_text("(S (P a))\n" * 2)
    run = CliRunner().invoke(app, ["evalb", str(tmp_path / "g"), str(tmp_path / "t")])
    assert "3 : Number of lines unmatch (too many lines in gold file)" in run.stderr
    assert "Number of sentence        =      2" in run.stdout


def test_more_errors_than_allowed_end_the_run(tmp_path: Path) -> None:
    (tmp_path / "g").write_text("(S (P a))\n" * 5)
    (tmp_path / "t").write_text("(S (P b))\n" * 5)
    (tmp_path / "p").write_text("MAX_ERROR 3\n")
    with refused("too-many-errors", "3"):
        printed(tmp_path / "g", tmp_path / "t", "--prm", tmp_path / "p")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("DELETE TOP", "unknown-name DELETE"),
        ("EQ_LABEL A", "bad-parameter EQ_LABEL 2"),
        ("MAX_ERROR many", "bad-parameter MAX_ERROR many"),
    ],
)
def test_a_bad_parameter_file_names_its_line(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "p").write_text(f"# comment\nLABELED 0\n{text}\n")
    with refused(*problem.split(), file="p", line=3):
        read_parameters(tmp_path / "p")


def test_the_published_parameters_are_read(evalb: Path) -> None:
    found = read_parameters(evalb / "COLLINS.prm")
    assert found.delete == {"TOP", "-NONE-", ",", ":", "``", "''", "."}
    assert found.same_labels == {("ADVP", "PRT")}
    assert (found.labelled, found.cutoff, found.max_errors) == (True, 40, 10)


def bracketed(n: int, spans: list[tuple[int, int]], labels: list[str]) -> str:
    """Write a tree out of its spans in pre-order, every word with a tag of its own."""
    text = []
    for word in range(n):
        text += [f"({label} " for (i, _), label in zip(spans, labels, strict=True) if i == word]
        text += [f"(T w{word})", ")" * sum(j == word + 1 for _, j in spans), " "]
    return "".join(text)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 10_000))
def test_labelled_trees_have_the_counts_of_their_brackets(lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = ("NP-SBJ", "ADVP", "PRT", "TOP", "S")
    sides = [labelled_trees(rng, lengths, labels) for _ in range(2)]
    _, found = label_confusion(*(Trees.from_spans(lengths, *side) for side in sides))
    for row, n, *pairs in zip(found, lengths, *(zip(*side, strict=True) for side in sides),
                              strict=True):  # fmt: skip
        wanted = score(*(bracketed(n, *pair) for pair in pairs))
        assert tuple(row) == counts(wanted)
