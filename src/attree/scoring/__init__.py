"""Split scores: how good it is to split the span ``[i, j)`` at ``k``, from an association matrix.

Adding a score is adding a module with ``terms`` and ``CROSS`` (see :mod:`attree.scoring.tables`)
and its line here. Importing this package imports nothing heavy.
"""

from __future__ import annotations

#: split score → its module
SCORES = {
    "outside": "attree.scoring.outside",
    "inside_outside": "attree.scoring.inside_outside",
    "inside": "attree.scoring.inside",
}

#: what is done to the association before it is scored: as it is, or ``log(a + 1e-6)``
ASSOCIATIONS = ("raw", "log")

#: what is added before every logarithm of an association, since float16 attention holds zeros
FLOOR = 1e-6
