"""``attree encoder``: find and describe an encoder, tune it on raw text."""

from typing import Annotated

from cyclopts import App, Parameter

from attree.base import options
from attree.base.errors import AttreeError
from attree.encoder.source import DTYPES, EncoderSource, find_encoder, resolve
from attree.encoder.tuning import TuningRecipe, tune

app = App(name="encoder", help="Find, describe and tune encoders.")

_TEXTS = Parameter(help="Text: sentence tables, text files (also .xz, .gz) or folders of them.")


@app.command(name="resolve")
@options.excludes("hub path package")
@options.needs(revision="hub")
def resolve_command(
    *,
    slug: str,
    output: options.Output,
    hub: str | None = None,
    revision: str | None = None,
    path: str | None = None,
    package: str | None = None,
    dtype: options.Dtype = DTYPES[0],
) -> None:
    """Find an encoder, check it, and write its description with a hash of its files.

    Args:
        slug: Its name in the configuration and in results.
        output: Where to write: the description (JSON).
        hub: Its id on the Hugging Face hub.
        revision: Commit of the hub. Default: the current one, recorded at the first run.
        path: A folder that save_pretrained wrote.
        package: A Python package that carries a checkpoint.
    """
    sources = {"hub": hub, "path": path, "package": package}
    chosen = [(kind, id) for kind, id in sources.items() if id is not None]
    if not chosen:
        problem = f"encoder {slug} has no source"
        raise AttreeError("no-source", problem, fix="use --hub, --path or --package")
    ((kind, id),) = chosen
    source = EncoderSource(slug=slug, kind=kind, id=id, revision=revision, dtype=dtype)
    # next to the output, not in it: a workflow deletes outputs before it repeats a job
    resolve(source, record=output.with_name(f"{output.stem}.revision.json")).write(output)


@app.command(name="tune")
def tune_command(
    *,
    encoder: options.Encoder,
    text: Annotated[options.Paths, _TEXTS],
    output: options.Output,
    recipe: Annotated[TuningRecipe, Parameter(name="*")] = TuningRecipe(),
    seed: options.Seed = 0,
    device: options.Device | None = None,
    restart: options.Restart = False,
) -> None:
    """Tune an encoder on raw text as a masked language model (BERT's recipe).

    A run that was killed resumes after its last epoch when the command is repeated. An encoder
    without a language-model head gets a new one, warmed up with the encoder frozen; the provenance
    says so.

    Args:
        output: Where to write: a folder, whole or not.
    """

    base = find_encoder(encoder)
    tune(base, text, output, seed=seed, recipe=recipe, device=device, restart=restart)
