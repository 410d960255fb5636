"""Partly bracketed trees: what is read, what is refused, and who takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.base.schemas import PARTLY_BRACKETED, SENTENCES_SCHEMA, read_table
from attree.treebank.as_table import as_tables
from attree.treebank.brackets import bracketed
from attree.treebank.cleaning import clean
from attree.treebank.formats import read_files, resolve
from attree.treebank.half import constraints_of, read, read_line
from attree.treebank.sentence import Rejected, Sentence, SplitSettings
from attree.treebank.table import from_table, to_table
from attree.trees.constraints import COMPLETE, NO_PHRASE, UNKNOWN, Constraints
from tests import drawn
from tests.refusals import refused
from tests.training import reference

#: text → what stands of it: words, spans, whether it is partly bracketed
GOOD = {
    "( (NP the old man) walked )": ("the old man walked", [(0, 3, "NP")], True),
    "(S (NP the old man) walked)": ("the old man walked", [(0, 4, "S"), (0, 3, "NP")], True),
    "( (? the old man) (! walked home) today)": (
        "the old man walked home today",
        [(0, 3, "?"), (3, 5, "!")],
        True,
    ),
    "( ( the old man) walked)": ("the old man walked", [(0, 3, "?")], True),
    "( (= (NP the old man)) sat)": ("the old man sat", [(0, 3, "="), (0, 3, "NP")], True),
    "(= (S (NP the man) (VP sat)))": (
        "the man sat",
        [(0, 3, "S"), (0, 2, "NP"), (2, 3, "VP")],
        False,
    ),
    "(= (S (? the man) (VP sat)))": (
        "the man sat",
        [(0, 3, "="), (0, 3, "S"), (0, 2, "?"), (2, 3, "VP")],
        True,
    ),
    "(= (NP the man) sat)": ("the man sat", [(0, 3, "="), (0, 2, "NP")], True),
    "( (NP (DT the) (NN man)) (VBD sat))": ("the man sat", [(0, 2, "NP")], True),
    "( (NP (! John) Smith)\n  sat )": ("John Smith sat", [(0, 2, "NP"), (0, 1, "!")], True),
    "( (S (VP go home)) now)": ("go home now", [(0, 2, "S"), (0, 2, "VP")], True),
    "( (NP-SBJ you ?) (. ?))": ("you ? ?", [(0, 2, "NP"), (2, 3, ".")], True),
    "( (NP -LRB- (? a\\/b)) c)": ("( a/b c", [(0, 2, "NP"), (1, 2, "?")], True),
}


def read_text(text: str, tmp_path: Path) -> list[Sentence | Rejected]:
    file = tmp_path / "mine.half"
    file.write_text(text, encoding="utf-8")
    return list(read_files([file], resolve(SplitSettings(), [file])))


@pytest.mark.parametrize("text", GOOD)
def test_what_is_read(text: str, tmp_path: Path):
    words, spans, partial = GOOD[text]
    (found,) = read_text(f"# a note (with brackets\n{text}\n", tmp_path)
    assert (" ".join(found.words), list(found.spans), found.partial) == (words, spans, partial)
    assert found.line == 2


BAD = {
    "( the old man sat )": "nothing is known of this tree — bracket a phrase",
    "( (NP (! the old man)) sat)": "'the old man' is both required and forbidden — undo one",
    "( (? (NP the old man)) sat)": "'the old man' has the label NP and an unknown one",
    "( (! the old man sat))": "'the old man sat' is the whole sentence",
    "( (!NP the old) man)": "'!NP' around 'the old' is no mark and no label — the marks are ?",
    "( (NP (? the) (NN man)) (VB sat))": "? is the tag of 'the' — write (? (X the))",
    "( (NP the old": "brackets are not closed — correct this tree",
    "the old man": "text outside any tree",
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_refused_costs_no_other_tree(text: str, tmp_path: Path):
    found = read_text(f"( (NP the man) sat)\n{text}\n( (NP the man) sat)\n", tmp_path)
    assert [type(one) for one in found] == [Sentence, Rejected, Sentence]
    assert BAD[text] in str(found[1]) and f"{tmp_path / 'mine.half'}:2: " in str(found[1])


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), n=st.integers(3, 8))
def test_what_is_written_is_read(seed: int, n: int):
    """All that nests: phrases with a label and without, and spans that are none."""
    known = drawn.constraints(seed, n, (None, "NP", "VP"), one_word=True)
    phrases = [(i, j, label or UNKNOWN) for i, j, label in known.required]
    others = [
        (i, j, NO_PHRASE)
        for i, j in known.forbidden
        if not any(reference.crosses((i, j), span) for span in known.chains())
    ]
    spans = sorted([*phrases, *others[:1]], key=lambda span: (span[0], -span[1]))
    if not spans:
        return
    text = bracketed([f"w{i}" for i in range(n)], [f"T{i}" for i in range(n)], spans)
    (found,) = read(f"({text})", "f", resolve(SplitSettings(format="half"), []))
    assert (found.spans, found.partial) == (tuple(spans), True)


def test_punctuation_that_goes_leaves_nothing_contradictory():
    text = (
        "(S (? (NP (DT the) (! (JJ old) (NN man))) (, ,)) (! (VBD sat) (. .))"
        " (! (NN a) (, ,) (NN b)))"
    )
    (one,) = read(text, "f", resolve(SplitSettings(format="half"), []))
    left = clean(one, lambda sentence: [word.isalpha() for word in sentence.words])
    assert left is not None and left.partial
    assert left.words == ("the", "old", "man", "sat", "a", "b")
    assert left.spans == ((0, 6, "S"), (0, 3, "NP"), (1, 3, "!"), (4, 6, "!"))
    assert Constraints.of_marks(left.spans)


def test_a_region_that_is_complete_leaves_no_other_phrase():
    known = Constraints.of_marks([(1, 4, COMPLETE), (2, 4, "NP")])
    assert set(known.forbidden) == {(1, 2), (1, 3), (2, 3), (3, 4)}
    assert known.required == ((2, 4, "NP"),)


def test_tables_say_which_trees_are_half_known(tmp_path: Path):
    trees = read_text("\n".join(GOOD), tmp_path)
    table = to_table(trees)
    assert table.schema.equals(PARTLY_BRACKETED)
    assert [one.partial for one in from_table(table)] == [
        partial for _, _, partial in GOOD.values()
    ]
    whole = to_table([one for one in trees if not one.partial])
    assert whole.schema.equals(SENTENCES_SCHEMA)


def test_what_needs_whole_trees_says_so(attree: Any, tmp_path: Path):
    file = tmp_path / "mine.half"
    file.write_text("( (NP the man) sat)\n(= (S (NP the man) (VP went)))\n")
    made = attree(str(file), "--output", "mine.parquet")
    assert made.status == 0, made.err
    with refused("other-table", file="mine.parquet"):
        read_table(tmp_path / "mine.parquet", schema=SENTENCES_SCHEMA)
    with refused("partly-known-trees", file="mine.half"):
        as_tables([file]).__enter__()
    with as_tables([file], partial=[file]) as (table,):
        assert read_table(table, schema=PARTLY_BRACKETED)[0].num_rows == 2
    with refused("missing-file", file="nosuch.parquet"):
        read_table(tmp_path / "nosuch.parquet", schema=PARTLY_BRACKETED)
    seen = attree(str(file), "--check")
    assert "partial    1 trees; labels: ? is not known, ! no phrase" in seen.out
    done = attree("convert", str(file), "--output", "mine.mrg")
    assert "mine.half:1: only some of this tree is known" in done.err
    assert (tmp_path / "mine.mrg").read_text().count("\n") == 1


def test_long_and_deep_trees_cost_neither_time_nor_memory(tmp_path: Path):
    """Spans of a region grow with its square."""
    words = " ".join(["word"] * 20_000)
    deep = "(= " * 3_000 + "(NP a b)" + " c)" * 3_000
    text = f"(= {words})\n{deep}\n( (NP {words}) end)\n" + "( (NP a b) c)\n" * 20_000
    found = read_text(text, tmp_path)
    problem = "20,000 words are too many to be known completely — mark parts of at most 300 words"
    assert problem in str(found[0]) and "3,002 words" in str(found[1])
    assert sum(isinstance(one, Sentence) for one in found) == 20_001


#: line → its words, and what is known
LINES = {
    "": ("", Constraints()),
    "# a comment (": ("", Constraints()),
    "the old man -LRB- sat": ("the old man ( sat", Constraints()),
    "( the old man )": ("the old man", Constraints()),
    "( (NP the man) (! sat down) here)": (
        "the man sat down here",
        Constraints(((0, 2, "NP"),), ((2, 4),)),
    ),
    "( (S (VP go home)) now)": ("go home now", Constraints(((0, 2, "S"), (0, 2, "VP")))),
    "( (= a (NP b c)) d)": ("a b c d", Constraints.of_marks([(0, 3, "="), (1, 3, "NP")])),
    "(= (S (NP (DT a) (NN b)) (VP (X c))))": (
        "a b c",
        Constraints.of_marks([(0, 3, "="), (0, 3, "S"), (0, 2, "NP"), (2, 3, "VP")]),
    ),
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_a_sentence_of_which_something_may_be_known(line: str):
    found = read_line(line)
    assert (" ".join(found.words), constraints_of(found)) == LINES[line]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("( (NP the old", "not-one-tree"),
        ("( (NP a b) c) (NP d)", "not-one-tree"),
        ("she said ( twice )", "not-one-tree"),
        ("twice ) she said", "not-one-tree"),
        ("()", "not-one-tree"),
        ("( (!NP the old) man)", "bad-mark !NP"),
        ("( (NP the \u00a0) man)", "empty-word"),
    ],
)
def test_a_line_that_is_no_sentence(line: str, problem: str):
    with refused(*problem.split()):
        read_line(line)


def test_what_a_line_says_twice_names_the_words():
    with refused("contradiction"):
        constraints_of(read_line("( (NP (! the old)) man)"))
    with refused("whole-sentence"):
        constraints_of(read_line("(! a b)"))
    many = " ".join(f"(= {'w ' * 300})" for _ in range(11))
    with refused("too-long", "3,300"):
        constraints_of(read_line(f"( {many} x)"))
