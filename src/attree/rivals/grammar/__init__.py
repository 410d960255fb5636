"""A grammar learnt from raw words: the compound PCFG of Kim, Dyer and Rush (2019)."""

from __future__ import annotations

from pathlib import Path

#: File that describes a grammar in its folder.
ABOUT = "grammar.json"


def is_grammar(parser: str) -> bool:
    """Tell whether ``parser`` is the folder of a grammar."""
    return bool(parser) and (Path(parser) / ABOUT).is_file()
