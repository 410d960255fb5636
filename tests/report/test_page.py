"""The page: words are text, nothing is fetched, and a browser shows what the tables say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attree.errors import AttreeError
from attree.files import write_json
from attree.report.page import embedded, write_page
from attree.schemas import HEADS, PARSES, SCORES, write_table
from attree.tables import render
from tests.fewshot.conftest import table as write_sentences

CHROMIUM = shutil.which("chromium")
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of one parser on a toy test set, a table that names a language like a script."""
    folder = tmp_path_factory.mktemp("run") / "results"
    sentences = folder / "treebanks/toy/test.parquet"
    write_sentences(sentences, 12, 0)
    gold = pa.parquet.read_table(sentences)
    numbers = gold["sentence"].to_pylist()
    lengths = [len(words) for words in gold["words"].to_pylist()]
    ends = [[n] * max(n - 1, 0) for n in lengths]
    parses = {
        "sentence": numbers,
        "n_words": lengths,
        "status": ["ok"] * len(numbers),
        "starts": [list(range(max(n - 1, 0))) for n in lengths],
        "ends": ends,
    }
    place = "minilm/upio/toy/test.parquet"
    made = pa.table(parses).cast(PARSES)
    write_table(folder / "parses" / place, made, schema=PARSES, metadata={})
    figures = {name: [3] * len(numbers) for name in ("gold", "predicted", "matched")}
    scored = {**{name: parses[name] for name in ("sentence", "n_words", "status")}, **figures}
    scored["sentence_f1"] = np.linspace(10, 90, len(numbers))
    made = pa.table(scored).cast(SCORES)
    write_table(folder / "scores" / place, made, schema=SCORES, metadata={})
    write_json(folder / "scores" / place.replace(".parquet", ".json"), {})
    heads = [[0, 0, 30.0, 20.0, 25.0, True], [0, 1, 31.5, 20.0, 25.0, False]]
    columns = zip(*heads, strict=True)
    made = pa.table(dict(zip(HEADS.names, map(list, columns), strict=True))).cast(HEADS)
    ranking = folder / "heads/minilm/upio/toy/dev.parquet"
    write_table(ranking, made, schema=HEADS, metadata={})
    rows = [("9", 44.5), ("toy", 33.25), (EVIL, 1.5)]
    lines = [[name, f"{f1:.2f}"] for name, f1 in rows]
    records = [
        {"language": name, "split": "test", "encoder": "minilm", "parser": "upio",
         "corpus_f1": f1, "corpus_f1_low": f1 - 1, "corpus_f1_high": f1 + 1}
        for name, f1 in rows
    ]  # fmt: skip
    shown = render.Table("Across", ["language", "upio"], lines, "A note.")
    render.save(folder / "tables/crosslingual", records, [shown], {})
    return folder


@pytest.fixture(scope="module")
def page(results: Path) -> Path:
    write_page(results, results / "report/index.html")
    return results / "report/index.html"


def test_words_like_scripts_are_text(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert EVIL not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_embedded_json_cannot_end_its_element() -> None:
    value = {"words": [EVIL, "</script>", "<!--", "\u2028", "a & b"]}
    text = embedded(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == value


def test_the_page_names_no_file_and_is_small(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    elements = re.sub(r"(<script[^>]*>).*?</script>", r"\1", text, flags=re.S)
    assert not re.search(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=", elements)
    assert page.stat().st_size < 5_000_000
    assert "default-src 'none'" in text


def test_a_folder_without_tables_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(AttreeError, match="no tables here yet"):
        write_page(tmp_path, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [400, 1400])
def test_a_browser_draws_charts_and_trees(page: Path, width: int, tmp_path: Path) -> None:
    shown = browse(page, width, tmp_path)
    assert shown.count('class="marks"') >= 2  # both charts
    data: Any = json.loads(re.search(r'id="data">(.*?)</script>', shown, re.S)[1])  # type: ignore[index]
    worst = data["trees"]["toy/test"]["words"][0]
    gold = re.search(r'<div id="gold".*?</svg>', shown, re.S)
    assert gold is not None
    words = re.findall(r"<text[^>]*data-word[^>]*>([^<]*)</text>", gold[0])
    assert words == worst


def browse(page: Path, width: int, folder: Path) -> str:
    """Return the page's elements after its scripts have run in a browser without network."""
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=8000",
    ]
    command += [f"--window-size={width},900", f"--user-data-dir={folder / 'profile'}"]
    found = subprocess.run(
        [*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=100
    )
    assert "Uncaught" not in found.stderr, found.stderr
    return found.stdout
