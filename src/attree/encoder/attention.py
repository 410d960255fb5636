"""Capture attention probabilities of heads and hidden states of layers in one short pass.

Every layer's output is computed with SDPA as usual; if heads of the layer are wanted, their
probabilities are computed from the same queries and keys (after rotary positions, with padding and
sliding windows in the mask). Families that do not let attree compute attention compute it
themselves; their probabilities are captured as the input of dropout, which does nothing here. The
pass ends at the highest layer that is wanted: its value product, its feed-forward part and all
later layers are skipped.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attree.encoder.pieces import PieceBatch

_active: ContextVar[_Capture | None] = ContextVar("attree_capture", default=None)


class _Enough(BaseException):  # no `except Exception` inside a model may swallow it
    """Everything wanted has been captured."""


@dataclass(slots=True)
class _Capture:
    """The heads and layers that a pass keeps, the running layer, and the states kept so far."""

    heads: Mapping[int, Sequence[int]]
    states: Sequence[int]
    keep: Callable[[int, torch.Tensor], None]
    layer: int = -1
    hidden: dict[int, torch.Tensor] = field(default_factory=dict)

    def attend(self, probabilities: torch.Tensor) -> None:
        """Keep the probabilities of the wanted heads of the running layer."""
        self.keep(self.layer, probabilities)
        if self.layer >= max(*self.heads, *self.states, -1):
            raise _Enough


def capture(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float | None = None,
) -> torch.Tensor | None:
    """Keep the wanted heads of the running layer.

    Args:
        query, key, value: (batch, heads, pieces, size).
        mask: bool, broadcast to (batch, heads, pieces, pieces), False for keys that do not count.
        scaling: of the products; by default ``size ** -0.5``.

    Returns:
        the layer's mixed values, like ``value``, if all heads were wanted: SDPA need not compute
        their probabilities again. Else None.
    """
    capture = _active.get()
    wanted = capture.heads.get(capture.layer) if capture is not None else None
    if capture is None or not wanted:
        return None
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    everything = list(wanted) == list(range(query.shape[1]))
    some = slice(None) if everything else list(wanted)
    scores = torch.matmul(query[:, some] * scaling, key[:, some].transpose(2, 3)).float()
    if mask is not None:
        # the least number instead of -inf: a padded row may have every key masked
        scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
    probabilities = torch.softmax(scores, dim=-1)
    capture.attend(probabilities)
    return torch.matmul(probabilities.to(value.dtype), value) if everything else None


class _Dropout(TorchFunctionMode):
    """Captures attention as the input of dropout, by its shape (batch, heads, pieces, pieces)."""

    def __init__(self, capture: _Capture, shape: tuple[int, ...]) -> None:
        super().__init__()
        self._capture, self._shape = capture, shape

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        inputs: tuple[Any, ...] = (),
        named: dict[str, Any] | None = None,
    ) -> Any:
        """Call a torch function; see :class:`torch.overrides.TorchFunctionMode`."""
        if function is functional.dropout:
            weights = inputs[0] if inputs else (named or {})["input"]
            wanted = self._capture.heads.get(self._capture.layer)
            if wanted and tuple(weights.shape) == self._shape:
                self._capture.attend(weights[:, list(wanted)].float())
        return function(*inputs, **(named or {}))


def has_interface(model: nn.Module) -> bool:
    """Tell whether a model computes attention with a registered function."""
    return bool(getattr(model, "_supports_attention_backend", False))


def _enter(layer: int, _: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Note that a layer is about to run, and on which states."""
    if (capture := _active.get()) is None:
        return
    capture.layer = layer
    if layer in capture.states:
        capture.hidden[layer] = inputs[0] if inputs else named["hidden_states"]
    if layer >= max(capture.states, default=-1) and layer > max(capture.heads, default=-1):
        raise _Enough


def watch(layers: nn.ModuleList) -> None:
    """Add hooks that tell the running capture which layer is entered with which hidden states."""
    for number, layer in enumerate(layers):
        layer.register_forward_pre_hook(functools.partial(_enter, number), with_kwargs=True)


def forward(
    model: nn.Module,
    batch: PieceBatch,
    n_layers: int,
    n_heads: int,
    *,
    heads: Mapping[int, Sequence[int]],
    states: Sequence[int],
    keep: Callable[[int, torch.Tensor], None] = lambda layer, probabilities: None,
) -> dict[int, torch.Tensor]:
    """Run the encoder up to the highest layer wanted.

    Args:
        model: an encoder whose layers are watched (:func:`watch`).
        batch: pieces and padding.
        n_layers, n_heads: layers of the encoder, and heads of each.
        heads: layer → heads wanted, in ascending order.
        states: layers whose hidden states are wanted, 0 (embeddings) to ``n_layers``.
        keep: called with each layer of ``heads``, in order, and its probabilities, float32
            (batch, heads of that layer, pieces, pieces).

    Returns:
        layer → hidden states (batch, pieces, hidden), as from ``output_hidden_states=True``: the
        top states are after the final normalisation, if the family has one.
    """
    capture = _Capture(heads, states, keep)
    token = _active.set(capture)
    sentences, pieces = batch.ids.shape
    shape = (sentences, n_heads, pieces, pieces)
    by_itself = bool(heads) and not has_interface(model)
    try:
        with _Dropout(capture, shape) if by_itself else contextlib.nullcontext():
            output = model(input_ids=batch.ids, attention_mask=batch.mask)
        if n_layers in capture.states:
            capture.hidden[n_layers] = output.last_hidden_state
    except _Enough:
        pass
    finally:
        _active.reset(token)
    # an encoder of our own has the pieces of all sentences in a row, and rows after them
    return {
        layer: hidden.flatten(0, -2)[: batch.ids.numel()].unflatten(0, (sentences, pieces))
        for layer, hidden in capture.hidden.items()
    }
