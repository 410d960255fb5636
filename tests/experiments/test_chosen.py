"""Trees that rows choose, against a parser asked sentence by sentence; what they cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attree.choosing import WAYS
from attree.encoder.load import Encoder
from attree.experiments.data import Records, SentenceSet, drawn, set_apart
from attree.experiments.tables import Cell, price, prices
from attree.experiments.trained import Trainer, Trainings
from attree.parsers.parser import Parser
from attree.plan.rows import ExperimentRow
from attree.training.fit import fit
from attree.training.gold import read_trees
from attree.training.parser import TrainedModel
from attree.training.recipes import RECIPES, TrainingPlan
from tests.experiments.conftest import encoder, resolved, table
from tests.experiments.test_run import spy
from tests.refusals import refused

__all__ = ["encoder", "resolved"]  # fixtures

CRF = {"recipe": "tree-crf", "steps": 3}


def row(**changes: Any) -> ExperimentRow:
    """A row that chooses three of the eight trees that it trains on."""
    given = {"trees": 8, "seed": 1, "train": "toy/dev", "test": "toy/test", "settings": CRF}
    ours = {"draw": "uncertain", "first": 5, "apart": 3, "words": (3, 7)}
    return ExperimentRow(
        **{"kind": "trained", "encoder": "bert", "parser": "p", **given, **ours, **changes}
    )


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SentenceSet]:
    folder = tmp_path_factory.mktemp("sets")
    paths = {"toy/dev": table(folder / "dev.parquet", 60, 0)}
    paths["toy/test"] = table(folder / "test.parquet", 10, 1)
    return {name: SentenceSet.read(name, path) for name, path in paths.items()}


@pytest.fixture
def trainer(encoder: Encoder, sets: dict[str, SentenceSet], tmp_path: Path) -> Trainer:
    return Trainer(Trainings(encoder, sets, Records(tmp_path / "records"), tmp_path / "scratch"))


def test_the_most_uncertain_trees_of_a_parser_of_the_first_ones_follow_them(
    encoder: Encoder, sets: dict[str, SentenceSet], trainer: Trainer
) -> None:
    dev = sets["toy/dev"]
    found = trainer.trainings.drawn(row())
    first = drawn(row().chooser(), dev)
    assert found[:5] == first and len(set(found)) == 8
    plan = TrainingPlan(RECIPES["tree-crf"], (1,), steps=3, seed=1)
    fitted = fit(encoder, read_trees(dev.table, first), plan)
    parser = Parser(TrainedModel(fitted, encoder))
    words = dev.table["words"].to_pylist()
    taken = {*first, *set_apart(row(), dev)}
    rest = [r for r, one in enumerate(words) if 3 <= len(one) <= 7 and r not in taken]
    unsure = {place: parser.chart(words[place]).entropy_per_word for place in rest}
    best = sorted(unsure.values(), reverse=True)[:3]
    assert [unsure[place] for place in found[5:]] == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_keeps_to_the_lengths_and_the_trees_set_apart(
    way: str, sets: dict[str, SentenceSet], trainer: Trainer
) -> None:
    dev = sets["toy/dev"]
    asked = row(draw=way, first=0 if way == "random" else 5)
    found = trainer.trainings.drawn(asked)
    assert len(found) == len(set(found)) == 8
    assert all(3 <= len(words) <= 7 for words in dev.words_of(found))
    assert not set(found) & set(set_apart(asked, dev))
    everything = trainer.trainings.drawn(replace(asked, trees=1000))
    lengths = np.array([len(words) for words in dev.table["words"].to_pylist()])
    inside = set(np.flatnonzero((lengths > 2) & (lengths < 8)).tolist())
    assert set(everything) == inside - set(set_apart(asked, dev))


def test_one_parser_chooses_for_every_number_of_trees_and_way(
    sets: dict[str, SentenceSet], trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = spy(monkeypatch)
    six, eight, diverse = (
        trainer.trainings.drawn(one) for one in (row(trees=6), row(), row(draw="diverse"))
    )
    assert len(fits) == 1
    assert eight[:6] == six and diverse[:5] == six[:5]
    record = trainer.run(row())
    gold = read_trees(sets["toy/dev"].table, eight).gold
    assert (record["used"], record["brackets"]) == (8, sum(len(tree.brackets) for tree in gold))
    assert len(fits) == 2


def test_a_parser_without_a_distribution_cannot_choose(trainer: Trainer) -> None:
    with refused("no-distribution"):
        trainer.trainings.drawn(row(settings={"recipe": "fpio", "steps": 1}))


def test_lengths_that_no_tree_has_are_told(sets: dict[str, SentenceSet]) -> None:
    with refused("no-trees", "toy/dev", "40", "50"):
        drawn(row(words=(40, 50)), sets["toy/dev"])


@pytest.mark.parametrize(
    ("f1", "brackets"), [(40, 100.0), (50, 100.0), (55, 200.0), (60, 400.0), (62, None)]
)
def test_a_price_lies_between_two_points_by_its_logarithm(
    f1: float, brackets: float | None
) -> None:
    assert price([(100, 50), (400, 60), (800, 58)], f1) == pytest.approx(brackets)


def cells(panel: str, **curves: list[tuple[float, float]]) -> list[Cell]:
    """Return the cells of lines, two draws each."""
    return [
        Cell(label, str(place), "computed", {}, panel=panel,
             values={"brackets": [cost - 10, cost + 10], "corpus_f1": [f1 - 1, f1 + 1]})
        for label, curve in curves.items()
        for place, (cost, f1) in enumerate(curve)
    ]  # fmt: skip


def test_the_default_is_computed() -> None:
    french = cells("french", random=[(100, 50), (400, 60)], uncertain=[(200, 55), (290, 60.5)],
                   diverse=[(200, 60)])  # fmt: skip
    hebrew = cells("hebrew", random=[(100, 50), (300, 60)], uncertain=[(150, 50), (600, 59)],
                   diverse=[(210, 61)])  # fmt: skip
    found = prices(french + hebrew, "random", "T")
    assert found.headings == ["trees", "french", "hebrew"]
    assert found.rows == [
        ["random", "400 (F1 60.00)", "300 (F1 60.00)"],
        ["uncertain", "280 (-30 %, -31 % to -29 %)", "not with 600 (F1 59.00)"],
        ["diverse", "200 (-50 %, -51 % to -49 %)", "210 (-30 %, -31 % to -29 %)"],
    ]
    assert found.note.endswith(
        "At least 25 % fewer brackets than random: uncertain in 1 of 2, diverse in 2 of 2. "
        "So diverse can be the default."
    )
    plain = prices([cell for cell in french if cell.label != "diverse"] + hebrew[:4], "random", "T")
    assert plain.note.endswith("uncertain in 1 of 2. So random stays the default.")
    with refused("unknown-name", "random"):
        prices(french, "randon", "T")
