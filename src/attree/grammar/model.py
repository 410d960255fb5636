"""The compound PCFG: a grammar whose rule probabilities depend on a latent vector of the sentence.

It follows Kim, Dyer and Rush (2019), "Compound Probabilistic Context-Free Grammars for Grammar
Induction": ``z ~ N(0, I)``, and each sentence is derived by a PCFG whose probabilities are computed
by networks from ``z`` and embeddings of symbols. Training maximises the evidence lower bound

    ``log p(words) ≥ E_q [ log p(words | z) ] − KL( q(z | words) ‖ p(z) )``

with ``q`` a Gaussian whose mean and variance are computed by a bidirectional LSTM. Given ``z``, the
sum over all trees is exact, by the inside algorithm; its gradient is the outside pass.

A sentence is derived from a root ``S → A``, binary rules ``A → B C`` and words ``T → w``: ``A`` is
a nonterminal, ``T`` a preterminal, which covers one word, and ``B`` and ``C`` are either. The
probability of the words ``[i, j)`` out of ``A`` is

    ``β(A, i, j) = Σ_k Σ_BC p(A → B C) β(B, i, k) β(C, k, j)``

The sums of a span are stored divided by their largest, whose logarithm is kept, so that products
stay in the range of float32. The products of both parts are summed over split points first, and
then multiplied by the rules, once for each span. For parts of one word, that side of the rules is
summed beforehand, once for each word.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from attree.encoder.pieces import Pieces
from attree.grammar.options import Sizes

#: Lower bound of divisors and of arguments of logarithms.
_LEAST = 1e-30


@dataclass(frozen=True, slots=True)
class Rules:
    """Rule probabilities for a batch of sentences of ``n`` words each, two or more.

    Attributes:
        root: (batch, nonterminals), ``p(S → A)``.
        binary: (batch, nonterminals, symbols, symbols), ``p(A → B C)``; symbols are the
            nonterminals, then the preterminals.
        words: (batch, n, preterminals), ``log p(T → w)`` of each word.
    """

    root: Tensor
    binary: Tensor
    words: Tensor

    def likelihood(self) -> Tensor:
        """Return ``log p(words)``, the sum over all trees, (batch,); differentiable."""
        return _Inside.apply(*self._parts())

    @torch.no_grad()
    def marginals(self) -> Tensor:
        """Return the probability of every span ``[i, j)`` at ``[i, j]``, (batch, n + 1, n + 1).

        It is ``Σ_A β(A, i, j) α(A, i, j) / p(words)``, the probability of the trees that have the
        span. Spans of one word are 0.
        """
        *parts, scale = self._parts()
        chart = _Chart(*parts)
        chart.fill(scale)
        outside = _Outside(chart)
        outside.fill(torch.ones_like(scale[:, 0]))
        return outside.shares()

    def _parts(self) -> tuple[Tensor, ...]:
        """Return the arguments of :class:`_Chart`, and the (batch, n) scale of the words."""
        n_symbols = self.root.shape[1]
        scale = self.words.detach().amax(2)
        words = (self.words - scale[:, :, None]).exp()
        first, second = self.binary[:, :, :n_symbols], self.binary[:, :, n_symbols:]
        wide = first[..., :n_symbols].flatten(2).transpose(1, 2).contiguous()
        left = second[..., :n_symbols].transpose(1, 2).flatten(2)
        right = first[..., n_symbols:].permute(0, 3, 1, 2).flatten(2)
        pairs = (words[:, :-1, :, None] * words[:, 1:, None, :]).flatten(2)
        two = pairs @ second[..., n_symbols:].flatten(2).transpose(1, 2)
        square = (*scale.shape, n_symbols, n_symbols)
        left, right = (words @ left).view(square), (words @ right).view(square)
        return self.root, wide, left, right, two, scale


class _Chart:
    """Inside sums, stored by start and width and by end and width, to align both parts of splits.

    Args:
        root: (batch, A).
        wide: (batch, B × C, A), rules for two parts of two words and more.
        left: (batch, n, A, C), rules for each word as the left part.
        right: (batch, n, A, B), rules for each word as the right part.
        two: (batch, n - 1, A), inside sums of spans of two words.
    """

    def __init__(
        self, root: Tensor, wide: Tensor, left: Tensor, right: Tensor, two: Tensor
    ) -> None:
        batch, n, n_symbols = left.shape[:3]
        self.n, self.square = n, (batch, -1, n_symbols, n_symbols)
        self.root, self.wide, self.left, self.right, self.two = root, wide, left, right, two
        room = (batch, n + 1, n + 1)
        self.starts, self.ends = (two.new_zeros(*room, n_symbols) for _ in range(2))
        self.start_scale, self.end_scale = two.new_zeros(room), two.new_zeros(room)
        self.largest = two.new_ones(room)

    def fill(self, scale: Tensor) -> Tensor:
        """Fill the chart, from words to sentences; return ``log p(words)``."""
        self.start_scale[:, :-1, 1] = self.end_scale[:, 1:, 1] = scale
        for width in range(2, self.n + 1):
            sums, shift = self._sums(width)
            largest = sums.amax(2).clamp(min=_LEAST)
            last = self.n + 1 - width
            self.largest[:, :last, width] = largest
            self.starts[:, :last, width] = self.ends[:, width:, width] = sums / largest[:, :, None]
            scale = shift + largest.log()
            self.start_scale[:, :last, width] = self.end_scale[:, width:, width] = scale
        return self.total().log() + self.start_scale[:, 0, self.n]

    def total(self) -> Tensor:
        """Return ``Σ_A p(S → A) β(A, 0, n)``, divided by the sentence's scale."""
        return (self.root * self.starts[:, 0, self.n]).sum(1).clamp(min=_LEAST)

    def shares(self, width: int) -> tuple[Tensor, Tensor]:
        """Return the weights of the splits of spans of a width, and the spans' scale.

        The weights are (batch, spans, width - 1), by the width of the left part, at most 1; the
        scale is (batch, spans).
        """
        last = self.n + 1 - width
        scales = self.start_scale[:, :last, 1:width] + self.end_scale[:, width:, 1:width].flip(2)
        shift = scales.amax(2)
        return (scales - shift[:, :, None]).exp(), shift

    def inner(self, width: int, shares: Tensor) -> tuple[Tensor, Tensor]:
        """Return both parts, of two words and more, of splits, (batch, spans, splits, symbols)."""
        left = self.starts[:, : self.n + 1 - width, 2 : width - 1] * shares[:, :, 1:-1, None]
        return left, self.ends[:, width:, 2 : width - 1].flip(2)

    def products(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the products of both parts, summed over splits, (batch, spans, B × C)."""
        return (left.transpose(2, 3) @ right).flatten(2)

    def lone(self, width: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Return rules and the other part's sums, for splits off the first and the last word."""
        last = self.n + 1 - width
        after, before = self.ends[:, width:, width - 1], self.starts[:, :last, width - 1]
        return (self.left[:, :last], after), (self.right[:, width - 1 :], before)

    def _sums(self, width: int) -> tuple[Tensor, Tensor]:
        """Return the sums of the spans of a width, (batch, spans, A), and their scale."""
        shares, shift = self.shares(width)
        if width == 2:
            return self.two, shift
        (first, after), (final, before) = self.lone(width)
        sums = shares[:, :, :1] * _apply(first, after) + shares[:, :, -1:] * _apply(final, before)
        if width > 3:
            sums += self.products(*self.inner(width, shares)) @ self.wide
        return sums, shift


class _Outside:
    """Gradient of ``log p(words)`` with respect to the arguments and sums of a filled chart."""

    def __init__(self, chart: _Chart) -> None:
        self.chart = chart
        self.starts, self.ends = torch.zeros_like(chart.starts), torch.zeros_like(chart.ends)
        self.root, self.wide, self.left, self.right, self.two = map(
            torch.zeros_like, (chart.root, chart.wide, chart.left, chart.right, chart.two)
        )

    def fill(self, gradient: Tensor) -> None:
        """Propagate ``gradient``, (batch,), of ``log p(words)``, from sentences to words."""
        chart, n = self.chart, self.chart.n
        share = (gradient / chart.total())[:, None]
        self.root = share * chart.starts[:, 0, n]
        self.starts[:, 0, n] = share * chart.root
        for width in range(n, 1, -1):
            sums = self.of_width(width) / chart.largest[:, : n + 1 - width, width, None]
            if width == 2:
                self.two = sums
                break
            shares, _ = chart.shares(width)
            self._lone(width, sums, shares)
            if width > 3:
                self._inner(width, sums, shares)

    def of_width(self, width: int) -> Tensor:
        """Return the gradient of the sums of spans of a width, (batch, spans, A)."""
        return self.starts[:, : self.chart.n + 1 - width, width] + self.ends[:, width:, width]

    def _lone(self, width: int, sums: Tensor, shares: Tensor) -> None:
        """Add the gradient through splits with a part of one word."""
        last = self.chart.n + 1 - width
        (first, after), (final, before) = self.chart.lone(width)
        by_first, by_final = shares[:, :, :1] * sums, shares[:, :, -1:] * sums
        self.left[:, :last] += by_first[..., None] * after[:, :, None]
        self.ends[:, width:, width - 1] += _apply(first.transpose(2, 3), by_first)
        self.right[:, width - 1 :] += by_final[..., None] * before[:, :, None]
        self.starts[:, :last, width - 1] += _apply(final.transpose(2, 3), by_final)

    def _inner(self, width: int, sums: Tensor, shares: Tensor) -> None:
        """Add the gradient through splits into parts of two words and more."""
        chart, last = self.chart, self.chart.n + 1 - width
        left, right = chart.inner(width, shares)
        self.wide += chart.products(left, right).transpose(1, 2) @ sums
        pairs = (sums @ chart.wide.transpose(1, 2)).view(chart.square)
        to_left = (right @ pairs.transpose(2, 3)) * shares[:, :, 1:-1, None]
        self.starts[:, :last, 2 : width - 1] += to_left
        self.ends[:, width:, 2 : width - 1] += (left @ pairs).flip(2)

    def shares(self) -> Tensor:
        """Return each span's sums times their gradient, summed over symbols."""
        chart = self.chart
        masses = torch.zeros_like(chart.largest)
        for width in range(2, chart.n + 1):
            mass = (chart.starts[:, : chart.n + 1 - width, width] * self.of_width(width)).sum(2)
            masses.diagonal(width, 1, 2).copy_(mass)
        return masses


def _apply(tables: Tensor, values: Tensor) -> Tensor:
    """Multiply matrices (…, A, B) by vectors (…, B)."""
    return (tables @ values[..., None]).squeeze(-1)


class _Inside(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *parts: Tensor) -> Tensor:
        *tables, scale = parts
        ctx.chart = _Chart(*tables)
        return ctx.chart.fill(scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        outside = _Outside(ctx.chart)
        outside.fill(gradient)
        return outside.root, outside.wide, outside.left, outside.right, outside.two, None


class CompoundPCFG(nn.Module):
    """A compound PCFG.

    Args:
        sizes: of its parts.
        words: size of the vocabulary.
    """

    def __init__(self, sizes: Sizes, words: int) -> None:
        super().__init__()
        self.sizes = sizes
        symbols = sizes.nonterminals + sizes.preterminals
        self.root_symbol = nn.Parameter(torch.randn(1, sizes.symbol))
        self.nonterminals = nn.Parameter(torch.randn(sizes.nonterminals, sizes.symbol))
        self.preterminals = nn.Parameter(torch.randn(sizes.preterminals, sizes.symbol))
        self.root = _Network(sizes, sizes.nonterminals)
        self.binary = _Joined(sizes, symbols**2)
        self.words = _Network(sizes, words)
        self.embedding = nn.Embedding(words, sizes.hidden)
        self.lstm = nn.LSTM(sizes.hidden, sizes.hidden, bidirectional=True, batch_first=True)
        self.gaussian = nn.Linear(2 * sizes.hidden, 2 * sizes.latent)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, words: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return both parts of the bound, in nats; the difference bounds ``log p(words)`` below.

        Args:
            words: int64 (batch, n), two words or more.
            noise: (batch, latent), standard normal: ``z = mean + deviation × noise``.

        Returns:
            (batch,) each: ``log p(words | z)`` for the drawn ``z``, and the KL divergence of ``q``
            from the prior.
        """
        mean, log_variance = self.posterior(words)
        z = mean + (0.5 * log_variance).exp() * noise
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1)
        return self.rules(words, z).likelihood(), divergence

    def posterior(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log variance of ``q(z | words)``, (batch, latent) each."""
        states, _ = self.lstm(self.embedding(words))
        mean, log_variance = self.gaussian(states.amax(1)).chunk(2, dim=1)
        return mean, log_variance

    def rules(self, words: Tensor, z: Tensor) -> Rules:
        """Return the rule probabilities for sentences (batch, n) and their ``z``."""
        count = self.sizes.nonterminals + self.sizes.preterminals
        binary = self.binary(self.nonterminals, z).softmax(2)
        scores = self.words(self.preterminals, z)
        wanted = words[:, None].expand(-1, scores.shape[1], -1)
        # normalise over the vocabulary for the sentence's words alone
        of_words = scores.gather(2, wanted) - scores.logsumexp(2, keepdim=True)
        root = self.root(self.root_symbol, z).squeeze(1).softmax(1)
        binary = binary.view(*binary.shape[:2], count, count)
        return Rules(root, binary, of_words.transpose(1, 2))

    @torch.no_grad()
    def marginals(self, words: Tensor) -> Tensor:
        """Return the probability of every span, (batch, n + 1, n + 1), at the mean of ``q``."""
        mean, _ = self.posterior(words)
        return self.rules(words, mean).marginals()


class _Joined(nn.Module):
    """A linear layer over a symbol's embedding joined with ``z``, computed part by part."""

    def __init__(self, sizes: Sizes, out: int) -> None:
        super().__init__()
        self.symbol = nn.Linear(sizes.symbol, out)
        self.latent = nn.Linear(sizes.latent, out, bias=False)

    def forward(self, symbols: Tensor, z: Tensor) -> Tensor:
        """(symbols, symbol size) and (batch, latent) → (batch, symbols, out)."""
        return self.symbol(symbols) + self.latent(z)[:, None]


class _Network(nn.Module):
    """Scores from a symbol and ``z``: a linear layer, two residual blocks, a linear layer."""

    def __init__(self, sizes: Sizes, out: int) -> None:
        super().__init__()
        size = sizes.symbol
        self.first = _Joined(sizes, size)
        self.inner = nn.ModuleList(nn.Linear(size, size) for _ in range(4))
        self.last = nn.Linear(size, out)

    def forward(self, symbols: Tensor, z: Tensor) -> Tensor:
        """(symbols, symbol size) and (batch, latent) → (batch, symbols, out)."""
        states = self.first(symbols, z)
        for lower, upper in (self.inner[:2], self.inner[2:]):
            states = functional.relu(upper(functional.relu(lower(states)))) + states
        return self.last(states)


#: Represents every unknown word; no word of a text is empty.
UNKNOWN = ""
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")

#: Longest sentence that is parsed, in words; time grows with the cube of length.
LONGEST = 250


def normalise(word: str) -> str:
    """Normalise a word for the vocabulary: lower case, each number as ``0``."""
    return _DIGITS.sub("0", word.lower())


@dataclass(frozen=True)
class Vocabulary:
    """A grammar's vocabulary, which numbers the words of sentences in place of an encoder.

    Attributes:
        words: the first is :data:`UNKNOWN`.
    """

    words: tuple[str, ...]
    max_pieces: int = LONGEST
    tokens_per_batch: int = 1024

    @classmethod
    def count(cls, sentences: Iterable[Sequence[str]], *, least: int) -> Vocabulary:
        """Take the words that occur at least ``least`` times, the most frequent first."""
        counts = Counter(normalise(word) for words in sentences for word in words)
        counted = sorted((-count, word) for word, count in counts.items() if count >= least)
        return cls((UNKNOWN, *(word for _, word in counted if word != UNKNOWN)))

    @functools.cached_property
    def _number(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    def numbers(self, words: Iterable[str]) -> np.ndarray:
        """Return the numbers of words, int64 (words,), 0 for unknown ones."""
        return np.array([self._number.get(normalise(word), 0) for word in words], np.int64)

    def tokenise(self, sentences: Sequence[Sequence[str]]) -> list[Pieces]:
        """Number the words of sentences; each word is one piece, rare ones the same."""
        pieces = []
        for words in sentences:
            ids, n = self.numbers(words).astype(np.int32), len(words)
            word_of = np.arange(n, dtype=np.int32)
            pieces.append(Pieces(ids, word_of, n, int((ids == 0).sum()), n > LONGEST))
        return pieces
