"""Decoders: the tree with the best splits, from the split scores of every span.

Adding a decoder is adding a module with ``decode(scores, starts, ends)`` and its line here.
Importing this package imports nothing heavy.
"""

from __future__ import annotations

#: decoder → its module
DECODERS = {
    "greedy": "attree.decoding.greedy",
    "chart": "attree.decoding.chart",
    "normalised_chart": "attree.decoding.normalised_chart",
    "marginal_chart": "attree.decoding.marginal_chart",
}

#: trees that look at nothing but the number of words (see :mod:`attree.decoding.fixed`)
FIXED = (
    "right_branching",
    "left_branching",
    "balanced",
    "random_uniform_split",
    "random_shift_reduce",
    "random_uniform_tree",
)
