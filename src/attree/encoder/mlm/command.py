"""``attree encoder tune`` and ``attree encoder pretrain``."""

from __future__ import annotations

from pathlib import Path

import typer

_DEVICE = typer.Option(None, help="cpu or cuda. Without it a GPU where there is one.")
_OUTPUT = typer.Option(..., help="Folder to write, whole or not at all.")


def register(app: typer.Typer) -> None:
    """Add both commands to ``attree encoder``."""
    app.command("tune")(tune_command)
    app.command("pretrain")(pretrain_command)


def tune_command(
    encoder: Path = typer.Option(
        ..., help="What `attree encoder resolve` wrote, or a folder that save_pretrained wrote."
    ),
    text: list[Path] = typer.Option(
        ..., help="Sentence table, text file (also .xz, .gz) or folder of them; may be repeated."
    ),
    held_out: list[Path] = typer.Option(
        [], help="Text to compute the loss on after each epoch; may be repeated."
    ),
    output: Path = _OUTPUT,
    seed: int = typer.Option(0, min=0, help="Of a new head, order, masks and dropout."),
    epochs: int = typer.Option(10, min=1, help="Passes over the text."),
    batch: int = typer.Option(32, min=1, help="Sequences of a step."),
    learning_rate: float = typer.Option(5e-5, min=0, help="At its peak."),
    length: int = typer.Option(128, min=8, help="Longest sequence, in word pieces."),
    head_steps: int = typer.Option(
        500, min=0, help="Steps that a new language-model head is warmed up for."
    ),
    device: str | None = _DEVICE,
) -> None:
    """Tune an encoder on raw text as a masked language model (BERT's recipe).

    A run that was killed goes on where it was when the command is repeated.
    An encoder without a language-model head gets a new one, warmed up with the
    encoder frozen; the provenance says so.
    """
    from attree.encoder.mlm.tuning import TuningRecipe, tune
    from attree.encoder.source import EncoderSource, ResolvedEncoder, resolve

    if encoder.is_dir():
        found = resolve(EncoderSource(slug=encoder.resolve().name, kind="path", id=str(encoder)))
    else:
        found = ResolvedEncoder.read(encoder)
    recipe = TuningRecipe(
        epochs=epochs,
        batch=batch,
        learning_rate=learning_rate,
        length=length,
        head_steps=head_steps,
    )
    tune(found, text, output, seed=seed, recipe=recipe, held_out=held_out, device=device)


def pretrain_command(
    text: list[Path] = typer.Argument(
        ..., help="Text files or folders named by language: en.txt, en.txt.xz, or all in en/."
    ),
    output: Path = _OUTPUT,
    seed: int = typer.Option(0, min=0, help="Of weights, order, masks and dropout."),
    vocabulary: int = typer.Option(16_000, min=50, help="Word pieces."),
    cased: bool = typer.Option(False, "--cased", help="Tell upper from lower case."),
    layers: int = typer.Option(6, min=1, help="Layers."),
    heads: int = typer.Option(8, min=1, help="Attention heads of a layer."),
    hidden: int = typer.Option(256, min=1, help="Hidden size."),
    length: int = typer.Option(128, min=8, help="Longest sequence, in word pieces."),
    batch: int = typer.Option(64, min=1, help="Sequences of a step."),
    learning_rate: float = typer.Option(5e-4, min=0, help="At its peak."),
    steps: int | None = typer.Option(None, min=1, help="Steps of training; 10,000 unless given."),
    tokens: int | None = typer.Option(
        None, min=1, help="Word pieces to train on, padding included, instead of --steps."
    ),
    exponent: float = typer.Option(
        0.7, min=0, max=1, help="Draw languages ∝ size ** exponent: 1 as they are, 0 all alike."
    ),
    held_out: float = typer.Option(0.01, help="Share of each language's lines kept to test on."),
    device: str | None = _DEVICE,
) -> None:
    """Make a small multilingual BERT of your own from nothing but text.

    A run that was killed goes on where it was when the command is repeated.
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
    pretrain(text, output, seed=seed, recipe=recipe, device=device)
