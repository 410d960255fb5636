"""``attree experiment``: run rows of the experiments, and gather them into tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(help="Run rows of the experiments and gather them into tables.",
                  no_args_is_help=True, add_completion=False)  # fmt: skip


@app.command()
def rows(
    rows: Annotated[str, typer.Option(help="The rows, as JSON (the workflow writes them).")],
    encoder: Annotated[Path, typer.Option(help="What `attree encoder resolve` wrote.")],
    records: Annotated[Path, typer.Option(help="Folder of the records, one a finished row.")],
    output: Annotated[Path, typer.Option(help="The list of the rows' records to write (JSON).")],
    treebanks: Annotated[Path, typer.Option(help="Folder of sentence tables, language/split.")],
    attention: Annotated[
        Path | None, typer.Option(help="Folder of attention manifests of every head.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; a GPU if there is one.")] = None,
) -> None:
    """Run those of the rows that have no record yet."""
    from attree import process
    from attree.experiments.job import run_job

    process.follow()
    asked, sets, manifests = _asked(rows, treebanks, attention)
    run_job(
        asked,
        encoder=encoder,
        sets=sets,
        manifests=manifests,
        records=records,
        output=output,
        device=device,
    )


@app.command()
def sentence(
    rows: Annotated[str, typer.Option(help="The rows, as JSON (the workflow writes them).")],
    number: Annotated[int, typer.Option(help="Of the sentence in the rows' test set.")],
    encoder: Annotated[Path, typer.Option(help="What `attree encoder resolve` wrote.")],
    records: Annotated[Path, typer.Option(help="Folder of the records.")],
    output_prefix: Annotated[str, typer.Option(help="Writes PREFIX.png, .csv and .parquet.")],
    treebanks: Annotated[Path, typer.Option(help="Folder of sentence tables, language/split.")],
    attention: Annotated[Path, typer.Option(help="Folder of attention manifests.")],
    device: Annotated[str | None, typer.Option(help="cpu or cuda; a GPU if there is one.")] = None,
) -> None:
    """Draw one sentence's association: a random head, and the heads and parsers of the rows."""
    from attree import process
    from attree.encoder.load import load_encoder
    from attree.experiments.sentence import write_sentence

    process.follow()
    asked, sets, manifests = _asked(rows, treebanks, attention)
    write_sentence(
        asked,
        number,
        encoder=load_encoder(encoder, device=device),
        sets=sets,
        manifests=manifests,
        records=records,
        prefix=output_prefix,
    )


@app.command()
def weights(
    results: Annotated[list[Path], typer.Argument(help="What `attree experiment rows` wrote.")],
    look: Annotated[str, typer.Option(help="Lines, columns and metrics, as JSON.")],
    records: Annotated[Path, typer.Option(help="Folder of the records.")],
    output_prefix: Annotated[str, typer.Option(help="Writes PREFIX.png, .csv and .parquet.")],
    published: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Draw the weights over the encoder's heads that rows have learned."""
    import json

    from attree.experiments.maps import write_weights

    write_weights(results, records, json.loads(look), output_prefix)


def _asked(rows: str, treebanks: Path, attention: Path | None) -> Any:
    """Return the rows, the sentence tables of their sets, and the attention manifests."""
    import json

    from attree.experiments.grid import Row

    asked = [Row.of(one) for one in json.loads(rows)]
    names = list(dict.fromkeys(name for row in asked for name in (row.train, row.test)))
    manifests = {name: attention / f"{name}.json" for name in names} if attention else {}
    return asked, {name: treebanks / f"{name}.parquet" for name in names}, manifests


@app.command()
def table(
    results: Annotated[list[Path], typer.Argument(help="What `attree experiment rows` wrote.")],
    look: Annotated[str, typer.Option(help="Lines, columns and metrics, as JSON.")],
    records: Annotated[Path, typer.Option(help="Folder of the records.")],
    output_prefix: Annotated[str, typer.Option(help="Writes PREFIX.parquet, .csv and .md.")],
    published: Annotated[Path | None, typer.Option(help="CSV of the article's figures.")] = None,
) -> None:
    """Gather rows into a table: mean, standard deviation and maximum over the draws."""
    import json

    from attree.experiments.collect import cells
    from attree.experiments.grids import grids
    from attree.provenance import provenance
    from attree.tables import render

    how = json.loads(look)
    found = cells(results, records, how, published)
    made = provenance(code=["attree.experiments.command:table"], settings=how)
    render.save(output_prefix, [one.flat() for one in found], grids(found, how), made)


@app.command()
def picture(
    table: Annotated[Path, typer.Option(help="A table of `attree experiment table` (Parquet).")],
    output: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")],
) -> None:
    """Draw a table: a line a parser over its columns, the deviation of its draws as error bars."""
    from attree.figures.experiments import line_plot
    from attree.schemas import read_table

    found, about = read_table(table, what="table of an experiment")
    look = about["settings"]
    line_plot(found.to_pylist(), look["title"], look["axis"], output)
