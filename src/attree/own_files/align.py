"""Anyone's trees beside gold trees, paired by their words; every sentence left out is reported.

Both files are read whole, punctuation included. Then the words that the gold file's punctuation
policy removes are removed from both trees of a pair, so that tags of the predictions do not matter.
Predictions without punctuation are recognised by their words.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from attree.errors import AttreeError
from attree.treebank.cleaning import Keep, choose, clean, policy
from attree.treebank.formats import resolve
from attree.treebank.reading import read_whole
from attree.treebank.sentence import Sentence, Settings


@dataclass(slots=True)
class Aligned:
    """Pairs of trees over the same words, punctuation removed.

    Attributes:
        gold, predicted: as many of both.
        refused: a line for each sentence of either file that has no partner, or no tree.
        punctuation: the policy by which words were removed.
    """

    gold: list[Sentence] = field(default_factory=list)
    predicted: list[Sentence] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    punctuation: str = "keep"

    @property
    def sentences(self) -> str:
        """Return how many sentences are paired, in words."""
        note = f"; {len(self.refused):,} refused" if self.refused else ""
        return f"{len(self.gold):,} sentences{note}; punctuation: {self.punctuation}"


def align(gold: Path, predicted: Path, settings: Settings) -> Aligned:
    """Read two files and pair their sentences.

    Args:
        gold: the gold trees.
        predicted: the trees to score.
        settings: how both are read; a format is that of both, and without one each file tells its
            own.

    Raises:
        AttreeError: a file that cannot be read, or no pair.
    """
    found = Aligned()
    rights = read_whole(gold, settings, found.refused)
    guesses = read_whole(predicted, settings, found.refused)
    found.punctuation = _punctuation(gold, settings, rights)
    keep = policy(found.punctuation)
    cleaned = [clean(one, keep) for one in rights]
    if _is_cleaned(rights, cleaned, guesses):
        rights, keep = [one for one in cleaned if one is not None], None
    for right, guess in _pairs(rights, guesses, gold, predicted, found.refused):
        _add(found, right, guess, keep)
    if not found.gold:
        raise AttreeError(
            f"no sentence has the words of a gold sentence{_first(found.refused)}",
            file=predicted,
            fix=f"check that it is of the same sentences as {gold}",
        )
    return found


def _first(refused: Sequence[str]) -> str:
    return f" (first: {refused[0]})" if refused else ""


def _punctuation(path: Path, settings: Settings, sentences: Sequence[Sentence]) -> str:
    chosen = resolve(settings, [path]).punctuation or "keep"
    return choose(sentences)[0] if chosen == "auto" else chosen


def _is_cleaned(
    rights: Sequence[Sentence], cleaned: Sequence[Sentence | None], guesses: Sequence[Sentence]
) -> bool:
    """Tell whether the predictions were made without punctuation, by whose words they share."""
    whole = {one.words for one in rights}
    bare = {one.words for one in cleaned if one is not None}
    return sum(g.words in bare for g in guesses) > sum(g.words in whole for g in guesses)


def _pairs(
    rights: Sequence[Sentence],
    guesses: Sequence[Sentence],
    gold: Path,
    predicted: Path,
    refused: list[str],
) -> Iterator[tuple[Sentence, Sentence]]:
    """Yield the sentences that both files have, in order; say which only one has."""
    a, b = ([one.words for one in side] for side in (rights, guesses))
    matcher = difflib.SequenceMatcher(a=a, b=b, autojunk=False)
    for _, i, last_i, j, last_j in matcher.get_opcodes():
        for right, guess in zip_longest(rights[i:last_i], guesses[j:last_j]):
            if right is None:
                refused.append(f"{guess.file}:{guess.line}: no such sentence in {gold}")
            elif guess is None:
                refused.append(
                    f"{right.file}:{right.line}: no tree of this sentence in {predicted}"
                )
            elif right.words == guess.words:
                yield right, guess
            else:
                refused.append(_unequal(right, guess))


def _unequal(right: Sentence, guess: Sentence) -> str:
    where = f"{guess.file}:{guess.line}: "
    beside = f"the gold sentence of line {right.line}"
    if len(right.words) != len(guess.words):
        return f"{where}{len(guess.words)} words, but {beside} has {len(right.words)}"
    at = next(n for n, (a, b) in enumerate(zip(right.words, guess.words, strict=True)) if a != b)
    word, other = guess.words[at], right.words[at]
    return f"{where}word {at + 1} is {word!r}, but {other!r} in {beside}"


def _add(found: Aligned, right: Sentence, guess: Sentence, keep: Keep | None) -> None:
    if keep is not None:
        stays = keep(right)
        cleaned = [clean(one, lambda _: stays) for one in (right, guess)]
        if cleaned[0] is None or cleaned[1] is None:
            found.refused.append(f"{right.file}:{right.line}: no word is left without punctuation")
            return
        right, guess = cleaned[0], cleaned[1]
    found.gold.append(right)
    found.predicted.append(guess)
