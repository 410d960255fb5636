"""What training starts from: the encoder's own weights, random ones, or those of a parser."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.terminal import say
from attree.encoder.load import Encoder
from attree.ready import DEFAULT, folder_of_start
from attree.training import FEW_STEPS
from attree.training.gold import GoldTrees
from attree.training.parser import TrainedParser, load_parser
from attree.training.parts import BatchSource, NameReader
from attree.training.recipes import MANY_TREES, RECIPES, STARTS, TrainingPlan, with_least_threshold
from attree.trees.sampling import fingerprints
from attree.trees.tree import CHAIN

#: Adam's learning rate for training that starts from a parser, low since good weights are soon
#: unlearned; and that of few trees, for fewer steps.
_RATE, _FEW_RATE = 1e-4, 3e-4


@dataclass(frozen=True, slots=True)
class Start:
    """First weights of a parser to be trained.

    Attributes:
        name: ``encoder`` (its query and key), ``random``, or the name or folder of a parser.
        parser: the parser of this name, whose training goes on.
    """

    name: str = STARTS[0]
    parser: TrainedParser | None = None

    @classmethod
    def named(cls, name: str | None) -> Start:
        """Load the parser that has this name or folder; None is ``encoder``.

        Raises:
            AttreeError: there is no such parser, and the name is none of ``STARTS``.
        """
        if (folder := folder_of_start(name)) is None and name and name not in STARTS:
            fix = "give encoder, random, universal, or a folder of `attree train`"
            raise AttreeError("unknown-name", f"there is no parser {name} to start from", fix=fix)
        return cls(name or STARTS[0], load_parser(folder) if folder else None)

    @classmethod
    def chosen(cls, name: str | None, scored: Sequence[Sequence[str]]) -> Start:
        """Return the start of this name, or by default that of the default parser.

        If the parser was trained on sentences to be scored, a message on stderr says so, and the
        default is ``encoder``.

        Args:
            name: as for :meth:`named`; None for the default.
            scored: words of the sentences that the new parser is to be scored on.
        """
        start = cls.named(name or DEFAULT)
        shared = int(np.isin(fingerprints(scored), start.trained_on).sum())
        if not shared:
            return start
        then = "their F1 is too high" if name else "training starts from the encoder"
        say(
            f"attree: {start.name} was trained on {shared:,} of the {len(scored):,} sentences to "
            f"be scored: {then}"
        )
        return start if name else cls()

    @property
    def trained_on(self) -> NDArray[np.uint64]:
        """Fingerprints of the sentences that the parser was trained on."""
        return np.empty(0, np.uint64) if self.parser is None else self.parser.trained_on

    def plan(
        self, plan: TrainingPlan, encoder: Encoder, trees: GoldTrees, *, given: Container[str] = ()
    ) -> TrainingPlan:
        """Return a plan for training from here.

        If the plan names no layers, they are those around the encoder's middle; from a parser its
        layers, sizes and dependencies, and no attention if that one reads none. Another size that
        was asked for stays, and is refused by :func:`carry_over`.

        Training from a parser has a low learning rate. Few trees take fewer steps, and train labels
        together with the structure, as that parser did; of what they change, so much is kept as
        there is to learn. Labels fitted to a trained structure are better from `MANY_TREES` trees
        on, or from twice as many if there is little to learn. See :func:`to_learn`.

        Args:
            plan: the settings that were asked for.
            encoder: to train with.
            trees: to train on.
            given: the settings that were asked for, of which learning rate, steps and objective
                stay.
        """
        recipe, middle = plan.recipe, encoder.n_layers // 2
        first, last = max(middle - recipe.spread, 0), min(middle + recipe.spread, encoder.n_layers)
        layers = plan.layers or tuple(range(first, last + 1))
        named, plan = bool(plan.layers), replace(plan, layers=layers, start=STARTS[0])
        if self.parser is None:
            return replace(plan, start=self.name)
        few = (new := to_learn(self.parser, encoder, trees)) is not None
        aside = recipe.objective == "tree_crf" and "objective" not in given
        if few and aside and "labels" in recipe.parts:
            joint, names = RECIPES["tree-crf-joint"], ("objective", "threshold", "unlabelled")
            recipe = replace(recipe, **{name: getattr(joint, name) for name in names})
        rate = recipe.learning_rate if "learning_rate" in given else _FEW_RATE if few else _RATE
        recipe = replace(with_least_threshold(recipe), learning_rate=rate)
        steps = FEW_STEPS if few and "steps" not in given else plan.steps
        plan = replace(plan, recipe=recipe, steps=steps, to_learn=new)
        if named:
            return plan
        shape, parts = self.parser.shape, ("projection", "boundary", "labels")
        projection, boundary, labels = (shape.get(part, {}) for part in parts)
        # attention is not read where it was not: it would take the encoder's upper half
        kept = [name for name in recipe.parts if name != "heads" or name in shape]
        kept += [name for name in ("dependencies",) if name in shape and name not in kept]
        label_layers = tuple(labels.get("layers", recipe.label_layers))
        return replace(
            plan,
            recipe=replace(recipe, parts=tuple(kept), label_layers=label_layers),
            layers=tuple(projection.get("layers", layers)),
            boundary=tuple(boundary.get("layers", ())),
            size=plan.size or projection.get("size", 0),
            specials=plan.specials or bool(projection.get("specials")),
        )


def to_learn(first: TrainedParser, encoder: Encoder, trees: GoldTrees) -> float | None:
    """Return how much few trees can teach the parser to start from, from 0 to 1; None if many.

    Many are `MANY_TREES` of which there is much to learn, or twice as many of any kind.

    Where fewer of its phrases are right than it expects, these trees are of another kind than those
    that it knows, and teach it all that they can; where it errs as often as it expects, nothing
    that lasts. A phrase is right if its span is, and its label where the parser has the tree's.
    """
    if len(trees.gold) >= 2 * MANY_TREES or first.encoder["fingerprint"] != encoder.fingerprint:
        return None  # `carry_over` refuses another encoder
    drawn = first.decode(BatchSource.of(encoder, trees.words, first.scorer))
    names = {*CHAIN.join(first.shape.get("labels", {}).get("names", ())).split(CHAIN)} - {""}
    surprises = []
    for tree, gold in zip(drawn.each(trees.words), trees.gold, strict=True):
        known = {(start, end): set[str]() for start, end in gold.brackets.tolist()}
        known |= {(start, end): names & {*chain.split(CHAIN)} for start, end, chain in gold.labels}
        phrases = zip(tree.spans, tree.labels or repeat(""), tree.marginals or (), strict=False)
        surprises += [
            chance - (span in known and (not known[span] or label in known[span]))
            for span, label, chance in phrases
            if gold.known is None and (gold.labels or span[1] - span[0] > 1)
        ]
    new = float(np.interp(100.0 * np.mean(surprises or [1.0]), (_KNOWN, _OTHER), (0.0, 1.0)))
    return new if len(trees.gold) < MANY_TREES or new < 0.5 else None


#: How much less precision (in percent) the parser to start from has than it expects, on the trees
#: to train on, that leaves nothing or all to learn.
_KNOWN, _OTHER = 4.0, 12.0


def carry_over(first: TrainedParser, parser: TrainedParser) -> None:
    """Copy weights from ``first`` to ``parser``; for labels and tags, those that both have.

    Parts that ``first`` lacks keep their weights.

    Raises:
        AttreeError: ``first`` has another encoder, other sizes, or no part in common.
    """
    theirs, ours = first.scorer.each(), parser.scorer.each()
    shared = [name for name in ours if name in theirs]
    same = first.encoder["fingerprint"] == parser.encoder["fingerprint"]
    fixed = [name for name in shared if not isinstance(ours[name], NameReader)]
    if not same or not shared or any(first.shape[name] != parser.shape[name] for name in fixed):
        problem = "the parser to start from has another encoder, or other parts or sizes"
        fix = "train it with the same --encoder, --parser, --layer and --size"
        raise AttreeError("other-parts", problem, fix=fix)
    for name in shared:
        part, other = ours[name], theirs[name]
        if isinstance(part, NameReader) and isinstance(other, NameReader):
            part.carry(other)
        else:
            part.load_state_dict(other.state_dict())
