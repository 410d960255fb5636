"""``attree encoder``: find and describe an encoder, tune it on raw text, or train a small one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attree.encoder.source import DTYPES

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Find, describe, tune and train encoders."
)

_Texts = list[Path]
_Slug = Annotated[str, typer.Option(help="Its name in the configuration and in results.")]
_Hub = Annotated[str | None, typer.Option(help="Its id on the Hugging Face hub.")]
_Revision = Annotated[
    str | None,
    typer.Option(help="Commit of the hub. Without one the first run records the current commit."),
]
_Path = Annotated[str | None, typer.Option(help="A folder that save_pretrained wrote.")]
_Package = Annotated[str | None, typer.Option(help="A Python package that carries a checkpoint.")]
_Dtype = Annotated[
    str, typer.Option(help=f"{', '.join(DTYPES)}: bfloat16 where the device multiplies it.")
]
_Description = Annotated[Path, typer.Option(help="Where to write the description (JSON).")]

_Encoder = Annotated[
    Path,
    typer.Option(help="A description of `attree encoder resolve`, or a checkpoint's folder."),
]
_Text = Annotated[
    _Texts,
    typer.Option(help="Sentence table, text file (also .xz, .gz) or folder of them. Repeatable."),
]
_HeldOut = Annotated[
    _Texts | None, typer.Option(help="Compute the loss on it each epoch. Repeatable.")
]
_Languages = Annotated[
    _Texts,
    typer.Argument(help="Texts named by language: en.txt, en.txt.xz, or all files of a folder en."),
]
_Output = Annotated[Path, typer.Option(help="Folder to write, whole or not at all.")]
_Seed = Annotated[int, typer.Option(min=0, help="Of weights, order, masks and dropout.")]
_Device = Annotated[
    str | None, typer.Option(help="cpu, cuda, cuda:1…; by default a GPU where there is one.")
]
_Restart = Annotated[
    bool, typer.Option("--restart", help="Replace the result of other settings, text or code.")
]
_Epochs = Annotated[int, typer.Option(min=1, help="Passes over the text.")]
_Batch = Annotated[int, typer.Option(min=1, help="Sequences in a step.")]
_Rate = Annotated[float, typer.Option(min=0, help="Peak learning rate.")]
_Length = Annotated[int, typer.Option(min=8, help="Longest sequence, in word pieces.")]
_HeadSteps = Annotated[
    int, typer.Option(min=0, help="Steps that warm up a new language-model head.")
]
_Vocabulary = Annotated[int, typer.Option(min=50, help="Word pieces.")]
_Cased = Annotated[bool, typer.Option("--cased", help="Tell upper from lower case.")]
_Layers = Annotated[int, typer.Option(min=1, max=1000, help="Layers.")]
_Heads = Annotated[int, typer.Option(min=1, max=1000, help="Attention heads in a layer.")]
_Hidden = Annotated[int, typer.Option(min=1, help="Hidden size.")]
_Steps = Annotated[int | None, typer.Option(min=1, help="Training steps; 10,000 by default.")]
_Tokens = Annotated[
    int | None,
    typer.Option(min=1, help="Word pieces to train on, padding included, instead of --steps."),
]
_Exponent = Annotated[
    float,
    typer.Option(min=0, max=1, help="Draw languages ∝ size ** exponent; 0 draws all alike."),
]
_Share = Annotated[float, typer.Option(help="Share of each language's lines kept for the loss.")]


@app.command("resolve")
def resolve_command(
    slug: _Slug,
    output: _Description,
    hub: _Hub = None,
    revision: _Revision = None,
    path: _Path = None,
    package: _Package = None,
    dtype: _Dtype = DTYPES[0],
) -> None:
    """Find an encoder, check it, and write its description with a hash of its files."""
    from attree.encoder.source import EncoderSource, resolve
    from attree.errors import AttreeError

    given = {"hub": hub, "path": path, "package": package}
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


@app.command("tune")
def tune_command(
    encoder: _Encoder,
    text: _Text,
    output: _Output,
    held_out: _HeldOut = None,
    seed: _Seed = 0,
    epochs: _Epochs = 10,
    batch: _Batch = 32,
    learning_rate: _Rate = 5e-5,
    length: _Length = 128,
    head_steps: _HeadSteps = 500,
    device: _Device = None,
    restart: _Restart = False,
) -> None:
    """Tune an encoder on raw text as a masked language model (BERT's recipe).

    A run that was killed resumes when the command is repeated. An encoder without a
    language-model head gets a new one, warmed up with the encoder frozen; the provenance says so.
    """
    from attree.encoder.mlm.tuning import TuningRecipe, tune
    from attree.encoder.source import find_encoder

    recipe = TuningRecipe(
        epochs=epochs,
        batch=batch,
        learning_rate=learning_rate,
        length=length,
        head_steps=head_steps,
    )
    found = find_encoder(encoder)
    tune(
        found,
        text,
        output,
        seed=seed,
        recipe=recipe,
        held_out=held_out or (),
        device=device,
        restart=restart,
    )


@app.command("pretrain")
def pretrain_command(
    text: _Languages,
    output: _Output,
    seed: _Seed = 0,
    vocabulary: _Vocabulary = 16_000,
    cased: _Cased = False,
    layers: _Layers = 6,
    heads: _Heads = 8,
    hidden: _Hidden = 256,
    length: _Length = 128,
    batch: _Batch = 64,
    learning_rate: _Rate = 5e-4,
    steps: _Steps = None,
    tokens: _Tokens = None,
    exponent: _Exponent = 0.7,
    held_out: _Share = 0.01,
    device: _Device = None,
    restart: _Restart = False,
) -> None:
    """Train a small multilingual BERT from nothing but text.

    A run that was killed resumes when the command is repeated.
    """
    from attree.encoder.mlm.pretraining import PretrainingRecipe, pretrain
    from attree.errors import AttreeError

    if steps is not None and tokens is not None:
        raise AttreeError("--steps and --tokens exclude each other", fix="give one of them")
    if tokens is not None:
        steps = -(-tokens // (batch * length))
    recipe = PretrainingRecipe(
        vocabulary=vocabulary,
        cased=cased,
        layers=layers,
        heads=heads,
        hidden=hidden,
        length=length,
        batch=batch,
        learning_rate=learning_rate,
        steps=10_000 if steps is None else steps,
        exponent=exponent,
        held_out=held_out,
    )
    pretrain(text, output, seed=seed, recipe=recipe, device=device, restart=restart)
