"""A small encoder of one's own: tokeniser and BERT from nothing but text, of any languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from attree import options
from attree.encoder.mlm.data import Corpus, Extent, balanced_lines, by_language, measure
from attree.encoder.mlm.runs import (
    TOKENISER,
    already_made,
    note,
    working_folder,
    write_result,
)
from attree.errors import AttreeError
from attree.options import between
from attree.provenance import code_hash

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from attree.encoder.mlm.examples import Examples, Schedule
    from attree.encoder.mlm.training import Phase

#: A run is saved, and its loss on held-out text computed, this often.
_CHECKPOINTS = 20


@dataclass(frozen=True, slots=True)
class PretrainingRecipe:
    """Shape of the tokeniser and the model, and how to train.

    Attributes:
        vocabulary: Word pieces, specials included.
        cased: Tell upper from lower case, and keep accents.
        tokeniser_characters: text that the tokeniser is trained on, drawn as the model's is.
        layers: Layers.
        heads: Attention heads in a layer.
        hidden: Hidden size; feed-forward layers are four times as wide.
        length: Longest sequence, in word pieces, and the most that the model will ever take.
        batch: sequences of a step.
        steps: of training.
        learning_rate: peak of AdamW's.
        warm_up, weight_decay, mask_share: as for tuning.
        exponent: Draw languages ∝ size ** exponent: 0 draws all alike.
        held_out: Share kept to measure on: of each language's lines.
    """

    vocabulary: Annotated[int, Parameter(validator=between(50))] = 16_000
    cased: bool = False
    tokeniser_characters: options.Fixed[int] = 50_000_000
    layers: Annotated[int, Parameter(validator=between(1, 1000))] = 6
    heads: Annotated[int, Parameter(name="--layer-heads", validator=between(1, 1000))] = 8
    hidden: options.Hidden = 256
    length: options.Pieces = 128
    batch: options.Batch = 64
    steps: options.Steps = 10_000
    learning_rate: options.LearningRate = 5e-4
    warm_up: options.Fixed[float] = 0.1
    weight_decay: options.Fixed[float] = 0.01
    mask_share: options.Fixed[float] = 0.15
    exponent: Annotated[float, Parameter(validator=between(0, 1))] = 0.7
    held_out: options.HeldOutShare = 0.01

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.hidden % self.heads:
            raise AttreeError(
                f"a hidden size of {self.hidden} cannot be shared by {self.heads} heads",
                fix="choose a hidden size that the number of heads divides",
            )
        if not 0 <= self.exponent <= 1:
            raise AttreeError("the exponent must lie between 0 (all alike) and 1 (as they are)")
        if not 0 < self.held_out < 0.5:
            raise AttreeError("the held-out share must lie between 0 and 0.5")


def pretrain(
    text: Sequence[Path],
    output: Path,
    *,
    seed: int,
    recipe: PretrainingRecipe,
    device: str | None = None,
    restart: bool = False,
) -> None:
    """Train a tokeniser and a BERT on ``text`` and write a checkpoint folder, whole or not at all.

    Args:
        text: files and folders named by language; see :func:`attree.encoder.mlm.data.by_language`.
        output: as for :func:`attree.encoder.mlm.tuning.tune`; resumable as it is.
        seed: of the weights, order, masks and dropout.
        recipe: what to make, and how.
        device: ``cpu`` or ``cuda``; by default a GPU where there is one.
        restart: replace what other settings, text or code have left there.

    Raises:
        AttreeError: too little text, an ``output`` that holds something else, or a loss that is
            not a number.
    """
    corpora = by_language(text)
    extents = {corpus.name: measure(corpus) for corpus in corpora}
    identity = {
        "kind": "pretraining",
        "data": {name: extent.hash for name, extent in extents.items()},
        "recipe": asdict(recipe),
        "seed": seed,
        "code": code_hash("attree.encoder.mlm.pretraining:pretrain"),
    }
    if already_made(output, identity, restart=restart):
        note(f"{output}: this run is finished")
        return
    with working_folder(output, identity, restart=restart) as work:
        from attree.encoder.mlm.training import train

        folder = work / TOKENISER
        tokeniser = _tokeniser(corpora, extents, recipe, folder)
        parts = {corpus.name: _cut(corpus, tokeniser, recipe) for corpus in corpora}
        schedule, phase = _plan([part for part, _ in parts.values()], tokeniser, recipe, seed)
        phase = replace(phase, device=device)
        model = new_model(recipe, tokeniser, seed=seed)
        held_out = {name: part for name, (_, part) in parts.items()}
        curve = train(model, schedule, phase, folder=work / phase.name, held_out=held_out)
        drawn = (schedule.draws / schedule.draws.sum()).tolist()
        about = {
            "data": {name: extent.describe() for name, extent in extents.items()},
            "drawn": dict(zip(parts, drawn, strict=True)),
            "new_head": False,  # it was trained with everything else
            "curve": curve,
        }
        write_result(output, model, folder, identity, about)


def _tokeniser(
    corpora: Sequence[Corpus],
    extents: Mapping[str, Extent],
    recipe: PretrainingRecipe,
    folder: Path,
) -> PreTrainedTokenizerFast:
    """Train the tokeniser, or take the one that this run trained before it was killed."""
    from transformers import PreTrainedTokenizerFast

    from attree.encoder.mlm.models import save_tokeniser, train_tokeniser

    if not folder.exists():
        note("training the tokeniser")
        sizes = [extents[corpus.name].characters for corpus in corpora]
        lines = partial(
            balanced_lines,
            corpora,
            sizes,
            characters=recipe.tokeniser_characters,
            exponent=recipe.exponent,
        )
        trained = train_tokeniser(lines, vocabulary=recipe.vocabulary, cased=recipe.cased)
        if trained.get_vocab_size() < recipe.vocabulary:
            found = trained.get_vocab_size()
            note(f"the text gives only {found:,} of {recipe.vocabulary:,} word pieces")
        save_tokeniser(trained, folder, length=recipe.length)
    return PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)


def _plan(
    parts: Sequence[Examples],
    tokeniser: PreTrainedTokenizerFast,
    recipe: PretrainingRecipe,
    seed: int,
) -> tuple[Schedule, Phase]:
    from attree.encoder.mlm.examples import Masking, Schedule, Specials
    from attree.encoder.mlm.training import Phase

    schedule = Schedule(
        parts,
        Masking(Specials.of(tokeniser), recipe.mask_share),
        seed=seed,
        batch=recipe.batch,
        steps=recipe.steps,
        exponent=recipe.exponent,
    )
    phase = Phase(
        name="pretraining",
        learning_rate=recipe.learning_rate,
        warm_up=recipe.warm_up,
        weight_decay=recipe.weight_decay,
        every=-(-recipe.steps // _CHECKPOINTS),
        seed=seed,
    )
    return schedule, phase


def _cut(
    corpus: Corpus, tokeniser: PreTrainedTokenizerFast, recipe: PretrainingRecipe
) -> tuple[Examples, Examples]:
    """Return the sequences to train on and those held out."""
    from attree.encoder.mlm.examples import sequences

    every = round(1 / recipe.held_out)

    def lines(held_out: bool) -> Iterator[str]:
        for number, line in enumerate(corpus.lines()):
            if (number % every == 0) is held_out:
                yield line

    named: dict[str, Any] = {"length": recipe.length, "least": 1, "packed": True}
    return (
        sequences(corpus.name, lines(False), tokeniser, **named),
        sequences(f"{corpus.name}, held out", lines(True), tokeniser, **named),
    )


def new_model(
    recipe: PretrainingRecipe, tokeniser: PreTrainedTokenizerFast, *, seed: int
) -> PreTrainedModel:
    """Return a BERT with random weights."""
    from transformers import BertConfig, BertForMaskedLM, set_seed

    set_seed(seed)
    return BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokeniser),
            hidden_size=recipe.hidden,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            intermediate_size=4 * recipe.hidden,
            max_position_embeddings=recipe.length,
            pad_token_id=tokeniser.pad_token_id,
        )
    )
