"""Learn a compound PCFG from sentences and write its folder.

Each epoch is saved, so that a killed run continues. The random numbers of an epoch depend only on
the seed and the epoch's number, not on a generator's state. The final weights are those of the
epoch with the lowest perplexity on held-out sentences.
"""

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attree.base import runs
from attree.base.errors import AttreeError
from attree.base.files import whole_folder, write_json
from attree.base.provenance import code_hash, digest, provenance, versions
from attree.base.reading import COMPRESSIONS
from attree.base.terminal import progress, say
from attree.grammar.folder import write_grammar
from attree.grammar.model import CompoundPCFG, Vocabulary
from attree.grammar.options import GrammarRecipe
from attree.raw_text.lines import measure, read_texts, table_words, text_files

#: Uses of random generators, to give each its own seed.
_ORDER, _NOISE, _HELD_OUT = range(3)
#: Adam's betas and the largest norm of the gradient, as in Kim, Dyer and Rush (2019).
_BETAS, _CLIP = (0.75, 0.999), 3.0

#: Vocabulary numbers of a sentence's words, (words,).
Numbers = NDArray[np.int64]

#: A grammar of binary rules cannot derive a sentence of one word.
_SHORTEST = 2
_TEXT = tuple(f".txt{suffix}" for suffix in COMPRESSIONS)


@dataclass(slots=True)
class Epoch:
    """Results of one training epoch; perplexities are per word.

    Attributes:
        epoch: its number, from 1.
        trained: upper bound of the perplexity of the training sentences, during the epoch.
        held_out: the same for held-out sentences, after the epoch.
        reconstruction: held-out perplexity of words given ``z``, without the divergence.
        divergence: mean KL divergence of a held-out sentence, in nats.
        seconds: duration of the epoch.
    """

    epoch: int
    trained: float
    held_out: float
    reconstruction: float
    divergence: float
    seconds: float

    def __str__(self) -> str:
        """Describe the epoch in one line."""
        return (
            f"epoch {self.epoch}: perplexity at most {self.held_out:,.1f} on sentences held out "
            f"({self.reconstruction:,.1f} and {self.divergence:.2f} nats of KL a sentence), "
            f"{self.trained:,.1f} in training; {self.seconds:.0f} s"
        )


@dataclass(slots=True)
class _Sums:
    """Bounds summed over sentences."""

    likelihood: float = 0.0
    divergence: float = 0.0
    words: int = 0
    sentences: int = 0

    def perplexity(self, divergence: float) -> float:
        """Return the perplexity per word, with the divergence to add to the loss."""
        lost = (divergence - self.likelihood) / max(self.words, 1)
        return math.exp(min(lost, 700.0)) if lost == lost else math.nan


def _train(
    model: CompoundPCFG,
    recipe: GrammarRecipe,
    seed: int,
    folder: Path,
    sentences: Sequence[Numbers],
    held_out: Sequence[Numbers],
) -> list[Epoch]:
    """Train a grammar in place, from the checkpoint in ``folder`` if there is one.

    The final weights are those of the best epoch.

    Raises:
        AttreeError: a perplexity is not a number, or the checkpoint is damaged.
    """
    checkpoint = folder / "checkpoint.pt"
    adam = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate, betas=_BETAS, fused=True)
    best: dict[str, Tensor] = {}
    curve: list[Epoch] = []
    if (state := runs.read_state(checkpoint)) is not None:
        best, curve = state["best"], [Epoch(**epoch) for epoch in state["curve"]]
        model.load_state_dict(state["now"])
        adam.load_state_dict(state["adam"])
        say(f"continuing after epoch {len(curve)}")
    for number in range(len(curve) + 1, recipe.epochs + 1):
        began = time.monotonic()
        order, noise = (_generator(seed, number, use) for use in (_ORDER, _NOISE))
        with progress(f"epoch {number}", total=len(sentences)) as advance:
            trained = _add_up(model, batches(sentences, recipe.batch, order), noise, adam, advance)
        with torch.no_grad():  # with the same noise after each epoch
            noise = _generator(0, 0, _HELD_OUT)
            measured = _add_up(model, batches(held_out, 16), noise)
        epoch = Epoch(
            number,
            trained.perplexity(trained.divergence),
            measured.perplexity(measured.divergence),
            measured.perplexity(0.0),
            measured.divergence / max(measured.sentences, 1),
            time.monotonic() - began,
        )
        if not math.isfinite(epoch.trained + epoch.held_out):
            problem = f"the perplexity is not a number in epoch {number}"
            fix = "run again with a lower --learning-rate"
            raise AttreeError("loss-not-finite", problem, file=folder.parent, fix=fix)
        say(str(epoch))
        if all(epoch.held_out < before.held_out for before in curve):
            best = copy.deepcopy(model.state_dict())
        curve.append(epoch)
        state = {"best": best, "now": model.state_dict(), "adam": adam.state_dict()}
        runs.write_state(checkpoint, {**state, "curve": [asdict(epoch) for epoch in curve]})
    model.load_state_dict(best)
    return curve


def _add_up(
    model: CompoundPCFG,
    batches: Iterable[Tensor],
    noise: torch.Generator,
    adam: torch.optim.Adam | None = None,
    advance: Callable[[int], None] = lambda count: None,
) -> _Sums:
    """Sum the bounds of sentences; if an optimiser is given, make a step after each batch."""
    sums = _Sums()
    for words in batches:
        drawn = torch.randn(len(words), model.sizes.latent, generator=noise)
        likelihood, divergence = model(words, drawn)
        if adam is not None:
            adam.zero_grad()
            (divergence - likelihood).mean().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), _CLIP)
            adam.step()
        sums.likelihood += float(likelihood.detach().sum())
        sums.divergence += float(divergence.detach().sum())
        sums.words += words.numel()
        sums.sentences += len(words)
        advance(len(words))
    return sums


def batches(
    sentences: Sequence[Numbers], size: int, generator: torch.Generator | None = None
) -> Iterator[Tensor]:
    """Yield batches of sentences of equal length, int64 (batch, n), shuffled by a generator."""
    by_length: dict[int, list[int]] = {}
    for number in _shuffle(len(sentences), generator):
        by_length.setdefault(len(sentences[number]), []).append(number)
    groups = [
        numbers[first : first + size]
        for numbers in by_length.values()
        for first in range(0, len(numbers), size)
    ]
    for group in _shuffle(len(groups), generator):
        yield torch.from_numpy(np.stack([sentences[number] for number in groups[group]]))


def _shuffle(count: int, generator: torch.Generator | None) -> list[int]:
    if generator is None:
        return list(range(count))
    return torch.randperm(count, generator=generator).tolist()


def _generator(*seeds: int) -> torch.Generator:
    mixed = int(np.random.SeedSequence(seeds).generate_state(1, np.uint64)[0] >> np.uint64(1))
    return torch.Generator().manual_seed(mixed)


def is_text(path: Path) -> bool:
    """Tell whether a file is text of a sentence a line, and no treebank or table."""
    return path.name.endswith(_TEXT)


def read_sentences(paths: Iterable[Path]) -> tuple[list[list[str]], list[str]]:
    """Read sentences of words.

    Args:
        paths: sentence tables, or text files of a sentence a line, spaces between its words.

    Returns:
        the sentences, and for each file its language and split, or its name.

    Raises:
        AttreeError: a file cannot be read.
    """
    sentences: list[list[str]] = []
    names = []
    for path in paths:
        if is_text(path):
            measure(files := text_files([path]))  # tells which lines are passed over
            sentences += [line.split() for line in read_texts(files)]
            names.append(path.name)
            continue
        words, metadata = table_words(path)
        sentences += words
        named = [metadata.get(key) or "" for key in ("language", "split")]
        names.append(" ".join(filter(None, named)) or path.name)
    return sentences, names


def learn(
    paths: Sequence[Path], output: Path, *, seed: int, recipe: GrammarRecipe, restart: bool = False
) -> None:
    """Learn a grammar from sentences of words, without trees, and write its folder.

    A killed run resumes after its last complete epoch, with the same result. The result depends
    only on the arguments, the kind of processor, and the number of threads.

    Args:
        paths: as for :func:`read_sentences`.
        output: the folder.
        seed: of weights, order and noise.
        recipe: sizes of the grammar and settings of training.
        restart: replace an earlier run with other settings, text or code.

    Raises:
        AttreeError: too little text, an ``output`` folder with other content, or a perplexity that
            is not a number.
    """
    sentences, names = read_sentences(paths)
    identity = {
        "kind": "grammar",
        "data": digest(sentences),
        "recipe": asdict(recipe),
        "seed": seed,
        "code": code_hash("attree.grammar.learning:learn"),
    }
    if runs.already_made(output, identity, restart=restart):
        return
    trained, held_out = _parts(sentences, recipe, names)
    vocabulary = Vocabulary.count(trained, least=recipe.least)
    unknown = np.concatenate([vocabulary.numbers(words) for words in trained]) == 0
    left = len(sentences) - len(trained) - len(held_out)
    say(
        f"{len(trained):,} sentences to train on and {len(held_out):,} held out, {left:,} that "
        f"have not {_SHORTEST} to {recipe.longest} words left out; {len(vocabulary.words) - 1:,} "
        f"words, and {unknown.mean():.1%} of the text is unknown"
    )
    with runs.working_folder(output, identity, restart=restart) as work:
        torch.manual_seed(seed)
        model = CompoundPCFG(recipe.sizes, len(vocabulary.words))
        parts = ([vocabulary.numbers(words) for words in part] for part in (trained, held_out))
        curve = _train(model, recipe, seed, work / "training", *parts)
        best = min(curve, key=lambda epoch: epoch.held_out).epoch
        facts = {"text": names, "best_epoch": best, "versions": versions("torch")}
        made = provenance(code=["attree.grammar.learning:learn"], settings=identity, **facts)
        with whole_folder(output, over=runs.PROVENANCE) as part:
            write_grammar(part, model, vocabulary, made)
            epochs = [asdict(epoch) for epoch in curve]
            write_json(part / runs.PROVENANCE, {**made, "epochs": epochs})
    say(f"{output}: written, of epoch {best}")


def _parts(
    sentences: Sequence[list[str]], recipe: GrammarRecipe, names: Sequence[str]
) -> tuple[list[list[str]], list[list[str]]]:
    """Return training and held-out sentences, leaving out those too short or too long."""
    share = Fraction(str(recipe.held_out))  # exact: 0.05 holds out every twentieth, the first too
    parts: tuple[list[list[str]], list[list[str]]] = ([], [])
    for number, words in enumerate(sentences):
        if _SHORTEST <= len(words) <= recipe.longest:
            parts[math.ceil(number * share) < math.ceil((number + 1) * share)].append(words)
    if not all(parts):
        problem = (
            f"of {len(sentences):,} sentences, only {len(parts[0])} of {_SHORTEST} to"
            f" {recipe.longest} words are left to train on and {len(parts[1])} to hold out"
        )
        fix = "give more text, some thousand sentences, or a larger --longest"
        raise AttreeError("too-few-sentences", problem, file=names[0], fix=fix)
    return parts
