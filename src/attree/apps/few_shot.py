"""Train parsers on a few trees of a treebank, and score them on other trees."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attree.association.compute import StageSettings
from attree.association.ranking import rank
from attree.association.selection import HeadSelection
from attree.base.errors import AttreeError
from attree.base.registry import check_name
from attree.base.terminal import progress, say
from attree.decoding import UNSUPERVISED
from attree.encoder.source import ResolvedEncoder, find_encoder
from attree.evaluation.side_by_side import Evaluation, Gold, System
from attree.parsers.find import AveragedHeads
from attree.parsers.parser import Parser
from attree.ready import default_encoder
from attree.stages import train as session
from attree.stages.attention import columns_for, compute_attention
from attree.training.choice import Chosen
from attree.training.gold import default_recipe, read_trees
from attree.training.options import Fitting
from attree.training.parser import TrainedModel
from attree.training.recipes import RECIPES, recipe
from attree.training.start import Start
from attree.treebank.as_table import Treebank
from attree.trees.parses import Parses
from attree.trees.sampling import draw_trees, shared_rows, usable_trees
from attree.trees.trees import Trees

#: The heads that unsupervised parsers average, as in config.yaml; where no head is that good, this
#: number of the best.
_ABOVE, _ELSE_BEST = "above:30", 10


@dataclass(frozen=True, slots=True)
class FewShotPlan:
    """The parsers to train and score.

    Attributes:
        parsers: names of few-shot recipes, which train on the trees, and of ``UNSUPERVISED``, whose
            heads are chosen by F1 on the trees; by default the best recipe and UPIO.
        trees: numbers of training trees; every parser is trained with each.
        draws: number of draws of the trees; F1 is the mean.
        encoder: a name for ``find_encoder``; None for the default encoder.
        steps: batches that each parser is trained on; by default as `attree train` has it.
        device: ``cpu`` or ``cuda``; by default a GPU if there is one.
        max_words: score only test sentences of at most this many words.
        allow_overlap: train also on trees of sentences that are scored.
        start: first weights, as for ``attree train``; None for its default.
    """

    parsers: Sequence[str]
    trees: Sequence[int]
    draws: int = 1
    encoder: str | None = None
    steps: int | None = None
    device: str | None = None
    max_words: int | None = None
    allow_overlap: bool = False
    start: str | None = None

    def check(self) -> None:
        """Check the names of parsers, and that first weights have an effect.

        Raises:
            AttreeError: a parser is unknown, or first weights are given but no parser is trained.
        """
        for name in self.parsers:
            check_name(name, (*UNSUPERVISED, *RECIPES), f"unknown parser {name!r}", near=True)
        if self.start and self.parsers and not set(self.parsers) & set(RECIPES):
            problem = f"--start has no effect on {', '.join(self.parsers)}: they are not trained"
            fix = "leave it out, or name a parser of attree train"
            raise AttreeError("option-without-effect", problem, fix=fix)


def split(whole: Treebank, tested: str, path: Path) -> tuple[Treebank, Treebank]:
    """Split a treebank into training and test sentences.

    Args:
        whole: the sentences of a file.
        tested: slice of the test sentences, counted from 0, such as ``100:``, ``:100`` or
            ``100:200``; the others are training sentences.
        path: path of the file, for errors.

    Raises:
        AttreeError: ``tested`` is no slice, or one of the two parts is empty.
    """
    count = whole.table.num_rows
    if (match := re.fullmatch("([0-9]{0,9}):([0-9]{0,9})", tested.strip())) is None:
        fix = "write 100: to test on all after the first 100, or 100:200"
        raise AttreeError("bad-split", f"--split {tested} is no slice of sentences", fix=fix)
    start, stop = int(match[1] or 0), min(int(match[2] or count), count)
    if not 0 < stop - start < count:
        left = "test on" if stop <= start else "train on"
        problem = f"--split {tested} leaves nothing to {left}: there are {count:,} sentences"
        fix = f"write {count // 2}: to test on the second half"
        raise AttreeError("empty-split", problem, file=path, fix=fix)
    rows = np.arange(count)
    inside = (start <= rows) & (rows < stop)
    return _take_rows(whole, rows[~inside]), _take_rows(whole, rows[inside])


def _take_rows(treebank: Treebank, rows: NDArray[np.int64]) -> Treebank:
    """Return the sentences at ``rows``, numbered from 0."""
    table = treebank.table.take(rows)
    numbers = pa.array(np.arange(table.num_rows), pa.int32())
    return replace(treebank, table=table.set_column(0, table.schema.field(0), numbers))


def evaluate_trained(train: Treebank, test: Treebank, plan: FewShotPlan) -> Evaluation:
    """Train parsers, parse the test sentences and score the trees.

    Sentences of ``test`` are left out of ``train`` unless the plan allows them. A number of trees
    above those available is replaced by all of them. Both are said before training starts.

    Raises:
        AttreeError: there is no tree to train on, or a parser or encoder is unknown.
    """
    plan.check()
    if not plan.parsers:
        plan = replace(plan, parsers=(default_recipe([train.table]), "upio"))
    if not plan.allow_overlap:
        train = _without(train, test)
    plan = replace(plan, trees=_limit_numbers(plan.trees, train))
    gold = Gold.of_table(test.table, test.punctuation)
    systems = []
    with ExitStack() as stack:
        bench = _Bench(Path(stack.enter_context(TemporaryDirectory())), train, test, plan)
        total = len(plan.parsers) * len(plan.trees) * plan.draws
        advance = stack.enter_context(progress("evaluating", total=total, unit="parsers"))
        for name, trees in itertools.product(plan.parsers, plan.trees):
            runs = []
            for seed in range(plan.draws):
                runs.append(Parses.all_ok(gold.parses.sentence, bench.parse(name, trees, seed)))
                advance(1)
            systems.append(System(f"{name}, {trees:,} trees", runs, trees=trees))
    return Evaluation(gold, systems, plan.max_words, list(_notes(plan, bench)))


def _without(train: Treebank, test: Treebank) -> Treebank:
    """Remove the test sentences from the training trees; say how many there were."""
    words = train.table["words"].to_pylist()
    if not (shared := shared_rows(words, test.table["words"].to_pylist())):
        return train
    if not (rows := np.setdiff1d(np.arange(len(words)), shared)).size:
        problem = "every training tree is among the sentences to be evaluated on"
        fix = "choose other trees, or pass --allow-overlap"
        raise AttreeError("all-evaluated-on", problem, fix=fix)
    say(
        f"attree: {len(shared):,} of {len(words):,} sentences are among those to be evaluated on: "
        "left out of training (--allow-overlap keeps them)"
    )
    return _take_rows(train, rows)


def _limit_numbers(wanted: Sequence[int], train: Treebank) -> tuple[int, ...]:
    """Limit the numbers of trees to those that can be drawn."""
    usable = len(usable_trees(train.table))
    if listed := ", ".join(f"{n:,}" for n in wanted if n > usable):
        say(f"attree: {listed} trees were asked for, there are {usable:,} of three words and more")
    return tuple(dict.fromkeys(min(n, usable) for n in wanted))


def _notes(plan: FewShotPlan, bench: _Bench) -> Iterator[str]:
    if plan.draws > 1:
        yield f"Means of {plan.draws} draws of trees."
    if heads := [name.upper() for name in plan.parsers if name in UNSUPERVISED]:
        yield f"{', '.join(heads)}: heads above 30 F1 on the same trees."
    if bench.few:
        yield f"Where no head was, the best {_ELSE_BEST}."


class _Bench:
    """Trains parsers and parses the test sentences.

    Args:
        folder: a temporary folder.
        train, test: the treebanks.
        plan: the parsers to train.
    """

    def __init__(self, folder: Path, train: Treebank, test: Treebank, plan: FewShotPlan) -> None:
        self._folder, self._train, self._plan = folder, train, plan
        self._test, self._words = test.table, test.table["words"].to_pylist()
        self.few = False
        draws = itertools.product(plan.trees, range(plan.draws))
        self._draws = {(n, seed): draw_trees(train.table, n, seed=seed) for n, seed in draws}
        self._encoder: ResolvedEncoder = find_encoder(plan.encoder or default_encoder())
        self._starts: dict[str, Start] = {}

    def parse(self, name: str, trees: int, seed: int) -> Trees:
        """Train a parser on ``trees`` trees of a draw, and parse the test sentences."""
        if name in UNSUPERVISED:
            heads = self._with_heads(name, self._draws[trees, seed])
            parser = Parser.of(heads, device=self._plan.device)
        else:
            parser = Parser(self._train_parser(name, trees, seed))
        return parser.trees(self._words)[0]

    def _train_parser(self, name: str, trees: int, seed: int) -> TrainedModel:
        plan, table, drawn = self._plan, self._train.table, self._draws[trees, seed]
        how = plan.encoder, Fitting(steps=plan.steps, start=plan.start), seed
        request = session.TrainingRequest(recipe(name), *how, device=plan.device)
        others = table.take(np.setdiff1d(np.arange(len(table)), drawn))
        raw = others["words"].to_pylist() if request.recipe.rounds else ()
        chosen = Chosen(read_trees(table, drawn), raw=raw, scored=[("test", self._test)])
        if name not in self._starts:  # it says once what it was trained on
            self._starts[name] = session.start_of(request, chosen)
        return session.train(request, chosen, self._starts[name])

    def _with_heads(self, name: str, rows: Sequence[int]) -> AveragedHeads:
        """Choose heads by their F1 on some training trees."""
        recipe, gold = UNSUPERVISED[name], Parses.gold(self._drawn)
        grid = rank(self._attention, gold, recipe, only=np.array(rows, np.int32)).grid()
        select = HeadSelection.parse(_ABOVE)
        if not (grid > select.number).any():
            self.few = True
            select = HeadSelection("best", number=min(_ELSE_BEST, grid.size))
        return AveragedHeads(self._encoder, tuple(select.apply(grid)), recipe)

    @cached_property
    def _drawn(self) -> pa.Table:
        """The sentences of all draws, with their numbers in the training table."""
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
