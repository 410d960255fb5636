"""How two well-known treebanks lie in their folders, as data for ``layout:``.

``{LANG}``, ``{Lang}`` and ``{lang}`` stand for the language's name in capitals, with one capital,
and in lower case. A layout is a language's settings; what the language says itself overrides it.
"""

from __future__ import annotations

from typing import Any


def _wsj(section: str) -> str:
    """Return where a section, or a range of them, lies under the LDC's folder, or nearer to it."""
    places = ("parsed/mrg/wsj/", "*/parsed/mrg/wsj/", "mrg/wsj/", "wsj/", "")
    return " | ".join(f"{place}{section}/*.{{mrg,MRG}}" for place in places)


def _spmrl(*kinds: str) -> str:
    """Return where one split lies: the first of ``kinds`` there is, the name in either case."""
    base = "{LANG}_SPMRL/gold/ptb"
    return " | ".join(
        f"{place}{kind}/{kind}.{name}.gold.ptb"
        for kind in kinds
        for place in (f"{base}/", f"*/{base}/", "gold/ptb/", "")
        for name in ("{Lang}", "{lang}")
    )


LAYOUTS: dict[str, dict[str, Any]] = {
    # the article's 45,089 training sentences fit sections 00-21 and 24
    "ptb": {
        "format": "ptb",
        "splits": {
            "train": [_wsj("{00..21}"), _wsj("24")],
            "train_standard": [_wsj("{02..21}")],
            "dev": [_wsj("22")],
            "test": [_wsj("23")],
            "wsj10": {"from": ["train", "dev", "test"], "max_words": 10},
        },
    },
    # Hebrew and Swedish ship train5k only
    "spmrl": {
        "format": "spmrl",
        "splits": {
            "train": _spmrl("train", "train5k"),
            "dev": _spmrl("dev"),
            "test": _spmrl("test"),
        },
    },
}
