"""Constraints: what is refused, and which spans they leave."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree import Constraints
from attree.base.errors import AttreeError
from tests import drawn
from tests.training import reference

WRONG = {
    "cross": ([(0, 3, None), (2, 4, "NP")], [], "[0, 3) and span [2, 4) are required, and cross"),
    "nested and crossing": ([(0, 6, None), (1, 4, "A"), (2, 3, "A"), (3, 5, "A")], [], "[1, 4)"),
    "both": ([(1, 3, "NP")], [(0, 2), (1, 3)], "[1, 3) is both required and forbidden"),
    "empty": ([(2, 2, None)], [], "[2, 2) is no span"),
    "negative": ([], [(-1, 2)], "[-1, 2) is no span"),
    "label and unknown": ([(0, 2, "NP"), (0, 2, None)], [], "has the label NP and an unknown one"),
    "no label": ([(0, 2, " ")], [], "a label is empty"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_contradicts_itself_is_refused(name: str):
    required, forbidden, problem = WRONG[name]
    with pytest.raises(AttreeError) as caught:
        Constraints(tuple(required), tuple(forbidden))
    assert problem in str(caught.value) and " — " in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (Constraints(((1, 5, None),)), "[1, 5) is outside a sentence of 4 words"),
        (Constraints(forbidden=((3, 9),)), "[3, 9) is outside"),
        (Constraints(forbidden=((0, 4),)), "[0, 4) is the whole sentence"),
    ],
)
def test_what_a_sentence_cannot_have_is_refused(wrong: Constraints, problem: str):
    for asked in (wrong.check, wrong.crossed, wrong.penalties):
        with pytest.raises(AttreeError) as caught:
            asked(4)
        assert problem in str(caught.value)


def test_chains_are_the_labels_of_one_span_in_their_order():
    found = Constraints(((0, 3, "S"), (0, 3, "VP"), (1, 3, None), (1, 3, None)))
    assert found.chains() == {(0, 3): ["S", "VP"], (1, 3): [None]}
    assert found and not Constraints()


def test_constraints_from_a_generator_are_kept():
    given_once = Constraints((span for span in [(0, 2, "NP")]), (span for span in [(1, 3)]))
    assert given_once == Constraints(((0, 2, "NP"),), ((1, 3),))


@given(seed=st.integers(0, 10_000), n=st.integers(1, 8))
def test_spans_without_penalty_cross_nothing_required_and_are_not_forbidden(seed: int, n: int):
    drawn_ones = drawn.constraints(seed, n)
    expected = np.array(
        [
            [
                ((i, j) not in drawn_ones.forbidden or j - i == 1)
                and not any(reference.crosses((i, j), span) for span in drawn_ones.chains())
                for j in range(n + 1)
            ]
            for i in range(n + 1)
        ]
    )
    upper = np.triu(np.ones((n + 1, n + 1), bool), 1)
    np.testing.assert_array_equal(drawn_ones.penalties(n)[upper] == 0, expected[upper])
