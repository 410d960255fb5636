"""Constituency trees out of a pretrained language model's attention.

Association matrix → split scores → tree: an encoder gives a word × word association matrix
(:mod:`attree.encoder`, :mod:`attree.association`), a scorer turns it into scores for splitting any
span at any point (:mod:`attree.scoring`), a decoder picks the tree (:mod:`attree.decoding`).

Conventions that hold everywhere: spans are half-open word intervals ``[start, end)``; attention is
indexed ``(layer, head, query, key)``; layers and heads are 0-based.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attree.parsers.parser import Chart, Parser
    from attree.trees.constraints import Constraints
    from attree.trees.tree import Tree
    from attree.trees.trees import Trees

__all__ = ["Chart", "Constraints", "Parser", "Tree", "Trees", "__version__"]
__version__ = "0.1.0"

_HOMES = {
    "Chart": "attree.parsers.parser",
    "Constraints": "attree.trees.constraints",
    "Parser": "attree.parsers.parser",
    "Tree": "attree.trees.tree",
    "Trees": "attree.trees.trees",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for: `import attree` itself loads nothing heavy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'attree' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Offer the public names where a shell completes them, before they are imported."""
    return sorted({*globals(), *__all__})
