"""Split scores: how good it is to split the span ``[i, j)`` at ``k``, from an association matrix.

Adding a score is adding a :class:`SplitScore`, in ``spans.py`` or in a file of its own,
and its line here. Importing this package imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Terms = Callable[[NDArray[Any], NDArray[np.int64], Floats, Floats], None]

#: split score → its :class:`SplitScore`
SCORES = {
    "outside": "attree.scoring.spans:OUTSIDE",
    "inside_outside": "attree.scoring.spans:INSIDE_OUTSIDE",
    "inside": "attree.scoring.spans:INSIDE",
    "pair": "attree.scoring.pairs:PAIR",
    "spans": "attree.scoring.pairs:SPANS",
    "adjacent": "attree.scoring.pairs:ADJACENT",
    "adjacent_right": "attree.scoring.pairs:ADJACENT_RIGHT",
}

#: what is done to the association before it is scored: as it is, or ``log(a + 1e-6)``
ASSOCIATIONS = ("raw", "log")

#: what is added before every logarithm of an association, since float16 attention holds zeros
FLOOR = 1e-6


class SplitScore(NamedTuple):
    """A split score (see :mod:`attree.scoring.tables` for the equation and the tables).

    Attributes:
        terms: ``terms(values, n_words, prefix, out)`` writes the table of left and right terms to
            ``out``; ``values`` are the associations, ``prefix`` the prefix sums of them. None:
            there are no such terms.
        cross: whether the cross term counts.
    """

    terms: Terms | None
    cross: bool
