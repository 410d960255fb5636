"""What the schemas allow is what the library has: each name is said in one place."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml
from snakemake.utils import update_config, validate

from attree import decoding, evaluation, scoring
from attree.configuration import check, load_schema
from attree.errors import AttreeError
from attree.fewshot.recipes import RECIPES
from attree.plan import make_plan, without_null
from attree.registry import choices
from tests.workflow.conftest import ROOT

SCHEMAS = ROOT / "workflow/schemas"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


CONFIG = load_schema(SCHEMAS / "config.schema.yaml")["properties"]
PARSER = CONFIG["parsers"]["additionalProperties"]["properties"]


def test_parsers_are_made_of_what_is_registered() -> None:
    assert PARSER["association"]["enum"] == list(scoring.ASSOCIATIONS)
    assert sorted(PARSER["score"]["enum"]) == sorted(scoring.SCORES)
    assert sorted(PARSER["decoder"]["enum"]) == sorted(decoding.DECODERS)


def test_policies_and_types_are_the_library_s() -> None:
    from attree.encoder.source import DTYPES, SOURCES
    from attree.parses import POLICIES

    attention, encoder = (
        CONFIG["attention"]["properties"],
        CONFIG["encoders"]["additionalProperties"],
    )
    assert sorted(attention["too_long"]["enum"]) == sorted(POLICIES)
    assert sorted(encoder["properties"]["dtype"]["enum"]) == sorted(DTYPES)
    assert {one["required"][0] for one in encoder["oneOf"]} == set(SOURCES)
    assert CONFIG["evaluation"]["properties"]["profile"]["enum"] == list(evaluation.PROFILES)
    assert CONFIG["evaluation"]["properties"]["labels"]["default"] == list(
        evaluation.DEFAULT_LABELS
    )


def test_few_shot_parsers_and_experiments_are_made_of_what_is_registered() -> None:
    from attree.corpus.output import FORMATS
    from attree.experiments.rows import AXES, SHOWN
    from attree.fewshot.training import OBJECTIVES

    few = CONFIG["trained"]["additionalProperties"]["properties"]
    assert few["objective"]["enum"] == list(OBJECTIVES)
    assert few["association"]["enum"] == list(scoring.ASSOCIATIONS)
    others = {"minimum_risk", "optional_chart", "labelled_risk"}
    assert set(few["decoder"]["enum"]) == {*decoding.DECODERS, *others}
    experiment = CONFIG["experiments"]["additionalProperties"]["properties"]
    assert experiment["columns"]["enum"] == list(AXES)
    assert experiment["metrics"]["items"]["enum"] == list(SHOWN)
    formats = CONFIG["corpora"]["additionalProperties"]["properties"]["format"]["enum"]
    assert formats == ["parquet", *(f"parquet,{name}" for name in FORMATS)]


def test_a_further_decoder_needs_no_edit_of_the_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry that is written out is read; one that is put together is imported."""
    (tmp_path / "written.py").write_text('import no_such\nD: dict = {"one": "a.b", "two": "c"}\n')
    (tmp_path / "made.py").write_text('D = ("one",)\nE = (*D, "two")\nF = {"few": ["two"]}\n')
    monkeypatch.syspath_prepend(tmp_path)
    assert choices("written:D") == ["one", "two"]
    assert choices("made:E") == ["one", "two"]
    assert choices("made:F.few") == ["two"]
    schema = tmp_path / "schema.yaml"
    schema.write_text("properties: {decoder: {description: a decoder, x-choices: 'made:E'}}")
    check({"decoder": "two"}, schema)
    with pytest.raises(AttreeError, match=r'decoder: "tow" is not one of .* did you mean two'):
        check({"decoder": "tow"}, schema)


@pytest.mark.parametrize("overlay", ["open", "paper"])
def test_overlays_are_right_and_name_what_there_is(overlay: str) -> None:
    config = read(ROOT / "config.yaml")
    update_config(config, read(ROOT / f"workflow/configs/{overlay}.yaml"))
    check(config, SCHEMAS / "config.schema.yaml")
    config |= without_null(config, "tables")
    validate(config, str(SCHEMAS / "config.schema.yaml"))
    languages = config["treebanks"]["languages"]
    splits = dict.fromkeys(languages, ("train", "dev", "test", "wsj10"))
    plan = make_plan(config, splits, recipes=RECIPES)
    assert plan.rows


def test_config_says_every_default_as_the_schema_has_it() -> None:
    config = read(ROOT / "config.yaml")
    for section in ("evaluation", "attention"):
        defaults = {key: one["default"] for key, one in CONFIG[section]["properties"].items()}
        assert config[section] == defaults, section
    assert config["results"] == CONFIG["results"]["default"]


def test_published_figures_are_numbers_each_once_and_the_paper_overlay_finds_its_tables() -> None:
    path = ROOT / "workflow/resources/published/article.csv"
    with path.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert list(rows[0]) == ["table", "row", "language", "metric", "value", "source"]
    keys = [tuple(row[key] for key in ("table", "row", "language", "metric")) for row in rows]
    assert len(set(keys)) == len(keys)
    assert all(float(row["value"]) >= 0 and row["source"] for row in rows)
    config = read(ROOT / "workflow/configs/paper.yaml")
    for table in without_null(config, "tables")["tables"].values():
        published = {row["row"] for row in rows if row["table"] == table["published"]}
        asked = {parser for run in table["runs"] for parser in run["parsers"]}
        assert published & asked, table["title"]
    sizes = {(row["row"], row["language"]) for row in rows if row["table"] == "dataset-size"}
    assert len(sizes) == 3 * len(config["treebanks"]["languages"])
