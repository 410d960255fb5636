"""Node counts against parsers that are played through, and trees counted by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from attree.apps.measures import distinct, of_trees, of_words, phrase_types
from attree.trees.trees import Trees
from tests.training import reference

#: A node: its label and its children, or a word's number.
Node = tuple[str, list[Any]] | int


def nested(spans: list[tuple[int, int, str]], n: int) -> list[Node]:
    """Return the outermost nodes and words of a sentence, from spans in pre-order."""
    waiting = list(spans)

    def take(start: int, end: int) -> list[Node]:
        found: list[Node] = []
        while start < end:
            if waiting and waiting[0][0] == start and waiting[0][1] <= end:
                s, e, label = waiting.pop(0)
                found.append((label, take(s, e)))
                start = e
            else:
                found.append(start)
                start += 1
        return found

    return take(0, n)


def top_down(roots: list[Node], n: int) -> list[int]:
    """Count predictions: the top of the stack is expanded until it is a word, which is scanned."""
    counts, stack, predicted = [0] * n, list(reversed(roots)), 0
    while stack:
        node = stack.pop()
        if isinstance(node, int):
            counts[node], predicted = predicted, 0
        else:
            predicted += 1
            stack += reversed(node[1])
    return counts


def bottom_up(roots: list[Node], n: int) -> list[int]:
    """Count reductions: after each shift, as long as the stack ends in all children of a node."""
    counts, stack = [0] * n, []
    made = [node for root in roots for node in phrases(root)]
    for word in range(n):
        stack.append(word)
        while found := next((m for m in made if ends_in(stack, m[1])), None):
            del stack[len(stack) - len(found[1]) :]
            stack.append(found)
            counts[word] += 1
    return counts


def left_corner(roots: list[Node], n: int) -> list[int]:
    """Count projections: what is complete opens the node that it is the first child of."""
    counts, waiting = [0] * n, []  # nodes that are open, with the children they still want
    made = [node for root in roots for node in phrases(root)]
    for word in range(n):
        complete: Node | None = word
        while complete is not None:
            done, complete = complete, None
            above = next((m for m in made if m[1][0] is done or m[1][0] == done == word), None)
            if above is not None:
                counts[word] += 1
                waiting.append((above, list(above[1][1:])))
            elif waiting:
                assert waiting[-1][1].pop(0) in (done,)
            if waiting and not waiting[-1][1]:
                complete = waiting.pop()[0]
    return counts


def phrases(node: Node) -> list[Any]:
    if isinstance(node, int):
        return []
    return [node, *(below for child in node[1] for below in phrases(child))]


def ends_in(stack: list[Node], children: list[Node]) -> bool:
    last = stack[len(stack) - len(children) :]
    return len(last) == len(children) and all(
        a is b or (isinstance(a, int) and a == b) for a, b in zip(last, children, strict=True)
    )


def random_trees(seed: int) -> tuple[Trees, list[list[tuple[int, int, str]]]]:
    """Trees that are not binary, with chains and phrases of a word; some without any span."""
    random = np.random.default_rng(seed)
    lengths = [0, 1, *random.integers(0, 9, 8).tolist(), 0]
    spans = []
    for n in lengths:
        made = sorted(
            {*(reference.random_tree(random, 0, n) if n > 1 else [])}, key=lambda s: (s[0], -s[1])
        )
        made = [span for span in made if random.random() < 0.8]
        words = [(i, i + 1) for i in range(n) if random.random() < 0.3]
        made = [s for s in [*made, *words] for _ in range(random.integers(1, 3))]
        spans.append(
            [(*s, f"L{random.integers(4)}") for s in sorted(made, key=lambda s: (s[0], -s[1]))]
        )
    trees = Trees.from_spans(
        lengths, [[s[:2] for s in one] for one in spans], [[s[2] for s in one] for one in spans]
    )
    return trees, spans


@pytest.mark.parametrize("seed", range(30))
def test_counts_are_those_of_parsers_played_through(seed: int) -> None:
    trees, spans = random_trees(seed)
    found, at = of_words(trees), 0
    for n, one in zip(trees.n_words.tolist(), spans, strict=True):
        here = slice(at, at + n)
        roots = nested(one, n)
        assert found.top_down[here].tolist() == top_down(roots, n)
        assert found.bottom_up[here].tolist() == bottom_up(roots, n)
        assert found.left_corner[here].tolist() == left_corner(roots, n)
        assert found.depth[here].tolist() == [sum(s <= i < e for s, e, _ in one) for i in range(n)]
        for counts in (found.top_down, found.bottom_up, found.left_corner):
            assert counts[here].sum() == len(one)
        at += n
    assert at == found.depth.size


@pytest.mark.parametrize("seed", range(30))
def test_trees_span_by_span(seed: int) -> None:
    trees, spans = random_trees(seed)
    found, (tree, (label, number, mean_length)) = of_trees(trees), phrase_types(trees)
    for place, (n, one) in enumerate(zip(trees.n_words.tolist(), spans, strict=True)):
        assert found.nodes[place] == len(one)
        deepest = max((sum(s <= i < e for s, e, _ in one) for i in range(n)), default=0)
        assert found.depth[place] == deepest
        mean = np.mean([e - s for s, e, _ in one]) if one else np.nan
        np.testing.assert_allclose(found.mean_phrase_length[place], mean)
        sides = Counter(side(span, one, n) for span in {s[:2] for s in one})
        total = sides["left"] + sides["right"] + sides["middle"]
        for name, share in (("left", found.left_branching), ("right", found.right_branching)):
            np.testing.assert_allclose(share[place], sides[name] / total if total else np.nan)
        mine = {
            label[row]: (number[row], mean_length[row]) for row in np.flatnonzero(tree == place)
        }
        assert list(mine) == sorted({label for *_, label in one})
        for of_label, (count, length) in mine.items():
            lengths = [e - s for s, e, name in one if name == of_label]
            assert (count, pytest.approx(length)) == (len(lengths), np.mean(lengths))


def side(span: tuple[int, int], spans: list[tuple[int, int, str]], n: int) -> str | None:
    start, end = span
    if end - start == 1 or span == (0, n):
        return None
    around = {s[:2] for s in spans if s[0] <= start and end <= s[1]} - {span} | {(0, n)}
    above = min(around, key=lambda s: s[1] - s[0])
    return "left" if above[0] == start else "right" if above[1] == end else "middle"


def test_a_tree_counted_by_hand() -> None:
    """(S (NP (NP the man) (PP near (NP the harbour))) (VP (VBD walked) (ADVP home)))"""
    spans = [(0, 7), (0, 5), (0, 2), (2, 5), (3, 5), (5, 7), (6, 7)]
    labels = ["S", "NP", "NP", "PP", "NP", "VP", "ADVP"]
    trees = Trees.from_spans([7], [spans], [labels])
    words = of_words(trees)
    #                                   the man near the harbour walked home
    assert words.top_down.tolist() == [3, 0, 1, 1, 0, 1, 1]
    assert words.bottom_up.tolist() == [0, 1, 0, 0, 3, 0, 3]
    assert words.left_corner.tolist() == [1, 1, 1, 1, 1, 1, 1]
    assert words.depth.tolist() == [3, 3, 3, 4, 4, 2, 3]
    found = of_trees(trees)
    assert (found.nodes.tolist(), found.depth.tolist()) == ([7], [4])
    assert found.mean_phrase_length.tolist() == [(7 + 5 + 2 + 3 + 2 + 2 + 1) / 7]
    # right: PP, its NP, VP; left: the NP of five words and that of two
    assert (found.right_branching.tolist(), found.left_branching.tolist()) == ([0.6], [0.4])
    _, (label, number, _) = phrase_types(trees)
    assert label == ["ADVP", "NP", "PP", "S", "VP"]
    assert number.tolist() == [1, 3, 1, 1, 1]


@pytest.mark.parametrize(("kind", "right"), [("right_branching", 1.0), ("left_branching", 0.0)])
def test_branching_of_fixed_trees(kind: str, right: float) -> None:
    from attree.decoding.fixed import fixed_trees

    found = of_trees(fixed_trees(kind, [1, 2, 3, 9]))
    np.testing.assert_equal(found.right_branching, [np.nan, np.nan, right, right])
    np.testing.assert_equal(found.left_branching, [np.nan, np.nan, 1 - right, 1 - right])
    assert found.depth.tolist() == [0, 1, 2, 8]


@pytest.mark.parametrize("seed", range(5))
def test_distinct_spans_are_those_that_f1_counts(seed: int) -> None:
    trees, spans = random_trees(seed)
    plain = distinct(trees)
    for place, one in enumerate(spans):
        wanted = sorted({s[:2] for s in one if s[1] - s[0] > 1}, key=lambda s: (s[0], -s[1]))
        assert list(plain.of(place).spans) == wanted


def test_no_trees() -> None:
    none = Trees.concatenate([])
    assert of_words(none).depth.size == of_trees(none).depth.size == 0
    assert phrase_types(none)[1] == [[], [], []]
