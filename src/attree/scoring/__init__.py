"""Split scores: how good it is to split the span ``[i, j)`` at ``k``, from an association matrix.

To add a score, write its terms in ``spans.py`` or in a new file, and add a line here.
Importing this package imports no heavy library.
"""

#: split score → its left and right terms (``Terms`` of ``tables.py``), or None if it is the cross
#: term alone
SCORES = {
    "outside": "attree.scoring.spans:OUTSIDE",
    "inside_outside": "attree.scoring.spans:INSIDE_OUTSIDE",
    "inside": "attree.scoring.spans:INSIDE",
    "pair": "attree.scoring.spans:PAIR",
    "spans": "attree.scoring.spans:SPANS",
    "adjacent": "attree.scoring.spans:ADJACENT",
    "adjacent_right": "attree.scoring.spans:ADJACENT_RIGHT",
}

#: Transforms of the association before scoring: none, or ``log(a + 1e-6)``.
ASSOCIATIONS = ("raw", "log")

#: Added before every logarithm of an association, since float16 attention holds zeros.
FLOOR = 1e-6
