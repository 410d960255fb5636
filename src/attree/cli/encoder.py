"""``attree encoder``: find and describe an encoder, tune it on raw text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from attree.base import options
from attree.encoder.source import DTYPES
from attree.encoder.tuning import TuningRecipe

app = App(name="encoder", help="Find, describe and tune encoders.")

_Texts = Annotated[
    list[Path],
    Parameter(
        converter=options.paths,
        help="Text: sentence tables, text files (also .xz, .gz) or folders of them.",
    ),
]


@app.command(name="resolve")
@options.excludes("hub path package")
@options.needs(revision="hub")
def resolve_command(
    *,
    slug: Annotated[str, Parameter(help="Its name in the configuration and in results.")],
    output: Annotated[options.Output, Parameter(help="Where to write: the description (JSON).")],
    hub: Annotated[str | None, Parameter(help="Its id on the Hugging Face hub.")] = None,
    revision: Annotated[
        str | None,
        Parameter(help="Commit of the hub. Default: the current one, recorded at the first run."),
    ] = None,
    path: Annotated[str | None, Parameter(help="A folder that save_pretrained wrote.")] = None,
    package: Annotated[
        str | None, Parameter(help="A Python package that carries a checkpoint.")
    ] = None,
    dtype: options.Dtype = DTYPES[0],
) -> None:
    """Find an encoder, check it, and write its description with a hash of its files."""
    from attree.base.errors import AttreeError
    from attree.encoder.source import EncoderSource, resolve

    given = {"hub": hub, "path": path, "package": package}
    named = {kind: value for kind, value in given.items() if value is not None}
    if not named:
        raise AttreeError(f"encoder {slug} has no source", fix="use --hub, --path or --package")
    ((kind, value),) = named.items()
    source = EncoderSource(slug=slug, kind=kind, id=value, revision=revision, dtype=dtype)
    # Beside the output and not in it: a workflow deletes outputs before it runs a job again.
    resolve(source, record=output.with_name(f"{output.stem}.revision.json")).write(output)


@app.command(name="tune")
def tune_command(
    *,
    encoder: options.Encoder,
    text: _Texts,
    output: Annotated[options.Output, Parameter(help="Where to write: a folder, whole or not.")],
    recipe: Annotated[TuningRecipe, Parameter(name="*")] = TuningRecipe(),
    held_out_text: Annotated[
        list[Path] | None,
        Parameter(converter=options.paths, help="Compute the loss on this text each epoch."),
    ] = None,
    seed: options.Seed = 0,
    device: options.Device | None = None,
    restart: options.Restart = False,
) -> None:
    """Tune an encoder on raw text as a masked language model (BERT's recipe).

    A run that was killed resumes after its last epoch when the command is repeated. An encoder
    without a language-model head gets a new one, warmed up with the encoder frozen; the provenance
    says so.
    """
    from attree.encoder.source import find_encoder
    from attree.encoder.tuning import tune

    tune(
        find_encoder(encoder),
        text,
        output,
        seed=seed,
        recipe=recipe,
        held_out=held_out_text or (),
        device=device,
        restart=restart,
    )
