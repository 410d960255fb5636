"""``attree figure``: draw a stage's table; ``attree report``: one HTML page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from attree.base import options
from attree.base.options import between

#: Number of labels with a row and a column of their own.
_LABELS_SHOWN = 20

app = App(name="figure", help="Draw figures from tables.")


@app.command
def heads(*, ranking: Path, output: options.PictureOutput, title: options.Title = "") -> None:
    """The layer × head heat map: F1 of every head, the selected ones framed.

    Args:
        ranking: The table written by `attree heads`.
    """
    from attree.base.schemas import HEADS_SCHEMA, read_table

    table, _ = read_table(ranking, schema=HEADS_SCHEMA)
    from attree.reports import figures  # takes seconds

    figures.save(figures.heads(table, title or str(ranking)), output)


@app.command
def labels(*, scores: Path, output: options.PictureOutput, title: options.Title = "") -> None:
    """Which label is taken for which: gold × predicted, in percent of each gold label.

    Example:
      attree figure labels --scores test.json --output labels.png

    Args:
        scores: The summary written by `attree score`.
    """
    from attree.base.reading import read_described
    from attree.evaluation.labels import NOTHING, confusion_of

    name, fix = "score summary", "run `attree score` again"
    confusion = confusion_of(read_described(scores, dict[str, Any], what=name, fix=fix), scores)
    from attree.reports import figures  # takes seconds

    shown = confusion.most_frequent(_LABELS_SHOWN) if confusion else NOTHING
    names = shown.headings if confusion else []
    figures.save(figures.labels(names, shown.counts, title or str(scores)), output)


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
        run: Request of the run, written by the workflow.
    """
    from attree.reports.page.page import write_page

    write_page(results, output, sentences=trees_shown, run=run)
