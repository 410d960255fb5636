"""``attree encoder``: find an encoder and write down what exactly it is."""

from __future__ import annotations

from pathlib import Path

import typer

from attree.encoder.mlm.command import register

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Find and describe encoders.")


@app.callback()
def _encoder() -> None:
    """Find and describe encoders."""


@app.command("resolve")
def resolve_command(
    slug: str = typer.Option(..., help="Its name in the configuration and in results."),
    hub: str | None = typer.Option(None, help="Its id on the Hugging Face hub."),
    revision: str | None = typer.Option(
        None, help="Commit of the hub. Without one the first run records the current commit."
    ),
    path: Path | None = typer.Option(None, help="A folder that save_pretrained wrote."),
    package: str | None = typer.Option(None, help="A Python package that carries a checkpoint."),
    dtype: str = typer.Option("float32", help="float32, bfloat16, or auto."),
    output: Path = typer.Option(..., help="Where to write the description (JSON)."),
) -> None:
    """Find an encoder, check it, and write its description with a hash of its files."""
    from attree.encoder.source import EncoderSource, resolve
    from attree.errors import AttreeError

    given = {"hub": hub, "path": None if path is None else str(path), "package": package}
    named = {kind: value for kind, value in given.items() if value is not None}
    if len(named) != 1:
        raise AttreeError(
            f"encoder {slug}: give exactly one source", fix="use --hub, --path or --package"
        )
    ((kind, value),) = named.items()
    if revision is not None and kind != "hub":
        raise AttreeError(f"encoder {slug}: only a hub encoder has a revision", fix="leave it out")
    source = EncoderSource(slug=slug, kind=kind, id=value, revision=revision, dtype=dtype)
    # Beside the output and not in it: a workflow deletes outputs before it runs a job again.
    resolve(source, record=output.with_name(f"{output.stem}.revision.json")).write(output)


register(app)  # tune, pretrain
