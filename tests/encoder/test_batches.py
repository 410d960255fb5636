from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attree.encoder.pieces import batches


@given(
    st.lists(st.integers(1, 60), max_size=60),
    st.integers(1, 200),
    st.one_of(st.none(), st.integers(1, 5000)),
)
def test_every_sentence_once_within_the_budget(
    lengths: list[int], tokens: int, cells: int | None
) -> None:
    found = batches(lengths, tokens_per_batch=tokens, cells_per_batch=cells)
    order = np.concatenate(found) if found else np.zeros(0, np.int64)
    assert sorted(order.tolist()) == list(range(len(lengths)))
    sorted_lengths = [lengths[place] for place in order]
    assert sorted_lengths == sorted(lengths, reverse=True)
    for batch in found:
        longest = max(lengths[place] for place in batch)
        assert len(batch) == 1 or len(batch) * longest <= tokens
        assert len(batch) == 1 or cells is None or len(batch) * longest**2 <= cells


def test_equal_lengths_keep_their_order() -> None:
    (only,) = batches([3, 5, 3, 5], tokens_per_batch=100)
    assert only.tolist() == [1, 3, 0, 2]
