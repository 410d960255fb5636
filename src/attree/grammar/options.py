"""What grammar to learn, and how: the options of ``attree grammar train``."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from msgspec import Meta

from attree.base import options
from attree.base.errors import AttreeError

_Symbols = Annotated[int, Meta(ge=1, le=10_000), Parameter(validator=options.between(1, 1000))]
_Size = Annotated[int, Meta(ge=1, le=10_000), Parameter(validator=options.between(1, 10_000))]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a grammar and of its networks.

    Attributes:
        nonterminals: Kinds of phrases.
        preterminals: Kinds of words.
        symbol: Size of a symbol's embedding.
        latent: Size of z.
        hidden: Hidden size, of a word's embedding and of each direction of the LSTM.
    """

    nonterminals: _Symbols = 30
    preterminals: _Symbols = 60
    symbol: _Size = 256
    latent: _Size = 64
    hidden: _Size = 256


@dataclass(frozen=True, slots=True)
class GrammarRecipe:
    """How a grammar is learned.

    Attributes:
        sizes: of the grammar.
        epochs: passes over the sentences.
        batch: sentences of a step; all of a batch have one length.
        learning_rate: of Adam.
        longest: Leave out sentences of more words.
        least: Words that occur less often are one unknown word.
        held_out: Share kept to measure on: the best epoch is chosen by the perplexity there.
    """

    sizes: Annotated[Sizes, Parameter(name="*", group="Sizes")] = Sizes()
    epochs: options.Epochs = 20
    batch: options.Batch = 4
    learning_rate: options.LearningRate = 1e-3
    longest: Annotated[int, Parameter(validator=options.between(2, 250), group="Text")] = 40
    least: Annotated[int, Parameter(validator=options.between(1), group="Text")] = 2
    held_out: Annotated[float, Parameter(name="--held-out-share", group="Text")] = 0.05

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if not 0 < self.held_out < 0.5:
            raise AttreeError("bad-share", "the held-out share must lie between 0 and 0.5")
