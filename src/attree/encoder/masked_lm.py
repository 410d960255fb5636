"""Train a masked language model on text with the Trainer of transformers."""

import contextlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.trainer_utils import get_last_checkpoint

from attree.base.errors import AttreeError
from attree.base.reading import read_json
from attree.base.terminal import progress, say
from attree.encoder.checkpoint import read_config
from attree.encoder.device import choose_device
from attree.encoder.library import check_lacking, read_checkpoint
from attree.encoder.weights import check_finite

_FIX = "use an encoder that was trained as a masked language model"

#: ``input_ids`` and ``attention_mask`` of a sequence, each int32 (pieces,).
PieceSequence = dict[str, np.ndarray]

#: For each epoch ``step``, ``loss`` (its mean), ``learning_rate``.
Curve = list[dict[str, float]]


def load_for_masking(folder: Path, *, seed: int) -> tuple[transformers.PreTrainedModel, bool]:
    """Load a checkpoint in float32 as a masked language model.

    Args:
        folder: a folder of ``save_pretrained``, with or without a language-model head.
        seed: seed for the weights of a new head.

    Returns:
        The model, and whether its head is new. A new head's decoder is the input embedding matrix;
        its transformation and biases are random.

    Raises:
        AttreeError: the family has no masked language model, or weights are damaged or missing.
    """
    values = read_config(folder)
    family = values.pop("model_type")
    if family not in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        problem = f"models of type {family!r} cannot be tuned: they have no masked-LM head"
        raise AttreeError("no-masked-lm", problem, file=folder, fix=_FIX)
    config = transformers.AutoConfig.for_model(family, **values)
    model, missing = _load(folder, config, seed)
    prefix = f"{model.base_model_prefix}."
    check_lacking([name for name in missing if name.startswith(prefix)], folder)
    if missing and model.get_output_embeddings().weight is not model.get_input_embeddings().weight:
        config.tie_word_embeddings = True
        model, _ = _load(folder, config, seed)
    return model, bool(missing)


def _load(folder: Path, config: Any, seed: int) -> tuple[transformers.PreTrainedModel, set[str]]:
    """Return the model, and the names of missing weights; tied weights do not count."""
    transformers.set_seed(seed)
    how = {"config": config, "dtype": torch.float32}
    model, missing = read_checkpoint(transformers.AutoModelForMaskedLM, folder, **how)
    check_finite(model, folder)
    return model, missing - set(model.all_tied_weights_keys)


def sequences(
    lines: Iterable[str], tokeniser: transformers.PreTrainedTokenizerFast, length: int
) -> list[PieceSequence]:
    """Return the word pieces of text in sequences of at most ``length``, with [CLS] and [SEP].

    Args:
        lines: sentences or paragraphs; a long line becomes several sequences. A line without any
            known piece is left out: there is nothing to mask.
        tokeniser: a tokeniser with a padding and a mask piece.
        length: most pieces of a sequence.

    Raises:
        AttreeError: the tokeniser has no such piece.
    """
    for name in ("pad_token", "mask_token"):
        if getattr(tokeniser, name) is None:
            problem = f"this encoder's tokeniser has no {name}, which masked-LM training needs"
            raise AttreeError("no-mask-piece", problem, file=tokeniser.name_or_path, fix=_FIX)
    found: list[PieceSequence] = []
    waiting, special = iter(lines), set(tokeniser.all_special_ids)
    every = np.ones(length, np.int32)  # masks are parts of it, which take no memory of their own
    while block := list(islice(waiting, 2_000)):
        cut = tokeniser(
            block,
            truncation=True,
            max_length=length,
            return_overflowing_tokens=True,
            split_special_tokens=True,  # text is text: `[MASK]` in it is five letters
        )
        for ids in cut["input_ids"]:
            if not special.issuperset(ids):
                mask = every[: len(ids)]
                found.append({"input_ids": np.array(ids, np.int32), "attention_mask": mask})
    return found


class Masking(transformers.DataCollatorForLanguageModeling):
    """BERT's masking, with at least one masked piece per batch, as the loss is their mean."""

    def torch_mask_tokens(self, inputs: Any, *more: Any, **named: Any) -> tuple[Any, Any]:
        """Return input ids and labels, (batch, pieces)."""
        while True:
            masked, labels = super().torch_mask_tokens(inputs.clone(), *more, **named)
            if (labels >= 0).any():
                return masked, labels


@contextlib.contextmanager
def only(model: transformers.PreTrainedModel, chosen: torch.Tensor) -> Iterator[None]:
    """Make a masked language model compute logits (pieces, vocabulary) of some pieces only.

    A seventh of the pieces is masked, and the logits of the others would take most of the time.

    Args:
        model: a model whose head works on each piece by itself.
        chosen: bool (batch, pieces).
    """

    def pick(_: Any, __: Any, states: Any) -> None:
        states.last_hidden_state = states.last_hidden_state[chosen]

    hook = model.base_model.register_forward_hook(pick)
    try:
        yield
    finally:
        hook.remove()


class _Trainer(transformers.Trainer):
    """A Trainer that predicts masked pieces only, and stops if the loss is not a number."""

    def compute_loss(self, model: Any, inputs: Any, *more: Any, **named: Any) -> Any:
        chosen = inputs["labels"] >= 0
        with only(model, chosen):
            masked = {**inputs, "labels": inputs["labels"][chosen]}
            return super().compute_loss(model, masked, *more, **named)

    def training_step(self, *arguments: Any, **named: Any) -> torch.Tensor:
        loss = super().training_step(*arguments, **named)
        if not loss.isfinite():
            problem = f"the training loss is not a number at step {self.state.global_step + 1}"
            fix = "run again with a lower --learning-rate"
            raise AttreeError("loss-not-finite", problem, fix=fix)
        return loss


class _Progress(transformers.TrainerCallback):
    """Shows the progress of steps, and says the loss of each epoch."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance = advance

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self._advance(1)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **__: Any) -> None:
        if "loss" in logs:
            say(f"step {state.global_step}: loss {float(logs['loss']):.3f} in training")


def train(
    model: transformers.PreTrainedModel,
    text: list[PieceSequence],
    masking: Masking,
    title: str,
    folder: Path,
    *,
    steps: int,
    resume: bool = True,
    device: str | None = None,
    **settings: Any,
) -> Curve:
    """Train ``model`` in place by AdamW, the learning rate rising and falling linearly.

    The Trainer's checkpoints are unpickled as plain weights, which runs no code of theirs.

    Args:
        model: a masked language model.
        text: at least one sequence; sequences of similar length share a batch.
        masking: masks pieces.
        title: title of the progress bar.
        folder: folder for checkpoints.
        steps: number of batches to train on.
        resume: write a checkpoint after each epoch, and start from the last complete one.
        device: ``cpu`` or ``cuda``; by default a GPU if there is one.
        settings: further arguments of ``TrainingArguments``.

    Returns:
        the loss curve of the whole run, including the part before an interruption.

    Raises:
        AttreeError: the loss is not a number; the message names the step.
    """
    chosen = choose_device(device)
    if chosen.index:
        fix = f"use --device cuda with CUDA_VISIBLE_DEVICES={chosen.index} set"
        raise AttreeError("first-device", "training takes the first CUDA device", fix=fix)
    last = last_checkpoint(folder) if resume else None
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        adam_epsilon=1e-6,
        train_sampling_strategy="group_by_length",
        remove_unused_columns=False,
        prediction_loss_only=True,
        logging_strategy="epoch",
        save_strategy="epoch" if resume else "no",
        save_total_limit=2,
        logging_nan_inf_filter=False,
        use_cpu=chosen.type == "cpu",
        bf16=chosen.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False),
        dataloader_pin_memory=chosen.type == "cuda",
        disable_tqdm=True,
        log_level="error",
        report_to="none",
        **settings,
    )
    arguments._n_gpu = min(1, arguments.n_gpu)  # each of several GPUs would take a batch
    trainer = _Trainer(model, arguments, masking, train_dataset=text)
    trainer.remove_callback(transformers.PrinterCallback)
    done = int(last.rpartition("-")[2]) if last else 0
    with progress(title, total=steps, unit="steps", done=done) as advance:
        trainer.add_callback(_Progress(advance))
        trainer.train(resume_from_checkpoint=last)
    shown = ("step", "loss", "learning_rate")
    history = trainer.state.log_history
    return [{key: entry[key] for key in shown} for entry in history if "loss" in entry]


def last_checkpoint(folder: Path) -> str | None:
    """Return the last complete checkpoint; remove incomplete ones.

    The Trainer writes ``trainer_state.json`` last.
    """
    folder.mkdir(exist_ok=True)
    for checkpoint in folder.glob("checkpoint-*"):
        try:
            read_json(checkpoint / "trainer_state.json")
        except AttreeError:
            shutil.rmtree(checkpoint)
    return get_last_checkpoint(str(folder))
