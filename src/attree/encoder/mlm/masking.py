"""BERT's masking of word pieces, and batches of masked sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from attree.errors import AttreeError

#: Label of a piece that is not to be predicted, as in torch and transformers.
IGNORED = -100


@dataclass(frozen=True, slots=True)
class Specials:
    """What masking and padding need to know of a tokeniser.

    Args:
        first, last, pad, mask: ids of [CLS], [SEP], [PAD] and [MASK], whatever they are called.
        maskable: bool (vocabulary,), false for specials and the unknown piece.
    """

    first: int
    last: int
    pad: int
    mask: int
    maskable: np.ndarray

    @classmethod
    def of(cls, tokeniser: PreTrainedTokenizerFast) -> Specials:
        """Read them off a tokeniser; refuse one that lacks any."""
        names = ("cls_token", "sep_token", "pad_token", "mask_token")
        found = {name: getattr(tokeniser, f"{name}_id") for name in names}
        for name, value in found.items():
            if value is None:
                raise AttreeError(
                    f"this encoder's tokeniser has no {name}, which masked-LM training needs",
                    file=tokeniser.name_or_path,
                    fix="use an encoder that was trained as a masked language model",
                )
        maskable = np.ones(len(tokeniser), dtype=bool)
        maskable[tokeniser.all_special_ids] = False
        first, last, pad, mask = found.values()
        return cls(first, last, pad, mask, maskable)


@dataclass(frozen=True, slots=True)
class Masking:
    """BERT's masking: of ``share`` of the pieces 80 % become [MASK], 10 % any piece, 10 % stay."""

    specials: Specials
    share: float = 0.15

    def __call__(
        self, ids: np.ndarray, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return input ids and labels, int64 (pieces,); labels are :data:`IGNORED` elsewhere.

        As in BERT the number of pieces masked is the rounded share, at least one.
        """
        inputs, labels = ids.astype(np.int64), np.full(len(ids), IGNORED, dtype=np.int64)
        there = np.flatnonzero(self.specials.maskable[ids])
        count = min(len(there), max(1, round(self.share * len(there))))
        chosen = random.choice(there, size=count, replace=False)
        labels[chosen] = inputs[chosen]
        fate = random.random(count)
        inputs[chosen[fate < 0.8]] = self.specials.mask
        any_piece = chosen[fate >= 0.9]
        inputs[any_piece] = random.integers(len(self.specials.maskable), size=len(any_piece))
        return inputs, labels


def collate(pad: int) -> Callable[[Sequence[tuple[np.ndarray, np.ndarray]]], dict[str, Any]]:
    """Return what makes a batch of masked sequences: int64 tensors (batch, longest)."""

    def batch(items: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, Any]:
        shape = (len(items), max(len(inputs) for inputs, _ in items))
        ids, labels = np.full(shape, pad, dtype=np.int64), np.full(shape, IGNORED, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        for row, (inputs, wanted) in enumerate(items):
            ids[row, : len(inputs)], labels[row, : len(inputs)] = inputs, wanted
            mask[row, : len(inputs)] = 1
        arrays = {"input_ids": ids, "attention_mask": mask, "labels": labels}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    return batch
