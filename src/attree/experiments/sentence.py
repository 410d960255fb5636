"""Heat maps of one sentence: its association by a random head, by chosen heads, by parsers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attree.attention.columns import heads_key
from attree.encoder.load import Encoder
from attree.errors import AttreeError
from attree.experiments.data import Sentences, drawn
from attree.experiments.grid import Row
from attree.experiments.heads import Averager
from attree.experiments.maps import Matrices, write_maps
from attree.experiments.records import Records
from attree.experiments.trained import Trainer
from attree.fewshot.parser import TrainedModel
from attree.parser import Parser


def write_sentence(
    rows: Sequence[Row],
    number: int,
    *,
    encoder: Encoder,
    sets: Mapping[str, Path],
    manifests: Mapping[str, Path],
    records: Path,
    prefix: str,
) -> Matrices:
    """Draw the association of one sentence: a seeded random head, the heads or parsers of rows.

    Args:
        rows: of averaged heads (usually the best one) and of trained parsers.
        number: of the sentence in the rows' test set.
        encoder: of all rows.
        sets, manifests, records: as for :func:`attree.experiments.job.run_job`.
        prefix: as for :func:`write_weights`.

    Raises:
        AttreeError: the test set has no sentence of this number.
    """
    read = {name: Sentences.read(name, path) for name, path in sets.items()}
    test = read[rows[0].test]
    place = int(np.searchsorted(test.gold.sentence, number))
    if place == test.gold.sentence.size or test.gold.sentence[place] != number:
        raise AttreeError(f"{test.name} has no sentence {number}", file=test.path)
    words = test.words[place]
    pieces = encoder.tokenise([words])
    flat = int(np.random.default_rng(number).integers(encoder.n_layers * encoder.n_heads))
    random = divmod(flat, encoder.n_heads)
    named = {f"random head {heads_key([random])}": [random]}
    averager = Averager(read, manifests, lambda: encoder)
    trainer = Trainer(encoder, read, Records(records), Path(f"{prefix}.scratch"))
    matrices: dict[str, Any] = {}
    for row in rows:
        if row.kind == "heads":
            heads = averager.heads(row)
            named[f"{row.parser}, {heads_key(heads)}"] = heads
            continue
        parser = trainer.parser(row, drawn(row, read[row.train]))
        matrices[f"{row.parser}, {row.trees} trees"] = Parser(
            TrainedModel(parser, encoder)
        ).association(words)
    attention = {
        title: encoder.run(pieces, heads=heads, states=[]).attention[0].mean(0).cpu().numpy()
        for title, heads in named.items()
    }
    found = {**attention, **matrices}
    labels = {"x": "to", "y": "from", "words": words}
    write_maps(found, prefix, labels, f"{test.name}, sentence {number}")
    return found
