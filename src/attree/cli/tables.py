"""``attree table``, ``figure``, ``report``: what people read about summaries and whole runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from attree.base import options
from attree.base import tables as render
from attree.base.errors import AttreeError
from attree.base.options import between

app = App(name="table", help="Make the tables of scores and sizes, or show one.")

Summaries = Annotated[
    options.Paths, Parameter(help="Summaries of `attree score` and `attree baselines`.")
]


@app.command
def crosslingual(
    summaries: Summaries,
    /,
    *,
    output_prefix: options.OutputPrefix,
    published: options.Published | None = None,
    published_table: str = "cross-lingual",
    title: options.Title = "Across languages",
) -> None:
    """A table over languages: every parser beside every baseline, corpus and sentence F1.

    Args:
        published_table: Which of its tables.
    """
    from attree.reports.tables.summaries import crosslingual, read_published, score_rows

    rows = score_rows(summaries, read_published(published, published_table))
    _save(output_prefix, [row.flat() for row in rows], crosslingual(rows, title))


@app.command
def language(summaries: Summaries, /, *, output_prefix: options.OutputPrefix) -> None:
    """One language's table: three F1 scores and label recall of every parser and baseline."""
    from attree.reports.tables.summaries import language, score_rows

    rows = score_rows(summaries, {})
    _save(output_prefix, [row.flat() for row in rows], language(rows))


@app.command
def sizes(
    treebanks: options.Paths,
    /,
    *,
    output_prefix: options.OutputPrefix,
    published: options.Published | None = None,
) -> None:
    """The dataset-size table: sentences counted in each split, beside the article's counts.

    Args:
        treebanks: Sentence tables.
    """
    from attree.reports.tables.summaries import SIZES, read_published, size_rows, sizes

    records = size_rows(treebanks, read_published(published, SIZES))
    _save(output_prefix, records, sizes(records))


@app.command
def comparison(
    summaries: Summaries,
    /,
    *,
    output_prefix: options.OutputPrefix,
    sentences: options.Paths | None = None,
    speeds: options.Paths | None = None,
    lengths: Annotated[
        list[int] | None, Parameter(converter=options.numbers, validator=between(2))
    ] = None,
    published: options.Published | None = None,
    row: options.Words | None = None,
    average: options.Words | None = None,
    timed: Annotated[int, Parameter(validator=between(1))] = 100,
    max_words: options.MaxWords | None = None,
    title: options.Title = "Comparison",
) -> None:
    """Every system side by side: scores, p values, speed, lengths, and the article's figures.

    PREFIX.pairs.parquet compares every two systems of a split.

    Example: attree table comparison results/scores/minilm/*/french/test.json
      results/scores/baselines/french/test.json --output-prefix french

    Args:
        sentences: Sentences with trees: the table of each split.
        speeds: What `attree speed` wrote.
        lengths: Longest sentences, in words: a table for each.
        row: Published figure: SYSTEM=TABLE/ROW, or SYSTEM=TABLE/ROW@COLUMN.
        average: An average and its members: AVERAGE=SYSTEM,SYSTEM,…
        timed: Sentences that speed was measured on.
    """
    from attree.reports.tables.comparison import compared, read_figures, systems
    from attree.reports.tables.comparison import comparison as as_tables

    averages = dict(map(_average, average or ()))
    figures = read_figures(published, row or ())
    scored = systems(summaries, sentences or (), speeds or (), figures, max_words)
    ordered, pairs = compared(scored, lengths or ())
    _save(f"{output_prefix}.pairs", pairs, [])
    tables = as_tables(ordered, title, timed, averages)
    _save(output_prefix, [system.flat() for system in ordered], tables)


def _average(text: str) -> tuple[str, list[str]]:
    name, _, members = text.partition("=")
    if not (name and members):
        problem = f"{text} does not define an average"
        raise AttreeError("bad-average", problem, fix="write AVERAGE=SYSTEM,SYSTEM")
    return name, members.split(",")


@app.command
def show(table: Path, /) -> None:
    """Print a table, or a summary of `attree score`, to the terminal.

    Args:
        table: Table: a .parquet of `attree table`, or a summary of scores.
    """
    from attree.base.reading import read_json
    from attree.reports.tables.summaries import summary_table

    if table.suffix == ".json":
        render.show([summary_table(read_json(table, what="summary of scores"))])
    else:
        render.show(render.saved_tables(table))


def _save(prefix: str, records: Sequence[dict[str, Any]], tables: Sequence[Any]) -> None:
    from attree.base.provenance import provenance

    record = provenance(code=["attree.cli.tables"], settings={"prefix": prefix})
    render.save(prefix, records, tables, record)


#: Number of labels with a row and a column of their own.
_LABELS_SHOWN = 20

figures = App(name="figure", help="Draw figures from tables.")


@figures.command
def heads(*, ranking: Path, output: options.PictureOutput, title: options.Title = "") -> None:
    """The layer × head heat map: F1 of every head, the selected ones framed.

    Args:
        ranking: The table written by `attree heads`.
    """
    from attree.base.schemas import HEADS_SCHEMA, read_table

    table, _ = read_table(ranking, schema=HEADS_SCHEMA)
    from attree.reports import figures as drawing  # takes seconds

    drawing.save(drawing.heads(table, title or str(ranking)), output)


@figures.command
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
    from attree.reports import figures as drawing  # takes seconds

    shown = confusion.most_frequent(_LABELS_SHOWN) if confusion else NOTHING
    names = shown.headings if confusion else []
    drawing.save(drawing.labels(names, shown.counts, title or str(scores)), output)


def report_command(results: Path, /, *, output: options.Output, run: Path | None = None) -> None:
    """Write one page about a run: tables, F1 with intervals, heads, treebanks, trees.

    The page needs no network. Example: attree report results --output results/report/index.html

    Args:
        results: Folder of results that the workflow filled.
        output: Where to write: the page (.html).
        run: Request of the run, written by the workflow.
    """
    from attree.reports.page.page import write_page

    write_page(results, output, run=run)
