"""Draw learned head weights and a sentence's association, with their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attree.base.errors import AttreeError
from attree.base.provenance import provenance
from attree.base.tables import save
from attree.experiments.data import SentenceSet
from attree.experiments.tables import placed_records, read_results
from attree.plan.rows import ExperimentRow
from attree.reports import figures

if TYPE_CHECKING:
    from attree.encoder.load import Encoder

Matrices = Mapping[str, figures.Matrix]


def write_weights(
    results: list[Path], records: Path, layout: Mapping[str, Any], prefix: str
) -> None:
    """Draw a map of the weights over the encoder's heads, averaged over draws, for each cell.

    Args:
        results: lists of records, as :func:`attree.experiments.tables.cells` takes them.
        records: folder of the records.
        layout: layout of the table; only ``title`` and ``places`` count.
        prefix: path of the ``.png``, ``.csv`` and ``.parquet`` without its extension.

    Raises:
        AttreeError: no row has weights over heads.
    """
    drawn: dict[str, list[Any]] = {}
    for label, column, _, record in placed_records(read_results(results)[0], records, layout):
        weights = record.get("weights")
        sides = [""] if weights is None or len(weights) == 1 else [" inside", " outside"]
        for side, matrix in zip(sides, weights or [], strict=False):
            drawn.setdefault(f"{label}, {column}{side}", []).append(matrix)
    if not drawn:
        problem = "no row of this experiment learns weights over heads"
        raise AttreeError("nothing-to-draw", problem, file=prefix)
    means = {title: np.mean(matrices, axis=0) for title, matrices in drawn.items()}
    write_maps(means, prefix, {"x": "head", "y": "layer"}, layout["title"])


def write_maps(matrices: Matrices, prefix: str, labels: dict[str, Any], title: str) -> None:
    """Write matrices as ``prefix``.csv and .parquet, a row for each entry, and .png.

    Args:
        matrices: title → matrix.
        prefix: path without its extension.
        labels: as for :func:`attree.reports.figures.maps`.
        title: for the provenance.
    """
    y, x = labels["y"], labels["x"]
    rows = [
        {"map": name, y: row, x: column, "value": float(matrix[row, column])}
        for name, matrix in matrices.items()
        for row, column in np.ndindex(matrix.shape)
    ]
    settings = {"title": title, "words": labels.get("words")}
    save(prefix, rows, [], provenance(code=["attree.experiments.pictures"], settings=settings))
    figures.save(figures.maps(matrices, labels), Path(f"{prefix}.png"))


def write_sentence(
    rows: Sequence[ExperimentRow],
    *,
    number: int,
    encoder: Encoder,
    sets: Mapping[str, Path],
    manifests: Mapping[str, Path],
    records: Path,
    prefix: str,
) -> None:
    """Draw the association of one sentence by a random head and by the heads or parsers of rows.

    Args:
        rows: rows of averaged heads (usually the best one) and of trained parsers.
        number: number of the sentence in the rows' test set, from 1; seeds the random head.
        encoder: the encoder of all rows.
        sets, manifests, records: as for :func:`attree.experiments.job.run_job`.
        prefix: as for :func:`write_weights`.

    Raises:
        AttreeError: the test set has no sentence of this number.
    """
    from attree.association.columns import column_name, heads_key
    from attree.decoding import UNSUPERVISED
    from attree.experiments.heads import Averager, source_of
    from attree.experiments.trained import Trainer
    from attree.parsers.heads import HeadsModel
    from attree.parsers.parser import Parser
    from attree.training.parser import TrainedModel

    tables = {name: SentenceSet.read(name, path) for name, path in sets.items()}
    test = tables[rows[0].test]
    position = int(np.searchsorted(test.gold.sentence, number - 1))
    if position == test.gold.sentence.size or test.gold.sentence[position] != number - 1:
        problem = f"{test.name} has no sentence {number}"
        raise AttreeError("no-such-sentence", problem, file=test.path)
    words = test.words[position]
    flat = int(np.random.default_rng(number).integers(encoder.n_layers * encoder.n_heads))
    random = HeadsModel(encoder, [divmod(flat, encoder.n_heads)], UNSUPERVISED["upio"])
    models: dict[str, Any] = {f"random head {heads_key(random.heads)}": random}
    averager = Averager(tables, manifests, lambda: encoder)
    trainer = Trainer(encoder, tables, records, Path(prefix).parent)
    for row in rows:
        if row.kind == "heads":
            model = averager.model(row)
            name = column_name(source_of(row), heads_key(model.heads))
            models[f"{row.parser}, {name}"] = model
        else:
            models[f"{row.parser}, {row.trees} trees"] = TrainedModel(trainer.parser(row), encoder)
    matrices = {title: Parser(model).association(words) for title, model in models.items()}
    labels = {"x": "to", "y": "from", "words": words}
    write_maps(matrices, prefix, labels, f"{test.name}, sentence {number}")
