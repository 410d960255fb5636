"""Corrections: the newest counts, and what is shown holds all that is settled."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.annotate.draft import CORRECTIONS, Draft, checked_label, tree_of
from attree.base.errors import AttreeError
from attree.treebank.brackets import read_spmrl
from attree.treebank.sentence import Sentence, SplitSettings
from attree.trees.tree import Tree, joined, parted
from tests.refusals import refused

WORDS = tuple("abcdefg")
RIGHT = Tree(WORDS, tuple((start, 7) for start in range(6)))


def spans(draft: Draft, tree: Tree = RIGHT) -> list[tuple[int, int]]:
    return [(node.start, node.end) for node in draft.nodes(tree)]


def test_a_join_gives_up_what_it_crosses() -> None:
    draft = Draft(7).join((0, 3)).join((4, 6)).join((2, 4))
    assert set(draft.fixed) == {(4, 6), (2, 4)}
    assert draft.constraints().required == ((2, 4, None), (4, 6, None))


def test_a_broken_span_is_forbidden_until_it_is_joined() -> None:
    draft = Draft(7).join((0, 3)).break_up((0, 3))
    assert draft.constraints().required == ()
    assert draft.constraints().forbidden == ((0, 3),)
    assert draft.join((0, 3)).constraints().forbidden == ()


def test_a_dissolved_phrase_keeps_what_is_in_it() -> None:
    assert spans(Draft(7).dissolve((1, 7))) == [(0, 7), (2, 7), (3, 7), (4, 7), (5, 7)]


def test_a_flat_phrase_has_words_and_settled_phrases_below_it() -> None:
    draft = Draft(7).join((3, 7)).flatten((1, 7))
    assert spans(draft) == [(0, 7), (1, 7), (3, 7), (4, 7), (5, 7)]
    assert spans(Draft(7).flatten((0, 7))) == [(0, 7)]


def test_a_cleared_phrase_keeps_what_is_settled_however_deep() -> None:
    settled = Draft(7).join((2, 7)).join((4, 7))
    assert spans(settled.clear((0, 7))) == [(0, 7), (2, 7), (4, 7)]
    assert spans(settled.clear((2, 7))) == [(0, 7), (1, 7), (2, 7), (4, 7)]
    assert spans(settled.clear((0, 7)).break_up((4, 7))) == [(0, 7), (2, 7)]


def test_a_moved_edge_forbids_what_was_proposed_and_not_what_was_passed() -> None:
    once = Draft(7).move((4, 7), (4, 6))
    twice = once.move((4, 6), (4, 5))
    assert dict(twice.fixed) == {(4, 5): ""}
    assert twice.broken == {(4, 7)}
    assert Draft(7).label((4, 7), "NP").move((4, 7), (4, 6)).fixed == {(4, 6): "NP"}


def test_a_label_can_be_taken_back() -> None:
    draft = Draft(7).label((0, 3), "NP").join((0, 3))
    assert draft.fixed == {(0, 3): "NP"}
    assert draft.label((0, 3), " ").fixed == {(0, 3): ""}


def test_a_chain_is_a_node_for_each_label() -> None:
    draft = Draft(7).label((0, 7), "S+VP").label((1, 2), "NP")
    tree = tree_of(WORDS, draft.nodes(Tree(WORDS, ((0, 7),))))
    assert tree.brackets().startswith("(S (VP (X a) (NP (X b)) (X c)")
    assert draft.constraints().required == ((0, 7, "S"), (0, 7, "VP"), (1, 2, "NP"))
    labelled = Tree(WORDS, ((0, 7), (0, 7), (2, 4)), labels=("S", "VP", "X"))
    assert [node.label for node in Draft(7).nodes(labelled)] == ["S+VP", ""]


@given(st.lists(st.text("NP+%2B5-", min_size=1), min_size=1, max_size=4))
def test_a_label_with_a_plus_in_it_stays_one_label(labels: list[str]) -> None:
    assert parted(joined(labels)) == labels
    spans = ((0, 2, "S"), *((0, 1, label) for label in labels))
    draft = Draft.of(Sentence(("a", "b"), ("A", "B"), spans, "f", 1))
    assert draft.constraints().required == (*spans[1:], (0, 2, "S"))
    shown = draft.nodes(Tree(("a", "b"), ((0, 2),)))
    tree = tree_of(("a", "b"), shown, ("A", "B"))
    assert (
        tuple((*span, label) for span, label in zip(tree.spans, tree.labels, strict=True)) == spans
    )
    assert draft.label((0, 2), "NP%2BPP+S").constraints().required[-2:] == (
        (0, 2, "NP+PP"),
        (0, 2, "S"),
    )


def test_a_name_of_x_is_kept_where_others_are_known() -> None:
    """X is a label of Penn and a tag of UD, and stands for none in trees that have no names."""
    spans, proposal = ((0, 3, "S"), (0, 2, "NP"), (0, 2, "X")), ((0, 3), (0, 2), (2, 3))
    tree = Tree(("a", "b", "c"), proposal, ("S", "NP", "VP"), ("D", "N", "V"))
    given = Draft.of(Sentence(("a", "b", "c"), ("DT", "X", "VB"), spans, "f", 1))
    assert [(node.start, node.end, node.label) for node in given.nodes(tree)] == [
        (0, 3, "S"),
        (0, 2, "NP+X"),
    ]
    assert given.tags_of(tree) == ["DT", "X", "VB"]
    bare = Draft.of(Sentence(("a", "b", "c"), ("X",) * 3, ((0, 3, "X"), (0, 2, "X")), "f", 1))
    assert [node.label for node in bare.nodes(tree)] == ["S", "NP"]
    assert bare.tags_of(tree) == ["D", "N", "V"]


@pytest.mark.parametrize("action", ["break", "dissolve", "move"])
def test_the_whole_sentence_stays(action: str) -> None:
    with refused("whole-sentence"):
        CORRECTIONS[action](Draft(7), (0, 7), (0, 6), "")


@pytest.mark.parametrize("span", [(3, 3), (4, 2), (0, 8), (7, 8)])
def test_words_that_are_not_there_are_refused(span: tuple[int, int]) -> None:
    with refused("span-outside"):
        Draft(7).join(span)


@pytest.mark.parametrize(
    "label", ["a b", "(NP", "N)", "a##b", "S+", "-NONE-", "S+?", "N\x07P", "x" * 81]
)
def test_labels_that_brackets_cannot_hold_are_refused(label: str) -> None:
    with pytest.raises(AttreeError):
        checked_label(label)


@pytest.mark.parametrize("label", ["NP", "NP-SBJ", "IP/MAT", "名詞句", "S+VP", "NP=1", ""])
def test_other_labels_are_taken_and_read_back(label: str) -> None:
    draft = Draft(7).label((2, 5), label)
    tree = tree_of(WORDS, draft.nodes(Tree(WORDS, ((0, 7),))))
    settings = SplitSettings(functions="keep", dummy_roots=("",))
    (found,) = read_spmrl(tree.brackets(), "x", settings)
    assert found.words == WORDS  # type: ignore[union-attr]
    read = [name for start, end, name in found.spans if (start, end) == (2, 5)]  # type: ignore[union-attr]
    assert read == (label.split("+") if label else ["X"])


_SPAN = st.tuples(st.integers(0, 6), st.integers(1, 7)).filter(lambda span: span[0] < span[1])


@given(st.lists(st.tuples(st.sampled_from(sorted(CORRECTIONS)), _SPAN, _SPAN), max_size=12))
def test_whatever_is_done_nothing_crosses(actions: list[Any]) -> None:
    draft = Draft(7)
    for action, span, to in actions:
        try:
            draft = CORRECTIONS[action](draft, span, to, "NP")
        except AttreeError:
            continue
        if action in ("join", "label", "flat", "clear"):
            assert span in draft.fixed
    draft.constraints()  # refuses what contradicts itself
    free = Tree(WORDS, ((0, 7),))
    shown = draft.nodes(free)
    assert set(draft.fixed) <= {(node.start, node.end) for node in shown}
    assert not {(node.start, node.end) for node in shown} & (draft.broken | draft.dissolved)
    tree_of(WORDS, shown).to_nltk()
