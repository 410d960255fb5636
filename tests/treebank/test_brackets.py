"""Bracketed trees: every trap of real files, and every way in which a file can be bad."""

from __future__ import annotations

import pytest

from attree.treebank.brackets import read, read_spmrl, unescape
from attree.treebank.sentence import Rejected, Sentence, SplitSettings, cut_label

GOOD = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"
GOOD_SPANS = ((0, 3, "S"), (0, 2, "NP"), (2, 3, "VP"))


def ptb(text: str, **settings: object) -> list[Sentence | Rejected]:
    return list(read(text, "f.mrg", SplitSettings(**settings)))  # type: ignore[arg-type]


def one(text: str, **settings: object) -> Sentence:
    (sentence,) = ptb(text, **settings)
    assert isinstance(sentence, Sentence), sentence
    return sentence


def words(items: list[Sentence | Rejected]) -> list[str]:
    return [" ".join(item.words) for item in items if isinstance(item, Sentence)]


def rejected(items: list[Sentence | Rejected]) -> list[tuple[int, str]]:
    return [(item.line, item.reason) for item in items if isinstance(item, Rejected)]


class TestTrees:
    def test_words_tags_and_spans_in_preorder(self) -> None:
        assert one(GOOD) == Sentence(
            ("the", "dog", "barks"), ("DT", "NN", "VBZ"), GOOD_SPANS, "f.mrg", 1
        )

    def test_unary_chains_and_one_word_phrases_are_kept(self) -> None:
        assert one("(S (VP (VP (VB go))))").spans == ((0, 1, "S"), (0, 1, "VP"), (0, 1, "VP"))

    @pytest.mark.parametrize(
        ("raw", "label"),
        [
            ("NP-SBJ-1", "NP"),
            ("NP=2", "NP"),
            ("S-TPC=3", "S"),
            ("-LRB-", "-LRB-"),
            ("-NONE-", "-NONE-"),
            ("=", "="),
            ("", ""),
            ("PP-LOC-PRD-TPC-3", "PP"),
            ("NP-OBJ::OBJ##OBJ/OBJ", "NP"),
        ],
    )
    def test_function_tags_are_cut(self, raw: str, label: str) -> None:
        assert cut_label(raw) == label

    @pytest.mark.parametrize(
        ("raw", "word"),
        [
            (r"1\/2", "1/2"),
            (r"\*", "*"),
            ("-LRB-", "("),
            ("-RRB-", ")"),
            ("-LCB-", "{"),
            ("-RSB-", "]"),
            (":-RRB-", ":)"),
            ("\\\\", "\\\\"),
            ("-lrb-", "-lrb-"),
            ("B-", "B-"),
        ],
    )
    def test_words_are_unescaped(self, raw: str, word: str) -> None:
        assert unescape(raw) == word
        assert one(f"(S (X {raw}) (Y y))").words == (word, "y")

    def test_backslash_before_a_bracket_is_a_word_and_no_escape(self) -> None:
        assert one("(XP (SYM \\\\) (SYM //))").words == ("\\\\", "//")

    def test_escaped_brackets_where_a_file_has_them(self) -> None:
        assert one(r"(S (grm \() (A a) (grm \) (lemma \))))").words == ("(", "a", ")")

    def test_lines_of_trees_over_several_lines(self) -> None:
        found = ptb("\n( (S \n    (NP (DT a) )\n    (VP (VB b) )))\n( (S (X c)))\n")
        assert [(item.line, item.words) for item in found] == [(2, ("a", "b")), (5, ("c",))]


class TestTraces:
    def test_traces_go_by_tag_and_emptied_nodes_to_a_fixpoint(self) -> None:
        text = "(S (NP-SBJ (-NONE- *)) (VP (VB go) (SBAR (-NONE- 0) (S (-NONE- *T*-1)))))"
        assert one(text).spans == ((0, 1, "S"), (0, 1, "VP"))

    def test_literal_star_and_zero_are_words(self) -> None:
        assert one("(S (SYM *) (CD 0) (NN x))").words == ("*", "0", "x")

    def test_a_sentence_of_traces_is_emptied(self) -> None:
        (item,) = ptb("(S (NP (-NONE- *)))")
        assert isinstance(item, Rejected)
        assert item.status == "emptied"


class TestRoots:
    def test_outer_empty_label_is_stripped_where_unary(self) -> None:
        assert one(f"( {GOOD} )").spans == GOOD_SPANS
        assert one("( (NN x))").spans == ()

    def test_outer_empty_label_over_several_is_kept(self) -> None:
        assert one("( (S (A a) (B b)) (. .))").spans == ((0, 3, ""), (0, 2, "S"))

    def test_empty_is_dummy_where_it_is_named_one(self) -> None:
        found = one("( (S (A a) (B b)) (. .))", dummy_roots=("",))
        assert found.spans == ((0, 2, "S"),)

    @pytest.mark.parametrize("root", ["TOP", "VROOT", "ROOT", "S1"])
    def test_dummy_roots(self, root: str) -> None:
        assert one(f"({root} {GOOD})").spans == GOOD_SPANS
        assert one(f"( ({root} {GOOD}))").spans == GOOD_SPANS
        assert one(f"({root} (A a) (B b))").spans == ()

    def test_dummy_roots_can_be_set(self) -> None:
        assert one(f"(TOP {GOOD})", dummy_roots=()).spans == ((0, 3, "TOP"), *GOOD_SPANS)
        assert one(f"(START {GOOD})", dummy_roots=("START",)).spans == GOOD_SPANS

    def test_bare_terminal_is_a_sentence(self) -> None:
        assert one("(NE Reuters)") == Sentence(("Reuters",), ("NE",), (), "f.mrg", 1)
        assert one("( (NE-HD Reuters))").words == ("Reuters",)


class TestSpmrl:
    def read(self, text: str) -> list[Sentence | Rejected]:
        return list(read_spmrl(text, "f.ptb", SplitSettings()))

    def test_features_may_hold_spaces_and_brackets(self) -> None:
        text = "(TOP (NP##a=b|c d## (NN##lem=New York## New_York) (X##lem=(|f=1## -LRB-)))"
        (item,) = self.read(text)
        assert item == Sentence(("New_York", "("), ("NN", "X"), ((0, 2, "NP"),), "f.ptb", 1)

    def test_one_literal_mark_in_a_label_strips_nothing(self) -> None:
        text = "(S (NP-OBJ::OBJ##OBJ/OBJ (PRO qu') (X##f=1## x)) (V va))"
        (item,) = self.read(text)
        assert isinstance(item, Sentence)
        assert item.words == ("qu'", "x", "va")
        assert item.spans == ((0, 3, "S"), (0, 2, "NP"))

    def test_marks_as_words(self) -> None:
        (item,) = self.read("(S (SYM ##) (# #) (SYM##f=1## ##a##))")
        assert isinstance(item, Sentence)
        assert item.words == ("##", "#", "##a##")

    def test_german_edge_labels(self) -> None:
        (item,) = self.read("( (VROOT (S (NP-SB (NN-HD##_## Haus)) (VV-HD##_## steht)) ($. .)))")
        assert isinstance(item, Sentence)
        assert item.tags == ("NN", "VV", "$.")
        assert item.spans == ((0, 2, "S"), (0, 1, "NP"))


class TestOddTreebanks:
    def test_leafless_punctuation_is_a_word(self) -> None:
        found = one('(STA+fcl (P+v-fin É)\n   (,)\n   (») (»")\n   (.))')
        assert found.words == ("É", ",", "»", '»"', ".")
        assert found.tags == ("P+v", ",", "»", '»"', ".")

    def test_other_leafless_nodes_are_pruned(self) -> None:
        assert one("(S (A a) (COMMENT ) (NP) (X (Y)))").spans == ((0, 1, "S"),)

    def test_comments_and_markup_between_trees(self) -> None:
        text = f"#1 a (comment\n{GOOD}\n<S ID=1>\n{GOOD}\n</S>\n"
        assert [item.line for item in ptb(text)] == [2, 4]
        assert rejected(ptb(text)) == []

    def test_icelandic(self) -> None:
        text = (
            "( (META (ID-LOCAL a,.1)\n   (COMMENT ))\n"
            "  (S0 (PP (fs_þf Þvert á (lemma þvert á)) (no orð (lemma orð))) (grm . (lemma .))))"
        )
        found = one(text)
        assert found.words == ("Þvert", "á", "orð", ".")
        assert found.tags == ("fs_þf", "fs_þf", "no", "grm")
        assert found.spans == ((0, 4, "S0"), (0, 3, "PP"), (0, 2, "fs_þf"))

    def test_drop_labels_can_be_set(self) -> None:
        assert one("(S (A a) (CODE x))", drop_labels=("CODE",)).words == ("a",)
        assert one("(S (A a) (lemma x))", drop_labels=()).words == ("a", "x")

    def test_words_without_tags(self) -> None:
        found = one("(S (NP the dog) barks)")
        assert found.words == ("the", "dog", "barks")
        assert found.spans == ((0, 3, "S"), (0, 2, "NP"))


class TestUnbalanced:
    def test_a_broken_tree_costs_no_other(self) -> None:
        text = f"{GOOD}\n(S (NP (A a) (B b))\n{GOOD}\n(S (A a)))\n{GOOD}\n"
        found = ptb(text)
        assert [item.line for item in found] == [1, 2, 3, 4, 5]
        assert words(found) == ["the dog barks"] * 3
        assert rejected(found)[0] == (2, "1 bracket is not closed — correct this tree")
        assert rejected(found)[1] == (4, "a bracket closes nothing — correct this tree")

    def test_no_merge_that_looks_balanced(self) -> None:
        text = f"{GOOD}\n(S (A a) (B b)\n(S (C c) (D d)))\n{GOOD}\n"
        assert [line for line, _ in rejected(ptb(text))] == [2, 3]
        assert len(words(ptb(text))) == 2

    def test_no_merge_over_several_lines(self) -> None:
        good = "(S\n  (NP (A a))\n  (VP (B b)))\n"
        text = f"{good}\n(S\n  (NP (A a)\n  (VP (B b)))\n\n{good}(S\n  (A a)))\n{good}"
        assert [line for line, _ in rejected(ptb(text))] == [5, 12]
        assert len(words(ptb(text))) == 3

    def test_a_tree_that_closes_early_is_broken(self) -> None:
        good = "(S\n  (A a)\n  (B b))\n"
        found = ptb(f"{good}{good}(S\n  (A a))\n  (B b)\n{good}")
        assert [line for line, _ in rejected(found)] == [7]
        assert "line 9" in rejected(found)[0][1]
        assert len(words(found)) == 3

    def test_a_bare_terminal_that_closes_twice(self) -> None:
        assert [line for line, _ in rejected(ptb(f"{GOOD}\n(NN x))\n{GOOD}\n"))] == [2]

    def test_several_trees_on_one_line(self) -> None:
        assert len(words(ptb(GOOD * 3))) == 3
        assert len(words(ptb(f"{GOOD}\n{GOOD} {GOOD}\n{GOOD}\n"))) == 4

    def test_whole_treebank_on_one_line_with_faults(self) -> None:
        found = ptb(f"{GOOD * 3} (S (A a))) {GOOD * 2}")
        assert (len(words(found)), len(rejected(found))) == (5, 1)
        found = ptb(GOOD * 3 + ")" * 5000 + GOOD)
        assert (len(words(found)), len(rejected(found))) == (3, 1)

    def test_trees_without_indentation(self) -> None:
        tree = "(S\n(NP\n(DT the)\n(NN dog)\n)\n(VP (VBZ barks))\n)\n"
        assert words(ptb(tree * 3)) == ["the dog barks"] * 3
        assert [item.line for item in ptb(tree * 2)] == [1, 8]
        broken = "(S\n(NP\n(DT the)\n)\n"
        found = ptb("\n".join([tree, tree, broken, tree, tree]))
        assert (len(words(found)), [line for line, _ in rejected(found)]) == (4, [17])

    def test_trees_that_are_all_indented(self) -> None:
        assert [item.line for item in ptb(f"  {GOOD}\n  (S (A a)\n  {GOOD}\n")] == [1, 2, 3]

    def test_text_outside_of_trees(self) -> None:
        found = ptb(f"hello there\n{GOOD}\n{GOOD} and more\n{GOOD}\n")
        assert len(words(found)) == 3
        assert [line for line, _ in rejected(found)] == [1, 3]
        assert "'hello there'" in rejected(found)[0][1]

    @pytest.mark.parametrize("text", ["()", "( )", "(S)", "(S (NP))", "(())"])
    def test_tree_without_words(self, text: str) -> None:
        found = ptb(f"{GOOD}\n{text}\n{GOOD}")
        assert rejected(found) == [(2, "a tree without words")]
        assert len(words(found)) == 2

    def test_no_tree_at_all(self) -> None:
        assert ptb("") == []
        assert ptb(" \n\n") == []
        assert [line for line, _ in rejected(ptb(")))"))] == [1]
        assert [line for line, _ in rejected(ptb("((((("))] == [1]


class TestOddCharacters:
    @pytest.mark.parametrize(
        "word",
        [
            "a\x00b",
            "\x07",
            "\u200b",
            "10\u00a0000",
            "\u3000",
            "\u2028",
            "👩‍👩‍👧",
            "\u202eabc\u202c",
            "x" * 5000,
            "'\"<>&",
        ],
    )
    def test_are_words(self, word: str) -> None:
        found = ptb(f"{GOOD}\n(S (A {word}) (B b))\n{GOOD}\n")
        assert rejected(found) == []
        assert found[1].words == (word, "b")  # type: ignore[union-attr]

    def test_undecodable_bytes_cost_their_sentence_only(self) -> None:
        text = f"{GOOD}\n(S (A caf\udce9))\n{GOOD}\n"
        found = ptb(text)
        assert len(words(found)) == 2
        ((line, reason),) = rejected(found)
        assert line == 2
        assert "0xE9" in reason
        assert "latin-1" in reason

    def test_duplicates_are_read(self) -> None:
        assert len(words(ptb(f"{GOOD}\n" * 4))) == 4


class TestSizes:
    def test_nesting_10_000_deep(self) -> None:
        depth = 10_000
        found = one("(X " * depth + "(A a) (B b)" + ")" * depth)
        assert found.spans == ((0, 2, "X"),) * depth
        right = "".join(f"(X (A a{i}) " for i in range(depth)) + "(B b)" + ")" * depth
        assert len(one(right).spans) == depth

    def test_nesting_10_000_deep_and_broken(self) -> None:
        found = ptb("(X " * 10_000 + f"(A a)\n{GOOD}\n{GOOD}\n")
        assert rejected(found)[0][0] == 1
        assert len(words(found)) == 2

    def test_a_line_of_5_megabytes(self) -> None:
        phrase = "(NP (NN word)) "
        n = 5_000_000 // len(phrase)
        found = ptb(f"{GOOD}\n(S {phrase * n})\n{GOOD}\n")
        assert [len(item.words) for item in found] == [3, n, 3]  # type: ignore[union-attr]

    @pytest.mark.parametrize("text", ["(", ")", "(a##", "( ", "x ", "(a ", "\n(", "(a#", "##a=("])
    def test_no_megabyte_of_rubbish_hangs(self, text: str) -> None:
        items = list(read_spmrl(text * 200_000, "f", SplitSettings()))
        assert all(isinstance(item, Rejected) for item in items)


def test_escapes_can_be_kept_as_the_treebank_writes_them() -> None:
    text = r"(S (-LRB- -LRB-) (CD 1\/2) (-RRB- -RRB-))"
    assert one(text).words == ("(", "1/2", ")")
    assert one(text, escapes="keep").words == ("-LRB-", r"1\/2", "-RRB-")
