"""The snippets of docs/reading-output.md, run on output of every kind of row."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from attree.bulk.output import OutputOptions, Rows, Statistics, make_folders, write_shard
from attree.trees.trees import Trees
from tests.command_line import python

PAGE = (Path(__file__).parents[1] / "docs/reading-output.md").read_text(encoding="utf-8")
SNIPPETS = dict(re.findall(r"\*\*([^\n]+?)\*\*: [^\n]*\n```python\n(.*?)```", PAGE, re.DOTALL))
#: What each prints.
PRINTS = {
    "pandas": r"labels\nNP +4\nS +2\nVP +2\n[\s\S]*0 +the old man slept\n",
    "polars": r"2\.0",
    "DuckDB": r"the old man *│ +2",
    "spaCy's `DocBin`": r"^\['Der Mann', 'das alte Haus'\] \[",
    "NLTK": r"^S -> NP VP \['the', 'old', 'man', 'slept'\]\n",
}
_MODULES = {"DuckDB": "duckdb", "spaCy's `DocBin`": "spacy", "NLTK": "nltk"}


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """A folder of two shards, each with a labelled tree and an empty line."""
    words = [["the", "old", "man", "slept"], [], ["he"]]
    spans = [[(0, 4), (0, 3), (3, 4)], [], [(0, 1)]]
    trees = Trees.from_spans([4, 0, 1], spans, [["S", "NP", "VP"], [], ["NP"]])
    trees = trees.labelled(["S", "NP", "VP", "NP"]).tagged(["D", "A", "N", "V", "P"])
    folder = tmp_path / "trees/de"
    make_folders(folder, OutputOptions())
    for number in range(2):
        rows = Rows(["in.txt"] * 3, [1, 2, 3], [0] * 3, ["ok", "empty", "ok"], words, trees)
        write_shard(folder, number, rows, Statistics(), OutputOptions())
    return tmp_path


@pytest.mark.parametrize("name", PRINTS)
def test_a_snippet_prints_what_it_says(name: str, output: Path) -> None:
    module = _MODULES.get(name, name)
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed: pip install {module}")
    done = python(f"import os; os.chdir({str(output)!r})\n{SNIPPETS[name]}")
    assert done.returncode == 0, done.stderr
    assert re.search(PRINTS[name], done.stdout), done.stdout


def test_every_snippet_has_at_most_five_lines_beside_imports() -> None:
    assert set(SNIPPETS) == set(PRINTS)
    for code in SNIPPETS.values():
        lines = [line for line in code.splitlines() if line and "import " not in line]
        assert len(lines) <= 5
