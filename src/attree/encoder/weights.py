"""Load a checkpoint's encoder and tokeniser for inference, and find the parts of its layers.

An encoder in the shape of BERT, and a tokeniser that its files describe in full, are read by attree
itself, any other by ``transformers``, which takes a second to import.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import nn

from attree.base.errors import DEBUG, AttreeError
from attree.base.terminal import say
from attree.encoder.bert import Bert, read_bert
from attree.encoder.pieces import Splitter, check_pieces, read_plain

#: Vocabularies above this size have words of many languages.
_LONG_TABLE = 100_000

#: Names of the query and key projections of a layer; one matrix may have both.
_FUSED = ("Wqkv", "qkv", "qkv_proj")
_PROJECTIONS = (
    ("query", "q", "q_lin", "q_proj", "query_proj", *_FUSED),
    ("key", "k", "k_lin", "k_proj", "key_proj", *_FUSED),
)


class _LongTable(nn.Module):
    """Embeddings of a large vocabulary in a memory-mapped file; rows are rounded when used.

    Rounding the whole table would read all of it and store it twice.
    """

    def __init__(self, table: nn.Embedding, dtype: torch.dtype) -> None:
        super().__init__()
        self.num_embeddings, self._dtype = table.num_embeddings, dtype
        self._weight = [table.weight.detach()]  # in a list, lest it be rounded with the parameters

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return (…, width) in the model's dtype."""
        return nn.functional.embedding(ids, self._weight[0]).to(self._dtype)


def read_model(folder: Path, dtype: torch.dtype, device: torch.device) -> nn.Module:
    """Load the encoder of a checkpoint for inference.

    Raises:
        AttreeError: the checkpoint is damaged, or lacks weights.
    """
    rounded = device.type == "cpu" and dtype != torch.float32
    model: Any = read_bert(folder)
    if not isinstance(model, Bert):
        if os.environ.get(DEBUG):
            say(f"attree: transformers runs the encoder in {folder.name}: {model}")
        from attree.encoder.library import read_any

        model = read_any(folder, torch.float32 if rounded else dtype)
    check_finite(model, folder)
    table = model.get_input_embeddings()
    if rounded and isinstance(table, nn.Embedding) and table.num_embeddings > _LONG_TABLE:
        model.set_input_embeddings(_LongTable(table, dtype))
    if rounded or isinstance(model, Bert):
        model.to(dtype)
    return model.eval().requires_grad_(False).to(device)


def check_finite(model: Any, folder: Path) -> None:
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


def layers_of(model: nn.Module, n_layers: int, folder: Path) -> nn.ModuleList:
    """Return the list of a model's layers; refuse a model without a single such list."""
    lists = [
        module
        for module in model.modules()
        if isinstance(module, nn.ModuleList) and len(module) == n_layers
    ]
    if len(lists) != 1:
        problem = f"the {n_layers} layers of this model lie in no one list: they cannot be read"
        raise AttreeError("unknown-family", problem, file=folder, fix="use another encoder")
    return lists[0]


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


def read_splitter(folder: Path, model: nn.Module) -> Splitter:
    """Load a tokeniser for words; the library that reads any takes seconds to import.

    Args:
        folder: the checkpoint's folder; nothing is fetched, no code of it is run.
        model: the model that reads the pieces.

    Raises:
        AttreeError: it is damaged, is not fast, or has more pieces than ``model`` has embeddings.
    """
    if (splitter := read_plain(folder)) is not None:
        check_pieces(len(splitter), model, folder)
        return splitter
    from attree.encoder.library import read_tokeniser

    fast: Any = read_tokeniser(folder, model)
    return Splitter(fast.backend_tokenizer, fast.unk_token_id, fast.pad_token_id or 0)
