"""Join the labels of a unary chain to one name, and part them again.

Labels are joined by ``+``, the upper one first: ``S+VP``. In a label, ``%2B`` stands for ``+`` and
``%25`` for ``%``, so that ``NP+PP`` is one label or two, as it was before.
"""

from __future__ import annotations

from collections.abc import Iterable

CHAIN = "+"


def joined(labels: Iterable[str]) -> str:
    """Return the name of a chain of labels; empty labels are left out."""
    escaped = (label.replace("%", "%25").replace(CHAIN, "%2B") for label in labels if label)
    return CHAIN.join(escaped)


def parted(name: str) -> list[str]:
    """Return the labels of a chain's name; none of the empty name."""
    labels = name.split(CHAIN) if name else []
    return [label.replace("%2B", CHAIN).replace("%25", "%") for label in labels if label]
