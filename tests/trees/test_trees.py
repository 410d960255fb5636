from __future__ import annotations

import re
from pathlib import Path

import nltk
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.apps.reading import Reading
from attree.base.text import right_to_left
from attree.decoding.fixed import fixed_trees
from attree.trees.tree import Tree
from attree.trees.trees import Trees, binary_offsets
from tests.evaluation.test_metrics import random_tree
from tests.refusals import refused

LENGTHS = [5, 0, 1, 2, 9]


def tags_of(trees: Trees) -> list[tuple[str, ...] | None]:
    return [trees.of(place).tags for place in range(len(trees))]


def drawn(seed: int) -> tuple[Trees, list[list[tuple[int, int]]]]:
    """Return labelled trees that need not be binary, and their spans as lists."""
    rng = np.random.default_rng(seed)
    spans = [sorted(random_tree(rng, n, binary=False), key=lambda s: (s[0], -s[1])) if n else []
             for n in LENGTHS]  # fmt: skip
    labels = [[str(rng.choice(["NP", "VP", "S"])) for _ in one] for one in spans]
    return Trees.from_spans(LENGTHS, spans, labels), spans


@given(st.integers(0, 1000))
def test_taking_and_concatenating_move_whole_trees(seed: int) -> None:
    trees, spans = drawn(seed)
    order = np.random.default_rng(seed).permutation(len(LENGTHS))
    taken = trees.take(order)
    assert [list(taken.of(place).spans) for place in range(len(order))] == [spans[s] for s in order]
    one_by_one = Trees.concatenate([trees.take([place]) for place in range(len(trees))])
    assert one_by_one == trees
    assert [one_by_one.of(p).labels for p in range(5)] == [trees.of(p).labels for p in range(5)]


@given(st.integers(0, 1000))
def test_tags_stay_with_their_words(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trees, _ = drawn(seed)
    flat = [f"T{number}" for number in rng.integers(0, 4, sum(LENGTHS))]
    tagged = trees.tagged(flat)
    ends = np.cumsum(LENGTHS)
    own = [tuple(flat[end - n : end]) for end, n in zip(ends, LENGTHS, strict=True)]
    order = rng.permutation(len(LENGTHS))
    assert tags_of(tagged) == own and tagged != trees
    assert tags_of(tagged.take(order)) == [own[place] for place in order]
    assert tags_of(tagged.keep(np.zeros(trees.starts.size, bool))) == own
    parts = [tagged.take([place]) for place in range(len(LENGTHS))]
    parts[3] = parts[3].tagged(own[3])  # other codes
    assert Trees.concatenate(parts) == tagged
    assert Trees.concatenate([tagged, trees]).tags is None
    with pytest.raises(ValueError, match="words need as many tags"):
        trees.tagged(flat[1:])


def test_labels_of_other_codes_are_recoded() -> None:
    one = Trees.from_spans([2], [[(0, 2)]], [["NP"]])
    two = Trees.from_spans([2], [[(0, 2)]], [["VP"]])
    assert Trees.concatenate([one, two, one]).label_of_each() == ["NP", "VP", "NP"]
    assert Trees.concatenate([one, fixed_trees("balanced", [3])]).labels is None


def test_trees_cannot_be_changed() -> None:
    starts = np.array([0, 1], np.int32)
    trees = Trees.binary([3], starts, np.array([3, 3], np.int32))
    with pytest.raises(ValueError):
        trees.starts[0] = 2
    starts[0] = 0  # the array that was handed over is the caller's still
    with pytest.raises(ValueError, match="end at 1 spans"):
        Trees.binary([3], starts[:1], starts[:1])


def test_dropped_spans_keep_the_others_in_their_trees() -> None:
    trees = fixed_trees("right_branching", LENGTHS)
    kept = trees.keep(trees.ends - trees.starts != 3)
    for place in range(len(trees)):
        wanted = [(s, e) for s, e in trees.of(place).spans if e - s != 3]
        assert list(kept.of(place).spans) == wanted


def test_mean_scores_are_those_of_each_tree() -> None:
    words = np.array(LENGTHS)
    scores = np.arange(binary_offsets(words)[-1], dtype=float)
    plain = fixed_trees("balanced", words)
    trees = Trees(plain.n_words, plain.offsets, plain.starts, plain.ends, scores=scores)
    found = trees.mean_scores()
    assert np.isnan(found[[1, 2]]).all()
    assert found[[0, 3, 4]].tolist() == [1.5, 4.0, 8.5]
    assert trees.of(0).score == 1.5 and trees.of(1).score is None


def test_brackets_are_trees_that_others_read() -> None:
    tree = Tree(("a", "(b)", "c", "d"), ((0, 4), (0, 2), (2, 4)))
    assert tree.brackets() == "(X (X (X a) (X -LRB-b-RRB-)) (X (X c) (X d)))"
    assert nltk.Tree.fromstring(tree.brackets()).leaves() == ["a", "-LRB-b-RRB-", "c", "d"]
    long = fixed_trees("right_branching", [3000]).bracketed([["w"] * 3000])[0]
    assert long.count("(") == long.count(")") == 2999 + 3000


@given(st.integers(0, 1000))
def test_labelled_brackets_are_what_nltk_reads(seed: int) -> None:
    trees, _ = drawn(seed)
    for place in (0, 3, 4):
        tree = trees.of(place)
        read = nltk.Tree.fromstring(tree.brackets())
        assert read == tree.to_nltk()
        assert read.leaves() == list(tree.words)
        wanted = {*zip(tree.spans, tree.labels, strict=True)}
        assert wanted <= {((s, e), label) for label, s, e in nodes(read)}


def nodes(tree: nltk.Tree, start: int = 0) -> list[tuple[str, int, int]]:
    """Return label, start and end of every node above the tags."""
    if isinstance(tree[0], str):
        return []
    found, at = [], start
    for child in tree:
        found += nodes(child, at)
        at += len(child.leaves())
    return [(tree.label(), start, at), *found]


def test_white_space_in_words_and_labels_is_written_so_that_every_reader_keeps_the_tree(
    tmp_path: Path,
) -> None:
    words = ("New York", "a\tb", "10\u00a0000", "c_d", "\u3000")
    tree = Tree(words, ((0, 5), (0, 2), (2, 5)), ("S", "N P", "VP"))
    written = ["New_York", "a_b", "10_000", "c_d", "_"]
    assert nltk.Tree.fromstring(tree.brackets()).leaves() == written
    (tmp_path / "t.mrg").write_text(tree.brackets() + "\n")
    ((sentence,),) = [batch.words for batch in Reading().all([tmp_path / "t.mrg"])]
    assert list(sentence) == written


def test_phrases_are_found_by_their_labels() -> None:
    words = ("he", "saw", "her", "dog")
    tree = Tree(words, ((0, 4), (0, 1), (1, 4), (2, 4)), ("S", "NP", "VP", "NP"))
    assert tree.phrases("NP") == [("he", 0, 1), ("her dog", 2, 4)]
    assert [phrase.text for phrase in tree.phrases("VP", "S")] == ["he saw her dog", "saw her dog"]
    assert [(one.start, one.end) for one in tree.phrases()] == list(tree.spans)
    assert tree.phrases("QP") == []
    plain = Tree(words, tree.spans)
    assert plain.phrases()[1] == ("he", 0, 1)
    with refused("no-labels"):
        plain.phrases("NP")


def test_unary_chains_and_one_word_phrases_keep_their_order() -> None:
    tree = Tree(("he", "left"), ((0, 2), (0, 2), (0, 1), (1, 2)), ("TOP", "S", "NP", "VP"))
    assert tree.brackets() == "(TOP (S (NP (X he)) (VP (X left))))"
    assert nltk.Tree.fromstring(tree.brackets()) == tree.to_nltk()


def test_a_tree_is_drawn_upright_where_it_fits_and_else_on_its_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short = fixed_trees("balanced", [4]).of(0, ["the", "cat", "sat", "down"])
    assert str(short).splitlines()[-1].split() == ["the", "cat", "sat", "down"]
    deep = fixed_trees("left_branching", [4]).of(0, ["the", "cat", "sat", "down"])
    assert str(deep).splitlines()[-1].split() == ["the", "cat", "sat", "down"]
    monkeypatch.setenv("COLUMNS", "40")
    words = [f"word{number}" for number in range(12)]
    long = str(fixed_trees("right_branching", [12]).of(0, words))
    assert max(map(len, long.splitlines())) <= 40
    assert [line.split()[-1] for line in long.splitlines() if "word" in line] == words
    assert str(Tree((), ())) == "()"


@given(st.integers(0, 300), st.booleans())
def test_right_to_left_text_is_drawn_as_in_a_mirror(seed: int, is_narrow: bool) -> None:
    """On its side against the picture over Latin letters; upright against that of the tree turned
    round: the column between two is the left one in both."""
    shape = drawn(seed)[0].of(4)
    hebrew = Tree(tuple("אבגדהוזחט"), shape.spans, ("L",) * len(shape.spans))
    latin = Tree(tuple("abcdefghi"), hebrew.spans, hebrew.labels)
    if not is_narrow:
        order = sorted(range(len(latin.spans)), key=lambda place: (-latin.spans[place][1], place))
        turned = tuple((9 - latin.spans[k][1], 9 - latin.spans[k][0]) for k in order)
        latin = Tree(latin.words[::-1], turned, latin.labels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "9" if is_narrow else "80")
        left, right = (str(one).translate(_LATIN).splitlines() for one in (hebrew, latin))
    if is_narrow:
        size = max(map(len, right))
        right = [line.ljust(size)[::-1].translate(_MIRROR).rstrip() for line in right]
    assert left == right


_LATIN = str.maketrans("אבגדהוזחט", "abcdefghi", "\u200e")
_MIRROR = str.maketrans("├└┌┐┤┘", "┤┘┐┌├└")


def test_a_notebook_shows_a_picture() -> None:
    assert "<svg" in fixed_trees("balanced", [4]).of(0)._repr_svg_()
    tree = Tree(("אב", "גד", "הו"), ((0, 3), (0, 2)))
    words = re.findall(r">([^<>]+)</text>", tree._repr_svg_())  # from left to right
    assert words == ["X", "הו", "X", "גד", "אב"]
    latin, chinese = (
        float(re.findall(r'width="([\d.]+)px"', Tree((word, "a"), ((0, 2),))._repr_svg_())[0])
        for word in ("abc", "小女孩")
    )
    assert chinese > 1.5 * latin  # its characters are twice as wide


@pytest.mark.parametrize(
    ("words", "leftwards"),
    [
        ("שלום world", False),
        ("سلام دنیا ok", True),
        ("הילד 2020 .", True),
        ("1 2", False),
        ("", False),
    ],
)
def test_most_letters_tell_the_direction(words: str, leftwards: bool) -> None:
    assert right_to_left(words.split()) == leftwards


def test_labels_of_any_letters_make_brackets_that_others_read() -> None:
    labels = ("S with space", "(NP", "A/B", "")
    tree = Tree(("a", "b", "c"), ((0, 3), (0, 2), (1, 2), (2, 3)), labels=labels)
    read = nltk.Tree.fromstring(tree.brackets())
    names = [node.label() for node in read.subtrees(lambda node: node.height() > 2)]
    assert names == ["S_with_space", "-LRB-NP", "A/B", "X"]
    assert read.leaves() == ["a", "b", "c"]


def test_spans_may_come_one_by_one() -> None:
    spans = [[(0, 2)], [], [(0, 3), (1, 3)]]
    labels = [["NP"], [], ["S", "VP"]]
    given = Trees.from_spans([2, 1, 3], spans, labels)
    one_by_one = Trees.from_spans(
        iter([2, 1, 3]), (iter(tree) for tree in spans), (iter(tree) for tree in labels)
    )
    assert one_by_one == given and given.n_spans.tolist() == [1, 0, 2]
