"""Options of several commands, said once: how words are read from raw text."""

from __future__ import annotations

from typing import Annotated

import typer

_TEXT = "Text"

#: ``None`` for the parser's own.
Tokenizer = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        "--language",
        help="For spaCy's rules: en, icelandic, …; xx for any; or whitespace, for words with "
        "spaces between. Default: the parser's language, or en.",
        rich_help_panel=_TEXT,
    ),
]
#: ``None`` where the tokenizer decides.
Sentences = Annotated[
    bool | None,
    typer.Option(
        "--sentences/--no-sentences",
        help="Split lines into sentences. Default: with a language.",
        rich_help_panel=_TEXT,
    ),
]
Column = Annotated[
    str, typer.Option(help="Column of Parquet, field of JSON Lines.", rich_help_panel=_TEXT)
]
