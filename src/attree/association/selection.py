"""Select the attention heads that a parser averages, by a ranking or by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attree.association.columns import AGREEMENT, parse_heads
from attree.association.sources import within
from attree.base.errors import AttreeError
from attree.evaluation import HEADINGS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attree.encoder.source import Head

#: Criteria for ranking heads, the usual one first: an F1, or their agreement.
RANKED_BY = (*HEADINGS, AGREEMENT)

_FORM = "write all, best, best:K, above:F1, or list:LAYER.HEAD,LAYER.HEAD,…"


@dataclass(frozen=True, slots=True)
class HeadSelection:
    """A rule for selecting heads.

    Args:
        kind: ``all``, ``best``, ``above`` or ``list``.
        number: number of heads (``best``), or the percentage to be exceeded (``above``).
        heads: the heads of a ``list``.
    """

    kind: str
    number: float = 0.0
    heads: tuple[Head, ...] = ()

    @classmethod
    def parse(cls, text: str) -> HeadSelection:
        """Parse ``all``, ``best``, ``best:K``, ``above:30`` or ``list:1.7,2.8``.

        Raises:
            AttreeError: ``text`` has another form.
        """
        kind, _, argument = text.strip().partition(":")
        if kind == "all" and not argument:
            return cls("all")
        if kind == "best" and re.fullmatch(r"([1-9]\d{0,8})?", argument):
            return cls("best", number=int(argument or 1))
        if kind == "above" and re.fullmatch(r"\d{1,9}(\.\d+)?", argument):
            return cls("above", number=float(argument))
        if kind == "list" and (heads := parse_heads(argument)):
            return cls("list", heads=heads)
        raise AttreeError("bad-selection", f"this is not a selection of heads: {text!r}", fix=_FORM)

    @property
    def text(self) -> str:
        """The text form that :meth:`parse` reads."""
        if self.kind == "list":
            return "list:" + ",".join(f"{layer}.{head}" for layer, head in self.heads)
        return self.kind if self.kind == "all" else f"{self.kind}:{self.number:g}"

    def apply(self, f1: NDArray[np.float64], what: str = "F1") -> list[Head]:
        """Select heads by F1, (layers, heads) in percent; ties go to the lower layer, then head.

        ``what`` is the name of the percentage in errors.

        Returns:
            the selected heads, sorted.

        Raises:
            AttreeError: a listed head does not exist, more heads are asked for than exist, or no
                head is above the threshold.
        """
        n_layers, n_heads = f1.shape
        every = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
        if self.kind == "all":
            return every
        if self.kind == "list":
            return within(self.heads, n_layers, n_heads)
        ranked = sorted(every, key=lambda head: (-f1[head], head))
        if self.kind == "best":
            if self.number > len(ranked):
                most = len(ranked)
                problem = f"the {self.number:g} best heads are asked for, the encoder has {most}"
                fix = f"choose best:{most} or fewer, or all"
                raise AttreeError("too-few-heads", problem, fix=fix)
            return sorted(ranked[: int(self.number)])
        if not (chosen := [head for head in every if f1[head] > self.number]):
            (layer, head), best = ranked[0], f1[ranked[0]]
            problem = f"no head is above {self.number:g} {what}: the best, {layer}.{head}, has "
            fix = "lower the threshold, or choose best:K"
            raise AttreeError("no-head-above", f"{problem}{best:.2f}", fix=fix)
        return chosen
