"""Read a checkpoint's weights and tokeniser: check them, run no code of theirs, print nothing.

On a CPU the weights of float32 layers are reordered for the library that multiplies them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attree.base.errors import AttreeError
from attree.base.process import without_collecting
from attree.encoder.checkpoint import only_checked

with without_collecting():
    import torch
    from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerFast
    from transformers.utils import logging

    from attree.encoder import attention
    from attree.encoder.pieces import UnigramTokeniser, read_unigram

if TYPE_CHECKING:
    from torch import nn

#: Vocabularies above this size have words of many languages.
_LONG_TABLE = 100_000
#: Number of word pieces that weights are reordered for; other sizes work too.
_USUAL_PIECES = 1024

#: Names of the query and key projections of a layer; one matrix may have both.
_FUSED = ("Wqkv", "qkv", "qkv_proj")
_PROJECTIONS = (
    ("query", "q", "q_lin", "q_proj", "query_proj", *_FUSED),
    ("key", "k", "k_lin", "k_proj", "key_proj", *_FUSED),
)


def read_checkpoint(kind: Any, folder: Path, **options: Any) -> tuple[Any, set[str]]:
    """Load a checkpoint without messages on stderr.

    Args:
        kind: an Auto class of ``transformers`` for the kind of model.
        folder: folder with config.json and safetensors; nothing is fetched, no code of it is run.
        options: further arguments of ``from_pretrained``.

    Returns:
        the model, and the names of weights missing from the checkpoint.

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
def _quietly(folder: Path, name: str) -> Iterator[None]:
    """Silence transformers; turn its errors about damaged files into an error of one line."""
    logging.disable_progress_bar()
    before = logging.get_verbosity()
    logging.set_verbosity_error()  # a missing pooler does not matter: nothing here uses one
    try:
        yield
    except (AttreeError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the tokenizers library panics outside Exception
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if "mismatched" in reason:  # transformers' line names an option of its own
            reason = "its weights have other shapes than config.json describes"
        problem = f"the {name} cannot be loaded ({reason[:300]})"
        fix = "check that the download or copy is whole"
        raise AttreeError("unloadable", problem, file=folder, fix=fix) from error
    finally:
        logging.set_verbosity(before)


def check_lacking(names: Iterable[str], folder: Path) -> None:
    """Refuse a checkpoint that lacks weights of the model other than the unused pooler's."""
    missing = sorted(name for name in names if "pooler" not in name)
    if missing:
        problem = f"the checkpoint lacks {len(missing)} of the model's weights ({missing[0]}, …)"
        fix = "check that config.json and model.safetensors belong together"
        raise AttreeError("lacking-weights", problem, file=folder, fix=fix)


def _check_finite(model: Any, folder: Path) -> None:
    """Refuse weights that are not finite.

    A table of a quarter of a million embeddings is not read through, as most belong to words of
    other languages; a sentence's embeddings are checked in its states.
    """
    table = model.get_input_embeddings().weight
    for name, weight in model.named_parameters():
        if weight is table and len(table) > _LONG_TABLE:
            continue
        # The sum first: it reads each weight once, and is finite unless a weight is NaN or huge.
        if not weight.sum().isfinite() and not weight.isfinite().all():
            problem = f"the weights hold NaN or infinite numbers ({name})"
            fix = "use another copy of the checkpoint"
            raise AttreeError("not-finite", problem, file=folder, fix=fix)


class _LongTable(torch.nn.Module):
    """Embeddings of a large vocabulary in a memory-mapped file; rows are rounded when used.

    Rounding the whole table would read all of it and store it twice.
    """

    def __init__(self, table: nn.Embedding, dtype: torch.dtype) -> None:
        super().__init__()
        self.num_embeddings, self._dtype = table.num_embeddings, dtype
        self._weight = [table.weight.detach()]  # in a list, lest it be rounded with the parameters

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return (…, width) in the model's dtype."""
        return torch.nn.functional.embedding(ids, self._weight[0]).to(self._dtype)


def read_model(folder: Path, dtype: torch.dtype, device: torch.device) -> nn.Module:
    """Load the encoder of a checkpoint for inference, with our attention function if possible.

    Raises:
        AttreeError: the checkpoint is damaged, or lacks weights.
    """
    attention.register()
    rounded = device.type == "cpu" and dtype != torch.float32
    model, lacking = read_checkpoint(
        AutoModel,
        folder,
        dtype=torch.float32 if rounded else dtype,
        attn_implementation=attention.IMPLEMENTATION,
    )
    check_lacking(lacking, folder)
    if not attention.has_interface(model):
        model.config._attn_implementation = "eager"
    if rounded:
        table = model.get_input_embeddings()
        if isinstance(table, torch.nn.Embedding) and table.num_embeddings > _LONG_TABLE:
            model.set_input_embeddings(_LongTable(table, dtype))
        model.to(dtype)
    whole: nn.Module = model.eval().requires_grad_(False).to(device)
    return whole


def layers_of(model: nn.Module, n_layers: int, folder: Path) -> nn.ModuleList:
    """Return the list of a model's layers; refuse a model without a single such list."""
    lists = [
        module
        for module in model.modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == n_layers
    ]
    if len(lists) != 1:
        problem = (
            f"the {n_layers} layers of this model lie in no one list: its attention cannot be read"
        )
        raise AttreeError("unknown-family", problem, file=folder, fix="use another encoder")
    return lists[0]


class _PackedLinear(torch.nn.Module):
    """``x Wᵀ + b`` in float32 on a CPU, with W in the layout of oneDNN.

    torch computes such products with MKL, which does not use AVX-512 on all processors that have
    it; there oneDNN takes less than half of the time.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.bias = linear.bias
        self._packed = _onednn("_reorder_linear_weight")(linear.weight.detach(), _USUAL_PIECES)

    @property
    def weight(self) -> torch.Tensor:
        """A copy of the weights, (out, in), which are stored only in the layout of oneDNN."""
        return self._packed.to_dense()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (…, out)."""
        product: torch.Tensor = _onednn("_linear_pointwise")(
            x, self._packed, self.bias, "none", [], ""
        )
        return product


def _onednn(name: str) -> Any:
    """Return an operation of oneDNN in torch, or None if torch was built without it."""
    return getattr(torch.ops.mkldnn, name, None)


def pack(layers: nn.Module) -> None:
    """Make oneDNN compute the float32 linear parts of layers on a CPU."""
    if not torch.backends.mkldnn.is_available() or _onednn("_linear_pointwise") is None:
        return
    for module in list(layers.modules()):
        for name, part in module.named_children():
            if type(part) is torch.nn.Linear and part.weight.dtype == torch.float32:
                setattr(module, name, _PackedLinear(part))


def query_key(layer: nn.Module) -> tuple[torch.Tensor, ...]:
    """Return the query and key projections of one layer: ``q = W_q x + b_q``.

    Returns:
        ``W_q`` (hidden, hidden), ``b_q`` (hidden,), ``W_k``, ``b_k`` as float32 copies on the
        CPU; output features are rows. Missing biases are zeros.

    Raises:
        AttreeError: the layer has no such projections.
    """
    parts = []
    for number, names in enumerate(_PROJECTIONS):
        linear = _projection(layer, names)
        rows = slice(None)
        if len(linear.weight) == 3 * linear.weight.shape[1]:  # query, key and value in one
            size = linear.weight.shape[1]
            rows = slice(number * size, (number + 1) * size)
        weight = linear.weight[rows].detach().float().cpu().clone()
        bias = weight.new_zeros(len(weight)) if linear.bias is None else linear.bias[rows]
        parts += [weight, bias.detach().float().cpu().clone()]
    return tuple(parts)


def _projection(layer: nn.Module, names: tuple[str, ...]) -> Any:
    for path, module in layer.named_modules():
        weight = getattr(module, "weight", None)
        if path.rpartition(".")[2] in names and weight is not None and weight.ndim == 2:
            return module
    problem = f"a layer of this encoder has no {names[0]} projection that attree can find"
    fix = "train a parser whose parts do not begin at the encoder's own projections"
    raise AttreeError("no-projection", problem, fix=fix)


def read_tokeniser(folder: Path, model: nn.Module) -> PreTrainedTokenizerFast:
    """Load a checkpoint's fast tokeniser without messages on stderr.

    Args:
        folder: the checkpoint's folder; nothing is fetched, no code of it is run.
        model: the model that reads the pieces.

    Raises:
        AttreeError: it is damaged, is not fast, or has more pieces than ``model`` has embeddings.
    """
    with _quietly(folder, "tokeniser"), only_checked(folder) as view:
        tokeniser = AutoTokenizer.from_pretrained(
            view, use_fast=True, local_files_only=True, trust_remote_code=False
        )
        pieces = max(tokeniser.get_vocab().values(), default=0) + 1
    if not isinstance(tokeniser, PreTrainedTokenizerFast) or tokeniser.unk_token_id is None:
        lack = "no unknown piece" if tokeniser.is_fast else "no fast version"
        problem = f"this checkpoint's tokeniser has {lack}"
        fix = "write tokenizer.json with AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        raise AttreeError("bad-tokeniser", problem, file=folder, fix=fix)
    _check_pieces(pieces, model, folder)
    tokeniser.name_or_path = str(folder)
    return tokeniser


def read_splitter(folder: Path, model: nn.Module) -> PreTrainedTokenizerFast | UnigramTokeniser:
    """Load a tokeniser for words: our own Unigram, which loads sooner, or the fast tokeniser.

    Arguments and errors are those of :func:`read_tokeniser`.
    """
    tokeniser = read_unigram(folder)
    if tokeniser is None:
        return read_tokeniser(folder, model)
    _check_pieces(len(tokeniser), model, folder)
    return tokeniser


def _check_pieces(pieces: int, model: Any, folder: Path) -> None:
    if pieces > model.get_input_embeddings().num_embeddings:
        problem = "the tokeniser has more pieces than the encoder has embeddings"
        fix = "check that tokeniser and model.safetensors belong together"
        raise AttreeError("piece-count", problem, file=folder, fix=fix)
