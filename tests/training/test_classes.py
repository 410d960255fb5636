"""Rare labels and tags are folded, where there are too many to be told apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.base.schemas import read_table
from attree.parsers.parser import Parser
from attree.training.fit import fit
from attree.training.gold import (
    GoldTrees,
    coarse_label,
    coarse_tag,
    folded,
    gold_tree,
    read_trees,
    with_classes,
)
from attree.training.parser import TrainedModel
from attree.training.recipes import RECIPES, TrainingPlan
from attree.trees.tree import NO_LABEL


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
    assert folded(counts, 6, coarse_tag) == {name: name for name in counts}
    # what is seen once: N-c is N by itself, seen once too, so that both are the rest
    rest = {**{name: name for name in counts}, "N-c": NO_LABEL, "Q": NO_LABEL}
    assert folded(counts, 5, coarse_tag) == rest
    del counts["Q"]
    # what is seen twice or less: N-b and N-c are N, together seen three times
    same = {name: name for name in ("N-a", "V", "R")}
    assert folded(counts, 4, coarse_tag) == {**same, "N-b": "N", "N-c": "N"}


@given(
    st.dictionaries(st.text("abXé-:_.+ ", min_size=1, max_size=5), st.integers(1, 9), min_size=1),
    st.integers(1, 12),
)
def test_classes_are_bounded_and_every_name_has_one(counts: dict[str, int], most: int) -> None:
    for coarser in (coarse_tag, coarse_label):
        found = folded(Counter(counts), most, coarser)
        assert set(found) == set(counts) and len(set(found.values())) <= max(most, 1)
        assert all(found.values())


def test_few_names_stay_as_they_are(treebank) -> None:
    trees = read_trees(read_table(treebank)[0], range(10))
    assert with_classes(trees) is trees


def test_a_treebank_of_a_thousand_tags_is_trained_on(encoder, treebank, monkeypatch) -> None:
    """Each word has a tag of its own; those of words that come often keep theirs."""
    monkeypatch.setattr(with_classes, "__defaults__", (8,))
    trees = read_trees(read_table(treebank)[0], range(20))
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
