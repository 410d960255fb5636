"""Partly bracketed trees in training: losses by enumeration, guesses, and that they help."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.base.schemas import PARTLY_BRACKETED, read_table, write_table
from attree.cli.main import app
from attree.training.choice import choose_trees
from attree.training.fit import fit
from attree.training.gold import (
    GoldTree,
    GoldTrees,
    gold_batch,
    gold_tree,
    partly_bracketed_tree,
)
from attree.training.label_fit import Guess, LabelledSpans
from attree.training.objectives import labelled_tree_crf, tree_crf
from attree.training.options import Choice
from attree.training.parts import BatchSource
from attree.training.recipes import RECIPES, TrainingPlan
from attree.trees.constraints import UNKNOWN, Constraints
from tests import drawn
from tests.bulk.test_trained import run
from tests.command_line import CliRunner
from tests.refusals import refused
from tests.training import reference
from tests.training.test_chart import possible
from tests.training.test_labels import NAMES, example, learnable

SEEDS = {"seed": st.integers(0, 10_000), "n": st.integers(2, 5)}


def partial(constraints: Constraints, n: int) -> GoldTree:
    """The tree of constraints, by way of marks."""
    required = [(i, j, label or UNKNOWN) for i, j, label in constraints.required]
    marked = [*required, *((i, j, "!") for i, j in constraints.forbidden)]
    spans, labels = [(i, j) for i, j, _ in marked], [label for *_, label in marked]
    return partly_bracketed_tree(n, spans, labels, name="t")


@settings(max_examples=40)
@given(**SEEDS)
def test_the_loss_is_that_of_all_trees_that_keep_to_what_is_known(seed: int, n: int):
    scores, constraints = example(seed, n), drawn.constraints(seed, n)
    span = scores.span[0].numpy()
    those = drawn.best_trees(constraints, n)
    some = math.log(sum(math.exp(sum(span[one] for one in tree)) for tree in those))
    loss = tree_crf(scores, gold_batch([partial(constraints, n)]), "inside_outside", 0.0)
    assert loss.item() == pytest.approx(reference.log_partition(span, n) - some, abs=1e-7)


@settings(max_examples=40)
@given(**SEEDS)
def test_the_labelled_loss_sums_over_labels_that_are_not_known(seed: int, n: int):
    scores = example(seed, n)
    constraints = drawn.constraints(seed, n, (None, "A", "B"), one_word=True)
    assert scores.labels is not None
    chances, span = scores.labels[0].exp().numpy(), scores.span[0].numpy()

    def labels(tree: frozenset[reference.Span]) -> float:
        each = reference.with_words(tree, n)
        return sum(math.log(chances[one][possible(constraints, one)].sum()) for one in each)

    expected = reference.log_partition(span, n)
    expected -= reference.log_partition(span, n, constraints.chains(), labels)
    loss = labelled_tree_crf(scores, gold_batch([partial(constraints, n)]), "", 0.0)
    assert loss.item() == pytest.approx(expected, abs=1e-5)


@settings(max_examples=40)
@given(**SEEDS)
def test_a_tree_without_labels_is_learned_by_its_structure_alone(seed: int, n: int):
    """Its phrases have some label, binarisation's spans have none, nothing is said of words."""
    generator = np.random.default_rng(seed)
    scores, brackets = example(seed, n), reference.random_tree(generator, 0, n)
    assert scores.labels is not None
    labelled = gold_tree(n, brackets, name="t", labels=["A"] * len(brackets))
    tree = replace(labelled, tags=("T",) * n).without_labels()
    assert (tree.labels, tree.tags) == ((), ())
    span, empty = scores.span[0].numpy(), scores.labels[0, ..., 0].exp().numpy()

    def labels(tree: frozenset[reference.Span]) -> float:
        chances = (1 - empty[one] if one in brackets else empty[one] for one in tree)
        return sum(map(math.log, chances))

    expected = reference.log_partition(span, n)
    expected -= reference.log_partition(span, n, brackets, labels)
    loss = labelled_tree_crf(scores, gold_batch([tree]), "", 0.0)
    assert loss.item() == pytest.approx(expected, abs=1e-5)
    both = [gold_batch([one]) for one in (tree, labelled)]
    structure, same = (tree_crf(scores, one, "", 0.0).item() for one in both)
    assert structure == same


@settings(max_examples=20)
@given(**SEEDS)
def test_a_half_known_tree_without_labels_keeps_its_phrases(seed: int, n: int):
    constraints = drawn.constraints(seed, n, (None, "A", "B"), one_word=True)
    unknown = [(i, j, None) for i, j in constraints.chains()]
    scores = example(seed, n)
    tree = partial(constraints, n).without_labels()
    same = partial(replace(constraints, required=tuple(unknown)), n)
    losses = [labelled_tree_crf(scores, gold_batch([one]), "", 0.0) for one in (tree, same)]
    assert losses[0] == losses[1]


def test_labels_are_fitted_to_trees_that_have_some(encoder, treebank: Path):
    """Trees without labels change neither labels nor tags, as long as structure is the same."""
    trees = learnable(treebank)
    gold = [tree.without_labels() for tree in trees.gold[::-1]]
    bare = replace(trees, words=trees.words[::-1], gold=gold)
    still = replace(RECIPES["tree-crf-labelled"], learning_rate=1e-12, head_rate=1e-12)
    plan = TrainingPlan(still, (1, 2), steps=1)
    alone, both = (fit(encoder, some, plan).scorer.each() for some in (trees, trees + bare))
    for part in ("labels", "tags"):
        for one, other in zip(alone[part].parameters(), both[part].parameters(), strict=True):
            torch.testing.assert_close(one, other, atol=1e-4, rtol=0)


def test_batches_of_half_known_and_whole_trees_are_one_by_one():
    trees, scores = [], []
    for seed, n in ((1, 5), (2, 3), (3, 6), (4, 5)):
        brackets = reference.random_tree(np.random.default_rng(seed), 0, n)
        whole = gold_tree(n, brackets, name="w", labels=["A"] * len(brackets))
        trees.append(partial(drawn.constraints(seed, n, (None, "A")), n) if seed % 2 else whole)
        scores.append(example(seed, n))
    together = torch.zeros(4, 7, 7, dtype=torch.float64)
    labels = torch.zeros(4, 7, 7, len(NAMES), dtype=torch.float64)
    for place, one in enumerate(scores):
        side = one.span.shape[1]
        together[place, :side, :side] = one.span[0]
        labels[place, :side, :side] = one.labels[0]
    n_words = torch.tensor([5, 3, 6, 5])
    batch = replace(scores[0], span=together, labels=labels, n_words=n_words)
    for loss in (tree_crf, labelled_tree_crf):
        alone = [
            loss(one, gold_batch([tree]), "", 0.0).item()
            for one, tree in zip(scores, trees, strict=True)
        ]
        np.testing.assert_allclose(loss(batch, gold_batch(trees), "", 0.0), alone, atol=1e-7)


def test_what_learns_from_splits_needs_whole_trees(encoder):
    known = partly_bracketed_tree(4, [(0, 2)], ["NP"], name="mine.half:3")
    trees = GoldTrees([0], [["a", "b", "c", "d"]], [known])
    for parser in ("fpio", "fpoa"):
        with refused("partly-bracketed", "mine.half:3"):
            fit(encoder, trees, TrainingPlan(RECIPES[parser], (1,)))
    with refused("no-labels"):
        unlabelled = partly_bracketed_tree(4, [(0, 2)], ["?"], name="t")
        plan = TrainingPlan(RECIPES["tree-crf-labelled"], (1,))
        fit(encoder, replace(trees, gold=[unlabelled]), plan)


def test_contradictions_name_the_tree():
    for code, spans, labels in (
        ("crossing-spans", [(0, 3), (1, 4)], ["A", "?"]),
        ("contradiction", [(0, 2), (0, 2)], ["A", "!"]),
    ):
        with refused(code, "mine.half:3"):
            partly_bracketed_tree(5, spans, labels, name="mine.half:3")


def spans_of(target: list[int], *, is_partial: list[bool]) -> LabelledSpans:
    n = len(target)
    zeros = torch.zeros(n, dtype=torch.int64)
    partial = torch.tensor(is_partial)
    return LabelledSpans(
        torch.zeros(1, 2),
        zeros,
        zeros,
        zeros,
        torch.tensor(target),
        torch.ones(n),
        partial,
        torch.zeros(n),
    )


def test_guesses_take_into_account_that_phrases_are_given():
    """Of ten spans of whole trees four are A; of 100 of partial ones 20: one half is given."""
    whole = [1] * 40 + [0] * 60
    known = [1] * 200 + [-1] * 799 + [-2]
    blocks = [spans_of(whole, is_partial=[False] * 100), spans_of(known, is_partial=[True] * 1000)]
    guess = Guess(blocks, 2)
    assert guess.shares[0, 1] == pytest.approx(0.5, abs=0.01)
    assert not len(guess.labels(blocks[0]))
    first = guess.labels(blocks[1])
    np.testing.assert_allclose(first[0], [0.6 / 0.8, 0.2 / 0.8], atol=0.01)
    np.testing.assert_allclose(first[-1], [0.0, 1.0])
    certain = guess.labels(blocks[1], torch.tensor([[0.0, 99.0]]).expand(1000, 2))
    np.testing.assert_allclose(certain, [[0.0, 1.0]] * 800, atol=1e-9)


def test_without_whole_trees_one_half_is_taken_to_be_given():
    spans = spans_of([1] * 10 + [2] * 20 + [-1] * 70, is_partial=[True] * 100)
    guess = Guess([spans], 3)
    np.testing.assert_allclose(guess.shares[0], [0.0, 0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(guess.labels(spans).sum(0), [40, 10, 20], rtol=1e-4)


def halved(table: pa.Table, rows: list[int], seed: int) -> pa.Table:
    """Some sentences of a table, each with a random half of its brackets."""
    generator, found = np.random.default_rng(seed), []
    for row in table.take(pa.array(rows)).to_pylist():
        spans = list(zip(row["starts"], row["ends"], strict=True))
        kept = {span: generator.random() < 0.5 for span in dict.fromkeys(spans)}
        places = [place for place, span in enumerate(spans) if kept[span]]
        row |= {key: [row[key][place] for place in places] for key in ("starts", "ends", "labels")}
        found.append(row | {"half": True, "heads": []})
    return pa.Table.from_pylist(found, schema=PARTLY_BRACKETED)


def test_files_of_whole_and_half_known_trees_are_one_set(treebank: Path, tmp_path: Path):
    table, about = read_table(treebank)
    some, also = halved(table, [0, 1, 2, 3], 0), [tmp_path / "h.parquet"]
    write_table(also[0], some, schema=PARTLY_BRACKETED, metadata={})
    chosen = choose_trees(treebank, Choice(["all"], 0), [], also=also)
    known = [tree for tree in chosen.trees.gold if tree.known is not None]
    assert 0 < len(known) <= 4 and chosen.provenance["language"] == about["language"]
    assert len(set(chosen.trees.sentence)) == len(chosen.trees.sentence)
    drawn_ones = choose_trees(treebank, Choice(["8"], 0, held_out=9), [], also=also)
    held_out = drawn_ones.held_out
    assert held_out is not None and not [tree for tree in held_out.gold if tree.known is not None]


def test_partly_bracketed_trees_teach_labels(encoder, treebank: Path):
    """A phrase is called after its first word: what two trees do not show, halves of others do."""
    trees = learnable(treebank)
    plan = TrainingPlan(replace(RECIPES["tree-crf-labelled"], dropout=0.0), (1, 2), steps=5)
    generator, gold = np.random.default_rng(0), list(trees.gold[:2])
    for tree in trees.gold[2:]:
        some = [label for label in tree.labels if generator.random() < 0.5]
        spans, labels = [one[:2] for one in some], [one[2] for one in some]
        gold.append(partly_bracketed_tree(tree.n_words, spans, labels, name=tree.name))
    few = GoldTrees(trees.sentence[:2], trees.words[:2], trees.gold[:2])
    right = {}
    for name, some in (("few", few), ("more", replace(trees, gold=gold)), ("all", trees)):
        parser = fit(encoder, some, plan)
        right[name] = _right(parser, BatchSource.of(encoder, trees.words, parser.scorer), trees)
    assert right["few"] < right["more"] <= right["all"]


def _right(parser, source, trees: GoldTrees) -> int:
    """Gold phrases whose label is the most likely one."""
    found, names = 0, parser.scorer.each()["labels"].names
    for place, tree in enumerate(trees.gold):
        scores = parser.span_scores(source.batch([place])).labels[0]
        found += sum(names[int(scores[i, j].argmax())] == label for i, j, label in tree.labels)
    return found


def test_files_are_trained_on_and_kept_to(resolved: Path, treebank: Path, tmp_path: Path):
    """What a linguist types: two kinds of files in, and trees that keep what she knows."""
    mine, parser = tmp_path / "mine.half", tmp_path / "parser"
    text = "( (? the old man) lived near home )\n( (NP the cat) (! chased mice) home)\n"
    mine.write_text(f"{text}(= (X the (X cat chased) (X mice)))\n" * 4 + "( the old man )\n")
    given = ("--sentences", treebank, "--sentences", mine, "--trees", "all", "--steps", 5)
    model = ("--encoder", resolved, "--parser", "tree-crf-labelled", "--device", "cpu")
    told = run("train", *given, *model, "--output", parser)
    assert "mine.half:13: nothing is known of this tree" in told
    found = run("try", "--constraints", mine, "--parser", parser, "--encoder", resolved, "--json")
    trees = [json.loads(line) for line in found.splitlines() if line.startswith("{")]
    assert len(trees) == 12
    for first, second, third in zip(trees[::3], trees[1::3], trees[2::3], strict=True):
        assert [0, 3] in first["spans"]
        assert [0, 2] in second["spans"] and [2, 4] not in second["spans"]
        assert second["labels"][second["spans"].index([0, 2])] == "NP"
        assert third["spans"] == [[0, 4], [1, 3], [3, 4]] and set(third["labels"]) == {"X"}


def test_constraints_have_their_own_sentences(tmp_path: Path):
    (tmp_path / "mine.half").write_text("( (NP the cat) sat )\n")
    arguments = ["try", "Other words.", "--constraints", str(tmp_path / "mine.half")]
    done = CliRunner().invoke(app, arguments)
    assert "--constraints has its own sentences — leave SENTENCE out" in str(done.exception)


def test_constraints_without_a_tree_that_can_be_read_are_an_error(tmp_path: Path):
    (mine := tmp_path / "mine.half").write_text("( the old man )\n")
    done = CliRunner().invoke(app, ["try", "--constraints", str(mine)])
    assert getattr(done.exception, "code", None) == "nothing-read"
    assert "mine.half:1: " in done.output + done.stderr
