"""Bracketed trees: every trap of real files, and every way in which a file can be bad."""

from __future__ import annotations

import pytest

from attree.treebank.brackets import read, read_spmrl, unescape
from attree.treebank.sentence import Rejected, Sentence, SplitSettings, cut_label

GOOD = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"
GOOD_SPANS = ((0, 3, "S"), (0, 2, "NP"), (2, 3, "VP"))
ESCAPED = r"(S (-LRB- -LRB-) (CD 1\/2) (-RRB- -RRB-))"
SPMRL: dict[str, object] = {"format": "spmrl"}  # read as such
Spans = tuple[tuple[int, int, str], ...]


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

    def test_an_escaped_bracket_that_alone_makes_a_file_balance(self) -> None:
        found = ptb("(S (A a) (B \\)))\n(S (A b\\)c) (B d))\n")
        assert words(found) == [r"a )", r"b)c d"]

    def test_lines_of_trees_over_several_lines(self) -> None:
        found = ptb("\n( (S \n    (NP (DT a) )\n    (VP (VB b) )))\n( (S (X c)))\n")
        assert [(item.line, item.words) for item in found] == [(2, ("a", "b")), (5, ("c",))]


#: What a text shows → text, settings; words; spans and tags, where they tell something.
TREES: dict[str, tuple[str, dict[str, object], str, Spans | None, str | None]] = {
    "traces go by their tag, emptied nodes to a fixpoint": (
        "(S (NP-SBJ (-NONE- *)) (VP (VB go) (SBAR (-NONE- 0) (S (-NONE- *T*-1)))))",
        {}, "go", ((0, 1, "S"), (0, 1, "VP")), None,
    ),
    "a literal star and zero are words": ("(S (SYM *) (CD 0) (NN x))", {}, "* 0 x", None, None),
    "an outer empty label is stripped where unary": (
        f"( {GOOD} )", {}, "the dog barks", GOOD_SPANS, None,
    ),
    "also over a word": ("( (NN x))", {}, "x", (), None),
    "an outer empty label over several is kept": (
        "( (S (A a) (B b)) (. .))", {}, "a b .", ((0, 3, ""), (0, 2, "S")), None,
    ),
    "but not where it is a dummy": (
        "( (S (A a) (B b)) (. .))", {"dummy_roots": ("",)}, "a b .", ((0, 2, "S"),), None,
    ),
    "dummy roots can be none": (
        f"(TOP {GOOD})", {"dummy_roots": ()}, "the dog barks", ((0, 3, "TOP"), *GOOD_SPANS), None,
    ),
    "or others": (
        f"(START {GOOD})", {"dummy_roots": ("START",)}, "the dog barks", GOOD_SPANS, None,
    ),
    "a bare terminal is a sentence": ("(NE Reuters)", {}, "Reuters", (), "NE"),
    "also in a pair of brackets": ("( (NE-HD Reuters))", {}, "Reuters", (), "NE"),
    "leafless punctuation is a word": (
        '(STA+fcl (P+v-fin É)\n   (,)\n   (») (»")\n   (.))',
        {}, 'É , » »" .', None, 'P+v , » »" .',
    ),
    "other leafless nodes are pruned": (
        "(S (A a) (COMMENT ) (NP) (X (Y)))", {}, "a", ((0, 1, "S"),), None,
    ),
    "Icelandic": (
        "( (META (ID-LOCAL a,.1)\n   (COMMENT ))\n"
        "  (S0 (PP (fs_þf Þvert á (lemma þvert á)) (no orð (lemma orð))) (grm . (lemma .))))",
        {}, "Þvert á orð .", ((0, 4, "S0"), (0, 3, "PP"), (0, 2, "fs_þf")), "fs_þf fs_þf no grm",
    ),
    "labels to drop": ("(S (A a) (CODE x))", {"drop_labels": ("CODE",)}, "a", None, None),
    "a leafless mark to drop": ("(S (A a) (,))", {"drop_labels": (",",)}, "a", None, None),
    "or none": ("(S (A a) (lemma x))", {"drop_labels": ()}, "a x", None, None),
    "words without tags": (
        "(S (NP the dog) barks)", {}, "the dog barks", ((0, 3, "S"), (0, 2, "NP")), None,
    ),
    "features may hold spaces and brackets": (
        "(TOP (NP##a=b|c d## (NN##lem=New York## New_York) (X##lem=(|f=1## -LRB-)))",
        SPMRL, "New_York (", ((0, 2, "NP"),), "NN X",
    ),
    "one literal mark in a label strips nothing": (
        "(S (NP-OBJ::OBJ##OBJ/OBJ (PRO qu') (X##f=1## x)) (V va))",
        SPMRL, "qu' x va", ((0, 3, "S"), (0, 2, "NP")), None,
    ),
    "marks as words": ("(S (SYM ##) (# #) (SYM##f=1## ##a##))", SPMRL, "## # ##a##", None, None),
    "German edge labels": (
        "( (VROOT (S (NP-SB (NN-HD##_## Haus)) (VV-HD##_## steht)) ($. .)))",
        SPMRL, "Haus steht .", ((0, 2, "S"), (0, 1, "NP")), "NN VV $.",
    ),
    "escapes are undone": (ESCAPED, {}, "( 1/2 )", None, None),
    "or kept as the treebank writes them": (
        ESCAPED, {"escapes": "keep"}, r"-LRB- 1\/2 -RRB-", None, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TREES)
def test_what_a_tree_is_read_as(case: str) -> None:
    text, settings, expected, spans, tags = TREES[case]
    if settings is SPMRL:
        (found,) = read_spmrl(text, "f.ptb", SplitSettings())
    else:
        found = one(text, **settings)
    assert (" ".join(found.words), found.line) == (expected, 1)
    assert spans in (None, found.spans)
    assert tags in (None, " ".join(found.tags))


@pytest.mark.parametrize("root", ["TOP", "VROOT", "ROOT", "S1"])
def test_dummy_roots(root: str) -> None:
    assert one(f"({root} {GOOD})").spans == GOOD_SPANS
    assert one(f"( ({root} {GOOD}))").spans == GOOD_SPANS
    assert one(f"({root} (A a) (B b))").spans == ()


def test_a_sentence_of_traces_is_emptied() -> None:
    (item,) = ptb("(S (NP (-NONE- *)))")
    assert item.status == "emptied"


def test_comments_and_markup_between_trees() -> None:
    text = f"#1 a (comment\n{GOOD}\n<S ID=1>\n{GOOD}\n</S>\n"
    assert [item.line for item in ptb(text)] == [2, 4]
    assert rejected(ptb(text)) == []


@pytest.mark.parametrize(
    "around", ["<tree>{}</tree>", "<S ID=2> ( {} ) </S>", "<!-- (S (X x)) -->{}"]
)
def test_markup_around_a_tree_on_its_line_costs_no_tree(around: str) -> None:
    assert words(ptb(f"{GOOD}\n{around.format(GOOD)}\n")) == ["the dog barks"] * 2


@pytest.mark.parametrize("word", ["#tag", "#5", "<b>", "<"])
def test_a_word_alone_on_its_line_is_no_comment(word: str) -> None:
    assert one(f"(S (NP the\n{word}\n) (VP (V barked)))").words == ("the", word, "barked")
    assert one(f"(S (NN\n{word}))").words == (word,)


LINES = "(S\n  (NP (A a))\n  (VP (B b)))\n"
FLAT = "(S\n(NP\n(DT the)\n(NN dog)\n)\n(VP (VBZ barks))\n)\n"
SHORT = "(S\n  (A a)\n  (B b))\n"
#: Fault → text, how many trees are whole, line → what is said of each of the others.
FAULTS: dict[str, tuple[str, int, dict[int, str]]] = {
    "a broken tree costs no other": (
        f"{GOOD}\n(S (NP (A a) (B b))\n{GOOD}\n(S (A a)))\n{GOOD}\n",
        3,
        {
            2: "1 bracket is not closed — correct this tree",
            4: "a bracket closes nothing — correct this tree",
        },
    ),
    "no merge that looks balanced": (
        f"{GOOD}\n(S (A a) (B b)\n(S (C c) (D d)))\n{GOOD}\n", 2, {2: "", 3: ""},
    ),
    "no merge over several lines": (
        f"{LINES}\n(S\n  (NP (A a)\n  (VP (B b)))\n\n{LINES}(S\n  (A a)))\n{LINES}",
        3, {5: "", 12: ""},
    ),
    "a tree that goes on at the margin": (
        f"{LINES}(S\n (A a)\n (B b)\n(C c)\n(. .))\n{LINES}(S\n  (A a)\n{LINES}", 4, {12: ""},
    ),
    "no tree that begins as others do goes on": (
        "(S (A a))\n(NP (A a) (B b)\n(NP (A c)\n(S (A d)))\n(NP (A e))\n(S (A f))\n", 3,
        {2: "", 3: "", 4: ""},
    ),
    "a tree that closes early": (
        f"{SHORT}{SHORT}(S\n  (A a))\n  (B b)\n{SHORT}", 3, {7: "line 9"},
    ),
    "a bare terminal that closes twice": (f"{GOOD}\n(NN x))\n{GOOD}\n", 2, {2: ""}),
    "several trees on one line": (GOOD * 3, 3, {}),
    "among others": (f"{GOOD}\n{GOOD} {GOOD}\n{GOOD}\n", 4, {}),
    "a whole treebank on one line": (f"{GOOD * 3} (S (A a))) {GOOD * 2}", 5, {1: ""}),
    "with many brackets too many": (GOOD * 3 + ")" * 5000 + GOOD, 3, {1: ""}),
    "trees without indentation": (
        "\n".join([FLAT, FLAT, "(S\n(NP\n(DT the)\n)\n", FLAT, FLAT]), 4, {17: ""},
    ),
    "trees that are all indented": (f"  {GOOD}\n  (S (A a)\n  {GOOD}\n", 2, {2: ""}),
    "text outside of trees": (
        f"hello there\n{GOOD}\n{GOOD} and more\n{GOOD}\n", 3, {1: "'hello there'", 3: ""},
    ),
    "nothing": ("", 0, {}),
    "blank lines": (" \n\n", 0, {}),
    "only closing brackets": (")))", 0, {1: ""}),
    "only opening brackets": ("((((((", 0, {1: ""}),
    "duplicates": (f"{GOOD}\n" * 4, 4, {}),
    "bytes of another encoding": (f"{GOOD}\n(S (A caf\udce9))\n{GOOD}\n", 2, {2: "0xE9"}),
    "a bracket in a word": (
        f"{GOOD}\n(S (NNS report(s)))\n(S (A (1) foo))\n{GOOD}\n", 2, {2: "-LRB-", 3: "-LRB-"},
    ),
    "a blank that is not ASCII": (
        f"{GOOD}\n(S (NR\u3000中国) (A a))\n(S (A\xa0a))\n", 1, {2: "U+3000", 3: "U+00A0"},
    ),
    "a comment that holds a tree": (f"{GOOD}\n#1 {GOOD}\n", 2, {2: "outside any tree: '#1'"}),
    "and what may help": (f"{GOOD}\n(S (A caf\udce9))\n{GOOD}\n", 2, {2: "latin-1"}),
    **{
        f"a tree without words: {text}": (f"{GOOD}\n{text}\n{GOOD}", 2, {2: "a tree without words"})
        for text in ("()", "( )", "(S)", "(S (NP))", "(())")
    },
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_costs_its_own_tree_only(fault: str) -> None:
    text, whole, faults = FAULTS[fault]
    found = ptb(text)
    assert [line for line, _ in rejected(found)] == list(faults)
    assert all(faults[line] in reason for line, reason in rejected(found))
    assert len(words(found)) == whole
    if GOOD in text or FLAT in text:
        assert "the dog barks" in words(found)
    assert [item.line for item in found] == sorted(item.line for item in found)


def test_lines_of_trees_without_indentation() -> None:
    assert [item.line for item in ptb(FLAT * 2)] == [1, 8]


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
    def test_no_rubbish_hangs(self, text: str) -> None:
        items = list(read_spmrl(text * 50_000, "f", SplitSettings()))
        assert all(isinstance(item, Rejected) for item in items)
