"""F1 of every attention head as a parser of its own, or its agreement, and the choice of heads."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attree.association.columns import AGREEMENT, all_of
from attree.association.selection import RANKED_BY, HeadSelection
from attree.association.shards import AssociationBatch, column_heads, read, read_manifest
from attree.association.sources import HEADS as ATTENTION
from attree.base.errors import AttreeError
from attree.base.files import write_json
from attree.base.provenance import provenance
from attree.base.schemas import HEADS_SCHEMA, SENTENCES_SCHEMA, read_table, write_table
from attree.decoding import Recipe
from attree.decoding.batch import decode
from attree.evaluation import METRICS
from attree.evaluation.counts import Counts
from attree.evaluation.metrics import count_each, gold_spans
from attree.trees.parses import Parses
from attree.trees.sampling import draw
from attree.trees.trees import Trees

if TYPE_CHECKING:
    from attree.encoder.source import Head


#: The modules that decide the ranking.
CODE = ("attree.association.ranking",)


@dataclass(frozen=True, slots=True)
class Ranking:
    """F1 of every head.

    Args:
        heads: sorted, as they stand in the manifest.
        f1: what it is made of, one entry a head.
        sentences: numbers of the sentences ranked on, those of two words and more that have an
            association.
        without: sentences left out because they have none (too long for the encoder).
        agreement: with the other heads in percent, one entry a head; None unless asked for.
    """

    heads: list[Head]
    f1: Counts
    sentences: NDArray[np.int32]
    without: int
    agreement: NDArray[np.float64] | None = None

    def grid(self, metric: str = RANKED_BY[0]) -> NDArray[np.float64]:
        """Return a name of ``RANKED_BY`` as (layers, heads)."""
        values: NDArray[np.float64] | None
        values = self.agreement if metric == AGREEMENT else getattr(self.f1, metric)
        assert values is not None
        return values.reshape(self.heads[-1][0] + 1, self.heads[-1][1] + 1)


def rank(
    manifest: str | Path,
    gold: Parses,
    recipe: Recipe,
    *,
    source: str = ATTENTION,
    trees: int | None = None,
    seed: int = 0,
    only: NDArray[np.int32] | None = None,
    agreement: bool = False,
) -> Ranking:
    """Parse every sentence by every head alone, and score each head.

    The manifest is read once, a row group at a time: memory depends neither on the number of
    sentences nor on that of shards.

    Args:
        manifest: one that holds every head (``attree attention --heads all``).
        gold: the gold trees of its sentences.
        recipe: how they are parsed.
        source: whose units are ranked, all of which the manifest holds.
        trees: rank on this many sentences, drawn at random; on all if there are fewer.
        seed: of the draw.
        only: rank on the sentences of these numbers, in place of a draw.
        agreement: whether heads are compared with each other too.

    Raises:
        AttreeError: other sentences than the manifest's, or none that can be scored.
    """
    heads = column_heads(read_manifest(manifest), all_of(source), manifest)
    chosen = only
    if chosen is None and trees is not None:
        chosen = draw(gold.sentence[gold.n_words > 1], trees, seed)
    counts, agreed, used, without = None, None, [], 0
    for batch in read(manifest, all_of(source)):
        without += int(((batch.n_associated == 0) & (batch.n_words > 0)).sum())
        wanted = batch.n_associated > 1
        if chosen is not None:
            wanted &= np.isin(batch.sentence, chosen)
        if not wanted.all():
            batch = batch.take(np.flatnonzero(wanted))
        used.append(batch.sentence)
        trees_of_heads = decode(
            batch.values,
            batch.n_words,
            batch.matrices_each,
            sentences=batch.sentence,
            **recipe.settings(),
        )
        right = gold_spans(gold.take(_rows(gold, batch, manifest)))
        more = count_each(right, trees_of_heads, batch.matrices_each)
        counts = more if counts is None else counts + more
        if agreement:
            also = Agreement.of(trees_of_heads, batch.matrices_each)
            agreed = also if agreed is None else agreed + also
    if counts is None or not counts.scored.any():
        problem = "no sentence here has two words and more, so heads cannot be ranked"
        fix = "tune on a split with longer sentences"
        raise AttreeError("no-sentences", problem, file=manifest, fix=fix)
    percent = None if agreed is None else agreed.percent()
    return Ranking(heads, counts, np.sort(np.concatenate(used)), without, percent)


def _rows(gold: Parses, batch: AssociationBatch, manifest: str | Path) -> NDArray[np.intp]:
    """Return the places of the batch's sentences among the gold ones."""
    rows = np.searchsorted(gold.sentence, batch.sentence)
    within = np.minimum(rows, max(0, gold.sentence.size - 1))
    same = gold.sentence.size > 0 and np.array_equal(gold.sentence[within], batch.sentence)
    if batch.sentence.size and not (same and np.array_equal(gold.n_words[within], batch.n_words)):
        problem = "the attention was computed from other sentences than these"
        fix = "run `attree attention` again on this sentence table"
        raise AttreeError("other-sentences", problem, file=manifest, fix=fix)
    return within[: batch.sentence.size]


def rank_heads(
    manifest: Path,
    sentences: Path,
    recipe: Recipe,
    select: HeadSelection,
    *,
    source: str = ATTENTION,
    rank_by: str = RANKED_BY[0],
    trees: int | None,
    seed: int,
    table: Path,
    selection: Path,
) -> Ranking:
    """Rank every head, choose some, and write the table of heads and the selection.

    ``rank_by`` is what the selection looks at; the others are as for :func:`rank`. By agreement
    the gold trees are not looked at; the F1 stand in the table for people.
    """
    attention = read_manifest(manifest)
    gold, metadata = read_table(sentences, schema=SENTENCES_SCHEMA)
    by_agreement = rank_by == AGREEMENT
    how: dict[str, Any] = {"source": source, "trees": trees, "seed": seed}
    ranking = rank(manifest, Parses.gold(gold), recipe, agreement=by_agreement, **how)
    grid = ranking.grid(rank_by)
    chosen = select.apply(grid, AGREEMENT if by_agreement else "F1")
    if trees is not None and len(ranking.sentences) < trees:
        few = f"heads are ranked on {len(ranking.sentences)} trees, all that can be used"
        print(f"attree: {few} of the {trees} asked for", file=sys.stderr)
    settings = {**recipe.settings(), "source": source, "select": select.text}
    settings |= {"rank_by": rank_by, "trees": trees, "seed": seed}
    facts: dict[str, Any] = {
        **settings,
        "encoder": attention["encoder"]["fingerprint"],
        "language": metadata.get("language"),
        "split": metadata.get("split"),
        "sentences": len(ranking.sentences),
        "without_attention": ranking.without,
    }
    record = provenance(code=CODE, settings=settings, attention=attention["provenance"])
    nothing = pa.nulls(len(ranking.heads), pa.float64())
    rows = {
        "layer": [layer for layer, _ in ranking.heads],
        "head": [head for _, head in ranking.heads],
        **{name: getattr(ranking.f1, name) for name in METRICS if METRICS[name].in_tables},
        AGREEMENT: ranking.agreement if by_agreement else nothing,
        "selected": [head in set(chosen) for head in ranking.heads],
    }
    write_table(table, pa.table(rows), schema=HEADS_SCHEMA, metadata={**record, **facts})
    scores = {AGREEMENT if by_agreement else "f1": [float(grid[head]) for head in chosen]}
    write_json(selection, {**facts, "heads": chosen, **scores, "provenance": record})
    return ranking


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far each head's trees agree with those of all other heads: no gold tree is looked at.

    Li, Kim, Amplayo and Keller (2020, *Heads-up! Unsupervised Constituency Parsing via
    Self-Attention Heads*) rank heads by properties of their own, without a development set, and put
    the trees of the best ones together. What heads know of syntax is in many of them, what they
    know of other things is not the same in any two: a head is as good as others agree with it. The
    agreement of head ``h`` is its mean sentence F1 with each other head ``g``, over sentences ``x``
    of three words and more::

        agreement(h) = 100 mean_x mean_{g ≠ h} |T_h(x) ∩ T_g(x)| / (n_x - 2)

    the whole sentence left out of the trees ``T``, which are binary.

    From the published description: no gold tree is looked at, all sentences are raw text, the K
    best heads make an ensemble. Decided, since the measure by which they rank could not be looked
    up: the agreement of trees, so that it holds for every way in which a head can parse. These are
    sums over sentences; those of parts of the sentences add up.

    Args:
        sums: float64, one a head: its agreement of 1, over the sentences that count.
        sentences: how many count.
    """

    sums: NDArray[np.float64]
    sentences: int

    @classmethod
    def of(cls, trees: Trees, heads: int) -> Agreement:
        """Compare the heads' trees of some sentences.

        Args:
            trees: binary, ordered by sentence, then head.
            heads: trees of each sentence.
        """
        tree = trees.tree_of
        inner = trees.ends - trees.starts < trees.n_words[tree]
        span = np.stack([tree // heads, trees.starts, trees.ends], axis=1)[inner]
        _, which, having = np.unique(span, axis=0, return_inverse=True, return_counts=True)
        others = having[which.ravel()] - 1
        shared = np.bincount(tree[inner], others, minlength=len(trees)).reshape(-1, heads)
        spans = trees.n_words[::heads] - 2
        counts = spans > 0
        agreement = shared[counts] / (spans[counts, None] * max(heads - 1, 1))
        return cls(agreement.sum(0), int(counts.sum()))

    def __add__(self, other: Agreement) -> Agreement:
        """The sums over the sentences of both."""
        return Agreement(self.sums + other.sums, self.sentences + other.sentences)

    def percent(self) -> NDArray[np.float64]:
        """Return the agreement of each head in percent; 0 where no sentence counts."""
        return 100.0 * self.sums / max(self.sentences, 1)
