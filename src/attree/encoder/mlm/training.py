"""One phase of masked-LM training with transformers' Trainer: resumable, quiet, watched for NaN."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    PreTrainedModel,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.utils import logging

from attree.encoder.device import choose_device
from attree.encoder.mlm.examples import Examples, Schedule, collate
from attree.encoder.mlm.models import masked_loss
from attree.encoder.mlm.runs import checkpoint_folder, last_checkpoint, note, seal
from attree.errors import AttreeError
from attree.progress import progress

_LOGS_BETWEEN_CHECKPOINTS = 5
_SHOWN = ("loss", "learning_rate", "held_out")

#: step → what is known there: ``loss`` (mean since the entry before), ``learning_rate``,
#: ``held_out`` (loss by corpus)
Curve = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Phase:
    """How to train: BERT's recipe, AdamW with linear warm-up and decay.

    Args:
        name: what progress calls it; also the folder of its checkpoints.
        learning_rate: at its peak.
        warm_up: share of the steps until the peak.
        weight_decay: of matrices; biases and normalisations have none.
        every: steps between checkpoints, and between losses on held-out text.
        seed: of dropout. Order and masks are the schedule's.
        device: ``cpu``, ``cuda``, or ``None`` for a GPU where there is one.
    """

    name: str
    learning_rate: float
    warm_up: float
    weight_decay: float
    every: int
    seed: int
    device: str | None = None


def autocast(device: torch.device) -> torch.autocast:
    """Compute in bfloat16 where the device has it; weights stay float32."""
    has_it = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=has_it)


@torch.no_grad()
def held_out_loss(model: PreTrainedModel, schedule: Schedule, *, device: torch.device) -> float:
    """Return the mean loss over the masked pieces of one epoch of ``schedule``, in nats.

    The masks are the schedule's, so that losses at several steps are of the same pieces.
    """
    torch.nn.Module.to(model, device).eval()
    together = collate(schedule.masking.specials.pad)
    total, count = 0.0, 0
    for step in range(schedule.steps_per_epoch):
        places = range(step * schedule.batch, (step + 1) * schedule.batch)
        batch = {k: v.to(device) for k, v in together([schedule[i] for i in places]).items()}
        with autocast(device):
            total += float(masked_loss(model, batch, mean=False))
        count += int((batch["labels"] >= 0).sum())
    return total / count


def train(
    model: PreTrainedModel,
    schedule: Schedule,
    phase: Phase,
    *,
    folder: Path,
    held_out: Mapping[str, Examples],
) -> Curve:
    """Train ``model`` in place, from the last whole checkpoint in ``folder`` if there is one.

    Args:
        model: a masked language model.
        schedule: what it is to see.
        phase: how to train.
        folder: of checkpoints.
        held_out: text of which the loss is computed now and at every checkpoint.

    Returns:
        the loss curve of the whole run, the part before a kill included.

    Raises:
        AttreeError: the loss is not a number; the step is named.
    """
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    set_seed(phase.seed)
    device = choose_device(phase.device)
    losses = _held_out_losses(model, schedule, held_out, device)
    before: Curve = []
    if held_out:
        before = [{"step": 0, "held_out": losses()}]
        note(f"{phase.name}: loss on held-out text {_shown(before[0]['held_out'])} before")
    arguments = _arguments(schedule, phase, folder, device)
    last = last_checkpoint(folder)
    if last is not None:
        note(f"{phase.name}: continuing at step {last.name.rpartition('-')[2]}")
    with progress(phase.name, total=schedule.steps, unit="steps") as advance:
        watch = _Watch(phase.every, advance, losses)
        trainer = _MaskedTrainer(
            model,
            arguments,
            train_dataset=schedule,
            data_collator=collate(schedule.masking.specials.pad),
            callbacks=[watch],
        )
        watch.trainer = trainer
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=None if last is None else str(last))
    return before + _curve(trainer.state.log_history)


def _held_out_losses(
    model: PreTrainedModel,
    schedule: Schedule,
    held_out: Mapping[str, Examples],
    device: torch.device,
) -> Callable[[], dict[str, float]]:
    """Return what computes the losses; the masks are the same every time, and for every seed."""
    whole = {
        name: Schedule([part], schedule.masking, seed=0, batch=min(schedule.batch, len(part)))
        for name, part in held_out.items()
    }
    return lambda: {name: held_out_loss(model, part, device=device) for name, part in whole.items()}


def _arguments(
    schedule: Schedule, phase: Phase, folder: Path, device: torch.device
) -> TrainingArguments:
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=schedule.steps,
        per_device_train_batch_size=schedule.batch,
        learning_rate=phase.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=round(phase.warm_up * schedule.steps),
        weight_decay=phase.weight_decay,
        adam_epsilon=1e-6,
        max_grad_norm=1.0,
        seed=phase.seed,
        train_sampling_strategy="sequential",  # the schedule is in order already
        remove_unused_columns=False,
        logging_strategy="no",  # _Watch says when
        save_strategy="no",
        save_total_limit=2,
        logging_nan_inf_filter=False,
        use_cpu=device.type == "cpu",
        dataloader_pin_memory=device.type == "cuda",
        disable_tqdm=True,
        log_level="error",
        report_to="none",
    )
    arguments._n_gpu = min(1, arguments.n_gpu)  # one device: DataParallel wants `forward`
    return arguments


class _MaskedTrainer(Trainer):
    """A Trainer that makes logits for masked pieces only, and remembers where the loss broke."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # On the device, and looked at now and then: looking at each step would stall a GPU.
        self.broken_at = torch.tensor(-1, device=self.args.device)

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        with autocast(self.args.device):
            loss = masked_loss(model, inputs)
        step = self.state.global_step + 1
        first = (self.broken_at < 0) & ~torch.isfinite(loss.detach())
        self.broken_at = torch.where(first, step, self.broken_at)
        return loss


class _Watch(TrainerCallback):
    """Says when to log and save, shows progress, and stops a run whose loss is not a number."""

    def __init__(
        self,
        every: int,
        advance: Callable[[int], None],
        held_out: Callable[[], dict[str, float]],
    ) -> None:
        self.every, self.advance, self.held_out = every, advance, held_out
        self.trainer: _MaskedTrainer | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.advance(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.advance(1)
        within, last = state.global_step % self.every, state.global_step >= state.max_steps
        control.should_save = last or within == 0
        often = max(1, self.every // _LOGS_BETWEEN_CHECKPOINTS)
        control.should_log = control.should_save or within % often == 0
        if control.should_log:
            self._check(Path(args.output_dir).parent)
        losses = self.held_out() if control.should_save else None
        if losses:
            # In the state, and not here, so that it is in the checkpoint.
            state.log_history.append({"step": state.global_step, "held_out": losses})
            note(f"step {state.global_step}: loss on held-out text {_shown(losses)}")

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        seal(checkpoint_folder(Path(args.output_dir), state.global_step))

    def _check(self, folder: Path) -> None:
        assert self.trainer is not None
        step = int(self.trainer.broken_at)
        if step >= 0:
            raise AttreeError(
                f"the training loss is not a number at step {step}",
                file=folder,
                fix="run again with a lower --learning-rate",
            )


def _shown(losses: Mapping[str, float]) -> str:
    if len(losses) == 1:
        return f"{next(iter(losses.values())):.3f}"
    return ", ".join(f"{name} {loss:.3f}" for name, loss in losses.items())


def _curve(history: Sequence[dict[str, Any]]) -> Curve:
    steps: dict[int, dict[str, Any]] = {}
    for entry in history:
        known: dict[str, Any] = {key: entry[key] for key in _SHOWN if key in entry}
        if known:
            steps.setdefault(entry["step"], {}).update(known)
    return [{"step": step, **known} for step, known in sorted(steps.items())]
