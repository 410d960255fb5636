"""The published program of Kim et al. (2020), told again a sentence at a time with plain lists.

Written from its protocol (galsang/trees_from_transformers): the encoder reads the pieces without
``[CLS]`` and ``[SEP]``; a word's state is the mean over its pieces, attention to it their sum, from
it their mean; neighbours are compared by every measure, layer and head; a tree is split where the
distance is greatest; the best candidate by sentence F1 is kept. As in the program, JSD is of the
reversed divergences, ``sqrt((KL(m|p) + KL(m|q)) / 2)``, and ``cos`` a similarity.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

#: measure, layer from 1, head or None for what has none
Candidate = tuple[str, int, int | None]
Span = tuple[int, int]
Vectors = list[torch.Tensor]


def cos(p: torch.Tensor, q: torch.Tensor) -> float:
    return (float(torch.dot(p, q) / (p.norm() * q.norm())) + 1) / 2


def hellinger(p: torch.Tensor, q: torch.Tensor) -> float:
    return math.sqrt(float(((p.sqrt() - q.sqrt()) ** 2).sum())) / math.sqrt(2)


def jsd(p: torch.Tensor, q: torch.Tensor) -> float:
    p, q = p.double(), q.double()
    middle = (p + q) / 2
    divergences = []
    for one in (p, q):
        floored = (one + 1e-8) / (one + 1e-8).sum()
        divergences.append(float(torch.xlogy(middle, middle / floored).sum()))
    return math.sqrt(max(0.0, sum(divergences) / 2))


STATES: dict[str, Callable[[torch.Tensor, torch.Tensor], float]] = {
    "cos": cos,
    "l1": lambda p, q: float((p - q).abs().sum()),
    "l2": lambda p, q: float(((p - q) ** 2).sum().sqrt()),
}
ATTENTION = {"hellinger": hellinger, "jsd": jsd}


def neighbours(
    compare: Callable[[torch.Tensor, torch.Tensor], float], vectors: Vectors
) -> list[float]:
    return [compare(p, q) for p, q in itertools.pairwise(vectors)]


@torch.no_grad()
def distances(model: Any, tokeniser: Any, words: Sequence[str]) -> dict[Candidate, list[float]]:
    """Return every candidate's distances between neighbours; ``model`` gives eager attention."""
    encoded = tokeniser(list(words), is_split_into_words=True, add_special_tokens=False)
    groups = [
        [p for p, word in enumerate(encoded.word_ids()) if word == w] for w in range(len(words))
    ]
    output = model(
        input_ids=torch.tensor([encoded.input_ids]),
        output_hidden_states=True,
        output_attentions=True,
    )
    found: dict[Candidate, list[float]] = {}
    for layer, (states, attention) in enumerate(
        zip(output.hidden_states[1:], output.attentions, strict=True), start=1
    ):
        of_words = [states[0, group].mean(0) for group in groups]
        for name, compare in STATES.items():
            found[name, layer, None] = neighbours(compare, of_words)
        for name, compare in ATTENTION.items():
            for head, matrix in enumerate(attention[0]):
                to_words = torch.stack([matrix[:, group].sum(1) for group in groups], dim=1)
                from_words = [to_words[group].mean(0) for group in groups]
                found[name, layer, head] = neighbours(compare, from_words)
            each = [found[name, layer, head] for head in range(len(attention[0]))]
            found[f"avg_{name}", layer, None] = [
                sum(column) / len(column) for column in zip(*each, strict=True)
            ]
    return found


def biased(distances: Sequence[float], bias: float) -> list[float]:
    m = len(distances)
    if m < 2:
        return list(distances)
    base = bias * sum(distances) / m
    return [d + base * (1 - x / (m - 1)) for x, d in enumerate(distances)]


def spans(distances: Sequence[float], start: int = 0) -> set[Span]:
    """Split at the greatest distance, the first of equal ones; spans of two words and more."""
    if not distances:
        return set()
    split = list(distances).index(max(distances))
    left, right = distances[:split], distances[split + 1 :]
    whole = {(start, start + len(distances) + 1)}
    return whole | spans(left, start) | spans(right, start + split + 1)


def sentence_f1(gold: set[Span], predicted: set[Span], n_words: int) -> float:
    gold, predicted = gold - {(0, n_words)}, predicted - {(0, n_words)}
    if not gold:
        return 0.0 if predicted else 1.0
    shared = len(gold & predicted)
    precision, recall = shared / (len(predicted) + 1e-8), shared / (len(gold) + 1e-8)
    return 2 * precision * recall / (precision + recall + 1e-8)


def table(
    model: Any,
    tokeniser: Any,
    trees: Iterable[tuple[Sequence[str], set[Span]]],
    biases: Sequence[float] = (0.0, 1.5),
) -> dict[float, Mapping[Candidate, float]]:
    """Return bias → candidate → sentence F1 in percent; sentences of one word are left out."""
    sums: dict[float, dict[Candidate, float]] = {bias: {} for bias in biases}
    count = 0
    for words, gold in trees:
        if len(words) < 2:
            continue
        count += 1
        for candidate, found in distances(model, tokeniser, words).items():
            for bias in biases:
                one = sentence_f1(gold, spans(biased(found, bias)), len(words))
                sums[bias][candidate] = sums[bias].get(candidate, 0.0) + one
    return {
        bias: {candidate: 100 * total / count for candidate, total in each.items()}
        for bias, each in sums.items()
    }
