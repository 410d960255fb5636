"""Rows of unsupervised parsers: heads ranked on some trees, averaged, then scored on a test set."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.attention.columns import ALL, Head
from attree.attention.shards import AssociationBatch, column_heads, read, read_manifest
from attree.decoding.batch import decode, span_offsets
from attree.decoding.fixed import fixed_trees
from attree.encoder.load import Encoder
from attree.encoder.pieces import batches
from attree.experiments.data import Sentences, drawn, overlap, scores
from attree.experiments.grid import Row
from attree.heads.ranking import Recipe, rank
from attree.heads.selection import HeadSelection
from attree.schemas import FALLBACK, OK


class Averager:
    """Runs the rows of averaged heads of one job.

    Args:
        sets: those that the rows read.
        manifests: of every head of the encoder, one a set.
        encoder: loads the encoder, for rows that are timed.
    """

    def __init__(
        self,
        sets: Mapping[str, Sentences],
        manifests: Mapping[str, Path],
        encoder: Callable[[], Encoder],
    ) -> None:
        self.sets, self.manifests, self.encoder = sets, manifests, encoder
        self._selected: dict[Any, list[Head]] = {}

    def run(self, row: Row) -> dict[str, Any]:
        """Return a row's scores, its heads, and where asked the speed of its parsing."""
        train, test = self.sets[row.train], self.sets[row.test]
        places = drawn(row, train)
        shared = overlap(row, self.sets, places)
        how = _recipe(row)
        heads = self.heads(row)
        starts, ends, status = self._parse(self.manifests[row.test], test, heads, how)
        offsets = span_offsets(test.gold.n_words)
        found = scores(test.gold, starts, ends, offsets, status=status, max_words=row.max_words)
        found |= {"used": len(places), "overlap": shared, "heads": [list(head) for head in heads]}
        if row.timed:
            rate = sentences_a_second(self.encoder(), test, heads, how, row.max_words)
            found["sentences_a_second"] = rate
        return found

    def heads(self, row: Row) -> list[Head]:
        """Rank heads on the trees that a row draws, and return those that it selects."""
        recipe, places = Recipe(**_recipe(row)), drawn(row, self.sets[row.train])
        select = HeadSelection.parse(row.settings["heads"])
        manifest = self.manifests[row.train]
        if select.kind in ("all", "list"):
            every = column_heads(read_manifest(manifest), ALL, manifest)
            return select.apply(np.zeros((every[-1][0] + 1, every[-1][1] + 1)))
        train = self.sets[row.train]
        numbers = np.sort(train.table["sentence"].to_numpy()[places])
        place = (recipe, numbers.tobytes(), select.text)
        if place not in self._selected:
            found = rank(manifest, train.gold, recipe, only=numbers)
            self._selected[place] = select.apply(found.grid())
        return self._selected[place]

    def _parse(
        self, manifest: Path, test: Sentences, heads: list[Head], how: Mapping[str, Any]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.str_]]:
        """Parse every sentence of a set; those without attention are branched right."""
        every = column_heads(read_manifest(manifest), ALL, manifest)
        chosen = np.array([every.index(head) for head in heads])
        gold = test.gold
        starts, ends = fixed_trees(FALLBACK, gold.n_words)
        offsets = span_offsets(gold.n_words)
        status = np.full(gold.n_words.size, FALLBACK, dtype="<U20")
        for batch in read(manifest, ALL):
            there = batch.n_associated
            found = decode(averaged(batch, chosen), there, **how)
            own = span_offsets(there)
            rows = np.searchsorted(gold.sentence, batch.sentence)
            for place, (row, n_words) in enumerate(zip(rows, there, strict=True)):
                if n_words or not batch.n_words[place]:
                    status[row] = OK
                    here, span = slice(offsets[row], offsets[row + 1]), slice(*own[place:][:2])
                    starts[here], ends[here] = found[0][span], found[1][span]
        return starts, ends, status


def _recipe(row: Row) -> dict[str, Any]:
    return {key: row.settings[key] for key in ("association", "score", "decoder")}


def averaged(batch: AssociationBatch, chosen: NDArray[np.intp]) -> NDArray[np.float32]:
    """Return the mean of some of each sentence's matrices, flat, as :func:`decode` takes them."""
    parts, at = [np.empty(0, np.float32)], 0
    for n_words in batch.n_associated.astype(int):
        size = batch.matrices_each * n_words * n_words
        matrices = batch.values[at : at + size].reshape(batch.matrices_each, n_words * n_words)
        parts.append(matrices[chosen].mean(0, dtype=np.float32))
        at += size
    return np.concatenate(parts)


def sentences_a_second(
    encoder: Encoder,
    test: Sentences,
    heads: list[Head],
    how: Mapping[str, Any],
    max_words: int | None,
) -> float:
    """Time parsing from words to trees, the encoder's run included, its loading not."""
    words = [one for one in test.words if len(one) <= (max_words or len(one))]
    _parse_all(encoder, words[:2], heads, how)  # compiles what is to be compiled
    began = time.perf_counter()
    _parse_all(encoder, words, heads, how)
    return round(len(words) / (time.perf_counter() - began), 2)


def _parse_all(
    encoder: Encoder, words: list[list[str]], heads: list[Head], how: Mapping[str, Any]
) -> None:
    pieces = [one for one in encoder.tokenise(words) if not one.too_long]
    for group in batches([len(one.ids) for one in pieces], tokens_per_batch=4096):
        chosen = [pieces[place] for place in group]
        found = encoder.run(chosen, heads=heads, states=[]).attention.mean(1).cpu().numpy()
        lengths = [one.n_words for one in chosen]
        flat = [matrix[:n, :n].ravel() for matrix, n in zip(found, lengths, strict=True)]
        decode(np.concatenate(flat), lengths, **how)
