"""A loaded encoder: sentences in, word-level attention and hidden states out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.process import use_threads, without_collecting, yield_cores
from attree.encoder.source import (
    EncoderSource,
    Head,
    ResolvedEncoder,
    find_encoder,
    read_adapter,
    resolve,
    verify,
)

yield_cores()
with without_collecting():
    import torch

    from attree.encoder import attention, low_rank
    from attree.encoder.device import choose_device, dtype_on
    from attree.encoder.pieces import PieceBatch, Pieces, PieceTokeniser, WordMerger, pad
    from attree.encoder.weights import (
        layers_of,
        pack,
        query_key,
        read_model,
        read_splitter,
    )

#: Products of a size that oneDNN keeps code for, and what lies between it and torch.
#: Their own 1,024 grow with every new shape of a batch and lie scattered among the freed tensors:
#: memory would never stop growing. One batch has few.
_SIZES_KEPT = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "8", "LRU_CACHE_CAPACITY": "2"}


@dataclass(slots=True)
class EncoderOutput:
    """What one batch gave.

    Args:
        attention: float32 (batch, heads asked for, words, words), zero past a sentence's words.
        states: layer → (batch, pieces, hidden); past a sentence's pieces meaningless.
        batch: ids, padding, the word of each piece, and the number of words.
        highest: the places in ``attention`` of the heads of the highest layer asked for.
    """

    attention: torch.Tensor
    states: dict[int, torch.Tensor]
    batch: PieceBatch
    highest: list[int]

    @property
    def finite(self) -> torch.Tensor:
        """bool (batch,): nothing that was asked for is NaN or infinite in the sentence.

        Where it is false the sentence must not be parsed: no tree means anything.
        """
        # What is not finite in a layer is in every word of the next, so that the highest tells for
        # all. Attention is at most 1: no sum of it is infinite by itself.
        good = self.attention[:, self.highest].sum((1, 2, 3)).isfinite()
        for states in self.states.values():
            pieces = states.float().abs().amax(-1).isfinite() | (self.batch.mask == 0)
            good &= pieces.all(1)
        return good


class Encoder:
    """A checkpoint with its tokeniser, ready to run. Make one with :func:`load_encoder`."""

    def __init__(
        self, description: ResolvedEncoder, folder: Path, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.slug, self.family = description.slug, description.family
        self.n_layers, self.n_heads = description.n_layers, description.n_heads
        self.hidden_size, self.max_pieces = description.hidden_size, description.max_pieces
        self.fingerprint = description.fingerprint
        self.device, self.dtype = device, dtype
        self.model = read_model(folder, dtype, device)
        self.layers = layers_of(self.model, self.n_layers, folder)
        self.adapter = read_adapter(description.adapter) if description.adapter else {}
        low_rank.merge(self.layers, self.adapter, self.slug)
        attention.watch(self.layers)
        if device.type == "cpu":
            pack(self.layers)
        self._tokeniser = PieceTokeniser(read_splitter(folder, self.model), self.max_pieces)
        self._probe(folder)

    @property
    def pad_id(self) -> int:
        """The id of the padding piece."""
        return self._tokeniser.pad_id

    @property
    def tokens_per_batch(self) -> int:
        """Word pieces that are well run at once: few keep a CPU's caches warm and pad little."""
        return 1024 if self.device.type == "cpu" else 32_768

    def tokenise(self, sentences: Sequence[Sequence[str]]) -> list[Pieces]:
        """Split the words of pre-split sentences into pieces, specials at both ends."""
        return self._tokeniser(sentences)

    @torch.inference_mode()
    def run(
        self,
        sentences: Sequence[Pieces],
        *,
        heads: Sequence[Head] = (),
        states: Sequence[int] = (),
    ) -> EncoderOutput:
        """Run one batch, only as deep as what is asked for.

        Args:
            sentences: at least one, none of them ``too_long``.
            heads: (layer, head) pairs whose word-level attention is wanted, in the order wanted.
            states: layers whose hidden states are wanted, 0 (embeddings) to ``n_layers``.

        Raises:
            AttreeError: a head or layer that does not exist, or that the model does not give.
        """
        self.check(heads=heads, states=states)
        batch = pad(sentences, self.pad_id).to(self.device)
        n_words = batch.max_words
        words = torch.empty((len(sentences), len(heads), n_words, n_words), device=self.device)
        merge = WordMerger(batch) if heads else None
        by_layer: dict[int, list[int]] = {}
        for layer, head in sorted(set(heads)):
            by_layer.setdefault(layer, []).append(head)

        captured: set[int] = set()

        def keep(layer: int, probabilities: torch.Tensor) -> None:
            assert merge is not None
            captured.add(layer)
            merged = merge(probabilities)
            for i, (number, head) in enumerate(heads):
                if number == layer:
                    words[:, i] = merged[:, by_layer[layer].index(head)]

        hidden = attention.forward(
            self.model,
            batch.ids,
            batch.mask,
            heads=by_layer,
            states=states,
            keep=keep,
            n_layers=self.n_layers,
            n_heads=self.n_heads,
        )
        if captured != set(by_layer) or set(hidden) != set(states):  # else unwritten memory is read
            problem = f"the encoder {self.slug} did not give all the attention or states asked for"
            fix = "use another encoder: attree cannot read the attention of this one"
            raise AttreeError("incomplete-output", problem, fix=fix)
        highest = [i for i, (number, _) in enumerate(heads) if number == max(by_layer)]
        return EncoderOutput(words, hidden, batch, highest)

    def _probe(self, folder: Path) -> None:
        """Refuse a model that sees the padding of a batch, or does not show its attention.

        What a family makes of a mask is its own affair: one that adds a mask of truth values to
        its scores gives numbers like any other, and wrong ones.
        """
        short, long = self.tokenise([["a"], ["b", ",", "c", "d"]])
        if len(short.ids) == len(long.ids) or long.too_long:
            return
        wanted: dict[str, Any] = {
            "heads": [(i, j) for i in range(self.n_layers) for j in range(self.n_heads)],
            "states": range(self.n_layers + 1),
        }
        try:
            mixed, *alone = (self.run(x, **wanted) for x in ([short, long], [short], [long]))
        except (AttreeError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
            raise self._refused(f"cannot be run on a sentence ({reason})", folder) from error
        attention = mixed.attention
        if not attention[1, :, 0, 1:].any():
            raise self._refused("lets a word attend to no later one", folder)
        most = 0.1 if self.dtype == torch.bfloat16 else 0.01
        for row, (pieces, single) in enumerate(zip((short, long), alone, strict=True)):
            n, n_pieces = pieces.n_words, len(pieces.ids)
            pairs = [(attention[row, :, :n, :n], single.attention[0])]
            pairs += [(mixed.states[i][row, :n_pieces], single.states[i][0]) for i in mixed.states]
            for padded, right in pairs:
                apart = (padded.float() - right.float()).norm() / right.float().norm()
                if apart > most:  # never of what is not finite, which is told sentence by sentence
                    raise self._refused("takes padding for words", folder)

    def _refused(self, problem: str, folder: Path) -> AttreeError:
        problem = f"this encoder {problem}: attree cannot read models of type {self.family!r}"
        return AttreeError("unknown-family", problem, file=folder, fix="use another encoder")

    def query_key(self, layer: int) -> tuple[torch.Tensor, ...]:
        """Return the query and key projections that read ``hidden_states[layer]``.

        They are those of encoder layer ``layer``; for the top state, which no layer reads, those
        of the last layer. See :func:`attree.encoder.weights.query_key`; a head is a run of
        ``hidden_size / n_heads`` rows.

        Raises:
            AttreeError: there is no such layer.
        """
        self.check(states=[layer])
        return query_key(self.layers[min(layer, self.n_layers - 1)])

    def check(self, *, heads: Sequence[Head] = (), states: Sequence[int] = ()) -> None:
        """Refuse heads and layers that this encoder does not have."""
        n_layers, n_heads = self.n_layers, self.n_heads
        for layer, head in heads:
            if not (0 <= layer < n_layers and 0 <= head < n_heads):
                problem = f"the encoder {self.slug} has no head {layer}.{head}"
                fix = f"layers are 0 to {n_layers - 1}, heads 0 to {n_heads - 1}"
                raise AttreeError("no-such-head", problem, fix=fix)
        for layer in states:
            if not 0 <= layer <= n_layers:
                problem = f"the encoder {self.slug} has no hidden states of layer {layer}"
                fix = f"choose a layer from 0 to {n_layers}"
                raise AttreeError("no-such-layer", problem, fix=fix)


def load_encoder(
    source: str | Path | ResolvedEncoder | EncoderSource,
    *,
    device: str | None = None,
    threads: int | None = None,
) -> Encoder:
    """Load an encoder for inference.

    Args:
        source: a resolved description, a source, or a name by which ``find_encoder`` finds one.
        device: ``cpu``, ``cuda``, ``cuda:1``…; by default a GPU where there is one.
        threads: threads of a CPU run; by default torch's own choice (``OMP_NUM_THREADS``).

    Raises:
        AttreeError: the checkpoint is missing, has changed, or cannot be loaded.
    """
    if isinstance(source, EncoderSource):
        source = resolve(source)
    elif not isinstance(source, ResolvedEncoder):
        source = find_encoder(source)
    use_threads(threads)
    for name, sizes in _SIZES_KEPT.items():
        os.environ.setdefault(name, sizes)
    where = choose_device(device)
    dtype = dtype_on(where) if source.dtype == "auto" else source.dtype
    with without_collecting():
        return Encoder(source, verify(source), where, getattr(torch, dtype))
