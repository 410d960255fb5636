"""Parsers made with a few trees of a treebank, and their F1 on other trees."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attree.association.compute import StageSettings
from attree.association.ranking import rank
from attree.association.selection import HeadSelection
from attree.base.errors import AttreeError
from attree.base.progress import progress
from attree.base.registry import check_name
from attree.base.text import say
from attree.decoding import UNSUPERVISED
from attree.encoder.source import DTYPES, ResolvedEncoder, find_encoder
from attree.evaluation.side_by_side import Evaluation, Gold, System
from attree.parsers.find import AveragedHeads, Overrides, find_parser
from attree.parsers.parser import Parser
from attree.ready import DEFAULT, usual_encoder
from attree.stages import train as session
from attree.stages.attention import columns_for, compute_attention
from attree.training.gold import usual
from attree.training.options import Choice, Fitting
from attree.training.recipes import RECIPES, recipe
from attree.treebank.given import Treebank
from attree.trees.parses import Parses
from attree.trees.sampling import draw_trees, shared_rows, usable_trees
from attree.trees.trees import Trees

#: Which heads unsupervised parsers average, as config.yaml has it; where no head is as good, so
#: many of the best.
_ABOVE, _ELSE_BEST = "above:30", 10


@dataclass(frozen=True, slots=True)
class FewShotPlan:
    """What is made.

    Attributes:
        parsers: names of few-shot recipes, which train on the trees, and of ``UNSUPERVISED``, for
            which heads are chosen by F1 on them; none for the best recipe, beside UPIO.
        trees: how many trees, each by itself.
        draws: how many times trees are drawn; F1 is the mean.
        encoder: what ``find_encoder`` finds; None for the default one.
        steps: batches that each parser is trained on.
        device: ``cpu`` or ``cuda``; a GPU where there is one.
        max_words: only test sentences of at most this many words are scored.
        allow_overlap: train on trees whose sentences are scored all the same.
        start: first weights, as ``attree train`` takes them; None for what it takes by default.
    """

    parsers: Sequence[str]
    trees: Sequence[int]
    draws: int = 1
    encoder: str | None = None
    steps: int = 200
    device: str | None = None
    max_words: int | None = None
    allow_overlap: bool = False
    start: str | None = None

    def check(self) -> None:
        """Refuse what is unknown.

        Raises:
            AttreeError: a parser that does not exist, or first weights where none are trained.
        """
        known = (*UNSUPERVISED, *RECIPES)
        for name in self.parsers:
            check_name(name, known, f"unknown parser {name!r}", near=True)
        if self.start and self.parsers and not set(self.parsers) & set(RECIPES):
            problem = f"--start has no effect on {', '.join(self.parsers)}, which no trees train"
            fix = "leave it out, or name a parser of attree train"
            raise AttreeError("option-without-effect", problem, fix=fix)


def split(whole: Treebank, tested: str, path: Path) -> tuple[Treebank, Treebank]:
    """Cut one treebank in two.

    Args:
        whole: the sentences of a file.
        tested: a slice of sentences from 0 on, such as ``100:``, ``:100`` or ``100:200``: they are
            tested on, and the others are trained on.
        path: of the file.

    Raises:
        AttreeError: no slice, or nothing is left to train on or to test on.
    """
    count = whole.table.num_rows
    found = re.fullmatch("([0-9]{0,9}):([0-9]{0,9})", tested.strip())
    if found is None:
        problem = f"--split {tested} is no slice of sentences"
        fix = "write 100: to test on all after the first 100, or 100:200"
        raise AttreeError("bad-split", problem, fix=fix)
    start, stop = int(found[1] or 0), min(int(found[2] or count), count)
    if not 0 < stop - start < count:
        left = "test on" if stop <= start else "train on"
        problem = f"--split {tested} leaves nothing to {left}: there are {count:,} sentences"
        fix = f"write {count // 2}: to test on the second half"
        raise AttreeError("empty-split", problem, file=path, fix=fix)
    rows = np.arange(count)
    inside = (start <= rows) & (rows < stop)
    return _taken(whole, rows[~inside]), _taken(whole, rows[inside])


def _taken(treebank: Treebank, rows: NDArray[np.int64]) -> Treebank:
    """Return some of the sentences, numbered from 0."""
    table = treebank.table.take(rows)
    numbers = pa.array(np.arange(table.num_rows), pa.int32())
    return replace(treebank, table=table.set_column(0, table.schema.field(0), numbers))


def evaluate_trained(train: Treebank, test: Treebank, plan: FewShotPlan) -> Evaluation:
    """Train, parse, score.

    Sentences of ``test`` are left out of ``train`` unless the plan allows them, and numbers of
    trees that there are not become all there are; both are said before anything is trained.

    Raises:
        AttreeError: no tree to train on, or an unknown parser or encoder.
    """
    plan.check()
    if not plan.parsers:
        plan = replace(plan, parsers=(usual([train.table]), "upio"))
    if not plan.allow_overlap:
        train = _without(train, test)
    plan = replace(plan, trees=_there(plan.trees, train))
    gold = Gold.of_table(test.table, test.punctuation)
    systems = []
    with ExitStack() as stack:
        bench = _Bench(Path(stack.enter_context(TemporaryDirectory())), train, test, plan)
        total = len(plan.parsers) * len(plan.trees) * plan.draws
        advance = stack.enter_context(progress("evaluating", total=total, unit="parsers"))
        for name, trees in itertools.product(plan.parsers, plan.trees):
            runs = []
            for seed in range(plan.draws):
                parsed = bench.parse(name, trees, seed)
                runs.append(Parses.all_ok(gold.parses.sentence, parsed))
                advance(1)
            systems.append(System(f"{name}, {trees:,} trees", runs, trees=trees))
    return Evaluation(gold, systems, plan.max_words, list(_notes(plan, bench)))


def _without(train: Treebank, test: Treebank) -> Treebank:
    """Leave out of the training trees the sentences that are tested on; say how many."""
    words = train.table["words"].to_pylist()
    shared = shared_rows(words, test.table["words"].to_pylist())
    if not shared:
        return train
    left = np.setdiff1d(np.arange(len(words)), shared)
    if not left.size:
        problem = "every training tree is among the sentences to be evaluated on"
        fix = "choose other trees, or pass --allow-overlap"
        raise AttreeError("all-evaluated-on", problem, fix=fix)
    say(
        f"attree: {len(shared):,} of {len(words):,} sentences are among those to be evaluated on: "
        "left out of training (--allow-overlap keeps them)"
    )
    return _taken(train, left)


def _there(wanted: Sequence[int], train: Treebank) -> tuple[int, ...]:
    """Return the numbers of trees that can be drawn; all there are in place of larger ones."""
    there = len(usable_trees(train.table))
    few = [n for n in wanted if n > there]
    if few:
        named = ", ".join(f"{n:,}" for n in few)
        say(f"attree: {named} trees were asked for, there are {there:,} of three words and more")
    return tuple(dict.fromkeys(min(n, there) for n in wanted))


def _notes(plan: FewShotPlan, bench: _Bench) -> Iterator[str]:
    if plan.draws > 1:
        yield f"Means of {plan.draws} draws of trees."
    heads = [name.upper() for name in plan.parsers if name in UNSUPERVISED]
    if heads:
        yield f"{', '.join(heads)}: heads above 30 F1 on the same trees."
    if bench.few:
        yield f"Where no head was, the best {_ELSE_BEST}."


class _Bench:
    """Makes parsers and parses the test sentences.

    Args:
        folder: a temporary one.
        train, test: the treebanks.
        plan: what is made.
    """

    def __init__(self, folder: Path, train: Treebank, test: Treebank, plan: FewShotPlan) -> None:
        self._folder, self._train, self._plan = folder, train, plan
        self._words = test.table["words"].to_pylist()
        self.few = False
        train.write(folder / "train.parquet", split="train")
        self._draws = {
            (trees, seed): draw_trees(train.table, trees, seed=seed)
            for trees in plan.trees
            for seed in range(plan.draws)
        }
        self._encoder: ResolvedEncoder = find_encoder(plan.encoder or usual_encoder())
        self._start = plan.start
        if plan.start is not None:
            session.say_seen(plan.start, self._words)
        elif plan.encoder or session.usual_start(self._words) != DEFAULT:
            self._start = "encoder"

    def parse(self, name: str, trees: int, seed: int) -> Trees:
        """Return the trees of the test sentences by the parser that so many trees make."""
        if name in UNSUPERVISED:
            source: Any = self._with_heads(name, self._draws[trees, seed])
        else:
            source = self._trained(name, trees, seed)
        return Parser.of(source, device=self._plan.device).trees(self._words)[0]

    def _trained(self, name: str, trees: int, seed: int) -> Any:
        request = session.TrainingRequest(
            self._folder / "train.parquet",
            self._plan.encoder,
            recipe(name),
            Choice([str(trees)], None, seed),
            Fitting(steps=self._plan.steps, start=self._start),
            device=self._plan.device,
        )
        output = self._folder / f"{name}-{trees}-{seed}"
        session.train_parser(request, output)
        return find_parser(str(output), Overrides(self._plan.encoder, dtype=DTYPES[0]))

    def _with_heads(self, name: str, rows: Sequence[int]) -> AveragedHeads:
        """Choose heads by their F1 on some training trees."""
        made, gold = UNSUPERVISED[name], Parses.gold(self._drawn)
        grid = rank(self._attention, gold, made, only=np.array(rows, np.int32)).grid()
        select = HeadSelection.parse(_ABOVE)
        if not (grid > select.number).any():
            self.few = True
            select = HeadSelection("best", number=min(_ELSE_BEST, grid.size))
        return AveragedHeads(self._encoder, tuple(select.apply(grid)), made)

    @cached_property
    def _drawn(self) -> pa.Table:
        """The sentences of all draws, under their numbers among the training sentences."""
        rows = sorted({row for rows in self._draws.values() for row in rows})
        return self._train.table.take(rows)

    @cached_property
    def _attention(self) -> Path:
        """The manifest of the attention of all heads on those sentences, computed once."""
        table, manifest = self._folder / "drawn.parquet", self._folder / "attention.json"
        replace(self._train, table=self._drawn).write(table, split="train")
        columns = columns_for(self._encoder, every=True)
        settings = StageSettings(device=self._plan.device)
        compute_attention(table, self._encoder, columns, manifest, settings)
        return manifest
