"""Decoders: find the tree with the best splits, from the split scores of every span.

To add a decoder, write a function ``decoder(scores, starts, ends)`` in
:mod:`attree.decoding.decoders` or in a new file, and add a line here. Importing this package
imports no heavy library.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

#: decoder → its function
DECODERS = {
    "greedy": "attree.decoding.decoders:greedy",
    "chart": "attree.decoding.decoders:chart",
    "normalised_chart": "attree.decoding.decoders:normalised_chart",
    "marginal_chart": "attree.decoding.decoders:marginal_chart",
}

#: Trees that depend only on the number of words (see :mod:`attree.decoding.fixed`).
FIXED = (
    "right_branching",
    "left_branching",
    "balanced",
    "random_uniform_split",
    "random_shift_reduce",
    "random_uniform_tree",
)


#: The most trees of a sentence that are ranked: each costs time and memory, and with labels there
#: are more than anybody can count.
MOST_BEST = 10_000


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a parser makes a tree from an association matrix.

    Attributes:
        association: a name of :data:`attree.scoring.ASSOCIATIONS`.
        score: a name of :data:`attree.scoring.SCORES`.
        decoder: a name of :data:`DECODERS`.
    """

    association: str
    score: str
    decoder: str

    def settings(self) -> dict[str, Any]:
        """Return the settings as keyword arguments of :func:`attree.decoding.batch.decode`."""
        return asdict(self)


#: name → recipe of the article's unsupervised parsers
UNSUPERVISED = {
    "upoa": Recipe("raw", "outside", "greedy"),
    "upio": Recipe("raw", "inside_outside", "chart"),
    "upio-log": Recipe("log", "inside_outside", "chart"),
}
