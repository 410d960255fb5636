"""Compute an encoder's features of sentences once: hidden states and attention.

Training draws ten sentences a step, in any order. Features of thousands of sentences are kept in a
memory-mapped file, and each batch gives its pages back once it is copied.
"""

import math
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.process import give_memory_back
from attree.base.terminal import Progress, silent
from attree.encoder.load import Encoder, EncoderOutput
from attree.encoder.pieces import Pieces, batches, pad

#: Bytes of features kept in memory; more go to disk, in blocks of so many sentences.
IN_MEMORY = 500_000_000
_BLOCK = 512
_TOKENS_PER_BATCH = 4096
_CELLS_PER_BATCH = 100_000


@dataclass(frozen=True, slots=True)
class Layout:
    """Which features are kept.

    Attributes:
        layers: hidden states kept, 0 (embeddings) to the encoder's top.
        heads: number of heads, counted over all layers, whose word-level attention is kept.
    """

    layers: tuple[int, ...]
    heads: int


@dataclass(frozen=True, slots=True)
class SentenceFeatures:
    """Features of one sentence.

    Attributes:
        pieces: of the sentence.
        states: (layers, pieces, hidden), special tokens included.
        attention: (heads of the encoder, words, words), or no heads.
        file: the mapped file that holds states and attention, if they are not in memory.
    """

    pieces: Pieces
    states: NDArray[Any]
    attention: NDArray[Any]
    file: mmap.mmap | None = None


@dataclass(frozen=True, slots=True)
class Features:
    """Features of sentences, float16, in memory or in a file that is mapped into it."""

    layout: Layout
    records: list[SentenceFeatures]


def features_of(
    encoder: Encoder,
    sentences: Sequence[Sequence[str]],
    layout: Layout,
    *,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Features:
    """Run the encoder once over sentences and keep their features.

    Args:
        encoder: a loaded encoder.
        sentences: their words.
        layout: which features to keep.
        folder: for a temporary file, if features take more than :data:`IN_MEMORY` bytes.
        progress: shows how far the encoder is.

    Raises:
        AttreeError: a layer that does not exist, or a sentence too long for the encoder.
    """
    encoder.check(states=layout.layers)
    pieces = pieces_of(encoder, sentences)
    each = len(layout.layers) * encoder.hidden_size
    size = sum(each * len(one.ids) + layout.heads * one.n_words**2 for one in pieces)
    with progress("reading", total=len(pieces)) as advance:
        if folder is None or 2 * size <= IN_MEMORY:
            return Features(layout, _compute(encoder, pieces, layout, advance))
        folder.mkdir(parents=True, exist_ok=True)
        shapes = []
        with TemporaryFile(dir=folder) as file:
            for first in range(0, len(pieces), _BLOCK):
                for record in _compute(encoder, pieces[first : first + _BLOCK], layout, advance):
                    for array in (record.states, record.attention):
                        array.tofile(file)
                        shapes.append(array.shape)
                give_memory_back()
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    parts = np.split(np.frombuffer(mapped, np.float16), ends[:-1])
    arrays = iter([part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)])
    records = [SentenceFeatures(one, next(arrays), next(arrays), mapped) for one in pieces]
    return Features(layout, records)


def pieces_of(
    encoder: Encoder, sentences: Sequence[Sequence[str]], *, fix: str = "choose other trees"
) -> list[Pieces]:
    """Split sentences into word pieces; an error says what to do by ``fix``.

    Raises:
        AttreeError: a sentence too long for the encoder.
    """
    pieces = encoder.tokenise(sentences)
    for words, sentence in zip(sentences, pieces, strict=True):
        if sentence.too_long:  # named by its words: sentences of a draw have other numbers
            problem = f"the sentence {' '.join(words)[:50]!r}… has {len(sentence.ids)} word pieces,"
            problem += f" the encoder takes {encoder.max_pieces}"
            raise AttreeError("too-many-pieces", problem, fix=fix)
    return pieces


def run(encoder: Encoder, pieces: Sequence[Pieces], layout: Layout) -> EncoderOutput:
    """Run the encoder over one batch of sentences that fit it; the output stays on its device."""
    heads = [divmod(head, encoder.n_heads) for head in range(layout.heads)]
    return encoder.run(pieces, heads=heads, states=layout.layers)


def _compute(
    encoder: Encoder, pieces: Sequence[Pieces], layout: Layout, advance: Callable[[int], None]
) -> list[SentenceFeatures]:
    """Run the encoder over sentences and return their features, in memory."""
    records: dict[int, SentenceFeatures] = {}
    groups = batches(
        [len(sentence.ids) for sentence in pieces],
        tokens_per_batch=_TOKENS_PER_BATCH,
        cells_per_batch=_CELLS_PER_BATCH if layout.heads else None,
    )
    for group in groups:
        output = run(encoder, [pieces[index] for index in group], layout)
        states = [output.states[layer].half().cpu().numpy() for layer in layout.layers]
        attention = output.attention.half().cpu().numpy()
        for row, index in enumerate(group):
            one = pieces[index]
            of_layers = np.array([state[row, : len(one.ids)] for state in states], np.float16)
            of_heads = attention[row, :, : one.n_words, : one.n_words].copy()
            records[index] = SentenceFeatures(one, of_layers, of_heads)
        advance(len(group))
    return [records[index] for index in range(len(pieces))]


def read_back(
    records: Sequence[SentenceFeatures],
    stored: Layout,
    wanted: Layout,
    device: torch.device | str = "cpu",
) -> EncoderOutput:
    """Return kept features as a padded encoder output, float32.

    Args:
        records: of the sentences.
        stored: the layout of the records.
        wanted: which of these features to return.
        device: of the output.
    """
    pieces = pad([record.pieces for record in records], pad_id=0).to(torch.device(device))
    states = {
        layer: _pad([record.states[row] for record in records]).to(device)
        for layer, row in {layer: stored.layers.index(layer) for layer in wanted.layers}.items()
    }
    attention = _pad([record.attention[: wanted.heads] for record in records]).to(device)
    if (file := records[0].file) is not None and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
        file.madvise(mmap.MADV_DONTNEED)
    return EncoderOutput(attention, states, pieces, [])


def _pad(arrays: Sequence[NDArray[Any]]) -> torch.Tensor:
    """Stack arrays of the same number of axes, zero-padded along each; float32."""
    out = np.zeros((len(arrays), *np.max([array.shape for array in arrays], axis=0)), np.float32)
    for row, array in zip(out, arrays, strict=True):
        row[tuple(slice(size) for size in array.shape)] = array
    return torch.from_numpy(out)
