"""Choose sentences to annotate: at random, or those that a parser is least sure of.

To add a way, write a function ``(measured, count) → positions`` and add it to :data:`WAYS`.
"""

from __future__ import annotations

#: way of choosing → its function of a parser's measures; ``random`` needs no parser
WAYS = {
    "random": "attree.choosing.ranking:at_random",
    "uncertain": "attree.choosing.ranking:most_uncertain",
    "diverse": "attree.choosing.ranking:diverse",
}
RANDOM = "random"
