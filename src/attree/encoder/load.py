"""Load an encoder and run it: from sentences to word-level attention and hidden states."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.process import use_threads, without_collecting, yield_cores
from attree.base.terminal import say
from attree.encoder.source import Head, ResolvedEncoder, read_adapter, verify

yield_cores()
with without_collecting():
    import torch

    from attree.encoder import attention, low_rank
    from attree.encoder.device import choose_device, dtype_on
    from attree.encoder.packed import pack
    from attree.encoder.pieces import PieceBatch, Pieces, PieceTokeniser, WordMerger, pad
    from attree.encoder.weights import layers_of, query_key, read_model, read_splitter


@dataclass(slots=True)
class EncoderOutput:
    """The output for one batch.

    Args:
        attention: float32 (batch, heads asked for, words, words), zero past a sentence's words.
        states: layer → (batch, pieces, hidden), undefined past a sentence's pieces.
        batch: ids, padding, the word of each piece, and the number of words.
        highest: positions in ``attention`` of the heads of the highest layer asked for.
    """

    attention: torch.Tensor
    states: dict[int, torch.Tensor]
    batch: PieceBatch
    highest: list[int]

    @property
    def finite(self) -> torch.Tensor:
        """bool (batch,): whether all values asked for are finite in the sentence.

        If not, the sentence must not be parsed: its tree would have no meaning.
        """
        # A value that is not finite spreads to every word of the next layer, so that the highest
        # layer shows it. Attention is at most 1: its sums cannot overflow.
        good = self.attention[:, self.highest].sum((1, 2, 3)).isfinite()
        for states in self.states.values():
            good &= (states.float().abs().amax(-1).isfinite() | (self.batch.mask == 0)).all(1)
        return good


class Encoder:
    """A loaded checkpoint with its tokeniser; make one with :func:`load_encoder`."""

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
        #: Splits the words of sentences into pieces, with special pieces at both ends.
        self.tokenise = PieceTokeniser(read_splitter(folder, self.model), self.max_pieces)
        self.pad_id = self.tokenise.pad_id
        self._probe(folder)

    @property
    def tokens_per_batch(self) -> int:
        """Word pieces to run at once; few are best for a CPU's caches, and need little padding."""
        return 1024 if self.device.type == "cpu" else 32_768

    @torch.inference_mode()
    def run(
        self, sentences: Sequence[Pieces], *, heads: Sequence[Head] = (), states: Sequence[int] = ()
    ) -> EncoderOutput:
        """Run one batch, up to the highest layer asked for.

        Args:
            sentences: at least one sentence, none of them ``too_long``.
            heads: (layer, head) pairs whose word-level attention is wanted, in this order.
            states: layers whose hidden states are wanted, 0 (embeddings) to ``n_layers``.

        Raises:
            AttreeError: a head or layer does not exist, or the model does not give its output.
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
            self.model, batch, self.n_layers, self.n_heads, heads=by_layer, states=states, keep=keep
        )
        if captured != set(by_layer) or set(hidden) != set(states):  # else unwritten memory is read
            problem = f"the encoder {self.slug} did not give all the attention or states asked for"
            fix = "use another encoder: attree cannot read the attention of this one"
            raise AttreeError("incomplete-output", problem, fix=fix)
        highest = [i for i, (number, _) in enumerate(heads) if number == max(by_layer)]
        return EncoderOutput(words, hidden, batch, highest)

    def _probe(self, folder: Path) -> None:
        """Refuse a model whose output depends on padding, or whose attention is not captured.

        Families handle masks in their own ways: one that adds a boolean mask to its scores computes
        wrong values without an error.
        """
        short, long = self.tokenise([["a"], ["b", ",", "c", "d"]])
        if len(short.ids) == len(long.ids) or long.too_long:
            why = "short" if long.too_long else "equally long"
            say(f"attree: {self.slug} is not tested with padding: the sentences it takes are {why}")
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
            raise self._refused("does not let a word attend to later words", folder)
        most = 0.1 if self.dtype == torch.bfloat16 else 0.01
        for row, (pieces, single) in enumerate(zip((short, long), alone, strict=True)):
            n, n_pieces = pieces.n_words, len(pieces.ids)
            pairs = [(attention[row, :, :n, :n], single.attention[0])]
            pairs += [(mixed.states[i][row, :n_pieces], single.states[i][0]) for i in mixed.states]
            for padded, right in pairs:
                apart = (padded.float() - right.float()).norm() / right.float().norm()
                if apart > most:  # false for NaN, which is found for each sentence later
                    raise self._refused("treats padding as words", folder)

    def _refused(self, problem: str, folder: Path) -> AttreeError:
        problem = f"this encoder {problem}: attree cannot read models of type {self.family!r}"
        return AttreeError("unknown-family", problem, file=folder, fix="use another encoder")

    def query_key(self, layer: int) -> tuple[torch.Tensor, ...]:
        """Return the query and key projections that read ``hidden_states[layer]``.

        They belong to encoder layer ``layer``; for the top state, which no layer reads, to the last
        layer. See :func:`attree.encoder.weights.query_key`; each head has ``hidden_size / n_heads``
        consecutive rows.

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
    encoder: ResolvedEncoder,
    *,
    device: str | None = None,
    threads: int | None = None,
    trained: bool = False,
) -> Encoder:
    """Load an encoder.

    Args:
        encoder: a resolved description.
        device: ``cpu``, ``cuda``, ``cuda:1``…; by default a GPU if there is one.
        threads: threads of a CPU run; by default torch's choice (``OMP_NUM_THREADS``).
        trained: whether this process will train weights in the encoder's layers; the first encoder
            that it loads decides.

    Raises:
        AttreeError: the checkpoint is missing, has changed, or cannot be loaded.
    """
    use_threads(threads)
    # how many compiled products oneDNN keeps: a training step has hundreds, batches to parse are of
    # like sizes; kept products, and descriptions of them in torch, hold memory of freed tensors
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "512" if trained else "32")
    os.environ.setdefault("LRU_CACHE_CAPACITY", "2")
    chosen = choose_device(device)
    dtype = dtype_on(chosen) if encoder.dtype == "auto" else encoder.dtype
    with without_collecting():
        return Encoder(encoder, verify(encoder), chosen, getattr(torch, dtype))
