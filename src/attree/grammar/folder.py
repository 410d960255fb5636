"""The folder of a grammar: ``grammar.json``, and its weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from attree.base.errors import AttreeError, NotFiniteError
from attree.base.files import whole_file, write_json
from attree.base.process import use_threads
from attree.base.reading import check_regular, read_described
from attree.decoding.constrained import SplitChart
from attree.encoder.pieces import Pieces
from attree.grammar.model import UNKNOWN, CompoundPCFG, Vocabulary
from attree.grammar.options import Sizes
from attree.training.scores import best_trees, expected_right
from attree.trees.constraints import NOTHING_KNOWN, Known
from attree.trees.trees import Trees

ABOUT, WEIGHTS = "grammar.json", "weights.safetensors"
_WHAT, _AGAIN = "description of a grammar", "learn it again with `attree grammar train`"


class About(msgspec.Struct):
    """Contents of ``grammar.json``.

    Attributes:
        sizes: of the grammar.
        words: of its vocabulary, the unknown word first.
        made_from: description of the training text, as tables show it.
        provenance: of the grammar.
    """

    sizes: Sizes
    words: list[str]
    made_from: str
    provenance: dict[str, Any]


def write_grammar(
    folder: Path, model: CompoundPCFG, vocabulary: Vocabulary, made: Mapping[str, Any]
) -> None:
    """Write a grammar's files into a folder; the description is written last.

    Args:
        folder: an existing one.
        model: the weights.
        vocabulary: the words.
        made: provenance of the grammar.
    """
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    with whole_file(folder / WEIGHTS) as part:
        part.write_bytes(save(tensors))
    seed, text = made["settings"]["seed"], ", ".join(made["text"])
    made_from = f"words of {text} (no trees, seed {seed})"
    about = About(model.sizes, list(vocabulary.words), made_from, dict(made))
    write_json(folder / ABOUT, msgspec.to_builtins(about))


def read_grammar(folder: str | Path) -> tuple[CompoundPCFG, Vocabulary, About]:
    """Read a grammar that :func:`write_grammar` wrote.

    Raises:
        AttreeError: no grammar in the folder; weights cut short, not finite, or of another grammar.
    """
    folder = Path(folder)
    grammar = read_described(folder / ABOUT, About, what=_WHAT, fix=_AGAIN)
    if grammar.words[:1] != [UNKNOWN] or len(set(grammar.words)) < len(grammar.words):
        problem = f"this {_WHAT} is not valid: words: one comes twice, or the first is known"
        raise AttreeError("bad-form", problem, file=folder / ABOUT, fix=_AGAIN)
    return _read_weights(folder / WEIGHTS, grammar), Vocabulary(tuple(grammar.words)), grammar


def _read_weights(path: Path, grammar: About) -> CompoundPCFG:
    size = check_regular(path, what="file of weights")
    with torch.device("meta"):
        model = CompoundPCFG(grammar.sizes, len(grammar.words))
    expected = sum(parameter.numel() * 4 for parameter in model.parameters())
    try:
        if not expected <= size <= expected + 1_000_000:  # before it takes memory
            raise ValueError
        tensors = load_file(path)
        model.load_state_dict(tensors, assign=True)
    except (SafetensorError, RuntimeError, KeyError, OSError, ValueError):
        problem = "these weights are cut short or belong to another grammar"
        raise AttreeError("damaged-weights", problem, file=path, fix=_AGAIN) from None
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise AttreeError("not-finite", "these weights are NaN or infinite", file=path, fix=_AGAIN)
    return model.eval()


#: Sentences parsed together.
_AT_A_TIME = 16


@dataclass(frozen=True, slots=True)
class Marginals:
    """The probabilities of the spans of a batch.

    Attributes:
        likely: float64 (batch, n + 1, n + 1), ``[i, j)`` at ``[i, j]``, 0 past the sentence.
        n_words: int64 (batch,).
    """

    likely: NDArray[np.float64]
    n_words: NDArray[np.int64]


class GrammarModel:
    """A grammar (a :class:`attree.parsers.batches.Model`); its vocabulary takes an encoder's place.

    Args:
        grammar: the weights.
        vocabulary: the words.
    """

    labelled = tagged = has_distribution = False
    trained = None

    def __init__(self, grammar: CompoundPCFG, vocabulary: Vocabulary) -> None:
        self.grammar = grammar
        self.encoder: Any = vocabulary

    def features(self, pieces: Sequence[Pieces]) -> Marginals:
        """Compute the probability of every span, sentences of one length together."""
        n_words = np.array([sentence.n_words for sentence in pieces], np.int64)
        side = int(n_words.max(initial=0)) + 1
        likely = np.zeros((len(pieces), side, side))
        for n in np.unique(n_words[n_words > 1]):
            rows = np.flatnonzero(n_words == n)
            for chunk in np.array_split(rows, -(-rows.size // _AT_A_TIME)):
                words = torch.from_numpy(np.stack([pieces[row].ids for row in chunk]))
                marginals = self.grammar.marginals(words.long())
                likely[chunk, : n + 1, : n + 1] = marginals.double().numpy()
        return Marginals(likely, n_words)

    def trees(self, features: Marginals, known: Known = NOTHING_KNOWN) -> Trees:
        """Decode by minimum risk; the score of a span is its probability.

        Raises:
            NotFiniteError: a probability is NaN.
        """
        likely = features.likely
        if not np.isfinite(likely).all():
            raise NotFiniteError("not-finite", "a sentence's probabilities are not finite")
        trees = best_trees(torch.from_numpy(likely), torch.from_numpy(features.n_words))
        constrained = {row: self.chart(features, row).trees(spans) for row, spans in known.items()}
        trees = trees.replaced(constrained)
        return replace(trees, scores=likely[trees.tree_of, trees.starts, trees.ends])

    def chart(self, features: Marginals, row: int = 0) -> SplitChart:
        """Return the chart of one sentence of a batch."""
        side = int(features.n_words[row]) + 1
        likely = features.likely[row : row + 1, :side, :side]
        return SplitChart(expected_right(likely, features.n_words[row : row + 1]), "chart")

    def associations(self, features: Marginals) -> list[NDArray[np.float32]]:
        """Raise an error: a grammar has no association."""
        problem, fix = "a grammar has no association between words", "take a parser of an encoder"
        raise AttreeError("no-association", problem, fix=fix)


@dataclass(frozen=True, slots=True)
class GrammarFolder:
    """The folder of a grammar that ``attree grammar train`` wrote."""

    folder: Path
    language: ClassVar[str] = ""

    def load(self, *, threads: int | None) -> GrammarModel:
        """Load the weights; a grammar runs on the CPU, whatever the device."""
        use_threads(threads)
        return GrammarModel(*read_grammar(self.folder)[:2])


def find_grammar(folder: Path, _: object) -> GrammarFolder:
    """Find the grammar in a folder, as :data:`attree.parsers.find.KINDS` has it."""
    return GrammarFolder(folder)
