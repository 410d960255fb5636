"""Tune an encoder on raw text as a masked language model."""

import functools
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from attree.base import options
from attree.base.errors import AttreeError
from attree.base.files import whole_folder, write_json
from attree.base.provenance import code_hash, provenance, versions
from attree.base.runs import PROVENANCE, already_made, working_folder
from attree.base.terminal import say
from attree.encoder.source import ResolvedEncoder, has_new_head, verify
from attree.raw_text.inputs import InputFile
from attree.raw_text.lines import measure, read_texts, text_files

_BASE = ("slug", "kind", "id", "revision", "fingerprint")
#: All files of a tokeniser; they are copied unchanged, so that pieces stay the same.
_TOKENISER_FILES = ("tokenizer*", "*_tokens*.json", "vocab.*", "merges.txt", "*.model")


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
        head_steps: Warm-up steps of a new language-model head, with the encoder frozen.
        head_learning_rate: peak in these: the head starts from random numbers.
    """

    epochs: options.Epochs = 10
    batch: options.Batch = 32
    learning_rate: options.LearningRate = 5e-5
    warm_up: options.Fixed[float] = 0.1
    weight_decay: options.Fixed[float] = 0.01
    mask_share: options.Fixed[float] = 0.15
    length: Annotated[int, Parameter(validator=options.between(8))] = 128
    head_steps: Annotated[int, Parameter(validator=options.between(0))] = 500
    head_learning_rate: options.Fixed[float] = 1e-3


def tune(
    encoder: ResolvedEncoder,
    text: Sequence[Path],
    output: Path,
    *,
    seed: int,
    recipe: TuningRecipe,
    device: str | None = None,
    restart: bool = False,
) -> None:
    """Tune ``encoder`` on ``text`` and write a checkpoint folder, whole or not at all.

    A run that was killed resumes after its last whole epoch.

    Args:
        encoder: the encoder to start from.
        text: sentence tables, text files, or folders of them.
        output: folder for the tuned encoder, usable as a ``path`` source; ``provenance.json`` in it
            has its inputs, whether its head is new, and the loss curve.
        seed: seed for a new head, order, masks and dropout.
        recipe: settings of the training.
        device: ``cpu`` or ``cuda``; by default a GPU if there is one.
        restart: replace the results of other settings, text or code in ``output``.

    Raises:
        AttreeError: there is too little text, the encoder has no masked-LM head, ``output`` holds
            other files, or the loss is not a number.
    """
    files = text_files(text)
    measured = measure(files)
    identity = {
        "kind": "tuning",
        "encoder": encoder.fingerprint,
        "data": {"text": measured["hash"]},
        "recipe": asdict(recipe),
        "seed": seed,
        "code": code_hash("attree.encoder.tuning:tune"),
    }
    if already_made(output, identity, restart=restart):
        return
    with working_folder(output, identity, restart=restart) as work:
        folder = verify(encoder)
        recipe = replace(recipe, length=min(recipe.length, encoder.max_pieces))
        model, facts = _tuned(folder, files, work, recipe, seed=seed, device=device)
        facts |= {
            "base": {key: getattr(encoder, key) for key in _BASE},
            "data": {"text": measured},
            "versions": versions("torch", "transformers", "tokenizers", "accelerate"),
        }
        record = provenance(code=["attree.encoder.tuning"], settings=identity, **facts)
        with whole_folder(output, over=PROVENANCE) as part:
            model.save_pretrained(part)
            for pattern in _TOKENISER_FILES:
                for file in folder.glob(pattern):
                    shutil.copyfile(file, part / file.name)
            write_json(part / PROVENANCE, record)
    say(f"{output}: written")


def _tuned(
    folder: Path,
    files: list[InputFile],
    work: Path,
    recipe: TuningRecipe,
    *,
    seed: int,
    device: str | None,
) -> tuple[Any, dict[str, Any]]:
    """Return the tuned model, and facts about the training for its provenance."""
    import accelerate  # noqa: F401  transformers' Trainer needs it, and names no extra of attree

    from attree.encoder import masked_lm
    from attree.encoder.library import read_tokeniser

    checkpoints, length = work / "tuning", recipe.length
    model, new_head = masked_lm.load_for_masking(folder, seed=seed)
    tokeniser = read_tokeniser(folder, model)
    text = masked_lm.sequences(read_texts(files), tokeniser, length=length)
    if len(text) < recipe.batch:
        problem = f"{len(text)} sequences of {length} pieces do not fill a batch of {recipe.batch}"
        raise AttreeError("too-little-text", problem, fix="give more text, or a smaller --batch")
    train = functools.partial(
        masked_lm.train,
        model,
        text,
        masked_lm.Masking(tokeniser, mlm_probability=recipe.mask_share),
        device=device,
        per_device_train_batch_size=recipe.batch,
        warmup_steps=recipe.warm_up,
        weight_decay=recipe.weight_decay,
        seed=seed,
    )
    if new_head and recipe.head_steps and masked_lm.last_checkpoint(checkpoints) is None:
        # train only the head: the encoder, and with it a tied decoder, is frozen
        model.base_model.requires_grad_(False)
        rate, steps = recipe.head_learning_rate, recipe.head_steps
        train("new head", work / "head", steps=steps, learning_rate=rate, resume=False)
        model.base_model.requires_grad_(True)
    curve = train(
        "masked-LM tuning",
        checkpoints,
        steps=recipe.epochs * -(-len(text) // recipe.batch),
        learning_rate=recipe.learning_rate,
    )
    return model, {"new_head": new_head or has_new_head(folder), "curve": curve}
