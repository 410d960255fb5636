"""Tables show what the summaries say, and refuse what must not stand side by side."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from attree.base import tables as render
from attree.base.files import write_json
from attree.base.tables import BASELINES
from attree.parsers.reading import doubt, figures
from attree.reports.tables.summaries import (
    SIZES,
    ScoreRow,
    crosslingual,
    language,
    read_published,
    score_rows,
)
from tests.refusals import refused


def _figures(f1: float) -> dict[str, Any]:
    scores = {"corpus_f1": f1, "corpus_f1_no_root": f1 - 3, "sentence_f1": f1 - 1}
    recall = {"NP": {"recall": f1 / 2, "count": 7}, "VP": {"recall": 0.0, "count": 0}}
    return {**scores, "label_recall": recall}


def _summary(language: str, parser: str | None = "UPOA", f1: float = 40.0, **protocol: Any) -> Any:
    about = {
        "sentences": {"total": 10, "scored": 9, "skipped": 1, "fallback": 2},
        "derived": "constituency",
        "punctuation": "keep",
        "selection": "english dev",
    }
    one = {"language": language, "split": "test", "protocol": {**about, **protocol}}
    if parser is None:
        return {**one, "baselines": {name: _figures(f1) for name in BASELINES}}
    return {**one, "parser": parser, "encoder": "tiny", **_figures(f1)}


def _rows(folder: Path, *summaries: Any, published: Any = None) -> Any:
    """Return the rows of summaries, which are written as files a.json, b.json…"""
    paths = [folder / f"{name}.json" for name, _ in zip("abcdef", summaries, strict=False)]
    for path, summary in zip(paths, summaries, strict=True):
        write_json(path, summary)
    return score_rows(paths, published or {})


@pytest.fixture
def rows(tmp_path: Path) -> list[ScoreRow]:
    file = tmp_path / "article.csv"
    file.write_text(
        "table,row,language,metric,value,source\n"
        "cross-lingual,UPOA,German,corpus_f1,41.59,x\nother,UPOA,Korean,corpus_f1,1,x\n"
    )
    summaries = [
        _summary(language, parser, f1 if parser else f1 - 20)
        for language, f1 in (("german", 41.234), ("korean", 30.0))
        for parser in (None, "UPOA")
    ]
    return _rows(tmp_path, *summaries, published=read_published(file, "cross-lingual"))


def test_cells_are_the_summaries_figures(rows: list[ScoreRow]) -> None:
    corpus, sentence = crosslingual(rows, "Title")
    german = dict(zip(corpus.headings, corpus.rows[0], strict=True))
    assert german["language"] == "german" and german["sentences"] == "9"
    assert german["UPOA"] == "41.23" and german["UPOA (article)"] == "41.59"
    assert german["right"] == "21.23"
    korean = dict(zip(corpus.headings, corpus.rows[1], strict=True))
    assert korean["UPOA (article)"] == "–"
    assert "UPOA (article)" not in sentence.headings
    assert sentence.rows[0][2] == "40.23"
    assert list(corpus.headings)[4:] == list(BASELINES.values())


def test_markdown_csv_and_parquet_agree(rows: list[ScoreRow], tmp_path: Path) -> None:
    tables = crosslingual(rows, "Title")
    render.save(tmp_path / "t", [row.flat() for row in rows], tables, {})
    table = pq.read_table(tmp_path / "t.parquet").to_pylist()
    with (tmp_path / "t.csv").open() as handle:
        lines = list(csv.DictReader(handle))
    assert [float(line["corpus_f1"]) for line in lines] == [row["corpus_f1"] for row in table]
    assert len(table) == 2 + 2 * len(BASELINES)
    assert "| german | 9 | 41.23 | 41.59 |" in (tmp_path / "t.md").read_text()
    assert render.saved_tables(tmp_path / "t.parquet")[0].rows[0][2] == "41.23"


def test_where_heads_are_known_phrases_are_compared_with_them(tmp_path: Path) -> None:
    """In place of F1, with the number of sentences that were trained on."""
    seen = {"provenance": {"parses": {"settings": {"overlap": 6}}}}
    f1 = dict.fromkeys(("corpus_f1", "corpus_f1_no_root", "sentence_f1"))
    headed = {"headed_precision": 81.1, "subtree_recall": 56.4, "label_recall": {}}
    summaries = [
        {**_summary("ud-turkish", "mine", derived="dependency"), **f1, **headed, **seen},
        {**_summary("ud-basque", "mine", derived="dependency"), **f1, **headed},
        _summary("german", "mine"),
    ]
    rows = _rows(tmp_path, *summaries)
    precision, recall, *others = crosslingual(rows, "Title")
    assert precision.rows == [
        ["ud-turkish", "9", "6", "81.10"],
        ["ud-basque", "9", "none", "81.10"],
    ]
    assert [row[-1] for row in recall.rows] == ["56.40", "56.40"]
    assert [[row[0] for row in table.rows] for table in others] == [["german"]] * 2
    render.save(tmp_path / "t", [row.flat() for row in rows], [precision], {})
    found = figures([tmp_path / "t.csv", tmp_path / "none.csv"], "mine")
    score = {"headed_precision": 81.1, "subtree_recall": 56.4}
    assert found == {"tr": {**score, "seen": True}, "eu": {**score, "seen": False}}


def test_a_parser_says_which_languages_it_reads_badly() -> None:
    languages = {"eu": {"headed_precision": 77.4}, "en": {"headed_precision": 91.0}}
    assert "eu" in doubt(languages, "eu") and "77 %" in doubt(languages, "eu")
    assert (
        doubt(languages, "en") == doubt(languages, "de") == doubt({}, "eu") == doubt({}, "") == ""
    )
    assert "not told" in doubt(languages, "xx")


def test_a_language_table_shows_every_metric_and_the_labels_found(
    rows: list[ScoreRow],
) -> None:
    figures, labels = language([row for row in rows if row.language == "german"])
    assert figures.rows[0] == ["UPOA", "tiny", "41.23", "38.23", "40.23"]
    assert labels.headings == ["parser", "NP (7)"]  # no gold VP: no column
    assert labels.rows[0] == ["UPOA", "20.62"]


def test_labels_and_tags_are_shown_where_a_parser_has_them(tmp_path: Path) -> None:
    counts = [[7, 1, 2], [0, 1200, 3], [4, 0, 0]]
    confusion = {"labels": ["NP", "V|P"], "counts": counts}
    labelled = {"labelled_f1": 70.0, "tag_accuracy": 91.5, "label_confusion": confusion}
    summary = {**_summary("german", "crf"), **labelled}
    rows = _rows(tmp_path, summary, _summary("german"))
    figures, _, labels = language(rows)
    assert figures.headings[-2:] == ["Labelled F1", "Tags"]
    assert [row[-2:] for row in figures.rows] == [["70.00", "91.50"], ["–", "–"]]
    assert labels.title == "german, test: labels of crf"
    assert labels.headings == ["gold", "NP", "V|P", "no span"]
    assert labels.rows[1] == ["V|P", "·", "1,200", "3"]
    assert "confusion" not in rows[0].flat()
    confusion["counts"] = counts[:2]
    with refused("not-square", file="a.json"):
        _rows(tmp_path, summary)


def test_dependency_derived_brackets_never_share_a_table(tmp_path: Path) -> None:
    rows = _rows(tmp_path, _summary("german"), _summary("ud", derived="dependency"))
    tables = crosslingual(rows, "T")
    shown = [[line[0] for line in table.rows] for table in tables]
    assert shown == [["german"], ["german"], ["ud"], ["ud"]]
    assert [table.title for table in tables[1:3]] == [
        "T: Sentence F1",
        "T, dependency-derived brackets: Corpus F1",
    ]
    assert "not comparable with constituency treebanks" not in tables[1].note
    assert "not comparable with constituency treebanks" in tables[2].note


def test_a_treebank_that_was_not_read_whole_is_marked(tmp_path: Path) -> None:
    whole = {"read": 278, "skipped": 5, "failed": 0, "emptied": 0, "left_out": 0}
    # of those skipped, some were left out by a default that the owner may not know of
    lost = {**whole, "failed": 18, "left_out": 2}
    rows = _rows(tmp_path, _summary("french", treebank=lost), _summary("german", treebank=whole))
    for table in crosslingual(rows, "T"):
        assert [line[0] for line in table.rows] == ["french *", "german"]
        assert "* french: 278 of 298 sentences read." in table.note
        assert "* german" not in table.note
    assert rows[0].flat()["treebank_failed"] == 18


def test_sentences_that_a_parser_was_trained_on_are_told(tmp_path: Path) -> None:
    seen = {"parses": {"settings": {"overlap": 7}}}
    rows = _rows(tmp_path, {**_summary("french"), "provenance": seen}, _summary("german"))
    for table in crosslingual(rows, "T"):
        assert "UPOA, french: it was trained on 7 of the 10 sentences." in table.note
        assert "german: it was trained" not in table.note


@pytest.mark.parametrize(
    ("tests", "told"),
    [
        ({"german": [2, 2]}, ["2"]),
        ({"german": [2, 3], "korean": [1, 1]}, ["4"]),  # encoders have other limits
        ({"german": [0, 0]}, []),
    ],
)
def test_sentences_past_the_limit_are_counted_once_a_test_set(
    tmp_path: Path, tests: dict[str, list[int]], told: list[str]
) -> None:
    counted = {"total": 10, "scored": 10, "skipped": 0}
    summaries = [
        _summary(name, parser, sentences={**counted, "fallback": past})
        for name, counts in tests.items()
        for parser, past in zip(("UPOA", "UPIO"), counts, strict=True)
    ]
    rows = _rows(tmp_path, *summaries)
    assert [re.findall(r"\d+", table.note) for table in crosslingual(rows, "T")] == [told] * 2
    figures = [table for table in language(rows) if table.rows[0][:1] == ["UPOA"]][::2]
    assert [re.findall(r"\d+", table.note) for table in figures] == [
        [str(max(counts))] * any(counts) for counts in tests.values()
    ]


@pytest.mark.parametrize("languages", [("german", "german"), ("german", "korean")])
def test_two_encoders_of_one_parser_get_a_column_each(
    tmp_path: Path, languages: tuple[str, str]
) -> None:
    pairs = zip(languages, ("one", "two"), strict=True)
    summaries = [{**_summary(language), "encoder": encoder} for language, encoder in pairs]
    table = crosslingual(_rows(tmp_path, *summaries), "T")[0]
    assert table.headings[2:] == ["UPOA one", "UPOA two"]


def test_a_summary_without_its_parts_is_one_line(tmp_path: Path) -> None:
    summary = _summary("german")
    del summary["protocol"]
    with refused("missing-columns", "protocol", file="a.json"):
        _rows(tmp_path, summary)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_table_fits_the_terminal_and_no_cell_is_cut(rows: list[ScoreRow], width: int) -> None:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    tables = crosslingual(rows, "Across languages")
    render.show(tables, console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, printed.splitlines())) <= width
    assert "…" not in printed
    for table in tables:
        for row in table.rows:
            assert all(cell in printed for cell in row)


def test_square_brackets_are_printed_as_they_are() -> None:
    console = Console(width=80, file=io.StringIO(), highlight=False)
    table = render.Table(
        "T [bold]", ("row", "F1 [red]"), [("a", "1.00 [new head]")], "[new head]: x"
    )
    render.show([table], console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    for text in ("T [bold]", "F1 [red]", "1.00 [new head]", "[new head]: x"):
        assert text in printed


@pytest.mark.parametrize(
    "line", ["t,upoa,welsh,f1,n/a", "t,upoa,welsh,f1,nan", "t,upoa", "t,a,b,c,2"]
)
def test_a_published_figure_is_one_number(tmp_path: Path, line: str) -> None:
    file = tmp_path / "article.csv"
    text = "table,row,language,metric,value\nt,a,b,c,1\nother,,,,\n"
    file.write_text(text)
    assert read_published(file, "t") == {("a", "b", "c"): 1.0}
    file.write_text(f"{text}{line}\n")
    with refused("bad-figure", file=file, line=4):
        read_published(file, "t")


def test_a_table_that_a_published_file_lacks_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "figures.csv"
    file.write_text("table,row,language,metric,value\ncross-lingual,a,b,c,1\n")
    with refused("unknown-name", file=file):
        read_published(file, "crosslingual")
    assert read_published(file, SIZES) == {}  # every file is asked for it
