"""What the encoder says of the sentences, computed once: hidden states and heads' attention.

Training draws ten sentences a step, in any order. A treebank of thousands of sentences lies in
shards on disk, where a sentence is one run of float16 numbers that is read when its turn comes, so
that memory does not grow with the treebank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from attree.encoder.load import Encoder, EncoderOutput
from attree.encoder.pieces import PieceBatch, Pieces, batches
from attree.errors import AttreeError
from attree.files import read_json, whole_file, write_json

#: sentences in one file, which are in memory until it is written
_SHARD = 1024
_TOKENS_PER_BATCH = 4096
_CELLS_PER_BATCH = 100_000


@dataclass(frozen=True, slots=True)
class Layout:
    """Which features there are.

    Attributes:
        layers: hidden states kept, 0 (embeddings) to the encoder's top.
        heads: of the whole encoder, whose word-level attention is kept; 0 for none.
        hidden: size of the states.
    """

    layers: tuple[int, ...]
    heads: int
    hidden: int

    def size(self, pieces: int, n_words: int) -> int:
        """Numbers in the record of one sentence."""
        return len(self.layers) * pieces * self.hidden + self.heads * n_words * n_words

    def cut(self, record: NDArray[Any], pieces: int, n_words: int) -> Record:
        """Cut a sentence's record into states and attention."""
        ends = len(self.layers) * pieces * self.hidden
        return Record(
            record[:ends].reshape(len(self.layers), pieces, self.hidden),
            record[ends:].reshape(self.heads, n_words, n_words),
        )


@dataclass(frozen=True, slots=True)
class Record:
    """Features of one sentence.

    Attributes:
        states: (layers, pieces, hidden), special tokens included.
        attention: (heads of the encoder, words, words), or no heads.
    """

    states: NDArray[Any]
    attention: NDArray[Any]


class FeatureStore(Protocol):
    """Features of sentences by place."""

    layout: Layout
    #: of each sentence, the word of each piece, -1 for special tokens
    word_of: list[NDArray[np.int32]]

    def record(self, place: int) -> Record:
        """Features of one sentence."""


class MemoryStore:
    """Features of a few thousand sentences, in memory (float16)."""

    def __init__(
        self, layout: Layout, records: list[NDArray[np.float16]], word_of: list[NDArray[np.int32]]
    ) -> None:
        self.layout, self.records, self.word_of = layout, records, word_of

    def record(self, place: int) -> Record:
        """Features of one sentence."""
        words = self.word_of[place]
        return self.layout.cut(self.records[place], len(words), int(words.max()) + 1)


class ShardStore:
    """Features in ``<folder>/features-00000.f16`` and so on, with ``features.json`` beside.

    Raises:
        AttreeError: the folder has no whole set of shards, or one is cut short.
    """

    def __init__(self, folder: Path) -> None:
        about = read_json(folder / "features.json", what="folder of features")
        self.layout = Layout(tuple(about["layers"]), about["heads"], about["hidden"])
        self._folder = folder
        pieces = np.load(folder / "words.npz")
        self.word_of = np.split(pieces["word_of"], np.cumsum(pieces["counts"])[:-1])
        sizes = [self.layout.size(len(words), int(words.max()) + 1) for words in self.word_of]
        self._ends = np.cumsum(sizes)
        for first in range(0, len(sizes), _SHARD):
            path = self._path(first)
            if not path.exists() or path.stat().st_size != 2 * sum(sizes[first : first + _SHARD]):
                raise AttreeError("this shard is cut short", file=path, fix="delete its folder")

    def _path(self, place: int) -> Path:
        return self._folder / f"features-{place // _SHARD:05d}.f16"

    def record(self, place: int) -> Record:
        """Features of one sentence, read from its shard."""
        words = self.word_of[place]
        n_words = int(words.max()) + 1
        size = self.layout.size(len(words), n_words)
        shard = place // _SHARD * _SHARD
        before = int(self._ends[place]) - size - (int(self._ends[shard - 1]) if shard else 0)
        found = np.fromfile(self._path(place), np.float16, count=size, offset=2 * before)
        return self.layout.cut(found, len(words), n_words)


def in_memory(
    encoder: Encoder,
    sentences: Sequence[Sequence[str]],
    layout: Layout,
    advance: Callable[[int], None] = lambda count: None,
) -> MemoryStore:
    """Run the encoder over sentences and keep their features in memory.

    Args:
        encoder: a loaded encoder.
        sentences: their words.
        layout: what is kept.
        advance: told how many sentences are read.

    Raises:
        AttreeError: a layer that does not exist, or a sentence too long for the encoder.
    """
    records: list[NDArray[np.float16]] = [np.empty(0, np.float16)] * len(sentences)
    word_of: list[NDArray[np.int32]] = [np.empty(0, np.int32)] * len(sentences)
    for place, record, words in _each(encoder, sentences, layout):
        records[place], word_of[place] = record, words
        advance(1)
    return MemoryStore(layout, records, word_of)


def on_disk(
    encoder: Encoder,
    sentences: Sequence[Sequence[str]],
    layout: Layout,
    folder: Path,
    advance: Callable[[int], None] = lambda count: None,
) -> ShardStore:
    """Run the encoder over sentences and keep their features in ``folder``, as :func:`in_memory`.

    ``features.json`` is written last: a folder without it is not whole.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "features.json").unlink(missing_ok=True)
    word_of: list[NDArray[np.int32]] = []
    for first in range(0, len(sentences), _SHARD):
        part = in_memory(encoder, sentences[first : first + _SHARD], layout, advance)
        path = folder / f"features-{first // _SHARD:05d}.f16"
        with whole_file(path) as whole, whole.open("wb") as file:
            for record in part.records:
                record.tofile(file)
        word_of += part.word_of
    counts = np.array([len(words) for words in word_of], np.int64)
    with whole_file(folder / "words.npz") as whole, whole.open("wb") as file:
        np.savez(file, counts=counts, word_of=np.concatenate(word_of))
    write_json(folder / "features.json", asdict(layout))
    return ShardStore(folder)


def _each(
    encoder: Encoder, sentences: Sequence[Sequence[str]], layout: Layout
) -> Iterator[tuple[int, NDArray[np.float16], NDArray[np.int32]]]:
    """Yield each sentence's place, record and words of pieces."""
    encoder.check(states=layout.layers)
    pieces = encoder.tokenise(sentences)
    for place, sentence in enumerate(pieces):
        if sentence.too_long:
            raise AttreeError(
                f"sentence {place} has {len(sentence.ids)} word pieces, the encoder takes "
                f"{encoder.max_pieces}",
                fix="choose other trees",
            )
    groups = batches(
        [len(sentence.ids) for sentence in pieces],
        tokens_per_batch=_TOKENS_PER_BATCH,
        cells_per_batch=_CELLS_PER_BATCH if layout.heads else None,
    )
    for group in groups:
        chosen = [pieces[place] for place in group]
        for place, record in zip(group.tolist(), _records(encoder, chosen, layout), strict=True):
            yield place, record, pieces[place].word_of


def run(encoder: Encoder, pieces: Sequence[Pieces], layout: Layout) -> EncoderOutput:
    """Run the encoder over one batch, none of it too long; the output stays on its device."""
    heads = [divmod(head, encoder.n_heads) for head in range(layout.heads)]
    return encoder.run(pieces, heads=heads, states=layout.layers)


def _records(
    encoder: Encoder, pieces: Sequence[Pieces], layout: Layout
) -> list[NDArray[np.float16]]:
    """Run the encoder over one batch and return the record of each sentence."""
    output = run(encoder, pieces, layout)
    found = {layer: states.half().cpu().numpy() for layer, states in output.states.items()}
    attention = output.attention.half().cpu().numpy()
    records = []
    for row, sentence in enumerate(pieces):
        n = sentence.n_words
        states = [found[layer][row, : len(sentence.ids)].ravel() for layer in layout.layers]
        records.append(np.concatenate([*states, attention[row, :, :n, :n].ravel()]))
    return records


def read_back(
    store: FeatureStore, places: Sequence[int], layout: Layout, *, device: str = "cpu"
) -> EncoderOutput:
    """Return what the encoder said of some sentences, out of a store.

    Args:
        store: where their features are.
        places: which sentences.
        layout: what is wanted of the store's layout.
        device: where to.
    """
    records = [store.record(place) for place in places]
    word_of = [store.word_of[place] for place in places]
    lengths = np.array([len(words) for words in word_of])
    grid = np.arange(lengths.max()) < lengths[:, None]
    padded = np.full(grid.shape, -1, np.int64)
    padded[grid] = np.concatenate(word_of)
    pieces = PieceBatch(
        ids=torch.zeros(grid.shape, dtype=torch.int64),
        mask=torch.from_numpy(grid.astype(np.int64)),
        word_of=torch.from_numpy(padded),
        n_words=torch.from_numpy(padded.max(1) + 1),
    ).to(torch.device(device))
    rows = {layer: store.layout.layers.index(layer) for layer in layout.layers}
    states = {
        layer: _padded([each.states[row] for each in records], device)
        for layer, row in rows.items()
    }
    attention = _padded([each.attention[: layout.heads] for each in records], device)
    return EncoderOutput(attention, states, pieces, [])


def _padded(arrays: Sequence[NDArray[Any]], device: str) -> torch.Tensor:
    """Stack arrays of the same number of axes, zero-padded along each; float32 on ``device``."""
    most = np.max([array.shape for array in arrays], axis=0)
    out = np.zeros((len(arrays), *most), np.float32)
    for row, array in zip(out, arrays, strict=True):
        row[tuple(slice(size) for size in array.shape)] = array
    return torch.from_numpy(out).to(device)
