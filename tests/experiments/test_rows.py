"""What a configuration plans: rows, jobs, and mistakes told in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from attree.base.errors import AttreeError
from attree.base.provenance import digest
from attree.cli import experiments as command
from attree.plan.jobs import AT_MOST, Experiments
from attree.plan.rows import ExperimentRow, PlacedRow
from tests.refusals import refused

Plan = Callable[..., Experiments]


def rows(plan: Experiments) -> list[ExperimentRow]:
    return [placed.row for placed in plan.rows["e"]]


def placed(plan: Experiments) -> list[PlacedRow]:
    return list(plan.rows["e"])


def test_every_combination_is_a_row(planned: Plan) -> None:
    found = planned({"parsers": ["fpoa", "fpio"], "trees": [3, 5], "draws": 2})
    assert [(row.parser, row.trees, row.seed) for row in rows(found)] == [
        (parser, trees, seed) for parser in ("fpoa", "fpio") for trees in (3, 5) for seed in (0, 1)
    ]
    assert {row.kind for row in rows(found)} == {"trained"}


def test_a_parser_of_the_configuration_is_a_row_of_heads_whose_choice_a_run_can_change(
    planned: Plan,
) -> None:
    (row,) = rows(planned({"parsers": ["upio"], "heads": "best:2"}))
    assert (row.kind, row.settings["heads"], row.layer, row.size) == ("heads", "best:2", None, 0)


def test_rows_survive_json(planned: Plan) -> None:
    """Their hashes, which name their records, do so too: a dropout of 0 is no 0.0."""
    for row in rows(
        planned({"layers": ["tuned"], "candidates": [0, 1], "dropouts": [0, 0.1], "apart": 2})
    ):
        again = msgspec.json.decode(json.dumps(asdict(row)), type=ExperimentRow)
        assert again == row and digest(asdict(again)) == digest(asdict(row))
        assert (row.candidates, row.dropouts) == (("0", "1"), (0, 0.1))


def test_all_trees_are_drawn_once(planned: Plan) -> None:
    assert len(rows(planned({"trees": ["all"], "draws": 5}))) == 1


def test_trees_set_apart_stand_in_every_column_and_run_once(planned: Plan) -> None:
    found = planned({"parsers": ["upio"], "trees": ["apart"], "apart": 2, "across": [3, 5]})
    assert [one.column for one in found.rows["e"]] == ["3", "5"]
    assert [len(job) for job in found.jobs.values()] == [1]


def test_a_language_of_a_list_is_an_entry_of_its_own(planned: Plan) -> None:
    entry = {"languages": ["toy", "other"], "train": "{language}/dev", "test": ["{language}/test"]}
    found = planned({**entry, "trees": [3, 5]}, panels=True)
    assert [(one.panel, one.column, one.row.train, one.row.test) for one in placed(found)] == [
        (language, column, f"{language}/dev", f"{language}/test")
        for language in ("toy", "other")
        for column in ("3", "5")
    ]
    layout = found._layout("e")
    assert layout["panels"] and [place[3] for place in layout["places"]] == [
        *["toy", "toy", "other", "other"]
    ]
    with refused("cell-twice", "3", "fpio"):
        planned(entry)


def test_rows_stand_in_the_columns_that_an_entry_names(planned: Plan) -> None:
    found = planned({"trees": [3]}, {"trees": ["all"], "across": [3, 5], "label": "all"})
    assert [(one.label, one.column) for one in placed(found)] == [
        ("fpio", "3"),
        ("all", "3"),
        ("all", "5"),
    ]


def test_a_tuned_encoder_is_a_row_for_each_seed_in_one_cell(planned: Plan) -> None:
    found = planned({"encoders": ["tuned"], "parsers": ["upio"]})
    assert [row.encoder for row in rows(found)] == ["tuned-0", "tuned-1"]
    assert {one.label for one in found.rows["e"]} == {"upio"}
    assert set(found.tuned) == {"tuned-0", "tuned-1"}


def test_decoders_of_one_training_run_in_one_job(planned: Plan) -> None:
    draws = 2 * AT_MOST["trained"]
    found = planned({"parsers": ["fpio", "marginal"], "draws": draws})
    assert len(found.jobs) == 2
    for job in found.jobs.values():
        seeds = [row.seed for row in job if row.parser == "fpio"]
        assert seeds == [row.seed for row in job if row.parser == "marginal"]
    at_once = [row.parser for row in found.jobs["e.trained.tiny.0"]]
    assert at_once[:4] == ["fpio", "marginal"] * 2


def test_another_row_leaves_the_others_as_they_were(planned: Plan) -> None:
    before = rows(planned({"trees": [3, 5], "draws": 2}))
    after = rows(planned({"trees": [3, 5], "draws": 3}))
    assert all(row in after for row in before)
    assert len(after) == len(before) + 2


def test_rules_are_told_what_a_job_reads(planned: Plan) -> None:
    found = planned({"parsers": ["upio"]}, {"label": "trained"})
    wildcards = SimpleNamespace(job="e.heads.tiny.0", experiment="e")
    assert found.inputs(wildcards) == [
        "<results>/treebanks/toy/dev.parquet",
        "<results>/treebanks/toy/test.parquet",
        "<results>/attention/tiny/all/toy/dev.json",
        "<results>/attention/tiny/all/toy/test.json",
    ]
    assert found.encoder(wildcards) == "<results>/encoders/tiny.json"
    assert found.results(wildcards) == [
        "<results>/experiments/jobs/e.heads.tiny.0.json",
        "<results>/experiments/jobs/e.trained.tiny.0.json",
    ]


def test_the_plan_s_file_holds_the_rows_of_each_job(planned: Plan, tmp_path: Path) -> None:
    found = planned({"parsers": ["upio"], "trees": [3, 5]}, {"label": "trained"}, sentence=4)
    found.write(tmp_path / "plan.json")
    written = json.loads((tmp_path / "plan.json").read_text())
    for name, job in found.jobs.items():
        assert msgspec.convert(written["jobs"][name], tuple[ExperimentRow, ...]) == job
    assert msgspec.convert(written["rows"]["e"], list[ExperimentRow]) == rows(found)
    assert [place[1:] for place in written["tables"]["e"]["places"]] == [
        ["upio", "3", ""], ["upio", "5", ""], ["trained", "3", ""],
    ]  # fmt: skip
    assert written["tables"]["e"]["sentence"] == 4


def test_a_picture_of_a_sentence_has_one_encoder(planned: Plan) -> None:
    several = {"parsers": ["upio"], "encoders": ["tiny", "other"], "label": "{encoder}"}
    planned(several)
    with refused("several-encoders", "experiments.e"):
        planned(several, sentence=4)


def test_a_chosen_layer_hangs_on_the_decoder_that_it_was_chosen_by(planned: Plan) -> None:
    tuned = {"parsers": ["fpio", "marginal"], "apart": 4, "layers": ["tuned"], "candidates": [0, 1]}
    one, other = rows(planned(tuned))
    assert one.training() != other.training()
    one, other = rows(planned({"parsers": ["fpio", "marginal"]}))
    assert one.training() == other.training()


def test_published_figures_are_an_input(planned: Plan, tmp_path: Path) -> None:
    (tmp_path / "figures.csv").touch()
    experiment = SimpleNamespace(experiment="e")
    figures = str(tmp_path / "figures.csv")
    assert figures in planned({}, published="few", figures=figures).results(experiment)
    assert figures not in planned({}, figures=figures).results(experiment)


def test_a_hash_says_which_jobs_another_row_changes(planned: Plan) -> None:
    before = planned({"parsers": ["upio"]}, {"label": "trained"})
    after = planned({"parsers": ["upio"], "draws": 2}, {"label": "trained"})
    heads, trained = (SimpleNamespace(job=f"e.{kind}.tiny.0") for kind in ("heads", "trained"))
    assert before.job_rows(trained) == after.job_rows(trained)
    assert before.job_rows(heads) != after.job_rows(heads)


def test_a_job_that_the_plan_does_not_name_is_one_line(planned: Plan, tmp_path: Path) -> None:
    planned({}).write(tmp_path / "plan.json")
    with refused("unknown-name", "e.trained.tiny.1", file="plan.json"):
        command.rows(
            "e.trained.tiny.1",
            plan=tmp_path / "plan.json",
            encoder=tmp_path / "e.json",
            output=tmp_path / "o.json",
        )


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ({"parsers": ["fpoi"]}, "unknown parser fpoi"),
        ({"encoders": ["tinny"]}, "encoder tinny does not exist — did you mean tiny?"),
        ({"train": "toy/train"}, "experiments.e: language toy has no split train"),
        ({"layers": [0, 1]}, "two rows fall into line 'fpio', column 3"),
        ({"encoders": ["tiny", "other"]}, "two rows fall into line 'fpio', column 3"),
        ({"parsers": ["many"]}, "trained.many: sources is of no effect"),
    ],
)
def test_a_mistake_is_one_line(planned: Plan, run: dict[str, Any], said: str) -> None:
    with pytest.raises(AttreeError) as caught:
        planned(run)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("run", "code"),
    [
        ({"layers": ["tuned"], "candidates": [0, 1]}, "none-apart"),
        ({"parsers": ["upio"], "trees": ["apart"]}, "none-apart"),
        ({"candidates": [0, 1]}, "option-without-effect"),
        ({"dropouts": [0.1]}, "option-without-effect"),
        ({"steps": 0}, "bad-setting"),
        ({"max_words": [0]}, "bad-setting"),
    ],
)
def test_what_a_run_could_not_heed_is_refused(planned: Plan, run: Any, code: str) -> None:
    with refused(code):
        planned(run)
