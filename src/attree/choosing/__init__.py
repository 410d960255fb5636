"""Which sentences to annotate: drawn at random, or those that a parser is least sure of.

To add a way: a function ``(measured, count) → places`` and its line in :data:`WAYS`.
"""

from __future__ import annotations

#: way of choosing → its function, of what a parser has measured; at random needs no parser
WAYS = {
    "random": "attree.choosing.ranking:at_random",
    "uncertain": "attree.choosing.ranking:most_uncertain",
    "diverse": "attree.choosing.ranking:diverse",
}
RANDOM = "random"
