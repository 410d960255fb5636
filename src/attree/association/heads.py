"""Which attention heads a parser averages: the selection's text form, and choosing by F1."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attree.errors import AttreeError
from attree.files import read_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: (layer, head), both 0-based
Head = tuple[int, int]

_FORM = "write all, best, best:K, above:F1, or list:LAYER.HEAD,LAYER.HEAD,…"


def heads_key(heads: Iterable[Head]) -> str:
    """Return the name of a set of heads, ``1.7+2.8+4.7``, whatever order they come in."""
    return "+".join(f"{layer}.{head}" for layer, head in sorted(set(heads)))


@dataclass(frozen=True, slots=True)
class HeadSelection:
    """How heads are chosen.

    Args:
        kind: ``all``, ``best``, ``above`` or ``list``.
        number: how many (``best``), or the F1 in percent that must be exceeded (``above``).
        heads: the heads of a ``list``.
    """

    kind: str
    number: float = 0.0
    heads: tuple[Head, ...] = ()

    @classmethod
    def parse(cls, text: str) -> HeadSelection:
        """Read ``all``, ``best``, ``best:K``, ``above:30`` or ``list:1.7,2.8``.

        Raises:
            AttreeError: ``text`` is none of these.
        """
        kind, _, argument = text.strip().partition(":")
        if kind == "all" and not argument:
            return cls("all")
        if kind == "best" and re.fullmatch(r"(\d+)?", argument) and argument != "0":
            return cls("best", number=int(argument or 1))
        if kind == "above" and re.fullmatch(r"\d+(\.\d+)?", argument):
            return cls("above", number=float(argument))
        if kind == "list" and re.fullmatch(r"\d+\.\d+(\s*,\s*\d+\.\d+)*", argument):
            named = [head.strip().split(".") for head in argument.split(",")]
            return cls("list", heads=tuple((int(layer), int(head)) for layer, head in named))
        raise AttreeError(f"this is no selection of heads: {text!r}", fix=_FORM)

    @property
    def text(self) -> str:
        """The text form that :meth:`parse` reads."""
        if self.kind == "list":
            return "list:" + ",".join(f"{layer}.{head}" for layer, head in self.heads)
        return self.kind if self.kind == "all" else f"{self.kind}:{self.number:g}"

    def apply(self, f1: NDArray[np.float64]) -> list[Head]:
        """Choose heads by their F1, (layers, heads) in percent; ties go to the lower layer, head.

        Returns:
            the heads chosen, sorted.

        Raises:
            AttreeError: a listed head does not exist, more are asked for than there are, or none
                is above the threshold.
        """
        n_layers, n_heads = f1.shape
        every = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
        if self.kind == "all":
            return every
        if self.kind == "list":
            return checked(self.heads, n_layers, n_heads)
        ranked = sorted(every, key=lambda head: (-f1[head], head))
        if self.kind == "best":
            if self.number > len(ranked):
                raise AttreeError(
                    f"the {self.number:g} best heads are asked for, the encoder has {len(ranked)}",
                    fix=f"choose best:{len(ranked)} or fewer, or all",
                )
            return sorted(ranked[: int(self.number)])
        chosen = [head for head in every if f1[head] > self.number]
        if not chosen:
            layer, head = ranked[0]
            raise AttreeError(
                f"no head is above {self.number:g} F1: the best, {layer}.{head}, has "
                f"{f1[layer, head]:.2f}",
                fix="lower the threshold, or choose best:K",
            )
        return chosen


def checked(heads: Iterable[Head], n_layers: int, n_heads: int) -> list[Head]:
    """Return ``heads`` sorted, each once, after checking that the encoder has them."""
    for layer, head in heads:
        if not (0 <= layer < n_layers and 0 <= head < n_heads):
            raise AttreeError(
                f"there is no head {layer}.{head}",
                fix=f"layers are 0 to {n_layers - 1}, heads 0 to {n_heads - 1}, both from 0",
            )
    return sorted(set(heads))


def read_selection(path: str | Path) -> dict[str, Any]:
    """Read what ``attree heads`` wrote: the heads selected, and how.

    Raises:
        AttreeError: absent, damaged, or not a selection.
    """
    found = read_json(path, what="selection of heads")
    if not isinstance(found, dict) or not _pairs(found.get("heads")):
        raise AttreeError("this is no selection of heads", file=path, fix="make it by attree heads")
    return {**found, "heads": [(int(layer), int(head)) for layer, head in found["heads"]]}


def _pairs(heads: Any) -> bool:
    return (
        isinstance(heads, list)
        and bool(heads)
        and all(isinstance(pair, Sequence) and len(pair) == 2 for pair in heads)
    )
