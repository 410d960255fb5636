"""Published figures beside computed ones, and the text of a cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from attree.base.tables import BASELINE, BASELINES, CEILING, COMPUTED
from attree.evaluation import HEADINGS
from attree.experiments.tables import Cell, _published, cells, tables
from tests.refusals import refused
from tests.workflow.conftest import ROOT

LAYOUT = {"title": "T", "axis": "test", "metrics": ["corpus_f1"], "labels": False}
ARTICLE = ROOT / "workflow/resources/published/article.csv"
PAPER = yaml.safe_load((ROOT / "workflow/configs/paper.yaml").read_text(encoding="utf-8"))


def published(name: str, columns: list[str], test: str | None = None) -> dict[str, dict[str, Cell]]:
    """Return the article's lines of an experiment of the paper's overlay."""
    spec = PAPER["experiments"][name]
    tables = spec["published"]
    layout = {
        "axis": spec["columns"],
        "published": {"*": tables} if isinstance(tables, str) else tables,
    }
    found: dict[str, dict[str, Cell]] = {}
    tests = {column: test or column for column in columns}
    for cell in _published(layout, ARTICLE, tests):
        found.setdefault(cell.label, {})[cell.column] = cell
    return found


def test_the_few_shot_table_has_the_article_s_rows() -> None:
    lines = published("few-shot", ["10", "20", "40", "50", "80"], "english/test")
    assert set(lines) == {
        f"{name} (article)" for name in ("fpoa", "fpio", "berkeley", "fss", "upio")
    }
    assert lines["fpio (article)"]["20"].text("corpus_f1") == "60.40 (61.60)"
    assert lines["fss (article)"]["50"].text("corpus_f1") == "(61.20)"
    assert "20" not in lines["fss (article)"]


def test_the_table_by_length_has_scores_and_speeds() -> None:
    lines = published("by-length", ["≤10", "≤20", "all"], "english/test")
    cell = lines["c-pcfg (article)"]["≤10"]
    assert (cell.mean("corpus_f1"), cell.mean("sentences_a_second")) == (70.6, 14.0)
    assert lines["upio-3-heads-mlm (article)"]["all"].mean("corpus_f1") == 50.3


def test_each_test_set_has_the_figures_of_its_own_table() -> None:
    lines = published("unsupervised", ["english/test", "english/wsj10"])
    cell = lines["upoa-3-heads-mlm (article)"]
    assert cell["english/test"].text("corpus_f1") == "50.90 ± 0.20 (51.40)"
    assert cell["english/wsj10"].text("corpus_f1") == "72.60 ± 0.60 (73.80)"
    assert cell["english/test"].values["recall_PP"] == [79.7]


def test_other_languages_and_the_ablations_are_found() -> None:
    lines = published("cross-lingual", ["korean/test", "basque/test"])
    assert lines["berkeley (article)"]["basque/test"].mean("corpus_f1") == 29.4
    assert lines["kim-2020 (article)"]["korean/test"].mean("sentence_f1") == 45.7
    lines = published("ablations", ["english/test"])
    assert lines["upio-inside (article)"]["english/test"].mean("corpus_f1") == 41.1


@pytest.mark.parametrize(
    ("values", "notes", "said"),
    [
        ([], [], "–"),
        ([50.0], [], "50.00"),
        ([50.0, 54.0], [], "52.00 ± 2.83 (54.00)"),
        ([50.0], ["2,794 trees"], "50.00 [2,794 trees]"),
    ],
)
def test_the_text_of_a_cell(values: list[float], notes: list[str], said: str) -> None:
    cell = Cell("fpio", "10", "computed", values={"corpus_f1": values}, notes=notes)
    assert cell.text("corpus_f1") == said


def test_a_line_without_the_metric_is_left_out() -> None:
    cell = Cell("kim-2020 (article)", "korean/test", "article", values={"sentence_f1": [45.7]})
    corpus, sentence = tables([cell], {**LAYOUT, "metrics": ["corpus_f1", "sentence_f1"]})
    assert not corpus.rows
    assert sentence.rows == [["kim-2020 (article)", "45.70"]]


def test_labelled_f1_is_a_metric_of_its_own_heading() -> None:
    named = Cell("named", "10", COMPUTED, values={"labelled_f1": [53.0, 54.0], "corpus_f1": [60.0]})
    plain = Cell("plain", "10", COMPUTED, values={"corpus_f1": [61.0]})
    layout = {**LAYOUT, "metrics": ["labelled_f1", "corpus_f1"]}
    labelled, unlabelled = tables([named, plain], layout)
    assert labelled.title == "T: Labelled F1" and unlabelled.title == "T: Corpus F1"
    assert labelled.rows == [["named", "53.50 ± 0.71 (54.00)"]]
    assert len(unlabelled.rows) == 2
    assert named.flat()["labelled_f1"] == 53.5 and plain.flat()["labelled_f1"] is None


def test_few_shot_parsers_below_a_line_are_named() -> None:
    def cell(label: str, column: str, f1: float, **about: str) -> Cell:
        return Cell(label, column, "computed", about, {"corpus_f1": [f1]})

    layout = {**LAYOUT, "above": "upio"}
    found = [cell("upio", "french", 34.9), cell("upoa", "french", 30.0)]
    found += [cell("upio", "german", 28.0), cell("fpio", "german", 29.0, layers_used="3")]
    (table,) = tables(found, layout)
    assert table.note == "Every few-shot parser is above upio in every column."
    found.append(cell("fpio", "french", 29.2, layers_used="3"))
    (table,) = tables(found, layout)
    assert table.note == "Few-shot parsers not above upio: fpio on french (29.20, 34.90)."
    (table,) = tables(found, {**layout, "above": None})
    assert table.note == ""


def test_the_figures_name_what_exists() -> None:
    assert ROOT / PAPER["published"] == ARTICLE


def write(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def record_of(language: str, asked: int, used: int, **more: Any) -> dict[str, Any]:
    """Return the record of a row: a parser of some trees of a language."""
    row = {"encoder": "e", "parser": "p", "train": f"{language}/train", "trees": asked,
           "test": f"{language}/test", "layer": None, "max_words": None}  # fmt: skip
    record = {"row": row, "used": used, "sentences": 9, "overlap": 0, "punctuation": "keep",
              "derived": "constituency", "label_recall": {}, "new_head": False,
              "corpus_f1": 40.0 + used / 10}  # fmt: skip
    return record | more


def summary_of(language: str, **more: Any) -> dict[str, Any]:
    """Return a summary of scores, but for the scores."""
    protocol = {"sentences": {"total": 9, "scored": 9, "skipped": 0}, "derived": "constituency"}
    return {"language": language, "split": "test", **more,
            "protocol": {**protocol, "punctuation": "ptb"}}  # fmt: skip


@pytest.mark.parametrize("overlaps", [[3, 0], [0, 3], [0, 0], [2]])
def test_the_overlap_of_a_cell_is_the_most_of_its_draws(
    tmp_path: Path, overlaps: list[int]
) -> None:
    listed, places = [], []
    for draw, overlap in enumerate(overlaps):
        name = f"draw-{draw}"
        write(tmp_path / f"{name}.json", record_of("welsh", 5, 5, overlap=overlap))
        listed.append({"row": name, "record": name})
        places.append([name, "ours", "5", ""])
    results = [write(tmp_path / "job", {"rows": listed})]
    (cell,) = cells(results, tmp_path, {**LAYOUT, "places": places, "published": {}}, None)
    assert (cell.draws, cell.flat()["overlap"]) == (len(overlaps), max(overlaps))
    (table,) = tables([cell], LAYOUT)
    assert (str(max(overlaps)) in table.note.split()) == any(overlaps)


def test_a_parser_of_several_encoders_has_a_line_for_each(tmp_path: Path) -> None:
    results = []
    for encoder, parser, f1 in (("b", "p", 41.0), ("c", "p", 42.0), ("b", "q", 43.0)):
        scores = dict.fromkeys(HEADINGS, f1)
        summary = summary_of("welsh", parser=parser, encoder=encoder, **scores)
        results.append(write(tmp_path / f"{parser}-{encoder}", summary))
    layout = {**LAYOUT, "places": [], "published": {}}
    (table,) = tables(cells(results, tmp_path, layout, None), layout)
    assert table.rows == [["p b", "41.00"], ["p c", "42.00"], ["q", "43.00"]]


def test_a_row_of_another_table_never_takes_the_place_of_one(tmp_path: Path) -> None:
    write(tmp_path / "row.json", record_of("welsh", 5, 5))
    scores = dict.fromkeys(HEADINGS, 41.0)
    summary = summary_of("welsh", parser="ours", encoder="e", **scores)
    results = [write(tmp_path / "job", {"rows": [{"row": "row", "record": "row"}]})]
    results.append(write(tmp_path / "summary", summary))
    layout = {**LAYOUT, "places": [["row", "ours", "welsh/test", ""]], "published": {}}
    with refused("cell-twice", "ours", "welsh/test"):
        cells(results, tmp_path, layout, None)


def test_each_language_has_a_table_with_its_baselines_in_every_column(tmp_path: Path) -> None:
    places, listed = [], []
    for language, asked, used in [("french", 5, 5), ("french", 80, 80), ("welsh", 5, 5),
                                  ("welsh", 80, 61)]:  # fmt: skip
        name = f"{language}-{asked}"
        write(tmp_path / f"{name}.json", record_of(language, asked, used))
        listed.append({"row": name, "record": name})
        places.append([name, "ours", str(asked), language])
    one = dict.fromkeys(HEADINGS, 7.0)
    results = [write(tmp_path / "job", {"rows": listed})]
    for language in ("french", "welsh"):
        summary = summary_of(language, baselines=dict.fromkeys(BASELINES, one))
        results.append(write(tmp_path / f"baselines-{language}", summary))
    more = {"places": places, "published": {}}
    layout = {**LAYOUT, "axis": "trees", **more}
    found = cells(results, tmp_path, layout, None)
    french, welsh = tables(found, layout)
    assert (french.title, welsh.title) == ("T, french: Corpus F1", "T, welsh: Corpus F1")
    assert french.headings == ["trees", "5", "80"]
    assert welsh.rows[0] == ["ours", "40.50", "46.10 [61 trees]"]
    assert french.rows[0] == ["ours", "40.50", "48.00"]
    assert welsh.rows[1:] == [[heading, "7.00", "7.00"] for heading in BASELINES.values()]
    assert welsh.note == ("[n trees]: the set holds no more than these. Trees from welsh/train.")
    assert {cell.flat()["panel"] for cell in found} == {"french", "welsh"}
    assert {cell.source for cell in found} == {COMPUTED, BASELINE, CEILING}


@pytest.mark.parametrize("panel", ["", "welsh"])
@pytest.mark.parametrize(
    ("axis", "rows", "lengths", "places"),
    [
        # column → test set and longest sentence of its row; longest sentence of the baselines
        ("test", {"welsh/test": ("welsh/test", None), "welsh/dev": ("welsh/dev", None)},
         {"test": None, "dev": None}, {"test": "welsh/test", "dev": "welsh/dev"}),
        ("test", {"welsh/test": ("welsh/test", 10)}, {"test": None}, {"test": "welsh/test all"}),
        ("test", {"welsh/test": ("welsh/test", None)}, {"test": 10}, {"test": "welsh/test ≤10"}),
        ("max_words", {"≤10": ("welsh/test", 10), "all": ("welsh/test", None)},
         {"test": 10}, {"test": "≤10"}),
    ],
)  # fmt: skip
def test_a_baseline_never_stands_beside_other_sentences(
    tmp_path: Path, panel: str, axis: str, rows: Any, lengths: Any, places: dict[str, str]
) -> None:
    listed, placed = [], []
    for column, (test, longest) in rows.items():
        record = record_of("welsh", 5, 5)
        record["row"] |= {"test": test, "max_words": longest}
        write(tmp_path / f"{longest}{test.replace('/', '-')}.json", record)
        listed.append({"row": column, "record": f"{longest}{test.replace('/', '-')}"})
        placed.append([column, "ours", column, panel])
    results = [write(tmp_path / "job", {"rows": listed})]
    for split, longest in lengths.items():
        fixed = dict.fromkeys(BASELINES, dict.fromkeys(HEADINGS, len(split)))
        summary = summary_of("welsh", baselines=fixed) | {"split": split}
        summary["protocol"]["max_words"] = longest
        results.append(write(tmp_path / f"baselines-{split}", summary))
    layout = {**LAYOUT, "axis": axis, "places": placed, "published": {}}
    found = cells(results, tmp_path, layout, None)
    shown = {(cell.column, cell.mean("corpus_f1")) for cell in found if cell.source == BASELINE}
    if axis == "max_words" and not panel:  # there are no columns of test sets
        places = {"test": "welsh/test ≤10"}
    assert shown == {(column, len(split)) for split, column in places.items()}


def test_the_line_that_parsers_should_be_above_exists() -> None:
    cell = Cell("upio", "10", COMPUTED, values={"corpus_f1": [50.0]})
    with refused("unknown-name", "upoi", "upio"):
        tables([cell], {**LAYOUT, "above": "upoi"})
