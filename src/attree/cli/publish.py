"""``attree publish``: a trained parser's folder, its model card filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from attree.base import options


def publish_command(
    parser: Path,
    /,
    *,
    output: options.Output,
    licence: str,
    sources: Annotated[str, Parameter(allow_leading_hyphen=True)],
    table: options.Paths | None = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Copy a trained parser, with its licence, its sources and its F1 in its model card.

    Example:
      attree publish my-parser --licence cc-by-4.0
        --sources "My treebank (CC BY 4.0)" --output published/my-parser

    Args:
        parser: Folder of attree train.
        output: Where to write: a folder for the copy.
        licence: Of the weights: cc-by-4.0, cc-by-sa-4.0 …
        sources: Treebanks and their licences, in Markdown.
        table: Tables of F1 in Markdown.
    """
    import shutil

    from attree.base.files import read_bytes, whole_file, write_text
    from attree.stages.train import check_output
    from attree.training.card import published
    from attree.training.parser import load_parser
    from attree.training.recipes import ABOUT, CARD, WEIGHTS

    load_parser(parser)
    files = {parser / "README.md": "model card"} | dict.fromkeys(table or (), "table of F1")
    texts = [read_bytes(path, what=what).decode("utf-8") for path, what in files.items()]
    card = published(texts[0], licence=licence, sources=sources, tables=texts[1:])
    check_output(output, overwrite=overwrite)
    output.mkdir(parents=True, exist_ok=True)
    for name in (WEIGHTS, ABOUT):
        with whole_file(output / name) as part:
            shutil.copyfile(parser / name, part)
    write_text(output / CARD, card)
    print(f"{output}: {licence}")
