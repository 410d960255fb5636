"""From sentences to a grammar's folder, whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from attree.base.errors import AttreeError
from attree.base.files import COMPRESSIONS, whole_folder, write_json
from attree.base.provenance import code_hash, provenance, versions
from attree.base.runs import PROVENANCE, already_made, working_folder
from attree.base.text import say
from attree.raw_text.training_text import read_texts, table_words, text_files
from attree.rivals.grammar.folder import write_grammar
from attree.rivals.grammar.model import CompoundPCFG, Vocabulary
from attree.rivals.grammar.options import GrammarRecipe
from attree.rivals.grammar.training import GrammarRun, Numbers
from attree.trees.sampling import fingerprints

#: A word that is a sentence has no rule of its own in a grammar whose rules are binary.
_SHORTEST = 2
_TEXT = tuple(f".txt{suffix}" for suffix in COMPRESSIONS)


def is_text(path: Path) -> bool:
    """Tell a text file, of a sentence a line, from a treebank or a table."""
    return path.name.endswith(_TEXT)


def read_sentences(paths: Iterable[Path]) -> tuple[list[list[str]], list[str]]:
    """Read sentences of words.

    Args:
        paths: sentence tables, or text files of a sentence a line, spaces between its words.

    Returns:
        the sentences, and of each file its language and split, or its name.

    Raises:
        AttreeError: a file cannot be read.
    """
    sentences: list[list[str]] = []
    names = []
    for path in paths:
        if is_text(path):
            sentences += [line.split() for line in read_texts(text_files([path]))]
            names.append(path.name)
            continue
        words, about = table_words(path)
        sentences += words
        named = [about.get(key) or "" for key in ("language", "split")]
        names.append(" ".join(filter(None, named)) or path.name)
    return sentences, names


def learn(
    paths: Sequence[Path],
    output: Path,
    *,
    seed: int,
    recipe: GrammarRecipe,
    restart: bool = False,
) -> None:
    """Learn a grammar from sentences of words and write its folder; no tree is looked at.

    A run that was killed resumes after its last whole epoch. The result is a function of its
    arguments, killed or not, on one kind of processor and number of threads.

    Args:
        paths: as for :func:`read_sentences`.
        output: the folder.
        seed: of weights, order and noise.
        recipe: what to learn, and how.
        restart: replace what other settings, text or code have left there.

    Raises:
        AttreeError: too little text, an ``output`` that holds something else, or a perplexity that
            is not a number.
    """
    sentences, names = read_sentences(paths)
    identity = {
        "kind": "grammar",
        "data": hashlib.sha256(fingerprints(sentences).tobytes()).hexdigest()[:32],
        "sentences": len(sentences),
        "recipe": asdict(recipe),
        "seed": seed,
        "code": code_hash("attree.rivals.grammar.learning:learn"),
    }
    if already_made(output, identity, restart=restart):
        return
    trained, held_out = _parts(sentences, recipe, names)
    vocabulary = Vocabulary.of(trained, least=recipe.least)
    say(_said(len(sentences), trained, held_out, vocabulary, recipe))
    with working_folder(output, identity, restart=restart) as work:
        torch.manual_seed(seed)
        model = CompoundPCFG(recipe.sizes, len(vocabulary.words))
        run = GrammarRun(model, recipe, seed, work / "training")
        run.train(*(_numbers(vocabulary, part) for part in (trained, held_out)))
        about = {"text": names, "best_epoch": run.best_epoch, "versions": versions("torch")}
        made = provenance(code=["attree.rivals.grammar.learning:learn"], settings=identity, **about)
        with whole_folder(output, over=PROVENANCE) as part:
            write_grammar(part, model, vocabulary, run.curve, made)
            write_json(part / PROVENANCE, made)
    say(f"{output}: written, of epoch {run.best_epoch}")


def _parts(
    sentences: Sequence[list[str]], recipe: GrammarRecipe, names: Sequence[str]
) -> tuple[list[list[str]], list[list[str]]]:
    """Return the sentences to train on and those held out, neither too short nor too long."""
    every = round(1 / recipe.held_out)
    parts: tuple[list[list[str]], list[list[str]]] = ([], [])
    for number, words in enumerate(sentences):
        if _SHORTEST <= len(words) <= recipe.longest:
            parts[number % every == 0].append(words)
    if not all(parts):
        raise AttreeError(
            "too-few-sentences",
            f"{len(sentences):,} sentences, of which {len(parts[0])} of {_SHORTEST} to"
            f" {recipe.longest} words can be trained on and {len(parts[1])} held out",
            file=names[0],
            fix="give more text: some thousand sentences; or see --longest",
        )
    return parts


def _numbers(vocabulary: Vocabulary, sentences: Sequence[list[str]]) -> list[Numbers]:
    return [vocabulary.numbers(words) for words in sentences]


def _said(
    total: int,
    trained: Sequence[list[str]],
    held_out: Sequence[list[str]],
    known: Vocabulary,
    recipe: GrammarRecipe,
) -> str:
    """Say what is trained on, and what is left out of it."""
    unknown = np.concatenate([known.numbers(words) for words in trained]) == 0
    left = total - len(trained) - len(held_out)
    return (
        f"{len(trained):,} sentences to train on and {len(held_out):,} held out, {left:,} that "
        f"have not {_SHORTEST} to {recipe.longest} words left out; {len(known.words) - 1:,} words,"
        f" and {unknown.mean():.1%} of the text is unknown"
    )
