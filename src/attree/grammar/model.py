"""The compound PCFG: a grammar whose rule probabilities depend on a latent vector of the sentence.

It follows Kim, Dyer and Rush (2019), "Compound Probabilistic Context-Free Grammars for Grammar
Induction": ``z ~ N(0, I)``, and each sentence is derived by a PCFG whose probabilities are computed
by networks from ``z`` and embeddings of symbols. Training maximises the evidence lower bound

    ``log p(words) ≥ E_q [ log p(words | z) ] − KL( q(z | words) ‖ p(z) )``

with ``q`` a Gaussian whose mean and variance are computed by a bidirectional LSTM. Given ``z``, the
sum over all trees is exact (:mod:`attree.grammar.inside`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from attree.base.provenance import digest
from attree.encoder.pieces import Pieces
from attree.grammar.inside import Rules
from attree.grammar.options import Sizes


class Bound(NamedTuple):
    """The two parts of the bound, in nats; their difference is a lower bound of ``log p(words)``.

    Attributes:
        likelihood: (batch,), ``log p(words | z)`` for the drawn ``z``.
        divergence: (batch,), the KL divergence of ``q`` from the prior.
    """

    likelihood: Tensor
    divergence: Tensor


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

    def forward(self, words: Tensor, noise: Tensor) -> Bound:
        """Return the bound of a batch of sentences.

        Args:
            words: int64 (batch, n), two words or more.
            noise: (batch, latent), standard normal: ``z = mean + deviation × noise``.
        """
        mean, log_variance = self.posterior(words)
        z = mean + (0.5 * log_variance).exp() * noise
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1)
        return Bound(self.rules(words, z).likelihood(), divergence)

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
        return Rules(
            self.root(self.root_symbol, z).squeeze(1).softmax(1),
            binary.view(*binary.shape[:2], count, count),
            of_words.transpose(1, 2),
        )

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
        joined: Tensor = self.symbol(symbols) + self.latent(z)[:, None]
        return joined


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
        scores: Tensor = self.last(states)
        return scores


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
    slug: str = field(default="grammar", repr=False)
    max_pieces: int = LONGEST
    tokens_per_batch: int = 1024

    @classmethod
    def count(cls, sentences: Iterable[Sequence[str]], *, least: int) -> Vocabulary:
        """Take the words that occur at least ``least`` times, the most frequent first."""
        counts = Counter(normalise(word) for words in sentences for word in words)
        counted = sorted((-count, word) for word, count in counts.items() if count >= least)
        return cls((UNKNOWN, *(word for _, word in counted if word != UNKNOWN)))

    def __post_init__(self) -> None:
        """Number the words."""
        object.__setattr__(self, "_number", {word: n for n, word in enumerate(self.words)})

    @property
    def fingerprint(self) -> str:
        """A hash of the words."""
        return digest(self.words)

    def numbers(self, words: Iterable[str]) -> np.ndarray:
        """Return the numbers of words, int64 (words,), 0 for unknown ones."""
        number_of: dict[str, int] = self._number  # type: ignore[attr-defined]
        return np.array([number_of.get(normalise(word), 0) for word in words], np.int64)

    def tokenise(self, sentences: Sequence[Sequence[str]]) -> list[Pieces]:
        """Number the words of sentences; each word is one piece, rare ones the same."""
        pieces = []
        for words in sentences:
            ids, n = self.numbers(words).astype(np.int32), len(words)
            word_of = np.arange(n, dtype=np.int32)
            pieces.append(Pieces(ids, word_of, n, int((ids == 0).sum()), n > LONGEST))
        return pieces
