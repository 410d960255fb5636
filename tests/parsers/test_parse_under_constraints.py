"""Many sentences parsed under constraints: by every kind of parser, against all trees."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attree import Constraints, Parser, Tree
from attree.base.errors import NotFiniteError
from attree.base.schemas import read_table
from attree.decoding import DECODERS
from attree.decoding.constrained import branched_right
from attree.grammar.learning import learn
from attree.training.fit import fit
from attree.training.gold import read_trees
from attree.training.parser import TrainedModel
from attree.training.recipes import RECIPES, TrainingPlan
from tests import drawn
from tests.grammar.test_learning import RECIPE
from tests.refusals import refused
from tests.training import reference
from tests.training.conftest import WORDS, encoder, resolved, treebank
from tests.training.test_labels import learnable

__all__ = ["encoder", "resolved", "treebank"]  # fixtures

HEADS = [f"upio {decoder}" for decoder in sorted(DECODERS)]
TRAINED = ["fpio", "fpoa", "tree-crf", "tree-crf-full", "span-parser", "tree-crf-labelled"]


@pytest.fixture(scope="module", params=[*HEADS, *TRAINED, "grammar"])
def parser(request, resolved, encoder, treebank, tmp_path_factory) -> Parser:
    if request.param in HEADS:
        return with_heads(resolved, decoder=request.param.split()[1])
    if request.param == "grammar":
        text = tmp_path_factory.mktemp("grammar") / "text.txt"
        text.write_text("".join(" ".join(one) + "\n" for one in sentences(40)))
        learn([text], text.with_name("made"), seed=0, recipe=RECIPE)
        return Parser.load(str(text.with_name("made")))
    labels = request.param == "tree-crf-labelled"
    trees = learnable(treebank) if labels else read_trees(read_table(treebank)[0], range(3, 12))
    made = fit(encoder, trees, TrainingPlan(RECIPES[request.param], (1, 2), steps=3))
    return Parser(TrainedModel(made, encoder))


def with_heads(encoder: Path, **more: str) -> Parser:
    return Parser.load("upio", encoder=str(encoder), heads="list:0.1,1.2", device="cpu", **more)


def sentences(count: int, longest: int = 7) -> list[list[str]]:
    generator = np.random.default_rng(3)
    lengths = generator.integers(2, longest + 1, count)
    return [[WORDS[at] for at in generator.integers(0, len(WORDS), n)] for n in lengths]


def asked(parser: Parser, words: Iterable[list[str]]) -> Iterator[Constraints | None]:
    """Constraints for all but every third sentence, with labels where the parser has some."""
    names = (None, "X", "NEW") if parser.model.labelled else (None,)
    for seed, one in enumerate(words):
        yield drawn.constraints(seed, len(one), names) if seed % 3 else None


def keeps(tree: Tree, known: Constraints, *, labels: bool) -> bool:
    """Whether a tree has all that is required, labels too, and nothing that is forbidden."""
    chains = known.chains()
    if set(tree.spans) & set(known.forbidden):
        return False
    if not labels:
        return {span for span in chains if span[1] - span[0] > 1} <= set(tree.spans)
    assert tree.labels is not None
    found: dict[tuple[int, int], list[str]] = {}
    for span, label in zip(tree.spans, tree.labels, strict=True):
        found.setdefault(span, []).append(label)
    return all(
        span in found and (wanted == [None] or found[span] == wanted)
        for span, wanted in chains.items()
    )


def test_trees_keep_to_constraints_and_the_others_do_not_change(parser: Parser) -> None:
    words = sentences(40)
    known = list(asked(parser, words))
    free, found = parser.parse(words), parser.parse(words, constraints=known)
    assert [tree.words for tree in found] == [tuple(one) for one in words]
    assert sum(one != other for one, other in zip(free, found, strict=True)) > 5
    binary = all(len(tree.spans) == len(tree.words) - 1 for tree in free)
    for one, was, tree in zip(known, free, found, strict=True):
        if not one:
            assert tree == was and tree.span_scores == was.span_scores
            assert tree.marginals == was.marginals
            continue
        assert keeps(tree, one, labels=parser.model.labelled) and tree.status == "ok"
        those = [those - set(one.forbidden) for those in drawn.best_trees(one, len(tree.words))]
        long = {span for span in tree.spans if span[1] - span[0] > 1}
        assert any(long == other if binary else long <= other for other in those)
        assert (tree.tags is None) == (was.tags is None)
        assert (tree.marginals is None) == (was.marginals is None)


def test_in_a_batch_or_by_itself_it_is_the_same_tree(parser: Parser) -> None:
    words = sentences(24)
    known = list(asked(parser, words))
    found = parser.parse(words, constraints=known)
    for sentence, one, tree in zip(words, known, found, strict=True):
        alone = parser.chart(sentence).tree(one)
        assert alone == tree
        if isinstance(parser.model, TrainedModel):
            np.testing.assert_allclose(alone.span_scores, tree.span_scores, rtol=1e-3, atol=1e-4)


def test_the_encoder_runs_as_often_as_without(
    parser: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, sizes = parser.model.features, []
    monkeypatch.setattr(
        parser.model, "features", lambda pieces: sizes.append(len(pieces)) or whole(pieces)
    )
    words = sentences(100)
    parser.parse(words)
    without, sizes[:] = list(sizes), []
    parser.parse(words, constraints=list(asked(parser, words)))
    assert sizes == without and max(sizes) > 10


def test_a_word_by_itself_has_its_label(parser: Parser) -> None:
    known = [Constraints(((0, 1, "NP"),)), None, Constraints(((0, 1, None),))]
    named, free, unknown = parser.parse([["cat"], ["cat"], ["cat"]], constraints=known)
    assert free.spans == ()
    if parser.model.labelled:
        assert (named.spans, named.labels) == (((0, 1),), ("NP",))
        assert unknown.spans == ((0, 1),) and unknown.labels != ("",)
    else:
        assert named.spans == unknown.spans == ()


def test_what_the_encoder_cannot_take_keeps_to_constraints_too(
    parser: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(features, known=None):
        raise NotFiniteError("not-finite", "broken")

    words = sentences(12)
    known = list(asked(parser, words))
    monkeypatch.setattr(parser.model, "trees", broken)
    for one, tree in zip(known, parser.parse(words, constraints=known), strict=True):
        assert tree.status == "failed" and tree.score is None
        assert not one or keeps(tree, one, labels=parser.model.labelled)
    small = Parser(parser.model, max_words=2)
    one = Constraints(((0, 3, "NP"), (1, 3, None)), ((3, 5),))
    (tree,) = small.parse([["a", "b", "c", "d", "e"]], constraints=[one])
    assert tree.status == "too_long"
    assert tree.spans == ((0, 5), (0, 3), (1, 3))
    assert tree.labels == (("X", "NP", "X") if parser.model.labelled else None)


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 7), labels=st.booleans())
def test_a_tree_in_place_of_one_is_branched_right(seed: int, n: int, labels: bool) -> None:
    known = drawn.constraints(seed, n, (None, "A", "B"), one_word=True)
    tree = branched_right(n, known, labelled=labels).of(0)
    assert keeps(tree, known, labels=labels)
    assert list(tree.spans) == sorted(tree.spans, key=lambda span: (span[0], -span[1]))
    made = {span for span in tree.spans if span[1] - span[0] > 1} | set(known.forbidden)
    trees = [one for one in reference.trees(0, n) if one - set(known.forbidden) <= made]
    assert n == 1 or trees
    if not known.chains() and not known.forbidden and n > 1:
        assert tree.spans == tuple((i, n) for i in range(n - 1))


def test_a_chain_of_labels_is_kept() -> None:
    known = Constraints(((0, 2, "S"), (0, 2, "VP"), (2, 3, "NP"), (2, 3, "NN")))
    tree = branched_right(4, known, labelled=True).of(0)
    assert tree.labels == ("X", "S", "VP", "X", "NP", "NN")
    assert branched_right(4, known, labelled=False).of(0).spans == ((0, 4), (0, 2), (2, 4))


@pytest.fixture(scope="module")
def heads(resolved: Path) -> Parser:
    return with_heads(resolved)


def test_a_string_and_its_constraints(heads: Parser) -> None:
    known = Constraints(((2, 4, None),))
    tree = heads.parse("The old man's cat.", constraints=known)
    assert tree.words == ("The", "old", "man", "'s", "cat", ".") and (2, 4) in tree.spans
    assert heads.parse("The old man.", constraints=None) == heads.parse("The old man.")


def test_a_stream_has_a_stream_of_constraints(heads: Parser) -> None:
    words = itertools.cycle(sentences(7))
    known = (Constraints(((0, 2, None),)) for _ in itertools.count())
    trees = list(itertools.islice(heads.stream(words, known), 600))
    assert all((0, 2) in tree.spans for tree in trees)


@pytest.mark.parametrize(
    ("sentences", "known", "problem"),
    [
        ([["a", "b"], ["c", "d"]], [None], "constraint-count"),
        ([["a", "b"]], [None, None], "constraint-count"),
        ([["a", "b"]], [], "constraint-count"),
        ([["a", "b"], ["c", "d"]], [None, Constraints(((1, 3, None),))], "span-outside 1 2"),
        ([["a", "b"]], [Constraints((), ((0, 2),))], "whole-sentence 0"),
        ([["a", " ", "b"]], [Constraints(((0, 2, None),))], "not-a-sentence"),
        ([[]], [Constraints(((0, 1, None),))], "span-outside 0"),
    ],
)
def test_constraints_that_fit_no_sentence(heads: Parser, sentences, known, problem) -> None:
    with refused(*problem.split()):
        heads.parse(sentences, constraints=known)
