"""Choose sentences of raw text to annotate: at random, or those that a parser is least sure of.

A random pool of distinct sentences is drawn, a parser measures them, and a way of choosing ranks
them. To add a way, write a function ``(measured, count) → positions`` and add it to :data:`WAYS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.parsers.parser import Parser
from attree.raw_text.inputs import find_inputs
from attree.raw_text.lines import read_sentences, refuse_treebanks
from attree.raw_text.words import Tokeniser
from attree.trees import OK

#: Way of choosing → its function of a parser's measures; ``random`` needs no parser.
WAYS = {
    "random": "attree.annotate.choosing:at_random",
    "uncertain": "attree.annotate.choosing:most_uncertain",
    "diverse": "attree.annotate.choosing:diverse",
}
RANDOM = "random"


def check_lengths(least: int, most: int) -> None:
    """Refuse lengths that no sentence to annotate has."""
    if not 2 <= least <= most:
        problem = f"no sentence to annotate has {least} to {most} words"
        raise AttreeError("bad-words", problem, fix="give a smaller number first, from 2 on")


def read_pool(
    inputs: Iterable[Path],
    split: Tokeniser,
    lengths: tuple[int, int],
    *,
    size: int,
    seed: int,
    column: str = "text",
) -> tuple[list[list[str]], int]:
    """Draw sentences from files; only one hash per sentence seen stays in memory.

    Args:
        inputs: files and folders, as for :func:`attree.raw_text.inputs.find_inputs`.
        split: splits texts into sentences of words.
        lengths: the fewest and the most words of a sentence.
        size: how many are drawn at most; all sentences are equally likely.
        seed: of the draw.
        column: of Parquet and JSON Lines.

    Returns:
        the words of each sentence drawn, in random order; and the number of distinct sentences of
        these lengths.

    Raises:
        AttreeError: an input cannot be read or is a treebank, or no sentence is left.
    """
    least, most = lengths
    generator, drawn, seen = np.random.default_rng(seed), list[list[str]](), set[int]()
    left_out: Counter[str] = Counter()
    files, _ = find_inputs(inputs)
    refuse_treebanks(files)
    for _, _, status, sentences in read_sentences(files, column, split):
        if status != OK:
            left_out[f"lines {status}"] += 1
        for words in sentences:
            if not least <= len(words) <= most:
                left_out["too short or too long"] += 1
            elif hash(tuple(words)) not in seen:
                seen.add(hash(tuple(words)))
                if len(drawn) < size:
                    drawn.append(words)
                elif (position := int(generator.integers(len(seen)))) < size:
                    drawn[position] = words  # reservoir sampling
    if not drawn:
        why = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        problem = f"no sentence to choose from ({why or 'no line'})"
        fix = "give another --min-words or --max-words, or other text"
        raise AttreeError("no-sentences", problem, file=files[0].path, fix=fix)
    generator.shuffle(drawn)
    return drawn, len(seen)


#: For each sentence wanted, this many of the most uncertain are compared for diversity.
_COMPARED = 5


@dataclass(frozen=True, slots=True)
class SentenceMeasures:
    """A parser's measures of sentences.

    Attributes:
        unsure: (sentences,) entropy of the distribution over trees, in nats per word; NaN for
            sentences that cannot be parsed, which are never chosen.
        vectors: (sentences, hidden) means of the words' states.
        brackets: (sentences,) int64, brackets of the proposed trees: the cost of annotation.
    """

    unsure: NDArray[np.float64]
    vectors: NDArray[np.float32]
    brackets: NDArray[np.int64]


def at_random(measured: SentenceMeasures, count: int) -> NDArray[np.int64]:
    """Return the first ``count`` sentences; they were drawn at random."""
    return np.arange(len(measured.brackets))[:count]


def most_uncertain(measured: SentenceMeasures, count: int) -> NDArray[np.int64]:
    """Return the sentences with the highest entropy per word."""
    order = np.argsort(-np.nan_to_num(measured.unsure, nan=-1.0), kind="stable")
    return order[: min(count, int(np.isfinite(measured.unsure).sum()))]


def diverse(measured: SentenceMeasures, count: int) -> NDArray[np.int64]:
    """Return uncertain sentences that are unlike each other.

    Of the ``5 × count`` most uncertain sentences the first is chosen, then always the one whose
    vector is farthest (by cosine) from the nearest of those chosen.
    """
    near = most_uncertain(measured, _COMPARED * count)
    vectors = measured.vectors[near].astype(np.float64)
    vectors -= vectors.mean(0) if len(near) else 0.0
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    chosen: list[int] = []
    distance = np.full(len(near), np.inf)
    while len(chosen) < min(count, len(near)):
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, 1.0 - vectors @ vectors[chosen[-1]])
        distance[chosen] = -np.inf
    return near[chosen]


def measure(
    parser: Parser | None,
    words: Sequence[Sequence[str]],
    *,
    advance: Callable[[int], None] = lambda count: None,
) -> SentenceMeasures:
    """Parse sentences once and measure each.

    Args:
        parser: a trained tree CRF; without one only the brackets of binary trees are counted.
        words: words of each sentence.
        advance: called with the number of sentences done.

    Returns:
        the measures; the uncertainty of a sentence that cannot be parsed is NaN.

    Raises:
        AttreeError: the parser has no distribution over trees.
    """
    unsure, lengths = np.full(len(words), np.nan), np.array(list(map(len, words)), np.int64)
    if parser is None:
        return SentenceMeasures(unsure, np.zeros((len(words), 0), np.float32), lengths - 1)
    import torch

    from attree.decoding.constrained import no_distribution
    from attree.training.features import Layout, run
    from attree.training.inside import entropy
    from attree.training.parser import TrainedModel

    model = parser.model
    if not isinstance(model, TrainedModel) or not model.trained.recipe.has_distribution:
        raise no_distribution()
    scorer, encoder = model.trained.scorer, parser.encoder
    layout = scorer.layout()
    layers = layout.layers or (encoder.n_layers // 2,)
    prepared = parser.prepare(words)
    brackets = np.zeros(len(words), np.int64)
    vectors = np.zeros((len(words), encoder.hidden_size), np.float32)
    for batch in prepared.batches:
        with torch.inference_mode():
            output = run(encoder, prepared.pieces_of(batch), Layout(layers, layout.heads))
            if output.finite.cpu().numpy().all():
                features = scorer.lay_out(output)
                span = model.trained.span_scores(features).span.cpu().numpy()
                unsure[batch] = entropy(span, lengths[batch]) / lengths[batch]
                brackets[batch] = model.trees(features).n_spans
                states = output.states[layers[len(layers) // 2]].float()  # numpy has no bfloat16
                mask = output.batch.mask[:, :, None].to(states)
                vectors[batch] = ((states * mask).sum(1) / mask.sum(1)).cpu().numpy()
        advance(len(batch))
    return SentenceMeasures(unsure, vectors, brackets)
