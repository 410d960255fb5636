"""What a declared grid plans: rows, jobs, and mistakes told in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from attree.errors import AttreeError
from attree.experiments.grid import Row
from attree.experiments.jobs import AT_MOST, Grid

Plan = Callable[..., Grid]


def rows(grid: Grid) -> list[Row]:
    return [placed.row for placed in grid.experiments["e"].rows]


def test_every_combination_is_a_row(grid: Plan) -> None:
    found = grid({"parsers": ["fpoa", "fpio"], "trees": [3, 5], "draws": 2})
    assert [(row.parser, row.trees, row.seed) for row in rows(found)] == [
        (parser, trees, seed) for parser in ("fpoa", "fpio") for trees in (3, 5) for seed in (0, 1)
    ]
    assert {row.kind for row in rows(found)} == {"trained"}


def test_a_parser_of_the_configuration_is_a_row_of_heads_whose_choice_a_run_can_change(
    grid: Plan,
) -> None:
    (row,) = rows(grid({"parsers": ["upio"], "heads": "best:2"}))
    assert (row.kind, row.settings["heads"], row.layer, row.size) == ("heads", "best:2", None, 0)


def test_rows_survive_json(grid: Plan) -> None:
    for row in rows(
        grid({"layers": ["tuned"], "candidates": [0, 1], "dropouts": [0.1], "apart": 2})
    ):
        assert Row.of(asdict(row)) == row
        assert (row.candidates, row.dropouts) == (("0", "1"), (0.1,))


def test_all_trees_are_drawn_once_unless_seeds_are_asked_for(grid: Plan) -> None:
    assert len(rows(grid({"trees": ["all"], "draws": 5}))) == 1
    assert [row.seed for row in rows(grid({"trees": ["all"], "seeds_of_all": 2}))] == [0, 1]


def test_trees_set_apart_stand_in_every_column_and_run_once(grid: Plan) -> None:
    found = grid({"parsers": ["upio"], "trees": ["apart"], "apart": 2, "across": [3, 5]})
    assert [one.column for one in found.experiments["e"].rows] == ["3", "5"]
    assert [len(job.rows) for job in found.by_name.values()] == [1]


def test_a_tuned_encoder_is_a_row_for_each_seed_in_one_cell(grid: Plan) -> None:
    found = grid({"encoders": ["tuned"], "parsers": ["upio"]})
    assert [row.encoder for row in rows(found)] == ["tuned-0", "tuned-1"]
    assert {one.label for one in found.experiments["e"].rows} == {"upio"}
    assert set(found.tuned) == {"tuned-0", "tuned-1"}


def test_decoders_of_one_training_run_in_one_job(grid: Plan) -> None:
    draws = 2 * AT_MOST["trained"]
    found = grid({"parsers": ["fpio", "marginal"], "draws": draws})
    assert len(found.by_name) == 2
    for job in found.by_name.values():
        seeds = [row.seed for row in job.rows if row.parser == "fpio"]
        assert seeds == [row.seed for row in job.rows if row.parser == "marginal"]
    at_once = [row.parser for row in found.by_name["e.trained.tiny.0"].rows]
    assert at_once[:4] == ["fpio", "marginal"] * 2


def test_another_row_leaves_the_others_as_they_were(grid: Plan) -> None:
    before = rows(grid({"trees": [3, 5], "draws": 2}))
    after = rows(grid({"trees": [3, 5], "draws": 3}))
    assert all(row in after for row in before)
    assert len(after) == len(before) + 2


def test_rules_are_told_what_a_job_reads(grid: Plan) -> None:
    found = grid({"parsers": ["upio"]}, {"label": "trained"})
    wildcards = SimpleNamespace(job="e.heads.tiny.0", experiment="e")
    assert found.inputs(wildcards) == [
        "<results>/treebanks/toy/dev.parquet",
        "<results>/treebanks/toy/test.parquet",
        "<results>/attention/tiny/all/toy/dev.json",
        "<results>/attention/tiny/all/toy/test.json",
    ]
    assert found.encoder(wildcards) == "<results>/encoders/tiny.json"
    assert "--attention results/attention/tiny/all" in found.options(wildcards)
    assert found.results(wildcards) == [
        "<results>/experiments/jobs/e.heads.tiny.0.json",
        "<results>/experiments/jobs/e.trained.tiny.0.json",
    ]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ({"parsers": ["fpoi"]}, "parser fpoi is not there"),
        ({"encoders": ["tinny"]}, "encoder tinny is not there — did you mean tiny?"),
        ({"train": "toy/train"}, "there is no set toy/train"),
        ({"layers": [0, 1]}, "two rows stand in line 'fpio', column 3"),
    ],
)
def test_a_mistake_is_one_line(grid: Plan, run: dict[str, Any], said: str) -> None:
    with pytest.raises(AttreeError) as caught:
        grid(run)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
