"""Tags of words: learned where trees have them, and carried wherever trees go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attree.base.schemas import read_table
from attree.parsers.parser import Parser
from attree.training.fit import fit
from attree.training.gold import GoldTrees, read_trees
from attree.training.parser import TrainedModel, TrainedParser, load_parser, save_parser
from attree.training.recipes import RECIPES, TrainingPlan
from attree.trees.tree import NO_LABEL


@pytest.fixture(scope="module")
def trees(treebank: Path) -> GoldTrees:
    return read_trees(read_table(treebank)[0], range(15))


@pytest.fixture(scope="module")
def trained(encoder, trees: GoldTrees) -> TrainedParser:
    plan = TrainingPlan(RECIPES["tree-crf-labelled"], layers=(1, 2), steps=3)
    return fit(encoder, trees, plan)


def test_tags_are_learned_saved_and_parsed(
    encoder, trees: GoldTrees, trained: TrainedParser, tmp_path: Path
) -> None:
    save_parser(trained, tmp_path / "p")
    model = TrainedModel(load_parser(tmp_path / "p"), encoder)
    found = Parser(model).parse(trees.words)
    assert found == Parser(TrainedModel(trained, encoder)).parse(trees.words)
    for tree, gold in zip(found, trees.gold, strict=True):
        assert tree.tags == (gold.tags if gold.n_words > 1 else (NO_LABEL,))
        leaves = [str(leaf.label()) for leaf in tree.to_nltk().subtrees(lambda t: t.height() == 2)]
        assert tuple(leaves[-gold.n_words :]) == tree.tags
    words = trees.words[3]
    assert Parser(model).chart(words).tree() == found[3]


def test_a_tag_is_the_argmax_of_a_linear_score(
    encoder, trees: GoldTrees, trained: TrainedParser
) -> None:
    """Against states of pieces that are gathered by hand."""
    part = trained.scorer.each()["tags"]
    words = next(words for words in trees.words if len(words) > 4)
    pieces = encoder.tokenise([words])
    states = encoder.run(pieces, states=part.layers).states
    flat = torch.cat([states[layer][0] for layer in part.layers], -1)
    word_of = pieces[0].word_of.tolist()
    found = []
    for word in range(len(words)):
        first, last = word_of.index(word), len(word_of) - 1 - word_of[::-1].index(word)
        begin, end = (torch.cat([flat[k], flat[k + 1]]) for k in (first - 1, last))
        score = begin @ part.weights[0] + end @ part.weights[1] + part.bias[0]
        found.append(part.names[int(score.argmax())])
    assert Parser(TrainedModel(trained, encoder)).parse([words])[0].tags == tuple(found)


def test_trees_without_tags_train_a_parser_without(encoder, trees: GoldTrees) -> None:
    plan = TrainingPlan(RECIPES["tree-crf-labelled"], layers=(1, 2), steps=2)
    bare = replace(trees, gold=[replace(tree, tags=()) for tree in trees.gold])
    model = TrainedModel(fit(encoder, bare, plan), encoder)
    assert not model.tagged
    tree = Parser(model).parse(trees.words)[3]
    assert tree.tags is None and f"({NO_LABEL} {tree.words[0]})" in tree.brackets()


def test_dummy_tags_are_none(treebank: Path) -> None:
    table = read_table(treebank)[0]
    dummies = [[NO_LABEL] * len(words) for words in table["words"].to_pylist()]
    place = table.schema.get_field_index("tags")
    some = table.set_column(place, table.schema.field("tags"), [dummies])
    assert not any(tree.tags for tree in read_trees(some, range(5)).gold)
    assert all(tree.tags for tree in read_trees(table, range(5)).gold)


def test_a_sentence_that_cannot_be_parsed_has_dummies(
    encoder, trees: GoldTrees, trained: TrainedParser
) -> None:
    parser = Parser(TrainedModel(trained, encoder), max_words=4)
    sentences = [["old", "cat"], ["the"] * 6, ["rain"], ["mice", "lived", "home"]]
    found, status = parser.trees(sentences)
    assert status.tolist() == ["ok", "too_long", "ok", "ok"]
    tags = [found.of(place).tags for place in range(4)]
    assert tags[1] == (NO_LABEL,) * 6 and tags[2] == (NO_LABEL,)
    alone = [parser.parse([sentences[place]])[0].tags for place in (0, 3)]
    assert [tags[0], tags[3]] == alone and NO_LABEL not in alone[0] + alone[1]
    assert found.take([3, 0]).tag_of_each() == [*alone[1], *alone[0]]
