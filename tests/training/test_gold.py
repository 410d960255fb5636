"""Gold trees: what is collapsed, refused, folded where names are many, and which spans cross."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.parsers.parser import Parser
from attree.training.fit import fit
from attree.training.gold import (
    SOME_LABEL,
    GoldTrees,
    coarse_label,
    coarse_tag,
    fold_names,
    gold_batch,
    gold_tree,
    with_classes,
)
from attree.training.parser import TrainedModel
from attree.training.recipes import RECIPES, TrainingPlan
from attree.trees.tree import NO_LABEL
from tests.refusals import refused
from tests.training import reference
from tests.training.conftest import read


def test_unary_chains_collapse_and_wide_nodes_factor_to_the_right():
    spans = [(0, 5), (0, 5), (0, 1), (1, 3), (1, 3), (2, 3)]
    tree = gold_tree(5, spans, name="t")
    assert tree.brackets.tolist() == [[0, 5], [1, 3]]
    assert sorted(tree.splits.tolist()) == [[0, 1, 5], [1, 3, 5]]


def test_the_whole_sentence_is_always_a_bracket():
    assert gold_tree(4, [(1, 3)], name="t").brackets.tolist() == [[0, 4], [1, 3]]


def test_a_bracket_without_a_label_is_a_phrase_whose_label_is_not_known():
    tree = gold_tree(4, [(0, 4), (0, 2), (2, 4)], name="t", labels=["S", "", "NP"])
    targets, other = tree.targets({"": 0, "S": 1, "NP": 2})
    assert (targets, other) == ({(0, 4): 1, (0, 2): SOME_LABEL, (2, 4): 2}, 0)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 9))
def test_allowed_spans_are_those_that_cross_nothing(seed: int, n: int):
    brackets = reference.random_tree(np.random.default_rng(seed), 0, n)
    allowed = gold_batch([gold_tree(n, brackets, name="t")]).allowed[0]
    for i in range(n):
        for j in range(i + 1, n + 1):
            crossing = any(reference.crosses((i, j), bracket) for bracket in brackets)
            assert bool(allowed[i, j]) == (not crossing)


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ([(0, 4), (0, 2), (1, 3)], "crossing-spans x.mrg:3"),
        ([], "no-brackets x.mrg:3"),
        ([(0, 5)], "span-outside x.mrg:3 4"),
    ],
)
def test_bad_trees_are_named(spans: list[tuple[int, int]], said: str):
    with refused(*said.split()):
        gold_tree(4, spans, name="x.mrg:3")


@pytest.mark.parametrize(
    ("tag", "coarse"),
    [
        ("no_et_nf", "no"),
        ("NN-Masc", "NN"),
        ("NOUN:Case=Nom", "NOUN"),
        ("v.fin", "v"),
        ("ADJ", "ADJ"),
        ("-LRB-", "-LRB"),
        ("``", "`"),
        (":", ":"),
        ("名詞-一般", "名詞"),
    ],
)
def test_the_coarse_part_stands_before_the_first_sign(tag: str, coarse: str) -> None:
    assert coarse_tag(tag) == coarse


def test_a_label_loses_functions_then_what_is_below_it() -> None:
    found = ["NP-SBJ=1+QP-TMP"]
    while coarse_label(found[-1]) != found[-1]:
        found.append(coarse_label(found[-1]))
    assert found == ["NP-SBJ=1+QP-TMP", "NP+QP", "NP"]


def test_the_rarest_are_folded_and_no_more_than_need_be() -> None:
    counts = Counter({"N-a": 9, "N-b": 2, "N-c": 1, "V": 5, "Q": 1, "R": 3})
    assert fold_names(counts, 6, coarse_tag) == {name: name for name in counts}
    # what is seen once: N-c is N by itself, seen once too, so that both are the rest
    rest = {**{name: name for name in counts}, "N-c": NO_LABEL, "Q": NO_LABEL}
    assert fold_names(counts, 5, coarse_tag) == rest
    del counts["Q"]
    # what is seen twice or less: N-b and N-c are N, together seen three times
    same = {name: name for name in ("N-a", "V", "R")}
    assert fold_names(counts, 4, coarse_tag) == {**same, "N-b": "N", "N-c": "N"}


@given(
    st.dictionaries(st.text("abXé-:_.+ ", min_size=1, max_size=5), st.integers(1, 9), min_size=1),
    st.integers(1, 12),
)
def test_classes_are_bounded_and_every_name_has_one(counts: dict[str, int], most: int) -> None:
    for coarser in (coarse_tag, coarse_label):
        found = fold_names(Counter(counts), most, coarser)
        assert set(found) == set(counts) and len(set(found.values())) <= max(most, 1)
        assert all(found.values())


def test_few_names_stay_as_they_are(treebank) -> None:
    trees = read(treebank, range(10))
    assert with_classes(trees) is trees


def test_a_treebank_of_a_thousand_tags_is_trained_on(encoder, treebank, monkeypatch) -> None:
    """Each word has a tag of its own; those of words that come often keep theirs."""
    monkeypatch.setattr(with_classes, "__defaults__", (8,))
    trees = read(treebank, range(20))
    gold = [
        replace(
            tree,
            tags=tuple(f"{tag}-{number}-{place}" for place, tag in enumerate(tree.tags)),
            labels=tuple((i, j, f"{name}-{number}") for i, j, name in tree.labels),
        )
        for number, tree in enumerate(trees.gold)
    ]
    many = replace(trees, gold=gold)
    plan = TrainingPlan(RECIPES["tree-crf-labelled"], layers=(1,), steps=2)
    parser = fit(encoder, many, plan)
    names = {part: parser.shape[part]["names"] for part in ("labels", "tags")}
    assert 1 < len(names["tags"]) <= 8 and 1 < len(names["labels"]) <= 9
    assert all(tree.tags for tree in Parser(TrainedModel(parser, encoder)).parse(trees.words))


def test_trees_without_labels_stay_without() -> None:
    gold = [gold_tree(3, [(0, 3)], name="t", labels=[f"L-{n}"]) for n in range(9)]
    bare = gold_tree(3, [(0, 3)], name="t")
    trees = GoldTrees([*range(10)], [["a", "b", "c"]] * 10, [*gold, bare])
    found = with_classes(trees, 3)
    assert found.gold[-1].labels == () and {tree.labels[0][2] for tree in found.gold[:9]} == {"L"}
