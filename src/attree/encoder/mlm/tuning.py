"""Masked-LM tuning of an encoder on raw text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from attree import options
from attree.encoder.mlm.data import Corpus, measure, one_corpus
from attree.encoder.mlm.runs import (
    already_made,
    has_new_head,
    note,
    working_folder,
    write_result,
)
from attree.encoder.source import ResolvedEncoder, verify
from attree.provenance import code_hash

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from attree.encoder.mlm.examples import Examples, Masking
    from attree.encoder.mlm.training import Curve


@dataclass(frozen=True, slots=True)
class TuningRecipe:
    """BERT's recipe, at the learning rate that its authors tune with.

    Attributes:
        epochs: passes over the text; the article's 10.
        batch: sequences of a step.
        learning_rate: peak of AdamW's.
        warm_up: share of the steps in which it rises.
        weight_decay: of matrices.
        mask_share: share of the pieces that are to be predicted.
        length: Longest sequence, in word pieces; a longer sentence becomes several.
        head_steps: Steps that a new language-model head is warmed up for, the encoder frozen.
        head_learning_rate: peak in these: the head starts from random numbers.
    """

    epochs: options.Epochs = 10
    batch: options.Batch = 32
    learning_rate: options.LearningRate = 5e-5
    warm_up: options.Fixed[float] = 0.1
    weight_decay: options.Fixed[float] = 0.01
    mask_share: options.Fixed[float] = 0.15
    length: options.Pieces = 128
    head_steps: Annotated[int, Parameter(validator=options.between(0))] = 500
    head_learning_rate: options.Fixed[float] = 1e-3


def tune(
    encoder: ResolvedEncoder,
    text: Sequence[Path],
    output: Path,
    *,
    seed: int,
    recipe: TuningRecipe,
    held_out: Sequence[Path] = (),
    device: str | None = None,
    restart: bool = False,
) -> None:
    """Tune ``encoder`` on ``text`` and write a checkpoint folder, whole or not at all.

    A run that was killed resumes at its last checkpoint. The result is a function of its
    arguments on a CPU, killed or not.

    Args:
        encoder: what to start from.
        text: sentence tables, text files, or folders of them.
        output: a folder that any ``path`` source can name; ``provenance.json`` in it says what it
            was made from, whether its head is new, and the loss curve.
        seed: of a new head, order, masks and dropout.
        recipe: how to train.
        held_out: text to compute the loss on after each epoch, with the same masks each time.
        device: ``cpu`` or ``cuda``; by default a GPU where there is one.
        restart: replace what other settings, text or code have left there.

    Raises:
        AttreeError: too little text, an encoder without masked-LM training, an ``output`` that
            holds something else, or a loss that is not a number.
    """
    corpora = {"text": one_corpus("text", text)}
    if held_out:
        corpora["held_out"] = one_corpus("held_out", held_out)
    extents = {name: measure(corpus) for name, corpus in corpora.items()}
    identity = {
        "kind": "tuning",
        "encoder": encoder.fingerprint,
        "data": {name: extent.hash for name, extent in extents.items()},
        "recipe": asdict(recipe),
        "seed": seed,
        "code": code_hash("attree.encoder.mlm.tuning:tune"),
    }
    if already_made(output, identity, restart=restart):
        note(f"{output}: this run is finished")
        return
    with working_folder(output, identity, restart=restart) as work:
        folder = verify(encoder)
        run, new_head = _prepare(encoder, folder, corpora, recipe, seed, work, device)
        about = {
            "base": {key: getattr(encoder, key) for key in _BASE},
            "data": {name: extent.describe() for name, extent in extents.items()},
            "new_head": new_head or has_new_head(folder),
            "head_curve": run.warm_up_head() if new_head else [],
            "curve": run.tune(),
        }
        write_result(output, run.model, folder, identity, about)


_BASE = ("slug", "kind", "id", "revision", "fingerprint")


def _prepare(
    encoder: ResolvedEncoder,
    folder: Path,
    corpora: Mapping[str, Corpus],
    recipe: TuningRecipe,
    seed: int,
    work: Path,
    device: str | None,
) -> tuple[_Run, bool]:
    """Load the model, cut the text; return what trains, and whether the head is new."""
    from attree.encoder.mlm.examples import Masking, Specials, sequences
    from attree.encoder.mlm.models import load_for_masking
    from attree.encoder.weights import read_tokeniser

    model, new_head = load_for_masking(folder, seed=seed)
    tokeniser = read_tokeniser(folder, model)
    masking = Masking(Specials.of(tokeniser), recipe.mask_share)
    length = min(recipe.length, encoder.max_pieces)
    least = {"text": recipe.batch, "held_out": 1}
    examples = {
        name: sequences(name, corpus.lines(), tokeniser, length=length, least=least[name])
        for name, corpus in corpora.items()
    }
    return _Run(model, examples, masking, recipe, seed, work, device), new_head


@dataclass(slots=True)
class _Run:
    """The phases of one run, on one model in place."""

    model: PreTrainedModel
    examples: dict[str, Examples]
    masking: Masking
    recipe: TuningRecipe
    seed: int
    work: Path
    device: str | None

    def warm_up_head(self) -> Curve:
        """Train the new head alone: the encoder, and with it the tied decoder, stays as it is."""
        from attree.encoder.mlm.models import freeze_encoder

        if not self.recipe.head_steps:
            return []
        freeze_encoder(self.model, True)
        curve = self._train(
            "new head",
            learning_rate=self.recipe.head_learning_rate,
            every=self.recipe.head_steps,
            steps=self.recipe.head_steps,
        )
        freeze_encoder(self.model, False)
        return curve

    def tune(self) -> Curve:
        """Train everything."""
        return self._train("masked-LM tuning", learning_rate=self.recipe.learning_rate)

    def _train(
        self, name: str, *, learning_rate: float, steps: int | None = None, every: int | None = None
    ) -> Curve:
        from attree.encoder.mlm.examples import Schedule
        from attree.encoder.mlm.training import Phase, train

        recipe = self.recipe
        schedule = Schedule(
            [self.examples["text"]],
            self.masking,
            seed=self.seed,
            batch=recipe.batch,
            epochs=recipe.epochs,
            steps=steps,
        )
        held_out = {name: part for name, part in self.examples.items() if name == "held_out"}
        phase = Phase(
            name=name,
            learning_rate=learning_rate,
            warm_up=recipe.warm_up,
            weight_decay=recipe.weight_decay,
            every=every or schedule.steps_per_epoch,
            seed=self.seed,
            device=self.device,
        )
        return train(self.model, schedule, phase, folder=self.work / name, held_out=held_out)
