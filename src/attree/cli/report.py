"""``attree report``: one self-contained HTML page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from attree.base import options
from attree.base.options import between


def report_command(
    results: Path,
    /,
    *,
    output: options.Output,
    trees_shown: Annotated[int, Parameter(validator=between(1))] = 60,
    run: Path | None = None,
) -> None:
    """Write one page about a run: tables, F1 with intervals, heads, treebanks, trees.

    The page needs no network. Example: attree report results --output results/report/index.html

    Args:
        results: Folder of results that the workflow filled.
        output: Where to write: the page (.html).
        trees_shown: Trees shown of each test set, half of them the worst.
        run: What the run was asked for, as the workflow wrote it.
    """
    from attree.reports.page.page import write_page

    write_page(results, output, sentences=trees_shown, run=run)
