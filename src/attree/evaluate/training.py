"""Parsers trained on a few trees of one file, and their F1 on those of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import pyarrow as pa

from attree.errors import AttreeError
from attree.evaluate.predictions import SHOWN, baseline_rows, row_of
from attree.evaluation.counts import Counts
from attree.evaluation.metrics import score
from attree.fewshot import session
from attree.fewshot.recipes import recipe
from attree.files import read_json
from attree.parser import Parser
from attree.parser_source import READY, find_encoder
from attree.parses import Parses
from attree.progress import progress
from attree.schemas import SENTENCES, write_table
from attree.tables.render import Table
from attree.treebank import cleaning
from attree.treebank.formats import read_files, resolve
from attree.treebank.sentence import Rejected, Sentence, Settings
from attree.treebank.table import to_table
from attree.trees import Trees


@dataclass(frozen=True, slots=True)
class Plan:
    """What is trained.

    Attributes:
        parsers: names of few-shot recipes.
        trees: how many trees, each by itself.
        draws: how many times trees are drawn; F1 is the mean.
        encoder: a description, a folder or a package; None for the small English one.
        steps: batches that each parser is trained on.
        device: ``cpu`` or ``cuda``; a GPU where there is one.
        max_words: only test sentences of at most this many words are scored.
        allow_overlap: train on trees whose sentences are scored all the same.
    """

    parsers: Sequence[str]
    trees: Sequence[int]
    draws: int = 1
    encoder: str | None = None
    steps: int = 200
    device: str | None = None
    max_words: int | None = None
    allow_overlap: bool = False


@dataclass(frozen=True, slots=True)
class Treebank:
    """The sentences of a file, cleaned.

    Attributes:
        table: of ``schemas.SENTENCES``.
        refused: a line for each sentence that was not read.
        punctuation: the policy by which words were removed.
    """

    table: pa.Table
    refused: list[str]
    punctuation: str

    @classmethod
    def read(cls, path: Path, settings: Settings) -> Treebank:
        """Read a file of trees.

        Raises:
            AttreeError: no sentence of it can be read.
        """
        how, counts = resolve(settings, [path]), cleaning.Counts()
        sentences, refused = [], []
        for item in cleaning.prepare(read_files([path], how), how, counts):
            if isinstance(item, Rejected):
                refused.append(f"{item.file}:{item.line}: {item.reason}")
            elif isinstance(item, Sentence):
                sentences.append(item)
        if not sentences:
            why = f" (first: {refused[0]})" if refused else ""
            raise AttreeError(f"no sentence could be read{why}", file=path)
        return cls(to_table(sentences), refused, counts.punctuation)


def evaluate_trained(train: Treebank, test: Treebank, plan: Plan) -> Table:
    """Train, parse, score; return the table that people read.

    Raises:
        AttreeError: too few trees, an unknown parser or encoder, or trees in both files.
    """
    gold = Parses.gold(test.table)
    trained = list(_trained(train, test, gold, plan))
    rows = [row_of(name, runs) for name, runs in trained]
    rows += [row_of(name, [counts]) for name, counts in baseline_rows(gold, plan.max_words)]
    draws = f" Means of {plan.draws} draws of trees." if plan.draws > 1 else ""
    note = f"{len(gold):,} sentences; punctuation: {test.punctuation}. Unlabelled F1."
    note += draws + _labelled(trained)
    return Table("F1", ["", *SHOWN.values()], rows, note)


def _labelled(trained: Sequence[tuple[str, list[Counts]]]) -> str:
    """Return labelled F1 in words; nothing of parsers without labels."""
    means = [
        f"{name} {fmean(one.labelled_f1 for one in runs):.2f}"
        for name, runs in trained
        if all(one.labelled_f1 is not None for one in runs)
    ]
    return f" Labelled F1 as EVALB counts it: {', '.join(means)}." if means else ""


def _trained(
    train: Treebank, test: Treebank, gold: Parses, plan: Plan
) -> Iterator[tuple[str, list[Counts]]]:
    words = test.table["words"].to_pylist()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="attree-")))
        tables = {"train": train, "test": test}
        for name, one in tables.items():
            about = {"split": name, "punctuation": one.punctuation}
            write_table(folder / f"{name}.parquet", one.table, schema=SENTENCES, metadata=about)
        default = read_json(READY, what="list of ready heads")["encoder"]
        find_encoder(plan.encoder or default, None).write(folder / "encoder.json")
        total = len(plan.parsers) * len(plan.trees) * plan.draws
        advance = stack.enter_context(progress("training", total=total, unit="parsers"))
        for name in plan.parsers:
            for trees in plan.trees:
                runs = []
                for seed in range(plan.draws):
                    found = _parse(folder, name, trees, seed, plan, words)
                    parses = Parses.all_ok(gold.sentence, found)
                    runs.append(score(gold, parses, max_words=plan.max_words).counts)
                    advance(1)
                yield f"{name}, {trees:,} trees", runs


def _parse(
    folder: Path, name: str, trees: int, seed: int, plan: Plan, words: list[list[str]]
) -> Trees:
    request = session.Request(
        folder / "train.parquet",
        folder / "encoder.json",
        recipe(name),
        session.Choice(str(trees), None, seed),
        training={"steps": plan.steps},
        evaluated=[folder / "test.parquet"],
        allow_overlap=plan.allow_overlap,
        device=plan.device,
    )
    output = folder / f"{name}-{trees}-{seed}"
    session.train_parser(request, output)
    encoder = str(folder / "encoder.json")
    return Parser.load(str(output), encoder=encoder, device=plan.device).trees(words)[0]
