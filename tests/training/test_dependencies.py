"""Dependencies: heads, what they say of spans and labels, labels that align."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from attree.training.features import features_of
from attree.training.fit import fit
from attree.training.gold import NO_HEAD, GoldTree, gold_batch, gold_tree, read_trees
from attree.training.label_fit import align_labels
from attree.training.objectives import head_loss
from attree.training.parser import TrainedParser
from attree.training.parts import BatchSource, DependencyPart, heads_of_spans, sum_parts
from attree.training.recipes import RECIPES, TRUST, TrainingPlan
from attree.training.scores import SpanScores, headed_by
from attree.training.start import Start, to_learn
from attree.treebank.conllu import read
from attree.treebank.sentence import SplitSettings
from attree.treebank.table import to_table
from attree.trees.constraints import Constraints
from attree.trees.trees import Trees

RECIPE = replace(
    RECIPES["tree-crf-joint"],
    parts=("projection", "boundary", "dependencies", "labels", "tags"),
    dropout=0.0,
)
PLAN = TrainingPlan(RECIPE, layers=(1, 2), steps=30, seed=1)
CONLLU = """1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tcat\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tslept\t_\tVERB\t_\t_\t0\troot\t_\t_
4\there\t_\tADV\t_\t_\t3\tadvmod\t_\t_
5\t.\t_\tPUNCT\t_\t_\t3\tpunct\t_\t_
"""


@given(some.integers(0, 2**32 - 1), some.lists(some.integers(1, 5), min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_heads_of_spans_are_those_of_every_choice_of_heads(seed: int, lengths: list[int]):
    """Both probabilities are sums over all choices of heads."""
    side = max(lengths) + 1
    generator = np.random.default_rng(seed)
    likely = np.zeros((len(lengths), side - 1, side), np.float32)
    for row, n in zip(likely, lengths, strict=True):
        row[:n, [*range(n), side - 1]] = generator.dirichlet(np.ones(n + 1), n)
    headed, subtrees = heads_of_spans(likely, np.array(lengths))
    for row, n in enumerate(lengths):
        of_word = [likely[row, w, [*range(n), side - 1]].tolist() for w in range(n)]
        for i in range(n):
            for j in range(i + 2, n + 1):
                chance = at_most_one = 0.0
                for heads in product(range(n + 1), repeat=n):
                    within = [i <= head < j for head in heads]
                    leaving = [w for w in range(i, j) if not within[w]]
                    probability = math.prod(of_word[w][head] for w, head in enumerate(heads))
                    at_most_one += probability * (len(leaving) < 2 or j - i == n)
                    if len(leaving) == 1 and sum(within) == j - i - 1:
                        chance += probability
                chance *= (1 - likely[row, i, i]) * (1 - likely[row, j - 1, j - 1]) * (j - i < n)
                if i > 0 and j == n:  # of a part with the final punctuation
                    at_most_one *= 1 - likely[row, n - 1, n - 1]
                assert headed[row, i, j] == pytest.approx(at_most_one, abs=1e-5)
                assert subtrees[row, i, j] == pytest.approx(chance, abs=1e-5)


@pytest.mark.parametrize("next_one", [0.0, 0.2, 0.5, 0.7])
@pytest.mark.parametrize("n_words", [8, 9])
def test_doubted_spans_lose_more_in_short_sentences(next_one: float, n_words: int):
    """The first word depends on the next one with a probability, else on the last, as all do."""
    part = DependencyPart(RECIPE, {"layers": [1], "hidden": 4, "size": 3})
    part.trust.fill_(1.0)
    heads = torch.full((1, n_words, n_words + 1), 1e-6)
    heads[0, :, n_words - 1] = 1.0
    heads[0, 0, [1, n_words - 1]] = torch.tensor([next_one, 1 - next_one]).clamp(1e-6)
    part.heads = lambda *_: heads.log()  # type: ignore[method-assign]
    scores = part.scores((torch.zeros(1, n_words + 1, 4),) * 2, torch.tensor([n_words]))
    assert scores.phrase is not None
    one = math.log(max(next_one, 1e-4))  # that the second word is the only head
    more = 4 * min(0.0, one - math.log(0.65)) if n_words == 8 else 0.0
    assert scores.phrase[0, 0, 2, 1].item() == pytest.approx(one + more, abs=1e-3)


def test_two_dependents_are_no_phrase_and_a_subtree_is_rewarded():
    """``Kara kedi fareyi kovaladı``, sure heads: two heads count fully, and so does a subtree."""
    part = DependencyPart(RECIPE, {"layers": [1], "hidden": 4, "size": 3})
    part.trust.fill_(1.0)
    heads = torch.full((1, 4, 5), 1e-6)
    for word, head in enumerate((1, 3, 3, 4)):
        heads[0, word, head] = 1.0
    part.heads = lambda *_: heads.log()  # type: ignore[method-assign]
    scores = part.scores((torch.zeros(1, 5, 4),) * 2, torch.tensor([4]))
    assert scores.phrase is not None
    twice = 5 * math.log(1e-4) - 4 * math.log(0.65)  # the sentence is short
    assert scores.phrase[0, 1, 3].tolist() == pytest.approx([0.0, twice], abs=1e-3)
    assert scores.phrase[0, 0, 2].tolist() == pytest.approx([10.0, 0.0], abs=1e-3)
    assert scores.span[0, 0, 2] == pytest.approx(10 / 3, abs=1e-3)
    assert scores.span.sum() == scores.span[0, 0, 2]
    torch.testing.assert_close(scores.phrase[0, [2, 0], 4], torch.zeros(2, 2), atol=1e-5, rtol=0)


@given(some.integers(0, 2**32 - 1), some.floats(0, 20), some.floats(-9, 0))
@settings(max_examples=60, deadline=None)
def test_the_probability_of_a_phrase_is_multiplied(seed: int, reward: float, headed: float):
    """Labels keep their shares of it, and the gradient of labels is that of this product."""
    torch.manual_seed(seed)
    labels = 3 * torch.randn(1, 3, 3, 4)
    before = labels.clone()
    before[..., 1:] += reward
    phrase = torch.zeros(1, 3, 3, 2)
    phrase[..., 0], phrase[..., 1] = reward, headed
    zeros = torch.zeros(1, 3, 3)
    part = SpanScores(zeros, zeros, torch.tensor([2]), labels.requires_grad_(), ("", "A", "B", "C"))
    told = SpanScores(zeros, zeros, torch.tensor([2]), phrase=phrase, heads=zeros[:, :2])
    summed = sum_parts([part, told]).labels
    assert summed is not None
    found, expected = (x.double().softmax(-1)[..., 1:] for x in (summed, before))
    torch.testing.assert_close(found, expected * math.exp(headed), atol=1e-5, rtol=1e-3)
    assert torch.autograd.grad(found.sum(), labels)[0].isfinite().all()


@given(some.integers(0, 2**32 - 1), some.lists(some.integers(1, 6), min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_heads_of_a_span_are_counted_word_by_word(seed: int, lengths: list[int]):
    torch.manual_seed(seed)
    side = max(lengths) + 1
    heads, words = torch.rand(len(lengths), side - 1, side), torch.rand(len(lengths), side - 1)
    for row, n in zip(heads, lengths, strict=True):
        row[:, n:-1] = 0.0  # no word has its head past the sentence
    heads /= heads.sum(-1, keepdim=True)
    found = headed_by(words, heads.log(), torch.tensor(lengths))
    for row, n in enumerate(lengths):
        for i in range(n):
            for j in range(i + 1, n + 1):
                outside = [1.0 - float(heads[row, w, i:j].sum()) for w in range(i, j)]
                those = sum(float(words[row, w]) * outside[w - i] for w in range(i, j))
                expected = those / max(sum(outside), 0.05)
                assert float(found[row, i, j]) == pytest.approx(expected, abs=1e-4)


def test_an_object_with_its_verb_is_no_noun_phrase():
    """``kedi fareyi kovaladı``: the last two words are as probable, under another label."""
    zeros, n_words = torch.zeros(1, 4, 4), torch.tensor([3])
    names = ("", "NP", "VP", "S+NP", "NP+S")
    labels = torch.tensor([0.0, 3.0, 1.0, 0.5, 0.25]).expand(1, 4, 4, 5)
    heads = torch.full((1, 3, 4), 1e-6)
    for word, head in enumerate((2, 2, 3)):
        heads[0, word, head] = 1.0
    part = SpanScores(zeros, zeros, n_words, labels.clone(), names)
    told = SpanScores(zeros, zeros, n_words, phrase=torch.zeros(1, 4, 4, 2), heads=heads.log())
    tags = torch.tensor([[[9.0, -9.0], [9.0, -9.0], [-9.0, 9.0]]])
    tagged = SpanScores(zeros, zeros, n_words, tags=tags, tag_names=("NOUN", "VERB"))
    found = sum_parts([part, told, tagged]).labels
    assert found is not None
    chances, before = found.softmax(-1), labels.softmax(-1)
    torch.testing.assert_close(chances[..., 0], before[..., 0])
    assert [names[label] for label in found[0, 1, 2:].argmax(-1)] == ["NP", "VP"]
    for verbal in ("VP", "NP+S"):  # these keep their proportion
        label = names.index(verbal)
        torch.testing.assert_close(
            chances[0, 1, 3, label] / chances[0, 1, 3, 2],
            before[0, 1, 3, label] / before[0, 1, 3, 2],
        )
    assert chances[0, 1, 3, 3] / before[0, 1, 3, 3] == pytest.approx(
        float(chances[0, 1, 3, 1] / before[0, 1, 3, 1])
    )
    torch.testing.assert_close(chances[0, 0, 2], before[0, 0, 2], atol=1e-3, rtol=0)


def test_heads_come_from_conllu_and_punctuation_is_its_own():
    items = list(read(CONLLU, "x.conllu", SplitSettings(dependencies="inner")))
    (tree,) = read_trees(to_table(items), [0]).gold
    assert tree.heads == (1, 2, -1, 2, 4)
    batch = gold_batch([tree, gold_tree(2, [(0, 2)], name="without heads")])
    assert batch.heads.tolist() == [[1, 2, -1, 2, 4], [NO_HEAD] * 5]
    likely = torch.rand(2, 5, 6).softmax(-1).log()
    scores = SpanScores(*[torch.zeros(2, 6, 6)] * 2, torch.tensor([5, 2]), heads=likely)
    columns = [1, 2, 5, 2, 4]
    expected = -sum(float(likely[0, word, head]) for word, head in enumerate(columns))
    torch.testing.assert_close(head_loss(scores, batch), torch.tensor([expected, 0.0]))


def test_heads_are_learned_and_count_once_the_parser_is_trained(encoder, trees):
    """Every word's head is the word before it; a parser that starts from this one has them."""
    chain = [replace(t, heads=(-1, *range(t.n_words - 1))) for t in trees.gold]
    taught = replace(trees, gold=chain)
    first = fit(encoder, taught, PLAN)
    part = first.scorer.each()["dependencies"]
    assert float(part.trust) == pytest.approx(TRUST)
    source = BatchSource.of(encoder, trees.words, first.scorer)
    heads = first.span_scores(source.batch(range(len(chain)))).heads
    assert heads is not None
    right = [
        int(heads[row, word].argmax()) == word - 1
        for row, tree in enumerate(chain)
        for word in range(1, tree.n_words)
    ]
    assert np.mean(right) > 0.7
    plan = Start("first", first).plan(replace(PLAN, steps=1), encoder, trees)
    again = fit(encoder, trees, plan, first=first)
    theirs = again.scorer.each()["dependencies"]
    assert float(theirs.trust) == pytest.approx(TRUST)
    assert torch.allclose(theirs.pair, part.pair, atol=1e-3)


def test_labels_of_other_names_start_from_those_of_the_same_phrases(encoder, trees):
    """Renamed labels start as good as copied ones, but for a share of the bias."""
    first = fit(encoder, trees, PLAN)
    renamed = [
        replace(tree, labels=tuple((i, j, name.lower()) for i, j, name in tree.labels))
        for tree in trees.gold
    ]
    parser = fit(encoder, replace(trees, gold=renamed), replace(PLAN, steps=1), first=first)
    same = fit(encoder, trees, replace(PLAN, steps=1), first=first)
    source = BatchSource.of(encoder, trees.words, parser.scorer)
    score = [one.f1(source, trees.gold) for one in (parser, same)]
    assert score[0] > score[1] - 5
    parts = [one.scorer.each()["labels"] for one in (parser, first)]
    features = features_of(encoder, trees.words, parser.scorer.layout())
    assert align_labels(parser, first, features, renamed) == []
    with torch.no_grad():
        parts[1].bias[:, 0] += 50.0  # to which no span is a phrase
    assert align_labels(parser, first, features, renamed) == list(parts[0].names[1:])
    assert not parts[0].weights[..., 1:].any()


def half_right(gold: Sequence[GoldTree], surprise: float) -> Trees:
    """Return gold trees with every second label wrong, and chances that are ``surprise`` above."""
    spans = [[(i, j) for i, j, name in tree.labels for _ in name.split("+")] for tree in gold]
    labels = [[x for *_, name in tree.labels for x in name.split("+")] for tree in gold]
    labels = [["wrong" if place % 2 else x for place, x in enumerate(names)] for names in labels]
    names = list(chain(*labels))
    right = 1 - names.count("wrong") / len(names)
    found = Trees.from_spans([tree.n_words for tree in gold], spans, labels)
    return replace(found, marginals=np.full(len(names), right + surprise / 100))


@pytest.mark.parametrize(
    ("n_trees", "surprise", "new"),
    [
        (12, -9.0, 0.0),
        (12, 4.0, 0.0),
        (12, 8.0, 0.5),
        (12, 30.0, 1.0),
        (48, 7.0, 0.375),  # of a kind that the parser knows
        (48, 9.0, None),
        (84, 4.0, None),
    ],
)
def test_few_trees_move_a_parser_as_far_as_it_is_wrong_without_expecting_it(
    n_trees: int,
    surprise: float,
    new: float | None,
    encoder,
    trees,
    monkeypatch: pytest.MonkeyPatch,
):
    first, times = fit(encoder, trees, PLAN), n_trees // 12
    many = replace(trees, words=[*trees.words] * times, gold=[*trees.gold] * times)
    monkeypatch.setattr(TrainedParser, "decode", lambda *_: half_right(many.gold, surprise))
    plan = Start("first", first).plan(replace(PLAN, steps=7), encoder, many)
    assert plan.to_learn == (None if new is None else pytest.approx(new))
    assert (plan.steps, plan.recipe.learning_rate) == ((7, 1e-4) if new is None else (50, 3e-4))


def test_weights_go_their_share_of_the_way_from_those_of_the_parser_to_start_from(encoder, trees):
    first, plan = fit(encoder, trees, PLAN), replace(PLAN, steps=3)
    far = fit(encoder, trees, plan, first=first).scorer.state_dict()
    near = fit(encoder, trees, replace(plan, to_learn=0.5), first=first).scorer.state_dict()
    for name, weights in first.scorer.state_dict().items():
        part = name.split(".")[1]
        if part != "tags":  # fitted by themselves
            step = 0.5 if part == "labels" else 0.25
            torch.testing.assert_close(near[name], torch.lerp(weights, far[name], step))


def test_a_parser_is_surprised_by_other_spans_and_by_labels_that_it_has(encoder, trees):
    two = [
        replace(tree, labels=tuple((i, j, ("NP", "VP")[(j - i) % 2]) for i, j, _ in tree.labels))
        for tree in trees.gold
    ]
    first = fit(encoder, replace(trees, gold=two), PLAN)
    source = BatchSource.of(encoder, trees.words, first.scorer)
    own = [*map(first.decode(source).of, range(len(two)))]

    def surprised(names: dict[str, str]) -> float:
        """Return the share for the parser's own trees with other names; without, for no labels."""
        gold = []
        for tree, drawn in zip(trees.gold, own, strict=True):
            brackets = np.array([span for span in drawn.spans if span[1] - span[0] > 1])
            spans = zip(drawn.spans, drawn.labels, strict=True) if names else ()
            labels = {span: names[label] for span, label in spans}
            chains = tuple((*span, name) for span, name in labels.items())
            gold.append(replace(tree, brackets=brackets, labels=chains))
        return to_learn(first, encoder, replace(trees, gold=gold))

    assert surprised({"NP": "NP", "VP": "VP"}) == surprised({}) == 0.0
    assert surprised({"NP": "grup.nom", "VP": "grup.verb"}) == 0.0
    assert surprised({"NP": "NP", "VP": ""}) == 0.0  # a bracket without a label
    assert surprised({"NP": "VP", "VP": "NP"}) == 1.0
    flat = [replace(x, labels=(), brackets=np.array([[0, x.n_words]])) for x in two]
    assert to_learn(first, encoder, replace(trees, gold=flat)) > 0.0
    partial = [replace(x, known=Constraints()) for x in two]
    assert to_learn(first, encoder, replace(trees, gold=partial)) == 1.0
