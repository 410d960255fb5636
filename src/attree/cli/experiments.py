"""``attree experiment``: run rows of experiments, and gather them into tables."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from attree.base import options
from attree.base import tables as render
from attree.plan.rows import ExperimentRow

app = App(
    name="experiment",
    help="Run the experiments' rows and gather them into tables (the workflow calls this).",
)

PlanFile = Annotated[Path, Parameter(help="What the experiments ask for (plan.json).")]
Lists = Annotated[list[Path], Parameter(help="What `attree experiment rows` wrote.")]
Name = Annotated[str, Parameter(help="Name of the experiment.")]


@app.command
def rows(
    job: str,
    /,
    *,
    plan: PlanFile,
    encoder: options.Encoder,
    output: options.Output,
    device: options.Device | None = None,
) -> None:
    """Run those rows of a job that have no record yet.

    Args:
        job: Name of a job of the plan.
        output: Where to write: the list of the rows' records (JSON).
    """
    from attree.experiments.job import run_job

    job_rows, results = _entry(plan, "jobs", job)
    run_job(**_inputs(job_rows, results), encoder=encoder, output=output, device=device)


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
    from attree.encoder.load import load_encoder
    from attree.encoder.source import find_encoder
    from attree.experiments.pictures import write_sentence

    rows, results = _entry(plan, "rows", experiment)
    write_sentence(
        **_inputs(rows, results),
        number=_entry(plan, "tables", experiment)[0]["sentence"],
        encoder=load_encoder(find_encoder(encoder), device=device),
        prefix=output_prefix,
    )


@app.command
def weights(
    lists: Lists, /, *, experiment: Name, plan: PlanFile, output_prefix: options.OutputPrefix
) -> None:
    """Draw the weights over the encoder's heads that rows have learned."""
    from attree.experiments.pictures import write_weights

    layout, results = _entry(plan, "tables", experiment)
    write_weights(lists, _records(results), layout, output_prefix)


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
    from attree.base.provenance import provenance
    from attree.experiments.tables import cells, tables

    layout, results = _entry(plan, "tables", experiment)
    gathered = cells(lists, _records(results), layout, published)
    record = provenance(code=["attree.cli.experiments:table"], settings=layout)
    render.save(output_prefix, [cell.flat() for cell in gathered], tables(gathered, layout), record)


@app.command
def picture(table: Path, /, *, output: options.PictureOutput) -> None:
    """Draw a table: a line a parser over its columns, the deviation of its draws as error bars.

    Args:
        table: Table: of `attree experiment table` (Parquet).
    """
    from attree.base.schemas import read_table

    cells, metadata = read_table(table)
    layout = metadata["settings"]
    from attree.reports import figures  # takes seconds

    figures.save(figures.lines(cells.to_pylist(), layout["title"], layout["axis"]), output)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The form of plan.json."""

    results: str
    jobs: dict[str, list[ExperimentRow]]
    rows: dict[str, list[ExperimentRow]]
    tables: dict[str, dict[str, Any]]


def _entry(plan: Path, kind: str, name: str) -> tuple[Any, str]:
    """Return a plan's entry for a job or an experiment, and the folder of all results.

    Args:
        plan: path of plan.json.
        kind: ``jobs``, ``rows`` or ``tables``.
        name: name of the job or experiment.

    Raises:
        AttreeError: the plan has no such entry.
    """
    from attree.base.reading import read_described
    from attree.base.registry import check_name

    content = read_described(plan, _Plan, what="plan of the experiments")
    entries = getattr(content, kind)
    check_name(name, entries, f"no {name} among the {kind}", file=plan, near=True)
    return entries[name], content.results


def _records(results: str) -> Path:
    from attree.plan.paths import RECORDS, path_of

    return Path(path_of(RECORDS, results=results))


def _inputs(rows: list[ExperimentRow], results: str) -> dict[str, Any]:
    """Return rows, their sentence tables, attention manifests (for heads), and records."""
    from attree.plan.paths import ALL_HEADS, SENTENCES_PATH, path_of

    sets = dict.fromkeys(name for row in rows for name in row.sets)
    heads = [row for row in rows if row.kind == "heads"]
    encoders = {name: row.encoder for row in heads for name in (row.train, row.test)}
    return {
        "rows": rows,
        "sets": {name: Path(path_of(SENTENCES_PATH, name, results=results)) for name in sets},
        "manifests": {
            name: Path(path_of(ALL_HEADS, name, encoder=encoder, results=results))
            for name, encoder in encoders.items()
        },
        "records": _records(results),
    }
