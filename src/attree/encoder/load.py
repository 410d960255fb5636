"""A loaded encoder: sentences in, word-level attention and hidden states out."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attree.encoder.checkpoint import only_checked
from attree.encoder.families import FAMILIES
from attree.encoder.source import EncoderSource, Head, ResolvedEncoder, resolve, verify
from attree.errors import AttreeError
from attree.process import without_collecting

with without_collecting():
    import torch
    from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerFast
    from transformers.utils import logging

    from attree.encoder import attention
    from attree.encoder.pieces import PieceBatch, Pieces, PieceTokeniser, WordMerger, pad

if TYPE_CHECKING:
    from torch import nn

#: Products of a size that oneDNN keeps code for. Its own 1,024 grow with every new shape of a batch
#: and lie scattered among the freed tensors, so that memory never stops growing; one batch has few.
_SIZES_KEPT = "8"


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
    def n_words(self) -> torch.Tensor:
        """int64 (batch,)."""
        return self.batch.n_words

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

    @property
    def word_of(self) -> torch.Tensor:
        """int64 (batch, pieces): the word of each piece, -1 for specials and padding."""
        return self.batch.word_of


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
        self.model = _model(folder, dtype).to(device)
        self.layers = _layers(self.model, self.n_layers, folder)
        attention.watch(self.layers)
        self._tokeniser = PieceTokeniser(read_tokeniser(folder, self.model), self.max_pieces)

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
            for place, (at, head) in enumerate(heads):
                if at == layer:
                    words[:, place] = merged[:, by_layer[layer].index(head)]

        found = attention.forward(
            self.model,
            batch.ids,
            batch.mask,
            heads=by_layer,
            states=states,
            keep=keep,
            n_layers=self.n_layers,
        )
        self._check_all_there(captured == set(by_layer) and set(found) == set(states))
        highest = [place for place, (layer, _) in enumerate(heads) if layer == max(by_layer)]
        return EncoderOutput(words, found, batch, highest)

    def _check_all_there(self, everything: bool) -> None:
        """Refuse a model that did not call attree's attention: the result is unwritten memory."""
        if not everything:
            raise AttreeError(
                f"the encoder {self.slug} did not give all the attention or states asked for",
                fix="use another encoder: attree cannot read the attention of this one",
            )

    def query_key(self, layer: int) -> tuple[torch.Tensor, ...]:
        """Return the query and key projections that read ``hidden_states[layer]``.

        They are those of encoder layer ``layer``; for the top state, which no layer reads, those
        of the last layer. See :meth:`attree.encoder.families.Family.query_key`; a head is a run of
        ``hidden_size / n_heads`` rows.

        Raises:
            AttreeError: there is no such layer.
        """
        self.check(states=[layer])
        return FAMILIES[self.family].query_key(self.layers[min(layer, self.n_layers - 1)])

    def check(self, *, heads: Sequence[Head] = (), states: Sequence[int] = ()) -> None:
        """Refuse heads and layers that this encoder does not have."""
        for layer, head in heads:
            if not (0 <= layer < self.n_layers and 0 <= head < self.n_heads):
                raise AttreeError(
                    f"the encoder {self.slug} has no head {layer}.{head}",
                    fix=f"layers are 0 to {self.n_layers - 1}, heads 0 to {self.n_heads - 1}",
                )
        for layer in states:
            if not 0 <= layer <= self.n_layers:
                raise AttreeError(
                    f"the encoder {self.slug} has no hidden states of layer {layer}",
                    fix=f"choose a layer from 0 to {self.n_layers}",
                )


def load_encoder(
    source: str | Path | ResolvedEncoder | EncoderSource,
    *,
    device: str | None = None,
    threads: int | None = None,
) -> Encoder:
    """Load an encoder for inference.

    Args:
        source: a resolved description or its JSON file (``results/encoders/….json``), or a source.
        device: ``cpu``, ``cuda``, ``cuda:1``…; by default a GPU where there is one.
        threads: threads of a CPU run; by default torch's own choice (``OMP_NUM_THREADS``).

    Raises:
        AttreeError: the checkpoint is missing, has changed, or cannot be loaded.
    """
    if isinstance(source, EncoderSource):
        source = resolve(source)
    elif not isinstance(source, ResolvedEncoder):
        source = ResolvedEncoder.read(source)
    if threads is not None:
        torch.set_num_threads(threads)
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", _SIZES_KEPT)
    chosen = choose_device(device)
    with without_collecting():
        return Encoder(source, verify(source), chosen, _dtype(source.dtype, chosen))


def choose_device(name: str | None) -> torch.device:
    """Return the device to compute on.

    Args:
        name: ``cpu``, ``cuda``, ``cuda:1``…; ``None`` for a GPU where there is one.

    Raises:
        AttreeError: another name, or a GPU that this machine does not have.
    """
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name is None:
        return torch.device("cuda" if there else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d{1,3})?", name):
        raise AttreeError(f"unknown device {name!r}", fix="choose cpu, cuda, or cuda:0, cuda:1, …")
    chosen = torch.device(name)
    if chosen.type == "cuda" and (chosen.index or 0) >= there:
        has = "no CUDA device" if not there else f"{there} CUDA devices, numbered from 0"
        raise AttreeError(f"--device {name}: this machine has {has}", fix="leave --device out")
    return chosen


def _dtype(name: str, device: torch.device) -> torch.dtype:
    if name == "auto":
        name = "bfloat16" if _multiplies_bfloat16(device) else "float32"
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def _multiplies_bfloat16(device: torch.device) -> bool:
    """Tell whether a device has instructions for products of bfloat16, and does not emulate them.

    Capabilities are asked for and no product is timed: a run that is resumed, or goes on at another
    worker, must take the same type again.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    able = torch.cpu.get_capabilities()
    return bool(able.get("amx_bf16") or able.get("avx512_bf16"))


def read_checkpoint(kind: Any, folder: Path, **options: Any) -> tuple[Any, set[str]]:
    """Load a checkpoint of ``folder`` without news on stderr.

    Args:
        kind: an Auto class of ``transformers``, which says what kind of model is wanted.
        folder: config.json and safetensors; nothing is fetched, no code of it is run.
        options: further arguments of ``from_pretrained``.

    Returns:
        the model, and the names of the weights that the checkpoint lacks.

    Raises:
        AttreeError: the checkpoint is damaged.
    """
    with _quietly(folder, "checkpoint"), only_checked(folder) as view:
        model, report = kind.from_pretrained(
            view,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            **options,
        )
    _check_finite(model, folder)
    return model, set(report["missing_keys"])


@contextlib.contextmanager
def _quietly(folder: Path, what: str) -> Iterator[None]:
    """Keep transformers' news off stderr; say in a line whatever a damaged file makes it raise."""
    logging.disable_progress_bar()
    before = logging.get_verbosity()
    logging.set_verbosity_error()  # a missing pooler is no news: nothing here uses one
    try:
        yield
    except (AttreeError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the tokenizers library panics outside Exception
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if "mismatched" in reason:  # transformers' line names an option of its own
            reason = "its weights have other shapes than config.json describes"
        raise AttreeError(
            f"the {what} cannot be loaded ({reason[:300]})",
            file=folder,
            fix="check that the download or copy is whole",
        ) from error
    finally:
        logging.set_verbosity(before)


def _check_finite(model: nn.Module, folder: Path) -> None:
    for name, weight in model.named_parameters():
        # The sum first: it reads each weight once, and is finite unless a weight is not or is huge.
        if not weight.sum().isfinite() and not weight.isfinite().all():
            raise AttreeError(
                f"the weights hold NaN or infinite numbers ({name})",
                file=folder,
                fix="use a whole checkpoint: no tree could be read from this one",
            )


def _model(folder: Path, dtype: torch.dtype) -> nn.Module:
    attention.register()
    model, lacking = read_checkpoint(
        AutoModel, folder, dtype=dtype, attn_implementation=attention.IMPLEMENTATION
    )
    missing = sorted(name for name in lacking if "pooler" not in name)
    if missing:
        raise AttreeError(
            f"the checkpoint lacks {len(missing)} of the model's weights ({missing[0]}, …)",
            file=folder,
            fix="check that config.json and model.safetensors belong together",
        )
    found: nn.Module = model.eval().requires_grad_(False)
    return found


def _layers(model: nn.Module, n_layers: int, folder: Path) -> nn.ModuleList:
    found = [
        module
        for module in model.modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == n_layers
    ]
    if len(found) != 1:
        raise AttreeError(
            f"this model does not hold its {n_layers} layers in one list: its attention cannot be"
            " read",
            file=folder,
            fix="use another encoder",
        )
    return found[0]


def read_tokeniser(folder: Path, model: nn.Module) -> PreTrainedTokenizerFast:
    """Load a checkpoint's fast tokeniser, without news on stderr.

    Args:
        folder: the checkpoint's; nothing is fetched, no code of it is run.
        model: what is to read its pieces.

    Raises:
        AttreeError: damaged, no fast version, or more pieces than ``model`` has embeddings.
    """
    with _quietly(folder, "tokeniser"), only_checked(folder) as view:
        tokeniser = AutoTokenizer.from_pretrained(
            view, use_fast=True, local_files_only=True, trust_remote_code=False
        )
        pieces = max(tokeniser.get_vocab().values(), default=0) + 1
    if not isinstance(tokeniser, PreTrainedTokenizerFast) or tokeniser.unk_token_id is None:
        what = "no unknown piece" if tokeniser.is_fast else "no fast version"
        raise AttreeError(
            f"this checkpoint's tokeniser has {what}",
            file=folder,
            fix="write tokenizer.json with AutoTokenizer.from_pretrained(...).save_pretrained(...)",
        )
    embeddings: Any = model
    if pieces > embeddings.get_input_embeddings().num_embeddings:
        raise AttreeError(
            "the tokeniser has more pieces than the encoder has embeddings",
            file=folder,
            fix="check that tokeniser and model.safetensors belong together",
        )
    tokeniser.name_or_path = str(folder)
    return tokeniser
