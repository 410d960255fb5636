"""What the configuration allows is what the library has: each name is said in one place."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
import yaml
from snakemake.utils import update_config

from attree import decoding, evaluation, scoring
from attree.base.registry import choices
from attree.base.settings import convert, form_of, one_of
from attree.plan import configuration
from attree.plan.configuration import configured
from attree.plan.plan import Plan
from tests.refusals import refused
from tests.workflow.conftest import ROOT


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_registries_that_keys_name_are_there_and_other_names_are_the_library_s() -> None:
    from attree.bulk.options import FORMATS, PARQUET
    from attree.encoder.source import SOURCES
    from attree.training.objectives import OBJECTIVES

    schema = msgspec.json.schema(configuration.Configuration)
    registries = set(re.findall("'x-choices': '([^']+)'", str(schema)))
    assert len(registries) > 10
    assert all(choices(one) for one in registries)
    assert form_of(configuration.ParserSettings, "score") == ", ".join(scoring.SCORES)
    assert form_of(configuration.ParserSettings, "association") == ", ".join(scoring.ASSOCIATIONS)
    assert form_of(configuration.TrainedSettings, "objective") == ", ".join(OBJECTIVES)
    others = {"minimum_risk", "optional_chart", "labelled_risk"}
    decoders = form_of(configuration.TrainedSettings, "decoder").split(", ")
    assert set(decoders) == {*decoding.DECODERS, *others}
    assert set(configuration.EncoderSettings.EXACTLY_ONE) == set(SOURCES)
    written = form_of(configuration.Corpus, "format").split(", ")
    assert written == [PARQUET, ",".join(FORMATS)]


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
    kind = dict[str, Annotated[str, one_of("made:E")]]
    assert convert({"decoder": "two"}, kind) == {"decoder": "two"}
    with refused("bad-setting", "two"):
        convert({"decoder": "tow"}, kind)


@pytest.mark.parametrize("overlay", ["open", "paper"])
def test_overlays_are_right_and_name_what_there_is(
    overlay: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ATTREE_TREEBANKS", "PTB_HOME", "SPMRL_HOME"):
        monkeypatch.setenv(name, "there")
    given = read(ROOT / "config.yaml")
    update_config(given, read(ROOT / f"workflow/configs/{overlay}.yaml"))
    config = configured(given)
    splits = dict.fromkeys(config.treebanks.languages, ("train", "dev", "test", "wsj10"))
    plan = Plan(config, splits)
    assert plan.rows


def test_config_says_every_default_as_the_library_has_it() -> None:
    config = read(ROOT / "config.yaml")
    sections = ("evaluation", "attention", "results")
    bare = configured({key: value for key, value in config.items() if key not in sections})
    assert {key: config[key] for key in sections} == {key: bare.given()[key] for key in sections}
    assert bare.evaluation.labels == list(evaluation.DEFAULT_LABELS)


def test_published_figures_are_numbers_each_once_and_the_paper_overlay_finds_its_tables() -> None:
    path = ROOT / "workflow/resources/published/article.csv"
    with path.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert list(rows[0]) == ["table", "row", "language", "metric", "value", "source"]
    keys = [tuple(row[key] for key in ("table", "row", "language", "metric")) for row in rows]
    assert len(set(keys)) == len(keys)
    assert all(float(row["value"]) >= 0 and row["source"] for row in rows)
    config = read(ROOT / "workflow/configs/paper.yaml")
    for table in filter(None, config["tables"].values()):
        published = {row["row"] for row in rows if row["table"] == table["published"]}
        asked = {parser for run in table["runs"] for parser in run["parsers"]}
        assert published & asked, table["title"]
    sizes = {(row["row"], row["language"]) for row in rows if row["table"] == "dataset-size"}
    assert len(sizes) == 3 * len(config["treebanks"]["languages"])
