"""Rank attention heads by the F1 of each as a parser, or by their agreement, and select some."""

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
from attree.association.shards import AssociationBatch, column_units, read, read_manifest
from attree.association.sources import HEADS as ATTENTION
from attree.base.errors import AttreeError
from attree.base.files import write_json
from attree.base.provenance import provenance
from attree.base.schemas import HEADS_SCHEMA, SENTENCES_SCHEMA, origin, read_table, write_table
from attree.decoding import Recipe
from attree.decoding.batch import decode
from attree.evaluation import METRICS
from attree.evaluation.metrics import Counts, count_each, gold_spans
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
        heads: the heads in the order of the manifest, sorted.
        f1: counts of F1, one entry per head.
        sentences: numbers of the sentences ranked on: two or more words, with an association.
        without: number of sentences without an association (too long for the encoder).
        agreement: agreement with the other heads in percent, one entry per head; None unless
            asked for.
    """

    heads: list[Head]
    f1: Counts
    sentences: NDArray[np.int32]
    without: int
    agreement: NDArray[np.float64] | None = None

    def grid(self, metric: str = RANKED_BY[0]) -> NDArray[np.float64]:
        """Return the values of a name of ``RANKED_BY``, (layers, heads)."""
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
    only: NDArray[np.int32] | None = None,
    agreement: bool = False,
) -> Ranking:
    """Parse every sentence with each head alone, and score each head.

    The manifest is read once, a row group at a time: memory depends neither on the number of
    sentences nor on that of shards.

    Args:
        manifest: a manifest with every head (``attree attention --heads all``).
        gold: the gold trees of its sentences.
        recipe: how associations are parsed.
        source: the source whose units are ranked; the manifest has all of them.
        only: rank on the sentences with these numbers, not on all.
        agreement: whether heads are also compared with each other.

    Raises:
        AttreeError: the manifest has other sentences, or none can be scored.
    """
    heads = column_units(read_manifest(manifest), all_of(source), manifest)
    counts, used, without = None, [], 0
    agreed, compared = np.zeros(len(heads)), 0
    for batch in read(manifest, all_of(source)):
        without += int(((batch.n_associated == 0) & (batch.n_words > 0)).sum())
        wanted = batch.n_associated > 1
        if only is not None:
            wanted &= np.isin(batch.sentence, only)
        if not wanted.all():
            batch = batch.take(np.flatnonzero(wanted))
        used.append(batch.sentence)
        arrays = (batch.values, batch.n_words, batch.matrices_each)
        trees_of_heads = decode(*arrays, sentences=batch.sentence, **recipe.settings())
        right = gold_spans(gold.take(_rows(gold, batch, manifest)))
        more = count_each(right, trees_of_heads, batch.matrices_each)
        counts = more if counts is None else counts + more
        if agreement:
            sums, sentences = agreements(trees_of_heads, batch.matrices_each)
            agreed, compared = agreed + sums, compared + sentences
    if counts is None or not counts.scored.any():
        problem = "heads cannot be ranked, as no sentence has two or more words"
        fix = "tune on a split with longer sentences"
        raise AttreeError("no-sentences", problem, file=manifest, fix=fix)
    percent = 100.0 * agreed / max(compared, 1) if agreement else None
    return Ranking(heads, counts, np.sort(np.concatenate(used)), without, percent)


def _rows(gold: Parses, batch: AssociationBatch, manifest: str | Path) -> NDArray[np.intp]:
    """Return the positions of the batch's sentences among the gold sentences."""
    rows = np.searchsorted(gold.sentence, batch.sentence)
    # one more, of a number that no sentence has, for those behind the last
    numbers, n_words = (np.append(each, -1)[rows] for each in (gold.sentence, gold.n_words))
    if (numbers != batch.sentence).any() or (n_words != batch.n_words).any():
        problem = "the attention was computed from other sentences"
        fix = "run `attree attention` again on this sentence table"
        raise AttreeError("other-sentences", problem, file=manifest, fix=fix)
    return rows


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
    """Rank every head, select some, and write the table of heads and the selection.

    Heads are selected by ``rank_by``. Selection by agreement does not use the gold trees; the table
    has F1 all the same, for information.

    Args:
        manifest, recipe, source: as for :func:`rank`.
        sentences: the table of the manifest's sentences.
        select: how many heads are selected, or which.
        rank_by: a name of ``RANKED_BY``.
        trees: rank on this many sentences drawn at random, on all if None or if there are fewer.
        seed: of the draw.
        table, selection: the files to write.
    """
    attention = read_manifest(manifest)
    gold_table, metadata = read_table(sentences, schema=SENTENCES_SCHEMA)
    gold, by_agreement = Parses.gold(gold_table), rank_by == AGREEMENT
    drawn = None if trees is None else draw(gold.sentence[gold.n_words > 1], trees, seed)
    ranking = rank(manifest, gold, recipe, source=source, only=drawn, agreement=by_agreement)
    grid = ranking.grid(rank_by)
    chosen = select.apply(grid, AGREEMENT if by_agreement else "F1")
    if trees is not None and len(ranking.sentences) < trees:
        few = f"heads are ranked on {len(ranking.sentences)} of the {trees} trees asked for"
        print(f"attree: {few}: others are too long, or not there", file=sys.stderr)
    settings = {**recipe.settings(), "source": source, "select": select.text}
    settings |= {"rank_by": rank_by, "trees": trees, "seed": seed}
    facts: dict[str, Any] = {
        **settings,
        "encoder": attention["encoder"]["fingerprint"],
        **origin(metadata),
        "sentences": len(ranking.sentences),
        "without_attention": ranking.without,
    }
    record = provenance(code=CODE, settings=settings, attention=attention["provenance"])
    nothing = pa.nulls(len(ranking.heads), pa.float64())
    rows = {
        "layer": [layer for layer, _ in ranking.heads],
        "head": [head for _, head in ranking.heads],
        **{name: getattr(ranking.f1, name) for name in HEADS_SCHEMA.names if name in METRICS},
        AGREEMENT: ranking.agreement if by_agreement else nothing,
        "selected": [head in set(chosen) for head in ranking.heads],
    }
    write_table(table, pa.table(rows), schema=HEADS_SCHEMA, metadata={**record, **facts})
    scores = {AGREEMENT if by_agreement else "f1": [float(grid[head]) for head in chosen]}
    write_json(selection, {**facts, "heads": chosen, **scores, "provenance": record})
    return ranking


def agreements(trees: Trees, heads: int) -> tuple[NDArray[np.float64], int]:
    """Compare each head's trees with those of all other heads; this needs no gold tree.

    Li, Kim, Amplayo and Keller (2020, *Heads-up! Unsupervised Constituency Parsing via
    Self-Attention Heads*) rank heads without a development set, and combine the trees of the best
    heads. We assume that many heads share what they know of syntax, but not what they know of other
    things, so that a head is as good as others agree with it. The agreement of head ``h`` is its
    mean sentence F1 with each other head ``g``, over sentences ``x`` of three or more words::

        agreement(h) = 100 mean_x mean_{g ≠ h} |T_h(x) ∩ T_g(x)| / (n_x - 2)

    where the trees ``T`` are binary and exclude the whole sentence.

    As in the published description, no gold tree is used, all sentences are raw text, and the K
    best heads make an ensemble. The article's ranking measure could not be looked up: the
    agreement of trees is our choice, as it suits every way of parsing with a head.

    Args:
        trees: binary trees, ordered by sentence, then head.
        heads: number of heads, and so of trees of each sentence.

    Returns:
        float64 (heads,), sums of agreement (0 to 1) over the sentences that count; their number.
    """
    tree = trees.tree_of
    inner = trees.ends - trees.starts < trees.n_words[tree]
    span = np.stack([tree // heads, trees.starts, trees.ends], axis=1)[inner]
    _, span_ids, counts = np.unique(span, axis=0, return_inverse=True, return_counts=True)
    others = counts[span_ids.ravel()] - 1
    shared = np.bincount(tree[inner], others, minlength=len(trees)).reshape(-1, heads)
    spans = trees.n_words[::heads] - 2
    scored = spans > 0
    return (shared[scored] / (spans[scored, None] * max(heads - 1, 1))).sum(0), int(scored.sum())
