"""Options of ``attree train``: which trees, which parser, and how it is trained."""

import math
import re
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from attree.base import options
from attree.base.errors import AttreeError
from attree.base.options import between
from attree.training import FEW_STEPS, STEPS

TREES, PARSER = "Which trees", "Which parser"
MORE = "Training"

Layers = tuple[int, ...]
_STEPS = f"Batches. Default: {STEPS}; {FEW_STEPS} if few trees start from a parser."
Steps = Annotated[int, Parameter(help=_STEPS, validator=between(1))]
_Rate = Annotated[float, Parameter(validator=between(0, 0.9))]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which trees.

    Attributes:
        trees: a number, or ``all``; or as many of them as there are treebanks. By default all, but
            at most :data:`attree.training.choice.DEFAULT_TREES`; where there are fewer than asked
            for, all there are.
        seed: of the draws.
        held_out: Trees for early stopping, set apart first.
        shares: Share of each treebank in a batch: even, or 2,1,1; --trees are of each.
    """

    trees: Annotated[
        options.Words | None,
        Parameter(
            help="How many trees are drawn at random: a number (of each treebank: 600,200), or "
            "all. Default: all, at most 80."
        ),
    ] = None
    seed: options.Seed = 0
    held_out: Annotated[int, Parameter(validator=between(0), group=MORE)] = 0
    shares: Annotated[list[str] | None, Parameter(converter=options.words)] = None

    def shares_of(self, treebanks: int) -> tuple[float, ...]:
        """Return the share of each treebank; empty if no shares are asked for.

        Raises:
            AttreeError: shares are not one number above 0 for each treebank.
        """
        if self.shares is None:
            return ()
        if self.shares == ["even"]:
            return (1.0,) * treebanks
        try:
            shares = tuple(float(part) for part in self.shares)
        except ValueError:
            shares = ()
        if len(shares) != treebanks or not all(0 < share < math.inf for share in shares):
            text = ",".join(self.shares)
            problem = f"--shares {text} is not a number above 0 for each of {treebanks} treebanks"
            fix = f"write even, or {','.join('1' * treebanks)}"
            raise AttreeError("bad-shares", problem, fix=fix)
        return shares


@dataclass(frozen=True, slots=True)
class Changes(options.Asked):
    """Changes to the parser's recipe; None leaves a setting as it is.

    Attributes:
        objective: Objective: likelihood, margin or tree_crf.
        association, decoder: as in a recipe.
        dropout: Dropout on hidden states.
        learning_rate: of Adam.
    """

    objective: Annotated[str | None, Parameter(completer=options.objectives, group=PARSER)] = None
    association: Annotated[options.Association | None, Parameter(group=PARSER)] = None
    decoder: Annotated[options.Decoder | None, Parameter(group=PARSER)] = None
    dropout: Annotated[_Rate | None, Parameter(group=MORE)] = None
    learning_rate: Annotated[options.LearningRate | None, Parameter(group=MORE)] = None


@dataclass(frozen=True, slots=True)
class Fitting:
    """Settings of a :class:`attree.training.recipes.TrainingPlan`.

    Attributes:
        size: Size of the projection; 0: the encoder's.
        specials: Keep [CLS], [SEP] in the softmax.
        start: First weights: encoder, random, or a parser. Default: universal, but encoder where
            another --parser, an --encoder or a --layer is named.
        steps, batch: of the training.
        decay: The learning rate falls to 0.
    """

    size: Annotated[int, Parameter(group=PARSER)] = 0
    specials: Annotated[bool, Parameter(group=PARSER)] = False
    start: str | None = None
    steps: Steps | None = None
    batch: options.Batch = 10
    decay: bool = False


def parse_layers(text: str) -> Layers:
    """Read ``3`` or ``2+3+4``; a configuration may have commas.

    Raises:
        AttreeError: not numbers.
    """
    try:
        return tuple(int(part) for part in re.split("[+,]", text))
    except ValueError:
        problem = f"{text!r} is not a list of layers"
        raise AttreeError("bad-layers", problem, fix="write 3, or 2+3+4") from None
