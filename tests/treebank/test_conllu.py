"""CoNLL-U: words, spans of subtrees, crossing trees, and damaged lines."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.treebank.conllu import read, read_2012
from attree.treebank.formats import read_files, resolve
from attree.treebank.sentence import Rejected, Sentence, SplitSettings


def block(heads: list[int], **changed: str) -> str:
    """Write a sentence of words w1, w2, … with these heads (0 for the root)."""
    lines = [
        "\t".join([str(i), f"w{i}", "_", f"T{i}", "_", "_", str(head), f"r{i}", "_", "_"])
        for i, head in enumerate(heads, start=1)
    ]
    return "\n".join(lines) + "\n"


def ud(text: str, **settings: object) -> list[Sentence | Rejected]:
    return list(read(text, "f.conllu", SplitSettings(**settings)))  # type: ignore[arg-type]


def test_subtrees_are_spans() -> None:
    (found,) = ud(block([2, 3, 0, 5, 3]))
    assert found == Sentence(
        ("w1", "w2", "w3", "w4", "w5"),
        ("T1", "T2", "T3", "T4", "T5"),
        ((0, 5, "r3"), (0, 2, "r2"), (3, 5, "r5")),
        "f.conllu",
        1,
        heads=(1, 2, -1, 4, 2),
    )


def test_multiword_tokens_empty_nodes_and_comments_are_no_words() -> None:
    first, second = block([2, 0]).splitlines()
    rest = "\t_" * 8
    text = f"# text = x\n1-2\tzum{rest}\n{first}\n1.1\te{rest}\n{second}\n\n# nothing here\n"
    (found,) = ud(text)
    assert (found.words, found.line) == (("w1", "w2"), 1)


def test_a_form_may_hold_a_space() -> None:
    (found,) = ud(block([0]).replace("w1", "10 000"))
    assert found.words == ("10 000",)


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("\t2\tr1", "\t9\tr1", 4, "past the last word"),
        ("\t2\tr1", "\tx\tr1", 4, "head 'x'"),
        ("\t2\tr1", "\t_\tr1", 4, "head '_'"),
        ("\t2\tr1", "\t1\tr1", 4, "cycle"),
        ("\tr1\t", "\tr1 ", 4, "found 9"),
        ("2\tw2", "3\tw2", 5, "expected word number 2, found '3'"),
        ("w2", "", 5, "without a form"),
        ("w2", "w\udce9", 5, "0xE9"),
    ],
)
def test_a_bad_sentence_costs_no_other(old: str, new: str, line: int, problem: str) -> None:
    good = block([2, 0])
    first, bad, last = ud(f"{good}\n{good.replace(old, new, 1)}\n{good}")
    assert (bad.line, bad.status, first.words) == (line, "failed", last.words)
    assert problem in bad.reason


def test_crossing_trees_are_skipped_or_lifted() -> None:
    crossing = block([3, 4, 0, 3])  # 1 ← 3 and 2 ← 4 cross
    (skipped,) = ud(crossing)
    assert skipped.status == "skipped"
    (lifted,) = ud(crossing, nonprojective="lift")
    assert lifted.spans == ((0, 4, "r3"),)


def test_long_chains_need_no_recursion() -> None:
    n = 5000
    (found,) = ud(block([*range(2, n + 1), 0]))
    assert len(found.spans) == n - 1


def _trees(n: int) -> list[tuple[int, ...]]:
    """Return the heads of every dependency tree of n words."""
    found = []
    for heads in itertools.product(range(n + 1), repeat=n):
        if heads.count(0) != 1:
            continue
        reached = {0}
        for _ in range(n):
            reached |= {i for i, head in enumerate(heads, start=1) if head in reached}
        if len(reached) == n + 1:
            found.append(heads)
    return found


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_every_small_tree(n: int) -> None:
    """A tree is read if and only if all its subtrees are contiguous; lifting reads all."""
    trees = _trees(n)
    assert len(trees) == n ** (n - 1)  # Cayley
    for heads in trees:
        below = {i: {i} for i in range(1, n + 1)}
        for _ in range(n):
            for i, head in enumerate(heads, start=1):
                if head:
                    below[head] |= below[i]
        contiguous = all(max(one) - min(one) < len(one) for one in below.values())
        (found,) = ud(block(list(heads)))
        assert isinstance(found, Sentence) == contiguous, heads
        if isinstance(found, Sentence):
            spans = {(min(one) - 1, max(one)) for one in below.values() if len(one) > 1}
            assert {(start, end) for start, end, _ in found.spans} == spans
        (lifted,) = ud(block(list(heads)), nonprojective="lift")
        for (a, b, _), (c, d, _) in itertools.combinations(lifted.spans, 2):
            assert b <= c or d <= a or (a <= c and d <= b) or (c <= a and b <= d)


@given(st.text("1\t2_0ab-.#\n\udce9", max_size=80))
def test_any_text_is_read_or_rejected(text: str) -> None:
    for item in ud(text):
        assert 1 <= item.line <= text.count("\n") + 1


COLUMNS = """#begin document (a); part 000
a 0 0 In IN (TOP(S(PP* - - - - * -
a 0 1 the DT (NP* - - - - * -
a 0 2 -LRB- -LRB- *)) - - - - * -
a 0 3 ran VBD (VP*) - - - - * -
a 0 4 . . *)) - - - - * -

a 0 0 [WORD] NN (TOP(S*)) - - - - * -

a 0 0 x NN (TOP(S* - - - - * -
a 0 1 y NN - - - - - * -

#end document
"""


@pytest.mark.parametrize("name", ["a.v4_gold_conll", "a.conll"])
def test_columns_of_conll_2012(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(COLUMNS)
    how = resolve(SplitSettings(), [tmp_path / name])
    assert how.format == "conll2012"
    good, skeleton, broken = read_files([tmp_path / name], how)
    assert isinstance(good, Sentence)
    assert (good.words, good.line) == (("In", "the", "(", "ran", "."), 2)
    assert good.tags == ("IN", "DT", "-LRB-", "VBD", ".")
    assert good.spans == ((0, 5, "S"), (0, 3, "PP"), (1, 3, "NP"), (3, 4, "VP"))
    assert isinstance(skeleton, Rejected) and "not filled in" in skeleton.reason
    assert isinstance(broken, Rejected) and broken.line == 11


def column(*rows: tuple[str, str]) -> str:
    """Write a sentence of CoNLL-2012 of words and parts of its tree."""
    return "".join(f"a\u00a0b 0 0 {word} NN {part} - - *\n" for word, part in rows)


def test_words_of_conll_2012() -> None:
    """Marks are those of OntoNotes' own files; only ASCII blanks separate columns."""
    words = {"/.": ".", "/?": "?", "10\u00a0000": "10\u00a0000", "a\\": "a\\", "/x": "/x"}
    rows = column(*zip(words, ["(TOP(S*", "*", "*", "*", "*))"], strict=True))
    (found,) = read_2012(rows, "f", SplitSettings())
    assert (found.words, found.spans) == (tuple(words.values()), ((0, 5, "S"),))


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        (["*"], "no parse is given"),
        (["*", "*"], "no parse is given"),
        (["(TOP(S*))", "(TOP(S*))"], "2 pieces in place of one tree"),
        (["(TOP(S*)", "*)", "*"], "2 pieces in place of one tree"),
        (["*", "(TOP*)"], "2 pieces in place of one tree"),
        (["(TOP(S*)", "*"], "1 bracket is not closed"),
        (["(TOP(S*)", "*)))"], "a bracket closes nothing"),
        (["(TOP(S*", "*NP))"], "the last a part of a tree"),
    ],
)
def test_parts_that_are_not_one_tree(parts: list[str], problem: str) -> None:
    good = column(("a", "(TOP(S*"), ("b", "*))"))
    bad = column(*((f"{part}\\", part) for part in parts))  # a backslash escapes no bracket
    first, found, last = read_2012(f"{good}\n{bad}\n{good}", "f", SplitSettings())
    assert isinstance(found, Rejected) and problem in found.reason
    assert first.words == last.words == ("a", "b")
