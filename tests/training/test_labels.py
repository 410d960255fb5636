"""Labels and tags: the likelihood and the decoder against enumeration, and what is saved."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.base.schemas import read_table
from attree.encoder.load import load_encoder
from attree.encoder.source import resolve
from attree.parsers.parser import Parser
from attree.training import label_fit
from attree.training.fit import choose, fit, start_parser
from attree.training.gold import GoldTrees, gold_batch, gold_tree, partly_bracketed_tree, read_trees
from attree.training.inside import marginals
from attree.training.label_fit import Guess, _logits, labelled_spans
from attree.training.label_trees import decode_labelled
from attree.training.objectives import labelled_tree_crf
from attree.training.parser import TrainedModel, TrainedParser, load_parser, save_parser
from attree.training.parts import BatchSource, LabelPart
from attree.training.recipes import (
    LABELLED,
    LEAST_THRESHOLD,
    MANY_TREES,
    RECIPES,
    TrainingPlan,
    adapted,
    for_trees,
)
from attree.training.scores import SpanScores
from attree.trees.tree import NO_LABEL
from tests.encoder import checkpoints
from tests.refusals import refused
from tests.training import reference
from tests.training.conftest import read

NESTED = ("tree-crf-labelled", "tree-crf-full")
NAMES = ("", "A", "B", "A+B", "A+A")


def example(seed: int, n: int) -> SpanScores:
    generator = np.random.default_rng(seed)
    span = torch.from_numpy(np.triu(generator.normal(0, 2, (1, n + 1, n + 1)), 1))
    labels = torch.from_numpy(generator.normal(0, 2, (1, n + 1, n + 1, len(NAMES))))
    n_words = torch.tensor([n])
    return SpanScores(torch.zeros_like(span), span, n_words, labels.log_softmax(-1), NAMES)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 6))
def test_the_likelihood_sums_over_binarisations(seed: int, n: int):
    generator = np.random.default_rng(seed)
    scores = example(seed, n)
    brackets = [*reference.random_tree(generator, 0, n), (0, 1)]
    code = {span: int(generator.integers(1, len(NAMES))) for span in brackets}
    each = [(span, label) for span in brackets for label in NAMES[code[span]].split("+")]
    spans, joined = zip(*each, strict=True)
    gold = gold_tree(n, spans, name="t", labels=joined)
    assert scores.labels is not None
    span, chances = scores.span[0].numpy(), scores.labels[0].numpy()

    def labels(tree: frozenset[reference.Span]) -> float:
        return sum(chances[each][code.get(each, 0)] for each in reference.with_words(tree, n))

    expected = reference.log_partition(span, n)
    expected -= reference.log_partition(span, n, brackets, labels)
    found = labelled_tree_crf(scores, gold_batch([gold]), "inside_outside", 0.0)
    assert found.item() == pytest.approx(expected, rel=1e-6, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 5),
    threshold=st.sampled_from([0.1, 0.35]),
    unlabelled=st.sampled_from([0.0, 0.25, 1.0]),
)
def test_the_tree_has_the_highest_expected_gain(
    seed: int, n: int, threshold: float, unlabelled: float
):
    scores = example(seed, n)
    value = gains(scores, threshold, unlabelled)
    best = max(
        sum(value[span][int(span == (0, n)) :].max() for span in reference.with_words(tree, n))
        for tree in reference.trees(0, n)
    )
    found = decode_labelled(scores, threshold, unlabelled=unlabelled).of(0)
    assert found.labels is not None
    reached = sum(
        value[span][NAMES.index("+".join(chain))] for span, chain in _chains(found).items()
    )
    assert reached == pytest.approx(best)
    assert found.spans[0] == (0, n)


@pytest.mark.parametrize("first", [2, 3])
@pytest.mark.parametrize("unlabelled", [0.0, 0.25])
def test_of_the_same_labels_in_another_order_the_more_probable_chain_is_taken(
    first: int, unlabelled: float
) -> None:
    names = ("", "C", "A+B", "B+A")
    scores = replace(example(0, 2), label_names=names)
    chances = torch.full((1, 3, 3, 4), -9.0)
    chances[..., 0] = 0.0  # words have no label
    chances[0, 0, 2] = torch.tensor([-9.0, -9.0, 0.0, 0.0])
    chances[0, 0, 2, first] = 1e-4
    scores = replace(scores, labels=chances.log_softmax(-1))
    found = decode_labelled(scores, 0.2, unlabelled=unlabelled).of(0)
    assert "+".join(found.labels) == names[first]


def gains(scores: SpanScores, threshold: float, unlabelled: float = 0.0) -> np.ndarray:
    """What a phrase of each label is expected to have right, less the threshold, by loops."""
    n, names = int(scores.n_words[0]), scores.label_names
    likely = marginals(scores.span.numpy(), scores.n_words.numpy())[0]
    likely[np.arange(n), np.arange(1, n + 1)] = 1.0
    chances = scores.labels[0].exp().numpy()
    found = np.zeros(chances.shape)
    for i, j in zip(*np.triu_indices(n + 1, 1), strict=True):
        for place, name in enumerate(names):
            labels = _bag(name)
            right = sum(
                chance * (labels & _bag(other)).total()
                for other, chance in zip(names, chances[i, j], strict=True)
            )
            found[i, j, place] = (1 - unlabelled) * (
                likely[i, j] * right - threshold * labels.total()
            )
            if labels:
                phrase = likely[i, j] * (1.0 - chances[i, j, 0])
                found[i, j, place] += unlabelled * (phrase - threshold)
    return found


def _bag(name: str) -> Counter[str]:
    return Counter(label for label in name.split("+") if label)


def _chains(tree) -> dict[tuple[int, int], list[str]]:
    chains: dict[tuple[int, int], list[str]] = {}
    for span, label in zip(tree.spans, tree.labels, strict=True):
        chains.setdefault(span, []).append(label)
    return chains


def learnable(treebank: Path):
    """Trees whose labels can be learned: a phrase is called after its first word."""
    trees = read(treebank, range(3, 15))
    gold = [
        replace(tree, labels=tuple((i, j, words[i].upper()) for i, j in tree.brackets.tolist()))
        for tree, words in zip(trees.gold, trees.words, strict=True)
    ]
    return replace(trees, gold=gold)


def test_labels_are_learned_saved_and_parsed(encoder, treebank: Path, tmp_path: Path):
    trees = learnable(treebank)
    recipe = replace(RECIPES["tree-crf-labelled"], dropout=0.0, learning_rate=1e-2)
    parser = fit(encoder, trees, TrainingPlan(recipe, layers=(1, 2), steps=150, batch=12))
    save_parser(parser, tmp_path / "p")
    found = Parser(TrainedModel(load_parser(tmp_path / "p"), encoder)).parse(trees.words)
    again = Parser(TrainedModel(parser, encoder)).parse(trees.words)
    assert found == again
    right = total = 0
    for tree, gold in zip(found, trees.gold, strict=True):
        spans = Counter(zip(tree.spans, tree.labels or (), strict=True))
        wanted = Counter(((i, j), label) for i, j, label in gold.labels)
        right += (spans & wanted).total()
        total += spans.total() + wanted.total()
        assert len(tree.to_nltk().leaves()) == len(tree.words)
    assert 2 * right / total > 0.8


@pytest.mark.parametrize(
    "change",
    [{"decoder": "labelled_risk"}, {"objective": LABELLED[0]}, {"label_layers": (1,)}],
)
def test_choices_that_need_labels_are_told(change: dict[str, object]):
    adapted(RECIPES["tree-crf-labelled"], **change)
    with refused("needs-labels"):
        adapted(RECIPES["tree-crf-full"], **change)


def test_trees_without_labels_are_told(encoder, treebank: Path):
    trees = learnable(treebank)
    bare = replace(trees, gold=[replace(tree, labels=()) for tree in trees.gold])
    with refused("no-labels"):
        fit(encoder, bare, TrainingPlan(RECIPES["tree-crf-labelled"], layers=(1,)))


def test_what_is_fitted_is_the_weighted_likelihood(encoder, treebank: Path):
    """Weights written into the part give the chances that the fitted rows had."""
    trees = learnable(treebank)
    plan = TrainingPlan(RECIPES["tree-crf-labelled"], layers=(1, 2), steps=5)
    parser = fit(encoder, trees, plan)
    source = BatchSource.of(encoder, trees.words, parser.scorer)
    part = parser.scorer.each()["labels"]
    assert isinstance(part, LabelPart)
    (spans,) = labelled_spans(parser.scorer, source, trees.gold)
    label = {name: place for place, name in enumerate(part.names)}
    known = sum(len(tree.labels) for tree in trees.gold)
    assert (spans.weight[spans.target > 0] > 1 - 1e-6).sum() == known
    words = spans.end - spans.begin == 1
    assert words.sum() == sum(tree.n_words for tree in trees.gold)
    first = 0
    for place, tree in enumerate(trees.gold):
        table = parser.span_scores(source.batch([place])).labels
        assert table is not None
        for start, end, name in tree.labels:
            row = (spans.begin == first + start) & (spans.end == first + end)
            assert spans.target[row].tolist() == [label[name]]
            logits = _logits(spans.states.float() @ part.weights, part.bias, spans)[row][0]
            assert torch.allclose(logits, table[0, start, end], atol=1e-4)
        first += tree.n_words + 1


@pytest.mark.parametrize("partial", [False, True])
def test_blocks_are_solved_as_all_at_once(
    encoder, treebank: Path, monkeypatch: pytest.MonkeyPatch, partial: bool
):
    trees = learnable(treebank)
    if partial:  # some labels are guessed
        known = [
            partly_bracketed_tree(
                tree.n_words, [one[:2] for one in some], [one[2] for one in some], name="t"
            )
            for tree in trees.gold[:6]
            for some in [tree.labels[::2]]
        ]
        trees = replace(trees, gold=[*known, *trees.gold[6:]])
    plan = TrainingPlan(RECIPES["tree-crf-labelled"], layers=(1, 2), steps=5)
    parser = fit(encoder, trees, plan)
    source, part = (
        BatchSource.of(encoder, trees.words, parser.scorer),
        parser.scorer.each()["labels"],
    )

    def loss() -> list[torch.Tensor]:
        blocks = labelled_spans(parser.scorer, source, trees.gold)
        seen.append(len(blocks))
        guess = Guess(blocks, len(part.names))
        guessed = {n: guess.labels(block) for n, block in enumerate(blocks) if partial}
        fitted = label_fit._Regression(part, blocks, 0.1)
        with torch.no_grad():
            fitted.weights.add_(1.0)  # away from the first weights, where there is no penalty
        value = fitted.loss(blocks, guessed, lambda count: None)
        return [value, fitted.weights.grad, fitted.bias.grad]

    seen: list[int] = []
    once = loss()
    monkeypatch.setattr(label_fit, "_BLOCK", 20)
    for one, other in zip(once, loss(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-4)
    assert seen[0] == 1 < seen[1]


def test_of_many_trees_a_part_is_drawn(treebank: Path, monkeypatch: pytest.MonkeyPatch):
    gold = learnable(treebank).gold
    every = list(range(len(gold)))
    assert label_fit.sample(gold, 2) == every
    monkeypatch.setattr(label_fit, "_BLOCK", 10)
    shuffled = label_fit.sample(gold, 2)
    assert sorted(shuffled) == every != shuffled
    words = sum(tree.n_words for tree in gold)
    monkeypatch.setattr(label_fit, "_MOST_WORK", words)
    some = label_fit.sample(gold, 2)
    assert some == shuffled[: len(some)]
    assert words / 2 - 9 < sum(gold[tree].n_words for tree in some) <= words / 2


def test_structure_is_that_of_the_unlabelled_parser(encoder, treebank: Path):
    trees = learnable(treebank)
    plans = (TrainingPlan(RECIPES[name], layers=(1, 2), steps=5) for name in NESTED)
    labelled, full = (fit(encoder, trees, plan).scorer.state_dict() for plan in plans)
    assert all(torch.equal(labelled[name], full[name]) for name in full)
    assert labelled["parts.labels.weights"].abs().max() > 0


def test_a_parser_of_more_trees_is_surer_and_reads_another_layer(encoder, treebank: Path):
    trees = learnable(treebank)
    some = (trees.sentence, trees.words, trees.gold)
    labelled, joint = RECIPES["tree-crf-labelled"], RECIPES["tree-crf-joint"]
    for count, recipe, threshold, layers in (
        (MANY_TREES - 1, labelled, 0.2, (encoder.n_layers // 3,)),
        (
            MANY_TREES,
            labelled,
            LEAST_THRESHOLD,
            sorted({encoder.n_layers // 3, encoder.n_layers // 2}),
        ),
        (MANY_TREES, replace(labelled, label_layers=(2,)), LEAST_THRESHOLD, (2,)),
        (MANY_TREES, joint, 0.375, (1, 2)),
    ):
        few = GoldTrees(*([part[n % len(part)] for n in range(count)] for part in some))
        parser, _, _ = start_parser(encoder, few, TrainingPlan(recipe, layers=(1, 2)))
        assert parser.recipe.threshold == threshold
        assert parser.shape["labels"]["layers"] == parser.shape["tags"]["layers"] == [*layers]
    assert for_trees(labelled, MANY_TREES, 12).label_layers == (4, 6)


def test_layers_are_chosen_for_labels_that_read_others(
    treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shape, tokeniser = checkpoints.FAMILIES["bert"]
    six = {**shape, "num_hidden_layers": 6}
    monkeypatch.setitem(checkpoints.FAMILIES, "bert", (six, tokeniser))
    encoder = load_encoder(resolve(checkpoints.save("bert", tmp_path)), device="cpu", threads=1)
    trees, tuning = read(treebank, range(40)), read(treebank, range(5))
    assert len(trees.gold) == MANY_TREES
    plan = TrainingPlan(RECIPES["tree-crf-labelled"], steps=1)
    plans = [replace(plan, layers=layers) for layers in [(5,), (6,)]]
    assert choose(encoder, trees, tuning, plans) in plans


def test_a_label_that_holds_the_sign_of_a_chain_comes_back_whole():
    tree = gold_tree(2, [(0, 2), (0, 2)], name="t", labels=["A+B", "C"])
    ((_, _, name),) = tree.labels
    labels = torch.zeros(1, 3, 3, 2)
    labels[0, 0, 2, 1] = 9.0
    labels[0, :, :, 0] = 5.0
    span = torch.zeros(1, 3, 3, dtype=torch.float64)
    scores = SpanScores(span, span, torch.tensor([2]), labels, ("", name))
    assert decode_labelled(scores, 0.2).of(0).labels == ("A+B", "C")


@pytest.fixture(scope="module")
def trees(treebank: Path) -> GoldTrees:
    return read(treebank, range(15))


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
