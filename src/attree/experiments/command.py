"""``attree experiment``: run rows of the experiments, and gather them into tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from attree import options

app = App(
    name="experiment",
    help="Run the experiments' rows and gather them into tables (the workflow calls this).",
)

PlanFile = Annotated[Path, Parameter(help="What the experiments ask for (plan.json).")]
Lists = Annotated[list[Path], Parameter(help="What `attree experiment rows` wrote.")]
Name = Annotated[str, Parameter(help="Name of the experiment.")]


@app.command
def rows(
    job: Annotated[str, Parameter(help="Name of a job of the plan.")],
    /,
    *,
    plan: PlanFile,
    encoder: options.Encoder,
    output: Annotated[
        options.Output, Parameter(help="Where to write: the list of the rows' records (JSON).")
    ],
    device: options.Device | None = None,
) -> None:
    """Run those rows of a job that have no record yet."""
    from attree import process
    from attree.experiments.job import run_job

    process.follow()
    found = _read(plan)
    run_job(
        **_asked(found["results"], _of(found, "jobs", job, plan)),
        encoder=encoder,
        records=_records(found),
        output=output,
        device=device,
    )


@app.command
def sentence(
    *,
    experiment: Name,
    plan: PlanFile,
    encoder: options.Encoder,
    output_prefix: options.OutputPrefix,
    device: options.Device | None = None,
) -> None:
    """Draw one sentence's association: a random head, and the heads and parsers of the rows."""
    from attree import process
    from attree.encoder.load import load_encoder
    from attree.experiments.maps import write_sentence

    process.follow()
    found = _read(plan)
    write_sentence(
        **_asked(found["results"], _of(found, "rows", experiment, plan)),
        number=_of(found, "tables", experiment, plan)["sentence"],
        encoder=load_encoder(encoder, device=device),
        records=_records(found),
        prefix=output_prefix,
    )


@app.command
def weights(
    lists: Lists,
    /,
    *,
    experiment: Name,
    plan: PlanFile,
    output_prefix: options.OutputPrefix,
) -> None:
    """Draw the weights over the encoder's heads that rows have learned."""
    from attree.experiments.maps import write_weights

    _gather(write_weights, lists, experiment, plan, output_prefix)


@app.command
def reliability(
    lists: Lists,
    /,
    *,
    experiment: Name,
    plan: PlanFile,
    output_prefix: options.OutputPrefix,
) -> None:
    """Draw how often spans are right over how probable rows hold them."""
    from attree.experiments.reliability import write_reliability

    _gather(write_reliability, lists, experiment, plan, output_prefix)


@app.command
def table(
    lists: Lists,
    /,
    *,
    experiment: Name,
    plan: PlanFile,
    output_prefix: options.OutputPrefix,
    published: options.Published | None = None,
) -> None:
    """Gather rows into a table: mean, standard deviation and maximum over the draws."""
    from attree.experiments.cells import cells
    from attree.experiments.table import tables
    from attree.provenance import provenance
    from attree.tables import render

    found = _read(plan)
    layout = _of(found, "tables", experiment, plan)
    gathered = cells(lists, _records(found), layout, published)
    made = provenance(code=["attree.experiments.command:table"], settings=layout)
    rows = [one.flat() for one in gathered]
    render.save(output_prefix, rows, tables(gathered, layout), made)


@app.command
def picture(
    table: Annotated[Path, Parameter(help="Table: of `attree experiment table` (Parquet).")],
    /,
    *,
    output: options.PictureOutput,
) -> None:
    """Draw a table: a line a parser over its columns, the deviation of its draws as error bars."""
    from attree.figures import axis_of, check_format
    from attree.schemas import read_table

    check_format(output)
    from attree.figures import draw  # takes seconds

    found, about = read_table(table)
    layout = about["settings"]
    draw.save(draw.lines(found.to_pylist(), layout["title"], axis_of(layout)), output)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The form of plan.json."""

    results: str
    jobs: dict[str, list[dict[str, Any]]]
    rows: dict[str, list[dict[str, Any]]]
    tables: dict[str, dict[str, Any]]


def _gather(
    write: Callable[..., Any], lists: list[Path], experiment: str, plan: Path, prefix: str
) -> None:
    """Let ``write`` draw the records of an experiment's rows as its table is laid out."""
    found = _read(plan)
    write(lists, _records(found), _of(found, "tables", experiment, plan), prefix)


def _read(plan: Path) -> dict[str, Any]:
    from attree.files import read_described

    found = read_described(plan, _Plan, what="plan of the experiments")
    return {one.name: getattr(found, one.name) for one in fields(found)}


def _of(plan: dict[str, Any], kind: str, name: str, path: Path) -> Any:
    from attree.registry import check_name

    check_name(name, plan[kind], f"no {name} among the {kind}", file=path, near=True)
    return plan[kind][name]


def _records(plan: dict[str, Any]) -> Path:
    from attree.results import RECORDS, path_of

    return Path(path_of(RECORDS, results=plan["results"]))


def _asked(results: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the rows, their sentence tables, and for rows of heads the attention manifests."""
    from attree.experiments.rows import Row
    from attree.results import ALL_HEADS, SENTENCES, path_of

    asked = [Row.of(one) for one in rows]
    sets = dict.fromkeys(name for row in asked for name in row.sets)
    heads = [row for row in asked if row.kind == "heads"]
    of = {name: row.encoder for row in heads for name in (row.train, row.test)}
    return {
        "rows": asked,
        "sets": {name: Path(path_of(SENTENCES, name, results=results)) for name in sets},
        "manifests": {
            name: Path(path_of(ALL_HEADS, name, encoder=encoder, results=results))
            for name, encoder in of.items()
        },
    }
