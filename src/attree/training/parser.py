"""A trained parser: its weights and recipe, its folder, and the model that runs its encoder.

The folder holds ``parser.json``, ``weights.safetensors`` and the model card ``README.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from attree.base.errors import AttreeError
from attree.base.files import whole_file, write_json, write_text
from attree.base.reading import check_regular
from attree.decoding.constrained import SplitChart, no_distribution
from attree.decoding.fixed import fixed_trees
from attree.decoding.k_best import Ranked
from attree.encoder.load import Encoder
from attree.encoder.pieces import Pieces
from attree.encoder.source import read_adapter
from attree.evaluation.metrics import count_each
from attree.evaluation.spans import DistinctSpans, distinct_spans
from attree.training import label_trees, recipes
from attree.training.features import run
from attree.training.gold import GoldTree
from attree.training.inside import log_partition, marginals
from attree.training.parts import Batch, BatchSource, SpanScorer, with_tags
from attree.training.scores import SpanScores, decode, expected_right, likelihoods, split_tables
from attree.trees.constraints import NOTHING_KNOWN, Constraints, Known
from attree.trees.trees import Trees

#: Cells of piece-level matrices scored at a time.
_CELLS_AT_A_TIME = 40_000

_AGAIN = "train it again"
#: Types that weights may have; conversion from others to float32 may lose values.
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(slots=True)
class TrainedParser:
    """A parser trained on a few trees.

    Attributes:
        recipe: its parts, objective and decoder.
        scorer: the weights.
        encoder: slug, fingerprint and revision of its encoder.
        about: record of its training as JSON: seed, data hash, versions, dev score and the like.
        trained_on: :func:`attree.trees.sampling.fingerprints` of the training sentences.
        adapter: low-rank weights of the encoder by name, if it was adapted to trees.
    """

    recipe: recipes.FewShotRecipe
    scorer: SpanScorer
    encoder: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)
    trained_on: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    adapter: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def shape(self) -> Mapping[str, Mapping[str, Any]]:
        """Part → its settings."""
        return self.scorer.shapes

    @property
    def layers(self) -> list[int]:
        """Hidden states chosen by ``--layer`` or tuning; empty if no part reads them."""
        chosen = (part for part in self.scorer.each().values() if part.reads_layers)
        return list(dict.fromkeys(layer for part in chosen for layer in part.layers))

    def check(self, encoder: Encoder) -> None:
        """Refuse an encoder that this parser was not trained with."""
        if encoder.fingerprint != self.encoder["fingerprint"]:
            problem = f"this parser belongs to the encoder {self.encoder['slug']} "
            problem += f"({self.encoder['fingerprint'][:12]}), not to {encoder.slug} "
            problem += f"({encoder.fingerprint[:12]})"
            fix = "parse with the encoder it was trained with, or train anew"
            raise AttreeError("other-encoder", problem, fix=fix)
        # refuse layers, sizes or heads that the encoder lacks before reading any sentence
        n_heads = encoder.n_layers * encoder.n_heads
        limits = {"layers": encoder.n_layers, "hidden": encoder.hidden_size, "heads": n_heads}
        for part, settings in self.shape.items():
            sizes = {"layers": max(settings.get("layers", [0])), "hidden": settings.get("hidden")}
            if part == "heads":
                sizes["heads"] = settings["heads"]
            for key, value in sizes.items():
                fits = value == limits[key] or (key == "layers" and value < limits[key])
                if value is not None and not fits:
                    problem = f"this {recipes.DESCRIPTION} is not valid: shape.{part}.{key}: "
                    problem += f"{value}, but the encoder {encoder.slug} has {limits[key]}"
                    raise AttreeError("bad-shape", problem, file=recipes.ABOUT, fix=_AGAIN)

    @torch.inference_mode()
    def span_scores(self, batch: Batch) -> SpanScores:
        """Score every span of a batch."""
        return self.scorer.scores(batch)

    def trees(self, batch: Batch, threshold: float = 0.0, known: Known = NOTHING_KNOWN) -> Trees:
        """Parse one batch, leaving out spans (labels) less probable than ``threshold``.

        Trees have the marginals of their spans if the parser has a distribution over trees.
        """
        chart = TrainedChart(self.span_scores(batch), self.recipe, threshold)
        alone = {row: replace(chart, scores=chart.scores.take(row)) for row in known}
        return chart.trees().replaced({row: alone[row].trees(known[row]) for row in known})

    def decode(self, source: BatchSource) -> Trees:
        """Parse every sentence of a source, in its order."""
        return Trees.concatenate([self.trees(batch) for batch in _batches(source)])

    def decode_with_marginals(self, source: BatchSource) -> tuple[Trees, NDArray[np.float64]]:
        """Parse as :meth:`decode`; also return each span's probability among binary trees."""
        trees, likely = [], []
        for batch in _batches(source):
            trees.append(self.trees(batch))
            likely.append(likelihoods(self.span_scores(batch), trees[-1]))
        return Trees.concatenate(trees), np.concatenate(likely)

    def f1(self, source: BatchSource, gold: Sequence[GoldTree]) -> float:
        """Return corpus F1 in percent, counting whole sentences, on a source's sentences."""
        return float(count_each(gold_spans(gold), self.decode(source)).corpus_f1[0])

    def threshold(self, text: str) -> float:
        """Parse a threshold of span marginals: a number, or ``chosen``.

        Raises:
            AttreeError: the text is no number from 0 to 1, or no threshold was chosen in training.
        """
        if text == "chosen":
            # where trees have labels, it was chosen for the spans of the structure alone
            if "threshold" not in self.about or self.recipe.decoder == "labelled_risk":
                problem = "no threshold was chosen for this parser"
                fix = "train a tree CRF without labels with --held-out, or give a number"
                raise AttreeError("no-threshold", problem, fix=fix)
            return float(self.about["threshold"])
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            problem = f"{text!r} is not a probability"
            raise AttreeError("not-a-share", problem, fix="give 0 to 1, or chosen")
        return value

    def describe(self) -> dict[str, Any]:
        """Return everything but the weights, as JSON."""
        return {
            "recipe": asdict(self.recipe),
            "shape": self.shape,
            "encoder": self.encoder,
            "about": self.about,
        }


def gold_spans(gold: Sequence[GoldTree]) -> DistinctSpans:
    """Return the brackets of gold trees in the form that evaluation takes."""
    brackets = [tree.brackets.tolist() for tree in gold]
    trees = Trees.from_spans([tree.n_words for tree in gold], brackets)
    return distinct_spans(trees, what="gold tree")


def right_branching_f1(gold: Sequence[GoldTree]) -> float:
    """Return corpus F1, in percent, of right-branching trees."""
    trees = fixed_trees("right_branching", [tree.n_words for tree in gold])
    return float(count_each(gold_spans(gold), trees).corpus_f1[0])


def _batches(source: BatchSource) -> Iterator[Batch]:
    """Yield batches of consecutive sentences whose padded matrices stay small."""
    rows: list[int] = []
    longest = 0
    for number, length in enumerate(source.lengths()):
        longest = max(longest, length)
        if rows and longest**2 * (len(rows) + 1) > _CELLS_AT_A_TIME:
            yield source.batch(rows)
            rows, longest = [], length
        rows.append(number)
    if rows:
        yield source.batch(rows)


def save_parser(parser: TrainedParser, folder: Path, *, card: str = "", half: bool = False) -> None:
    """Write a parser's folder, and its card if given.

    ``parser.json`` is written last, so a folder that has it is complete. With ``half``, weights are
    rounded to 16 bits; they are read as 32 bits again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / recipes.ABOUT).unlink(missing_ok=True)
    tensors = {
        name: (tensor.half() if half else tensor).detach().cpu().contiguous()
        for name, tensor in parser.scorer.state_dict().items()
    }
    tensors |= {name: torch.from_numpy(weights) for name, weights in parser.adapter.items()}
    tensors["trained_on"] = torch.from_numpy(parser.trained_on.astype("<u8").view(np.int64).copy())
    with whole_file(folder / recipes.WEIGHTS) as part:
        part.write_bytes(save(tensors))  # `save_file` makes files that only their owner can read
    if card:
        write_text(folder / recipes.CARD, card)
    write_json(folder / recipes.ABOUT, parser.describe())


def load_parser(
    folder: str | Path, *, device: str = "cpu", decoder: str | None = None
) -> TrainedParser:
    """Read a parser that :func:`save_parser` wrote.

    Args:
        folder: of the parser.
        device: for the weights.
        decoder: to use instead of the parser's own.

    Raises:
        AttreeError: no parser in the folder, weights cut short, or weights of another shape.
    """
    folder = Path(folder)
    description = recipes.read_description(folder)
    recipe, path = recipes.adapted(description.recipe, decoder=decoder), folder / recipes.WEIGHTS
    size = check_regular(path, what="file of weights")
    try:
        with torch.device("meta"):  # before it takes memory
            scorer = SpanScorer(description.recipe, description.shape)
        least = sum(parameter.numel() for parameter in scorer.parameters())
        if least > size:
            problem = f"parser.json describes at least {least:,} weights, but this file has "
            problem += f"{size:,} bytes: they do not belong together"
            raise _damaged(path, problem, "too-few-bytes")
    except (TypeError, KeyError):
        problem = f"this is not the {recipes.DESCRIPTION}"
        raise _damaged(folder / recipes.ABOUT, problem, "other-parser") from None
    adapter = read_adapter(path)
    try:
        tensors = {name: tensor for name, tensor in load_file(path).items() if name not in adapter}
        hashes = tensors.pop("trained_on")
        if hashes.dtype != torch.int64 or hashes.ndim != 1:
            raise _damaged(path, "trained_on is no list of whole numbers of 64 bits")
        trained_on = hashes.numpy().view(np.uint64)
        for name, tensor in tensors.items():
            if tensor.dtype not in _FLOATS:
                kind = str(tensor.dtype).removeprefix("torch.")
                problem = f"are {kind}, but must be floats of 16 or 32 bits"
                raise _damaged(path, f"the weights {name} {problem}")
            if not tensor.isfinite().all():
                raise _damaged(path, f"the weights {name} are not all finite")
        # assigned, as `to_empty` imports sympy; copied, as the file may change under a map of it
        whole = {name: x.to(device, torch.float32, copy=True) for name, x in tensors.items()}
        scorer.load_state_dict(whole, assign=True)
    except (SafetensorError, RuntimeError, KeyError, OSError):
        raise _damaged(path, "these weights are cut short or belong to another parser") from None
    raw = description.raw
    return TrainedParser(recipe, scorer.eval(), raw["encoder"], raw["about"], trained_on, adapter)


def _damaged(path: Path, problem: str, code: str = "damaged-weights") -> AttreeError:
    return AttreeError(code, problem, file=path, fix=_AGAIN)


class TrainedModel:
    """A parser that ``attree train`` made (a :class:`attree.parsers.batches.Model`).

    Args:
        trained: the parser.
        encoder: the one it was trained with.
        threshold: spans of a lower marginal are left out, so that trees need not be binary; 0
            is the recipe's own.

    Attributes:
        labelled: whether trees have labels.
        tagged: whether words have tags.
        has_distribution: whether trees have marginals.
        has_association: whether the parser trains an association matrix.

    Raises:
        AttreeError: the parser was trained with another encoder, or it has a threshold and no
            distribution over trees.
    """

    def __init__(self, trained: TrainedParser, encoder: Encoder, threshold: float = 0.0) -> None:
        trained.check(encoder)
        if threshold and not trained.recipe.has_distribution:
            raise no_distribution()
        trained.scorer.freeze(encoder.dtype)
        self.trained, self.encoder, self.threshold = trained, encoder, threshold
        self.labelled = trained.recipe.decoder == "labelled_risk"
        self.tagged = bool(trained.shape.get("tags", {}).get("names"))
        self.has_distribution = trained.recipe.has_distribution
        self.has_association = "projection" in trained.recipe.parts

    def features(self, pieces: Sequence[Pieces]) -> Batch:
        """Run the encoder over a batch and return the features that the scorer reads."""
        scorer = self.trained.scorer
        return scorer.lay_out(run(self.encoder, pieces, scorer.layout()))

    def trees(self, features: Batch, known: Known = NOTHING_KNOWN) -> Trees:
        """Decode; the score of a span is its span score."""
        return self.trained.trees(features, self.threshold, known)

    def chart(self, features: Batch) -> TrainedChart:
        """Return the span scores of a batch of one sentence."""
        trained = self.trained
        return TrainedChart(trained.span_scores(features), trained.recipe, self.threshold)

    @torch.inference_mode()
    def associations(self, features: Batch) -> list[NDArray[np.float32]]:
        """Return each sentence's trained association, (words, words), exponentiated if a log."""
        matrices, words = self.trained.scorer.association(features), features.n_words.tolist()
        return [matrix[:n, :n] for matrix, n in zip(matrices.cpu().numpy(), words, strict=True)]


@dataclass(frozen=True, slots=True)
class TrainedChart:
    """Span scores of one sentence (:class:`attree.parsers.batches.SentenceScores`), or of a batch.

    Attributes:
        scores: of a batch, of one sentence for all but :meth:`trees` without constraints.
        recipe: of the parser.
        threshold: spans less probable are left out.
    """

    scores: SpanScores
    recipe: recipes.FewShotRecipe
    threshold: float = 0.0

    def trees(self, constraints: Constraints | None = None) -> Trees:
        """Return the trees, with marginals if the parser has a distribution over trees."""
        scores, recipe = self.scores, self.recipe
        if recipe.decoder == "labelled_risk":
            least, share = self.threshold or recipe.threshold, recipe.unlabelled
            trees = label_trees.decode_labelled(scores, least, constraints, unlabelled=share)
            return with_tags(trees, scores)
        trees = decode(scores, recipe.score, recipe.decoder, self.threshold, constraints)
        if recipe.has_distribution and constraints is not None:
            trees = replace(trees, marginals=self.marginals(constraints)[trees.starts, trees.ends])
        elif recipe.has_distribution and trees.marginals is None:
            trees = replace(trees, marginals=likelihoods(scores, trees))
        return with_tags(trees, scores)

    def best(self, k: int) -> Ranked:
        """Return the k best trees by what the decoder maximises, with the parser's span scores.

        Raises:
            AttreeError: the decoder does not compare whole trees.
        """
        span, n_words = self._arrays()
        if self.recipe.decoder == "labelled_risk":
            least, share = self.threshold or self.recipe.threshold, self.recipe.unlabelled
            ranked = label_trees.best_labelled(self.scores, least, k, unlabelled=share)
            rows = range(len(ranked.trees))
            tagged = [with_tags(ranked.trees.take([row]), self.scores) for row in rows]
            return replace(ranked, trees=Trees.concatenate(tagged))
        if self.recipe.decoder == "optional_chart":
            return label_trees.best_optional(span[0], self.trees(Constraints()), k)
        if self.recipe.decoder == "minimum_risk":
            split, decoder = expected_right(marginals(span, n_words), n_words), "chart"
        else:
            split, decoder = split_tables(self.scores, self.recipe.score), self.recipe.decoder
        ranked = SplitChart(split, decoder).best(k)
        of_spans = span[0, ranked.trees.starts, ranked.trees.ends]
        ranked = replace(ranked, trees=replace(ranked.trees, scores=of_spans))
        if not self.recipe.has_distribution:
            return ranked
        trees = ranked.trees
        trees = replace(trees, marginals=self.marginals(Constraints())[trees.starts, trees.ends])
        totals = np.bincount(trees.tree_of, weights=of_spans, minlength=len(trees))
        of_all = float(log_partition(self.scores.span, self.scores.n_words))
        return Ranked(trees, ranked.scores, np.exp(totals - of_all).tolist())

    def marginals(self, constraints: Constraints) -> NDArray[np.float64]:
        """Return the probability of every phrase, (n + 1, n + 1).

        Raises:
            AttreeError: the parser is not a tree CRF.
        """
        if not self.recipe.has_distribution:
            raise no_distribution()
        if self.scores.labels is not None:
            return label_trees.phrase_marginals(self.scores, constraints)
        scores, n_words = self._arrays()
        chances = marginals(scores + constraints.penalties(int(n_words[0])), n_words)[0]
        for span in constraints.forbidden:
            chances[span] = 0.0
        return np.clip(chances, 0.0, 1.0)

    def _arrays(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return self.scores.span.cpu().numpy(), self.scores.n_words.cpu().numpy()
