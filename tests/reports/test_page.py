"""The page: its figures are the tables', what failed is told, and words are text."""

from __future__ import annotations

import base64
import json
import re
import shutil
from dataclasses import replace
from html import escape, unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attree.base.schemas import (
    ASSOCIATIONS_SCHEMA,
    PARSES_SCHEMA,
    SENTENCES_SCHEMA,
    read_table,
    write_table,
)
from attree.base.tables import BASELINE, COMPUTED
from attree.evaluation.labels import Confusion
from attree.evaluation.rows import SCORES_SCHEMA
from attree.plan.paths import TableRow
from attree.reports.page import charts, explorer, scores
from attree.reports.page.page import content, embedded, write_page
from attree.reports.page.run import ReportedRun
from attree.reports.tables.summaries import ScoreRow, crosslingual, language, score_rows
from attree.trees.trees import Trees
from tests.refusals import refused
from tests.reports.conftest import EVIL, PARSERS, TREEBANKS
from tests.scoring.reference import attention


def tables_of(text: str) -> dict[str, list[list[str]]]:
    """Return caption → rows of cells, of every table of a page."""

    def inside(element: str, html: str) -> list[str]:
        return re.findall(rf"<({element})(?: [^>]*)?>(.*?)</\1>", html, re.S)

    def plain(html: str) -> str:
        return unescape(re.sub(r"<[^>]+>", "", html)).strip()

    return {
        plain(inside("caption", table)[0][1]): [
            [plain(cell) for _, cell in inside("th|td", row)] for _, row in inside("tr", table)
        ]
        for _, table in inside("table", text)
    }


def charts_of(text: str) -> list[str]:
    """Return the pictures of a page."""
    return re.findall(r'<svg role="img".*?</svg>', text, re.S)


def titles(chart: str) -> list[str]:
    """Return what the parts of a picture say when they are pointed at."""
    return [unescape(one) for one in re.findall(r"<title>(.*?)</title>", chart)]


@pytest.fixture(scope="module")
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def data_of(text: str) -> list[dict[str, Any]]:
    """Return what the explorer shows on a page."""
    (found,) = re.findall(r'id="data">(.*?)</script>', text, re.S)
    return list(json.loads(found))


@pytest.fixture(scope="module")
def data(text: str) -> list[dict[str, Any]]:
    return data_of(text)


@pytest.fixture
def copied(results: Path, tmp_path: Path) -> Path:
    """The results in a folder of the test's own."""
    return shutil.copytree(results, tmp_path / "r")


def written(results: Path) -> str:
    """Write the page beside the results, and return it."""
    page = results.parent / "page.html"
    write_page(results, page)
    return page.read_text(encoding="utf-8")


def explored(results: Path, notes: list[str]) -> list[dict[str, Any]]:
    run = ReportedRun.read(results / "report/run.json")
    return explorer.explorer(results, scores.read_scores(results, run)[0], 60, notes)


def chart_of(text: str, part: str) -> str:
    """Return the one picture of a page that has some text in it."""
    (found,) = (one for one in charts_of(text) if part in one)
    return found


def test_the_table_across_languages_is_that_of_attree_table(results: Path, text: str) -> None:
    folder = results / "scores"
    files = [*folder.glob("tiny/*/*/*.json"), *folder.glob("baselines/*/*.json")]
    expected = crosslingual(score_rows(sorted(files), {}), "Toy treebanks")[0]
    shown = tables_of(text)[expected.title]
    by_language = {line[0]: dict(zip(shown[0], line, strict=True)) for line in shown[1:]}
    assert set(by_language) == set(TREEBANKS)
    for line in expected.rows:
        assert by_language[line[0]] == dict(zip(expected.headings, line, strict=True))


def test_cells_of_heads_say_their_f1_and_where_they_are_selected(text: str) -> None:
    said = ("20.00", "25.00, selected", "30.00", "30.00, selected", "35.00", "40.00")
    tips = [f"layer {n // 3}, head {n % 3}: {one}" for n, one in enumerate(said)]
    chart = chart_of(text, "upio with tiny, ranked on english dev")
    assert titles(chart) == tips
    assert f'aria-label="upio with tiny, ranked on english dev. {"; ".join(tips)}"' in chart
    assert ">2 selected heads framed<" in chart


def test_labels_taken_for_others_are_those_of_the_table(results: Path, text: str) -> None:
    row = score_rows([results / "scores/tiny/labelled/english/test.json"], {})[0]
    assert row.confusion is not None
    title = "english test: labels of labelled"
    chart = chart_of(text, f"{title}, labelled F1 {row.values['labelled_f1']:.2f}")
    names = row.confusion.headings
    assert "<b>NP" in names and "VP:of_a_very_long_name" in names
    assert titles(chart) == [
        f"gold {name}, predicted {other}: {count} of {own.sum()}"
        for name, own in zip(names, row.confusion.counts, strict=True)
        for other, count in zip(names, own, strict=True)
    ]
    (table,) = language([row])[-1:]
    assert tables_of(text)[f"{title}, spans"] == [list(table.headings), *table.rows]
    assert "gold NP, predicted &lt;b&gt;NP: 1 of 7" in text and "<b>NP" not in text


def test_without_labels_there_is_no_section_of_them(copied: Path) -> None:
    (copied / "scores/tiny/labelled/english/test.json").unlink()
    assert "#labels" not in written(copied)


def test_rare_and_missing_labels_are_named() -> None:
    names = ("", *(f"L{number}" for number in range(15)))
    found = Confusion(names, np.eye(17, dtype=np.int64) * 1000 + 1).most_frequent(12)
    tips = titles(charts.labels(found, "T"))
    assert len(tips) == 14**2
    for tip in ("gold no label, predicted no label: 1,001 of 1,017",
                "gold L0, predicted L0: 1,001 of 1,017", "gold L0, predicted L1: 1 of 1,017",
                "gold others, predicted others: 4,016 of 4,068",
                "gold no span, predicted no span: 1,001 of 1,017"):  # fmt: skip
        assert tip in tips


def test_bars_have_the_tables_intervals(results: Path, text: str) -> None:
    row = score_rows([results / "scores/tiny/upio/korean/test.json"], {})[0]
    low, high = row.intervals["corpus_f1"]
    said = f"upio: {row.values['corpus_f1']:.2f}, 95 % interval {low:.2f} to {high:.2f}"
    assert f"<title>{said}</title>" in text


def test_it_says_what_was_refused_and_what_is_missing(text: str) -> None:
    plain = unescape(re.sub(r"<(?!script>alert)[^>]+>", "", text))
    assert f"treebanks latin/test failed: latin.ptb:4: byte 0xFC {EVIL}" in plain
    assert "upio on latin test" in plain
    rows = {line[0]: line for line in tables_of(text)["Treebanks"][1:]}
    assert rows["latin"][-1].startswith("refused: latin.ptb:4")
    assert rows["elvish"][-1].startswith("refused: treebanks/elvish/language.yaml")
    assert rows["english"][2:6] == ["5", "0", "0", "0"]


def test_experiments_have_their_tables_and_lines(text: str) -> None:
    assert tables_of(text)["Few trees: Corpus F1"][1] == ["fpio", "35.00 ± 1.25"]
    words = ["Rain", "fell", "on", "the", "old", "town"]
    chart = chart_of(text, "Rain → fell")
    assert titles(chart) == [f"{a} → {b}: {y / 10:.3f}" for y, a in enumerate(words) for b in words]
    assert f">{escape(EVIL)}<" in chart
    assert titles(chart_of(text, 'aria-label="fpio, 5. layer 0'))[7] == "layer 1, head 1: 0.500"
    assert 'aria-label="Few trees. fpio at 5: 35.00; fpio at 10: 40.00;' in text


def test_a_table_in_parts_has_axes_for_each() -> None:
    rows = [
        {"panel": panel, "label": "fpio", "column": str(trees), "source": source,
         "trees": str(trees), "corpus_f1": 30.0 + trees, "corpus_f1_std": None}
        for panel in ("german", EVIL) for trees in (5, 10) for source in (COMPUTED, BASELINE)
    ]  # fmt: skip
    chart = charts.lines(rows, "Few trees", "trees")
    assert 'class="parts"' in chart
    assert chart.count(">german<") == chart.count(f">{escape(EVIL)}<") == 1


def test_the_explorer_has_the_parses_and_scores(results: Path, data: list[dict[str, Any]]) -> None:
    assert [one["name"] for one in data] == [f"{language} test" for language in TREEBANKS]
    for one in data:
        language = one["name"].split()[0]
        test = results / f"treebanks/{language}/test.parquet"
        gold, _ = read_table(test, schema=SENTENCES_SCHEMA)
        assert [gold["words"][n].as_py() for n in one["sentence"]] == one["words"]
        for parser, name in zip(one["parsers"], PARSERS, strict=False):  # a third is trained
            assert parser["name"] == f"{name}, tiny"
            place = f"tiny/{name}/{language}/test.parquet"
            parses, _ = read_table(results / "parses" / place, schema=PARSES_SCHEMA)
            scored, _ = read_table(results / "scores" / place, schema=SCORES_SCHEMA)
            shown = zip(one["sentence"], parser["spans"], parser["f1"], strict=True)
            for number, spans, f1 in shown:
                row = parses.slice(number, 1).to_pylist()[0]
                assert spans == list(map(list, zip(row["starts"], row["ends"], strict=True)))
                expected = scored["sentence_f1"][number].as_py()
                assert f1 == (expected if expected is None else pytest.approx(expected, abs=0.005))


def test_matrices_are_the_shards_in_eight_bits(data: list[dict[str, Any]]) -> None:
    english = data[0]
    matrices = english["parsers"][0]["association"]
    shown = zip(english["sentence"], english["words"], matrices, strict=True)
    for number, words, coded in shown:
        if len(words) == 1:
            assert coded is None
            continue
        matrix = attention(len(words), number)
        found = np.frombuffer(base64.b64decode(coded), np.uint8) / 255 * matrix.max()
        np.testing.assert_allclose(found, matrix.ravel(), atol=matrix.max() / 500)


def test_heads_that_were_ranked_on_other_trees_before_are_not_shown(
    results: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(results, tmp_path / "results"))
    heads = folder / "heads/tiny/upoa/english"
    shutil.copy(heads / "dev.parquet", heads / "train.parquet")
    run = ReportedRun.read(folder / "report/run.json")
    asked = replace(run, tunings=[TableRow("tiny", "upoa", "english", "dev")])
    shown = [content(folder, one, sentences=1)["heads"] for one in (run, asked)]
    assert [len(pictures) for pictures in shown] == [3, 1]
    assert "english train" not in shown[1][0]


def test_what_was_run_is_told_in_three_sentences(text: str) -> None:
    leads = [unescape(one) for one in re.findall(r'<p class="lead">(.*?)</p>', text, re.S)]
    assert len(leads) == 3
    assert "8 sentences from 3 treebanks" in leads[0] and f"tiny (models/{EVIL})" in leads[0]
    assert "upoa (outside association; greedy decoding)" in leads[1]
    assert "dev" in leads[1] or "heads" in leads[1]


def test_what_was_trained_is_told_apart_from_what_averages_heads() -> None:
    upio = {"score": "inside_outside", "decoder": "chart", "association": "raw"}
    run = ReportedRun({"parsers": {"upio": upio}, "averages": {"voted": {"of": ["upio"]}}})

    def said(**tuned_on: str) -> str:
        rows = [
            ScoreRow("tiny", name, {}, 5, 5, 0, "constituency", "toy", "test", selection=on)
            for name, on in tuned_on.items()
        ]
        return scores.sentences(run, rows)[1]

    heads = "averages the attention heads that give the best trees on english dev"
    assert said(upio="english dev").startswith("Nothing was trained: the parser upio (inside and ")
    both = said(upio="english dev", fpio="ten", theirs="")
    assert both.startswith("The parser upio (") and heads in both
    assert both.endswith(
        "; trained on ten is fpio; trees that came from elsewhere or were averaged: theirs."
    )
    assert said(fpio="ten", fpoa="ten") == "Trained on ten are fpio and fpoa."
    assert said(theirs="").startswith("Scored are trees that came from elsewhere")
    assert said(upio="english dev", voted="english dev").endswith("were averaged: voted.")


def test_words_like_scripts_are_text(text: str) -> None:
    assert EVIL not in text
    assert json.dumps(EVIL).replace("<", "\\u003c").replace(">", "\\u003e") in text


def test_embedded_json_cannot_end_its_element() -> None:
    value = {"words": [EVIL, "</script>", "<!--", "\u2028", "a & b"]}
    found = embedded(value)
    assert not set("<>&\u2028") & set(found)
    assert json.loads(found) == value


def test_the_page_names_no_file_and_runs_no_other_script(text: str) -> None:
    elements = re.sub(r"(<script[^>]*>).*?</script>", r"\1", text, flags=re.S)
    assert not re.search(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?!data:)", elements)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None and "default-src 'none'" in policy[1]
    assert "unsafe-eval" not in policy[1] and "script-src 'sha256-" in policy[1]


def test_equal_results_make_equal_pages(copied: Path, text: str) -> None:
    assert written(copied) == text


def test_without_the_workflow_s_word_every_score_is_shown(copied: Path) -> None:
    (copied / "report/run.json").unlink()
    table = tables_of(written(copied))["Across languages: Corpus F1"]
    assert [line[0] for line in table][1:] == sorted(TREEBANKS)


def test_a_damaged_file_costs_what_hangs_on_it_and_is_named(copied: Path) -> None:
    (copied / "parses/tiny/upio/korean/test.parquet").write_bytes(b"PAR1")
    shard = copied / "attention/tiny/selected/hebrew/test.shards/0.parquet"
    shard.write_bytes(shard.read_bytes()[:50])
    text = written(copied)
    assert "parses/tiny/upio/korean/test.parquet: this table of parses is not a whole" in text
    assert "a shard is damaged" in text
    sets = {one["name"]: one for one in data_of(text)}
    assert [one["name"] for one in sets["korean test"]["parsers"]] == ["upoa, tiny"]
    assert all("association" not in one for one in sets["hebrew test"]["parsers"])


def test_a_folder_without_scores_is_one_line(tmp_path: Path) -> None:
    with refused("no-scores"):
        write_page(tmp_path, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_wrong_description_of_the_run_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"tables": 3}')
    with refused("bad-form", file="run.json"):
        ReportedRun.read(tmp_path / "run.json")


def test_chains_are_one_span_and_probabilities_stay() -> None:
    trees = Trees.from_spans([3], [[(0, 3), (0, 3), (1, 3), (1, 2)]], [["S", "VP", "NP", "N"]])
    assert explorer.spans(trees) == [[[0, 3, "S+VP"], [1, 3, "NP"]]]
    likely = np.array([np.nan, 0.51234])
    found = Trees.binary([3], *np.array([[0, 1], [3, 3]], np.int32), marginals=likely)
    assert explorer.spans(found) == [[[0, 3], [1, 3, "", 0.51]]]


def test_a_trained_parser_has_its_matrix_and_its_probabilities(results: Path) -> None:
    english = next(one for one in explored(results, []) if one["name"] == "english test")
    (found,) = (one for one in english["parsers"] if one["name"].startswith("tree-crf"))
    place = english["sentence"].index(0)
    n_words = len(english["words"][place])
    assert found["spans"][place][1][3] == 0.25
    coded = base64.b64decode(found["association"][place])
    assert [round(byte / 255, 1) for byte in coded] == [1 - i % 2 * 0.5 for i in range(n_words**2)]


def test_associations_of_other_trees_are_noted(copied: Path) -> None:
    path = copied / "attention/tiny/trained/tree-crf/english/test.parquet"
    table, about = read_table(path)
    rows = [{**row, "marginals": [*(row["marginals"] or ()), 0.5]} for row in table.to_pylist()]
    changed = pa.Table.from_pylist(rows, ASSOCIATIONS_SCHEMA)
    write_table(path, changed, schema=ASSOCIATIONS_SCHEMA, metadata=about)
    notes: list[str] = []
    sets = explored(copied, notes)
    assert "this table is of other trees" in notes[0]
    assert [len(one["parsers"]) for one in sets] == [3, 2, 2]


def test_half_of_the_sentences_are_the_worst_and_the_rest_spread() -> None:
    f1 = np.arange(100.0)[None]
    shown = explorer._choice(f1, np.full(100, 5), 10).tolist()
    assert shown[:5] == [0, 1, 2, 3, 4]
    assert shown[5] == 5 and shown[-1] == 99 and len(set(shown)) == 10
    assert explorer._choice(f1, np.full(100, 5), 200).size == 100


def test_matrices_take_no_more_than_their_room(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explorer, "_ROOM", 8 * 20)  # of eight parsers and sets
    for one in explored(results, []):
        for parser in one["parsers"]:
            if "labelled" in parser["name"]:  # it has no matrix
                continue
            assert sum(map(bool, parser["association"])) == 1
