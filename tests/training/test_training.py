"""The trainer: what it learns, repeats, refuses and stops at."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import torch

from attree.evaluation.metrics import count_each
from attree.training import label_fit, objectives
from attree.training.features import features_of
from attree.training.fit import THRESHOLDS, choose, choose_threshold, fit
from attree.training.gold import gold_tree
from attree.training.objectives import batches, shared_batches, train
from attree.training.parser import gold_spans
from attree.training.parts import BatchSource, dropout
from attree.training.recipes import RECIPES, TrainingPlan, adapted
from attree.training.start import Start, carry_over
from tests.refusals import refused
from tests.training.conftest import read


def projection(parser):
    return parser.scorer.parts["projection"].projection


@pytest.mark.parametrize("name", [name for name, one in RECIPES.items() if not one.rank])
def test_every_parser_fits_its_trees(name: str, encoder, trees):
    recipe = adapted(RECIPES[name], dropout=0.0)
    plan = TrainingPlan(recipe, layers=(2,), steps=60, batch=12, seed=1)
    parser = fit(encoder, trees, plan)
    assert parser.about["loss"]["last"] < parser.about["loss"]["first"]
    if recipe.objective == "tree_crf" and "projection" in recipe.parts:
        untrained = fit(encoder, trees, TrainingPlan(recipe, layers=(2,), steps=1, seed=1))
        source = BatchSource.of(encoder, trees.words, parser.scorer)
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
    ("counts", "shares", "size"),
    [
        ((20, 30), (0.3, 0.7), 10),
        ((2, 30), (0.7, 0.3), 10),
        ((5, 5), (99, 1), 10),
        ((1, 1), (1, 1), 1),
        ((7, 400, 30), (2, 1, 1), 12),
        ((3, 4, 5, 6, 7), (1, 1, 1, 1, 1), 3),
        ((30,) * 44, (4,) * 9 + (1,) * 35, 10),
    ],
)
def test_treebanks_have_their_shares_of_the_batches(
    counts: tuple[int, ...], shares: tuple[float, ...], size: int
):
    generator = torch.Generator().manual_seed(0)
    taken = list(shared_batches(counts, shares, size, 200, generator))
    assert [len(places) for places in taken] == [size] * 200
    ends = np.cumsum(counts)
    found = np.cumsum(
        [
            np.bincount(np.searchsorted(ends, places, "right"), minlength=len(counts))
            for places in taken
        ],
        axis=0,
    )
    due = size * np.arange(1, 201)[:, None] * np.array(shares) / sum(shares)
    assert np.abs(found - due).max() < 2
    exact = np.abs(due - due.round()).max(1) < 1e-9  # steps at which all shares are whole trees
    if len(counts) < 4:
        assert (found == due.round())[exact].all() and exact.any()
    for end, count in zip(ends, counts, strict=True):
        own = [place for places in taken for place in places if end - count <= place < end]
        for begin in range(0, len(own) - count + 1, count):
            assert sorted(own[begin : begin + count]) == list(range(end - count, end))


@pytest.mark.parametrize("lengths", [[5, 9, 7], [90, 3, 4, 60, 3, 5] * 5, [300, 299], [77] * 11])
def test_batches_of_long_sentences_are_cut(lengths: list[int]):
    places = list(range(100, 100 + len(lengths)))
    found = objectives.split_batch(places, lengths)
    assert sorted(chain.from_iterable(found)) == places
    length = dict(zip(places, lengths, strict=True))
    cells = [(max(length[one] for one in some) + 1) ** 2 * len(some) for some in found]
    assert all(each <= 60_000 or len(some) == 1 for each, some in zip(cells, found, strict=True))
    if (max(lengths) + 1) ** 2 * len(lengths) <= 60_000:
        assert found == [places]


@pytest.mark.parametrize("name", ["tree-crf-labelled", "tree-crf-joint", "fpio"])
def test_a_batch_in_parts_is_trained_on_as_a_whole(name: str, encoder, trees, monkeypatch):
    recipe = adapted(RECIPES[name], dropout=0.0)
    plan = TrainingPlan(recipe, layers=(2,), steps=3, batch=12)
    whole = fit(encoder, trees, plan)
    monkeypatch.setattr(objectives, "_CELLS", 150)
    assert len(objectives.split_batch(range(12), [tree.n_words for tree in trees.gold])) > 2
    cut = fit(encoder, trees, plan)
    assert cut.about["loss"] == pytest.approx(whole.about["loss"], rel=1e-4)
    first = projection(fit(encoder, trees, replace(plan, steps=1))).query
    one, other = projection(cut).query, projection(whole).query
    # Adam makes steps of what is 0 but for rounding, too: few of all weights
    assert (one - other).norm() < 0.05 * (other - first).norm()


def test_two_treebanks_are_batched_as_figures_of_before_have_it():
    """Equal seeds, equal batches: shares were of two sets once, and drawn so."""
    generator = torch.Generator().manual_seed(3)
    (batch,) = shared_batches((6, 4), (0.5, 0.5), 4, 1, generator)
    generator = torch.Generator().manual_seed(3)
    first = torch.randperm(6, generator=generator)[:2].tolist()
    assert batch == first + (6 + torch.randperm(4, generator=generator)[:2]).tolist()


def test_treebanks_are_trained_on_by_their_shares(encoder, treebank, trees, monkeypatch):
    beside = read(treebank, [30, 31, 32, 33])
    seen: list[list[str]] = []
    loss = objectives.OBJECTIVES["tree_crf"]

    def spied(scores, gold, score, margin):
        names = [tree.name for tree in gold.trees]
        seen.append([name in {tree.name for tree in trees.gold} for name in names])
        return loss(scores, gold, score, margin)

    monkeypatch.setitem(objectives.OBJECTIVES, "tree_crf", spied)
    plan = TrainingPlan(RECIPES["tree-crf"], layers=(2,), steps=7, batch=5, shares=(3, 2))
    parser = fit(encoder, trees + beside, plan)
    assert [sum(own) for own in seen] == [3] * 7 and {len(own) for own in seen} == {5}
    assert (parser.about["trees"], parser.about["sources"]) == (16, [12, 4])
    assert len(parser.trained_on) == 16
    short = replace(beside, gold=[gold_tree(2, [(0, 2)], name="t")] * 4)
    with refused("no-trees", "2"):
        fit(encoder, trees + short, plan)


@pytest.mark.parametrize("name", ["tree-crf-full", "tree-crf-labelled"])
def test_training_goes_on_from_another_parser_s_weights(name: str, encoder, treebank, trees):
    plan = TrainingPlan(RECIPES[name], layers=(2,), steps=20)
    english = fit(encoder, read(treebank, range(12, 30)), plan)
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
    with refused("other-parts"):
        fit(encoder, trees, plan, first=other)


def test_labels_that_both_have_go_on_from_another_parser_s(encoder, treebank, trees, monkeypatch):
    """Without trees that say otherwise they stay; other labels start from nothing."""
    plan = TrainingPlan(RECIPES["tree-crf-labelled"], layers=(2,), steps=5)

    def called(found, name: str):
        gold = [
            replace(one, labels=tuple((*x[:2], name) for x in one.labels)) for one in found.gold
        ]
        return replace(found, gold=gold)

    english = fit(encoder, called(read(treebank, range(12, 30)), "X"), plan)
    both = called(trees, "X").gold[:6] + called(trees, "Y").gold[6:]
    parser = fit(encoder, replace(trees, gold=both), replace(plan, steps=1))
    alone = {name: part.weights.clone() for name, part in named(parser).items()}
    carry_over(english, parser)
    for name, part in named(parser).items():
        theirs = named(english)[name]
        for place, one in enumerate(part.names):
            if one in theirs.names:
                there = theirs.names.index(one)
                assert torch.equal(part.weights[..., place], theirs.weights[..., there])
                assert torch.equal(part.bias[..., place], theirs.bias[..., there])
            else:
                assert one == "Y"
                assert torch.equal(part.weights[..., place], alone[name][..., place])
    part = named(parser)["labels"]
    before = part.weights.detach().clone()
    monkeypatch.setattr(label_fit, "PENALTY", 1e6)
    features = features_of(encoder, trees.words, parser.scorer.layout())
    label_fit.fit_aside(parser, label_fit.structure(parser), features, both)
    torch.testing.assert_close(part.weights, before, atol=1e-3, rtol=1e-3)


def test_a_parser_reads_what_the_first_one_reads(encoder, treebank, trees):
    """Own trees on a parser without heads, of other layers: layers and sizes are those of it."""
    plan = TrainingPlan(RECIPES["tree-crf-joint"], layers=(1, 2), boundary=(1,), size=16, steps=5)
    first = fit(encoder, read(treebank, range(12, 30)), plan)
    start = Start("first", first)
    plan = TrainingPlan(RECIPES["tree-crf-labelled"], steps=1)
    own = start.plan(plan, encoder, trees, given=["steps"])
    parser = fit(encoder, trees, own, first=first)
    for part in ("projection", "boundary"):
        assert parser.shape[part] == first.shape[part]
    assert parser.shape["labels"]["layers"] == first.shape["labels"]["layers"]
    assert torch.allclose(projection(parser).query, projection(first).query, atol=5e-3)
    assert "heads" not in parser.shape
    assert own.recipe.objective == "labelled_tree_crf"
    asked = start.plan(plan, encoder, trees, given=["steps", "objective"])
    assert asked.recipe.objective == plan.recipe.objective
    for other in ({"size": 8}, {"specials": True}):
        with refused("other-parts", "--size"):
            fit(encoder, trees, start.plan(replace(plan, **other), encoder, trees), first=first)


def test_few_trees_from_a_parser_take_fewer_and_longer_steps(encoder, treebank):
    plan = TrainingPlan(RECIPES["tree-crf"], layers=(2,), steps=1)
    first = fit(encoder, read(treebank, range(12)), plan)
    recipe = adapted(RECIPES["tree-crf"], learning_rate=0.01)

    def taken(start, n_trees, *given):
        trees = read(treebank, [*range(12)] * 7)
        trees = replace(trees, words=trees.words[:n_trees], gold=trees.gold[:n_trees])
        plan = start.plan(TrainingPlan(recipe, steps=7), encoder, trees, given=given)
        return plan.steps, plan.recipe.learning_rate

    start = Start("first", first)
    assert taken(start, 39) == (50, 3e-4)
    assert taken(start, 40) == (7, 1e-4)
    assert taken(start, 39, "steps", "learning_rate") == (7, 0.01)
    assert taken(start, 39, "steps") == (7, 3e-4)
    assert taken(Start(), 10) == (7, 0.01)


def named(parser):
    return {name: parser.scorer.each()[name] for name in ("labels", "tags")}


def test_learning_rates_fall_to_nothing(encoder, trees):
    """With one step decay changes nothing; over many, weights move about half as far."""
    recipe = adapted(RECIPES["tree-crf"], dropout=0.0)
    plan = TrainingPlan(recipe, layers=(2,), steps=1, batch=12, seed=1)
    one, same = (fit(encoder, trees, replace(plan, decay=decay)) for decay in (False, True))
    assert torch.equal(projection(one).query, projection(same).query)
    moved = []
    for decay in (False, True):
        longer = fit(encoder, trees, replace(plan, steps=20, decay=decay))
        moved.append((projection(longer).query - projection(one).query).norm())
    assert 0.3 < moved[1] / moved[0] < 0.8


def test_dropout_keeps_the_mean():
    values = torch.ones(200, 200)
    dropped = dropout(values, 0.3, torch.Generator().manual_seed(0))
    assert dropped.mean() == pytest.approx(1.0, abs=0.02)
    assert (dropped == 0).float().mean() == pytest.approx(0.3, abs=0.02)
    assert dropout(values, 0.3, None) is values


def test_early_stopping_keeps_the_best_weights(encoder, trees, monkeypatch):
    parser = fit(encoder, trees, TrainingPlan(RECIPES["tree-crf"], layers=(2,), steps=1))
    scores = iter([10.0, 30.0, 20.0, 15.0, 12.0, 11.0])
    seen = {}

    def held_out() -> float:
        f1 = next(scores)
        seen[f1] = projection(parser).query.detach().clone()
        return f1

    plan = TrainingPlan(RECIPES["tree-crf"], steps=100)
    source = BatchSource.of(encoder, trees.words, parser.scorer)
    monkeypatch.setattr(objectives, "_CHECK_EVERY", 5)
    monkeypatch.setattr(objectives, "_PATIENCE", 3)
    report = train(parser.scorer, source, trees, plan, held_out=held_out)
    assert report.best_step == 10
    assert report.checks == [(5, 10.0), (10, 30.0), (15, 20.0), (20, 15.0), (25, 12.0)]
    assert torch.equal(projection(parser).query, seen[30.0])


def test_a_loss_that_is_no_number_stops_and_names_step_and_tree(encoder, trees):
    parser = fit(encoder, trees, TrainingPlan(RECIPES["tree-crf"], layers=(2,), steps=1))
    source = BatchSource.of(encoder, trees.words, parser.scorer)
    source._records[4].states[:] = float("nan")
    plan = TrainingPlan(RECIPES["tree-crf"], batch=12)
    with refused("loss-not-finite", "1"):
        train(parser.scorer, source, trees, plan)


def test_settings_are_chosen_on_other_trees(encoder, treebank, trees):
    tuning = read(treebank, [30, 31, 32])
    layers = [(0,), (1,), (2, 3)]
    plans = [TrainingPlan(RECIPES["tree-crf"], layers=one, steps=5) for one in layers]
    parsers = [fit(encoder, trees, plan) for plan in plans]
    sources = [BatchSource.of(encoder, tuning.words, parser.scorer) for parser in parsers]
    scores = [
        parser.f1(source, tuning.gold) for parser, source in zip(parsers, sources, strict=True)
    ]
    assert choose(encoder, trees, tuning, plans) == plans[scores.index(max(scores))]


def test_the_threshold_is_the_best_on_other_trees(encoder, treebank, trees):
    other = read(treebank, range(20, 38))
    parser = fit(encoder, trees, TrainingPlan(RECIPES["tree-crf"], layers=(2,), steps=20))
    source = BatchSource.of(encoder, other.words, parser.scorer)
    best = choose_threshold(parser, source, other.gold)
    trees, likely = parser.decode_with_marginals(source)
    gold = gold_spans(other.gold)
    f1 = {
        least: float(count_each(gold, trees.keep(likely >= least)).corpus_f1[0])
        for least in THRESHOLDS
    }
    assert best == min(least for least, value in f1.items() if value == max(f1.values()))
    assert f1[0.0] == pytest.approx(parser.f1(source, other.gold))


def test_short_trees_alone_are_told(encoder, trees):
    short = [gold_tree(2, [(0, 2)], name="t")] * len(trees.gold)
    with refused("short-trees"):
        fit(encoder, replace(trees, gold=short), TrainingPlan(RECIPES["fpio"], layers=(1,)))


def test_a_layer_that_does_not_exist_is_told(encoder, trees):
    with refused("no-such-layer", "0", "3"):
        fit(encoder, trees, TrainingPlan(RECIPES["fpio"], layers=(7,)))
