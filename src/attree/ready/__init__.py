"""Parsers that come with attree: folders of ``attree train``, and heads for unsupervised ones."""

from pathlib import Path
from typing import Any

#: Those that were trained on trees: each a folder beside this file.
TRAINED = ("universal",)
#: Default parser: if nothing is named; if only an encoder or heads are.
DEFAULT, OF_NAMED = "universal", "upio-log"

_HERE = Path(__file__).parent


def default_parser(*, encoder: str | None = None, heads: str | None = None) -> str:
    """Return the default parser, given the encoder and the heads that are named, if any."""
    return DEFAULT if encoder is None and heads is None else OF_NAMED


def trained_folder(name: str) -> Path | None:
    """Return the folder of the ready parser that was trained on trees and has this name, if any."""
    return _HERE / name if name in TRAINED else None


def folder_of_start(start: str | None) -> Path | None:
    """Return the folder of the parser that ``start`` names, a ready parser or a path; else None."""
    folder = trained_folder(start or "") or Path(start or "")
    return folder if start and (folder / "parser.json").is_file() else None


def ready_parsers() -> list[str]:
    """Return the names of the parsers that come with attree."""
    from attree.decoding import UNSUPERVISED

    return [*TRAINED, *UNSUPERVISED]


def default_encoder() -> str:
    """Return the name of the default encoder, which the ready parsers use."""
    return str(ready_heads()["default"])


def ready_heads() -> dict[str, Any]:
    """Return the encoders for which ready parsers know heads; ``default`` names one of them."""
    from attree.base.reading import read_json

    return dict(read_json(_HERE / "heads.json", what="list of ready heads"))
