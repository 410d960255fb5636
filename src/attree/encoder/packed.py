"""Linear parts of an encoder's layers, computed on a CPU by oneDNN with weights in its layout.

torch computes float32 products with MKL, which does not use AVX-512 on all processors that have it;
there oneDNN takes less than half of the time. In bfloat16 torch takes oneDNN too, but lays the
weights out anew for every product.
"""

from typing import Any

import torch
from torch import Tensor, nn

#: Number of word pieces that weights are reordered for; other sizes work too.
_USUAL_PIECES = 1024


class PackedLinear(nn.Module):
    """``x Wᵀ + b`` on a CPU, with W in the layout of oneDNN."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.bias = linear.bias
        self._packed = _onednn("_reorder_linear_weight")(linear.weight.detach(), _USUAL_PIECES)

    @property
    def weight(self) -> Tensor:
        """A copy of the weights, (out, in), which are stored only in the layout of oneDNN."""
        return self._packed.to_dense()

    def plus(self, x: Tensor, other: Tensor) -> Tensor:
        """Return ``x Wᵀ + b + other`` for ``x``, (rows, in), of a rounded number of rows."""
        out: Tensor = _onednn("_linear_pointwise").binary(x, other, self._packed, self.bias, "add")
        return out

    def forward(self, x: Tensor) -> Tensor:
        """Return (…, out) for ``x``, (…, in)."""
        count, product = x.shape[:-1].numel(), _onednn("_linear_pointwise")
        rows = lengthened(x.flatten(0, -2), rounded(count))
        out: Tensor = product(rows, self._packed, self.bias, "none", [], "none")
        return out[:count].unflatten(0, x.shape[:-1])


def rounded(rows: int) -> int:
    """Return the number of rows, not fewer, that a product of so many is to be computed with.

    oneDNN compiles a product anew for each number of rows: 2 ms in float32, and in bfloat16 up to
    10 ms, where the product itself takes one. So there are eight numbers between powers of two.
    """
    step = max(8, 1 << max(0, rows.bit_length() - 4))
    return -(-rows // step) * step


def lengthened(rows: Tensor, count: int) -> Tensor:
    """Return so many rows: those of a matrix, and zeros after them."""
    more = count - len(rows)
    return torch.cat((rows, rows.new_zeros(more, rows.shape[1]))) if more else rows


def _onednn(name: str) -> Any:
    """Return an operation of oneDNN in torch, or None if torch was built without it."""
    return getattr(torch.ops.mkldnn, name, None)


def pack(layers: nn.Module) -> None:
    """Make oneDNN compute the linear parts of layers on a CPU, in types that it multiplies."""
    product = _onednn("_linear_pointwise")  # `binary` adds another matrix to it
    able = torch.backends.mkldnn.is_available() and hasattr(product, "binary")
    if not able or _onednn("_reorder_linear_weight") is None:
        return
    types = [torch.float32]
    if (narrow := _onednn("_is_mkldnn_bf16_supported")) is not None and narrow():
        types.append(torch.bfloat16)
    for module in list(layers.modules()):
        for name, part in module.named_children():
            if type(part) is nn.Linear and part.weight.dtype in types:
                setattr(module, name, PackedLinear(part))


def packed(weight: Tensor, bias: Tensor | None = None) -> nn.Module:
    """Return the function ``x Wᵀ + b`` for weights that do not change, packed on a CPU.

    Args:
        weight: (out, in); it is copied.
        bias: (out,).
    """
    with torch.device("meta"):  # drawing first weights would take long
        linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    linear.weight = nn.Parameter(weight.detach().clone(), requires_grad=False)
    if bias is not None:
        linear.bias = nn.Parameter(bias.detach().clone(), requires_grad=False)
    holder = nn.ModuleList([linear])
    if weight.device.type == "cpu":
        pack(holder)
    return holder[0]
