"""The trainer: what it learns, repeats, refuses and stops at."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest
import torch

from attree.errors import AttreeError
from attree.fewshot import training
from attree.fewshot.fit import THRESHOLDS, choose, choose_threshold, fit, grid, source_of
from attree.fewshot.gold import gold_tree, read_trees
from attree.fewshot.parts import dropout
from attree.fewshot.recipes import RECIPES, TrainingPlan, adapted
from attree.fewshot.training import Training, batches, shared_batches, train
from attree.schemas import read_table


def projection(parser):
    return parser.scorer.parts["projection"].projection


@pytest.fixture
def trees(treebank):
    table, _ = read_table(treebank)
    long = [row for row, words in enumerate(table["words"].to_pylist()) if len(words) > 2]
    return read_trees(table, long[:12])


@pytest.mark.parametrize("name", RECIPES)
def test_every_parser_fits_its_trees(name: str, encoder, trees):
    recipe = adapted(RECIPES[name], dropout=0.0)
    plan = TrainingPlan(recipe, layers=(2,), steps=60, batch=12, seed=1)
    parser = fit(encoder, trees, plan)
    assert parser.about["loss"]["last"] < parser.about["loss"]["first"]
    if recipe.objective == "tree_crf" and "projection" in recipe.parts:
        untrained = fit(encoder, trees, TrainingPlan(recipe, layers=(2,), steps=1, seed=1))
        source = source_of(encoder, trees.words, parser.scorer)
        assert parser.f1(source, trees.gold) > untrained.f1(source, trees.gold)


@pytest.mark.parametrize("name", ["fpio", "tree-crf"])
def test_equal_seeds_give_equal_bits(name: str, encoder, trees):
    plan = TrainingPlan(RECIPES[name], layers=(1, 2), steps=8, seed=3)
    first, second, other = (
        projection(fit(encoder, trees, p)).query
        for p in (plan, plan, TrainingPlan(RECIPES[name], layers=(1, 2), steps=8, seed=4))
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_batches_take_every_tree_once_before_any_twice():
    generator = torch.Generator().manual_seed(0)
    taken = list(batches(7, 3, 6, generator))
    assert [len(places) for places in taken] == [3, 3, 1, 3, 3, 1]
    for epoch in (taken[:3], taken[3:]):
        assert sorted(chain.from_iterable(epoch)) == list(range(7))


@pytest.mark.parametrize(
    ("first", "rest", "share", "own"),
    [(20, 30, 0.3, 3), (2, 30, 0.7, 7), (20, 3, 0.01, 1), (5, 5, 0.99, 9), (1, 1, 0.5, 5)],
)
def test_two_sets_have_their_share_of_every_batch(first: int, rest: int, share: float, own: int):
    generator = torch.Generator().manual_seed(0)
    taken = list(shared_batches(first, rest, share, 10, 40, generator))
    assert [len(places) for places in taken] == [10] * 40
    assert all(sum(place < first for place in places) == own for places in taken)
    of_first = [place for places in taken for place in places if place < first]
    of_rest = [place - first for places in taken for place in places if place >= first]
    for count, places in ((first, of_first), (rest, of_rest)):
        for begin in range(0, len(places) - count + 1, count):
            assert sorted(places[begin : begin + count]) == list(range(count))


def test_trees_beside_others_are_trained_on_with_them(encoder, treebank, trees, monkeypatch):
    table, _ = read_table(treebank)
    beside = read_trees(table, [30, 31, 32, 33])
    seen: list[list[str]] = []
    loss = training.OBJECTIVES["tree_crf"].loss

    def spied(scores, gold, score, margin):
        seen.append([name in {tree.name for tree in trees.gold} for name in gold.names])
        return loss(scores, gold, score, margin)

    monkeypatch.setitem(
        training.OBJECTIVES, "tree_crf", replace(training.OBJECTIVES["tree_crf"], loss=spied)
    )
    plan = TrainingPlan(RECIPES["tree-crf"], layers=(2,), steps=7, batch=5, share=0.6)
    parser = fit(encoder, trees, plan, beside=beside)
    assert [sum(own) for own in seen] == [3] * 7 and {len(own) for own in seen} == {5}
    assert (parser.about["trees"], parser.about["beside"]) == (12, 4)
    assert len(parser.trained_on) == 16
    with pytest.raises(AttreeError, match="two sets share batches of two trees or more"):
        fit(encoder, trees, replace(plan, batch=1), beside=beside)


@pytest.mark.parametrize("name", ["tree-crf-full", "tree-crf-labelled"])
def test_training_goes_on_from_another_parser_s_weights(name: str, encoder, treebank, trees):
    table, _ = read_table(treebank)
    plan = TrainingPlan(RECIPES[name], layers=(2,), steps=20)
    english = fit(encoder, read_trees(table, range(12, 30)), plan)
    still = adapted(RECIPES[name], learning_rate=1e-12)
    still = replace(plan, recipe=replace(still, head_rate=1e-12), steps=1, seed=5)
    parser = fit(encoder, trees, still, first=english)
    for part, weights in english.scorer.each().items():
        for name, one in weights.state_dict().items():
            other = parser.scorer.each()[part].state_dict().get(name)
            assert part in ("labels", "tags") or torch.allclose(one, other, atol=1e-9)
    alone = fit(encoder, trees, still)
    assert not torch.equal(projection(alone).query, projection(parser).query)
    assert parser.about["first"]["trees"] == 18
    assert len(parser.trained_on) == 12 + 18
    other = fit(encoder, trees, replace(plan, layers=(1,), steps=1))
    with pytest.raises(AttreeError, match="another encoder, or other parts or sizes"):
        fit(encoder, trees, plan, first=other)


def test_dropout_keeps_the_mean():
    values = torch.ones(200, 200)
    dropped = dropout(values, 0.3, torch.Generator().manual_seed(0))
    assert dropped.mean() == pytest.approx(1.0, abs=0.02)
    assert (dropped == 0).float().mean() == pytest.approx(0.3, abs=0.02)
    assert dropout(values, 0.3, None) is values


def test_early_stopping_keeps_the_best_weights(encoder, trees):
    parser = fit(encoder, trees, TrainingPlan(RECIPES["tree-crf"], layers=(2,), steps=1))
    scores = iter([10.0, 30.0, 20.0, 15.0, 12.0, 11.0])
    seen = {}

    def held_out() -> float:
        f1 = next(scores)
        seen[f1] = projection(parser).query.detach().clone()
        return f1

    settings = Training("tree_crf", steps=100, check_every=5, patience=3)
    source = source_of(encoder, trees.words, parser.scorer)
    report = train(parser.scorer, source, trees.gold, settings, held_out=held_out)
    assert report.best_step == 10
    assert report.checks == [(5, 10.0), (10, 30.0), (15, 20.0), (20, 15.0), (25, 12.0)]
    assert torch.equal(projection(parser).query, seen[30.0])


def test_a_loss_that_is_no_number_stops_and_names_step_and_tree(encoder, trees):
    parser = fit(encoder, trees, TrainingPlan(RECIPES["tree-crf"], layers=(2,), steps=1))
    source = source_of(encoder, trees.words, parser.scorer)
    source._store.record(4).states[:] = float("nan")
    settings = Training("tree_crf", batch=12)
    with pytest.raises(AttreeError, match=r"dev.mrg:\d+ .* is not a number at step 1"):
        train(parser.scorer, source, trees.gold, settings)


def test_settings_are_chosen_on_other_trees(encoder, treebank, trees):
    table, _ = read_table(treebank)
    tuning = read_trees(table, [30, 31, 32])
    plans = grid(TrainingPlan(RECIPES["tree-crf"], steps=5), layers=[(0,), (1,), (2, 3)])
    best, tried = choose(encoder, trees, tuning, plans)
    scores = [each["f1"] for each in tried]
    assert best == plans[scores.index(max(scores))]


def test_the_threshold_is_the_best_on_other_trees(encoder, treebank, trees):
    table, _ = read_table(treebank)
    other = read_trees(table, range(20, 38))
    parser = fit(encoder, trees, TrainingPlan(RECIPES["tree-crf"], layers=(2,), steps=20))
    source = source_of(encoder, other.words, parser.scorer)
    best, found = choose_threshold(parser, source, other.gold)
    assert set(found) == {str(threshold) for threshold in THRESHOLDS}
    assert found[str(best)] == max(found.values())
    assert found["0.0"] == pytest.approx(parser.f1(source, other.gold))


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"batch": 0}])
def test_no_training_is_told(encoder, trees, wrong: dict[str, int]):
    with pytest.raises(AttreeError, match="at least one step"):
        fit(encoder, trees, TrainingPlan(RECIPES["fpio"], layers=(1,), **wrong))


def test_short_trees_alone_are_told(encoder, trees):
    short = [gold_tree(2, [(0, 2)], name="t")] * len(trees.gold)
    with pytest.raises(AttreeError, match="all trees chosen for training have one or two words"):
        fit(encoder, replace(trees, gold=short), TrainingPlan(RECIPES["fpio"], layers=(1,)))


def test_a_layer_that_does_not_exist_is_told(encoder, trees):
    with pytest.raises(AttreeError, match="choose a layer from 0 to 3"):
        fit(encoder, trees, TrainingPlan(RECIPES["fpio"], layers=(7,)))
