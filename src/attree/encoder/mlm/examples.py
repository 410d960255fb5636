"""Sequences of word pieces: cut from text, drawn in a set order, masked as BERT masks.

What the model sees at a place of the run is a function of the seed and that place alone, never of
a generator's state: a run that was killed continues with exactly the batches it would have had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerFast

from attree.encoder.mlm.data import proportions
from attree.errors import AttreeError

_LINES_AT_ONCE = 2_000
_BATCHES_SORTED_TOGETHER = 50
# What a generator is for, so that no two draw the same numbers.
_ORDER, _SHUFFLE, _MASK = range(3)

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


@dataclass(frozen=True, slots=True)
class Examples:
    """Sequences end to end: ``ids`` int32 (pieces,), ``starts`` int64 (sequences + 1,)."""

    ids: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        """Count the sequences."""
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> np.ndarray:
        """Return the pieces of one."""
        return self.ids[self.starts[number] : self.starts[number + 1]]


def encode(
    lines: Iterable[str],
    tokeniser: PreTrainedTokenizerFast,
    *,
    length: int,
    packed: bool = False,
) -> Examples:
    """Cut text into sequences of at most ``length`` pieces, [CLS] and [SEP] included.

    Args:
        lines: one sentence or paragraph each.
        tokeniser: a fast one.
        length: a longer line becomes several sequences.
        packed: fill every sequence with as many lines as fit, [SEP] between them, instead of one
            line a sequence. A line may be cut where a sequence is full.

    Returns:
        sequences with at least one piece that can be masked.
    """
    specials = Specials.of(tokeniser)
    pieces = _pieces(lines, tokeniser)
    if packed:
        pieces = _joined(pieces, specials.last, length - 2)
    ids, lengths = [], []
    for line in pieces:
        for start in range(0, len(line), length - 2):
            part = line[start : start + length - 2]
            if specials.maskable[part].any():
                ids.append(np.concatenate(([specials.first], part, [specials.last])))
                lengths.append(len(part) + 2)
    starts = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    flat = np.concatenate(ids) if ids else np.empty(0)
    return Examples(flat.astype(np.int32), starts.astype(np.int64))


def sequences(
    name: str,
    lines: Iterable[str],
    tokeniser: PreTrainedTokenizerFast,
    *,
    length: int,
    least: int,
    packed: bool = False,
) -> Examples:
    """Cut the text called ``name`` as :func:`encode` does; fewer than ``least`` are too few.

    Raises:
        AttreeError: too little text.
    """
    found = encode(lines, tokeniser, length=length, packed=packed)
    if len(found) < least:
        raise AttreeError(
            f"too little text ({name}): {len(found)} sequences of at most {length} pieces, "
            f"at least {least} are needed",
            fix="give more text, or a smaller --batch",
        )
    return found


def _pieces(lines: Iterable[str], tokeniser: PreTrainedTokenizerFast) -> Iterator[np.ndarray]:
    backend = tokeniser.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    backend.encode_special_tokens = True  # text is text: `[MASK]` in it is five letters
    waiting = iter(lines)
    while some := list(islice(waiting, _LINES_AT_ONCE)):
        for encoding in backend.encode_batch_fast(some, add_special_tokens=False):
            yield np.array(encoding.ids, dtype=np.int32)


def _joined(lines: Iterable[np.ndarray], between: int, room: int) -> Iterator[np.ndarray]:
    """Join lines, ``between`` after each, and cut the stream to ``room`` pieces."""
    waiting: list[np.ndarray] = []
    n_waiting = 0
    for line in lines:
        waiting += [line, np.array([between], dtype=np.int32)]
        n_waiting += len(line) + 1
        if n_waiting >= room:
            stream = np.concatenate(waiting)
            whole = n_waiting - n_waiting % room
            yield from stream[:whole].reshape(-1, room)
            waiting, n_waiting = [stream[whole:]], n_waiting - whole
    if n_waiting > 1:
        yield np.concatenate(waiting)[:-1]


class Schedule(Dataset[tuple[np.ndarray, np.ndarray]]):
    """Every sequence that a run sees, masked, in the order in which it sees them.

    An *epoch* is as many draws as there are sequences, filled up to whole batches; each corpus
    gives the same count of them every epoch, and all its sequences before any of them again.
    Sequences of like length share a batch.

    Args:
        corpora: each at least one sequence.
        masking: what hides pieces.
        batch: sequences of a batch.
        steps: batches of the whole run; ``None`` for ``epochs`` whole epochs.
        exponent: see :func:`proportions`.
    """

    def __init__(
        self,
        corpora: Sequence[Examples],
        masking: Masking,
        *,
        seed: int,
        batch: int,
        steps: int | None = None,
        epochs: int = 1,
        exponent: float = 1.0,
    ) -> None:
        self.corpora, self.masking, self.seed, self.batch = corpora, masking, seed, batch
        sizes = [len(corpus) for corpus in corpora]
        self.bounds = np.concatenate(([0], np.cumsum(sizes)))
        self.lengths = np.concatenate([np.diff(corpus.starts) for corpus in corpora])
        self.steps_per_epoch = -(-sum(sizes) // batch)
        self.steps = epochs * self.steps_per_epoch if steps is None else steps
        self.draws = _rounded(proportions(sizes, exponent), self.steps_per_epoch * batch)
        self._epoch, self._order = -1, np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        """Count the places of the run."""
        return self.steps * self.batch

    def __getitem__(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and labels of the sequence at ``place`` of the run."""
        epoch, within = divmod(place, self.steps_per_epoch * self.batch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self.order(epoch)
        number = int(self._order[within])
        corpus = int(np.searchsorted(self.bounds, number, side="right")) - 1
        ids = self.corpora[corpus][number - int(self.bounds[corpus])]
        return self.masking(ids, np.random.default_rng((self.seed, _MASK, place)))

    def order(self, epoch: int) -> np.ndarray:
        """Return the sequences of one epoch, int64, numbered through all corpora."""
        drawn = [self._draw(corpus, epoch) for corpus in range(len(self.corpora))]
        random = np.random.default_rng((self.seed, _SHUFFLE, epoch))
        order = random.permutation(np.concatenate(drawn))
        together = self.batch * _BATCHES_SORTED_TOGETHER
        for start in range(0, len(order), together):
            some = order[start : start + together]
            some[:] = some[np.argsort(-self.lengths[some], kind="stable")]
        return random.permutation(order.reshape(-1, self.batch)).reshape(-1)

    def _draw(self, corpus: int, epoch: int) -> np.ndarray:
        """Take the next sequences of a corpus from the endless row of its permutations."""
        size, count = len(self.corpora[corpus]), int(self.draws[corpus])
        places = np.arange(epoch * count, (epoch + 1) * count)
        drawn = np.empty(count, dtype=np.int64)
        for turn in np.unique(places // size):
            random = np.random.default_rng((self.seed, _ORDER, corpus, int(turn)))
            here = places // size == turn
            drawn[here] = random.permutation(size)[places[here] % size]
        return drawn + self.bounds[corpus]


def _rounded(shares: np.ndarray, total: int) -> np.ndarray:
    """Round ``shares · total`` so that the sum stays ``total``: the largest remainders go up."""
    counts = np.floor(shares * total).astype(np.int64)
    short = total - int(counts.sum())
    counts[np.argsort(counts - shares * total, kind="stable")[:short]] += 1
    return counts


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
