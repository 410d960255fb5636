"""``attree report``: one self-contained HTML page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from attree.base import options
from attree.base.options import between


def report_command(
    results: Annotated[Path, Parameter(help="Folder of results that the workflow filled.")],
    /,
    *,
    output: Annotated[options.Output, Parameter(help="Where to write: the page (.html).")],
    trees_shown: Annotated[
        int,
        Parameter(
            validator=between(1), help="Trees shown of each test set, half of them the worst."
        ),
    ] = 60,
    run: Annotated[
        Path | None, Parameter(help="What the run was asked for, as the workflow wrote it.")
    ] = None,
) -> None:
    """Write one page about a run: tables, F1 with intervals, heads, treebanks, trees.

    The page needs no network. Example: attree report results --output results/report/index.html
    """
    from attree.reports.page.page import write_page

    write_page(results, output, sentences=trees_shown, run=run)
