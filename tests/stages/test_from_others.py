"""Trees of a file, and averages, as tables of parses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attree.base.schemas import PARSES_SCHEMA, SENTENCES_SCHEMA, read_table, write_table
from attree.cli.main import app
from attree.evaluation.evalb import COLLINS, results
from attree.stages.from_others import write_average, write_imported
from attree.treebank.brackets import bracketed
from attree.treebank.sentence import SplitSettings
from attree.treebank.table import from_table
from attree.trees.parses import Parses
from tests.command_line import CliRunner
from tests.refusals import refused
from tests.workflow.conftest import ROOT

GOLD = """\
(S (NP (DT the) (NN man)) (VP (VBD walked) (ADVP (RB home))) (. .))
(S (`` ``) (NP (NN rain)) ('' '') (VP (VBD began)) (. .))
(S (NP (NNP Basil) (-LRB- -LRB-) (NN a) (NN cat) (-RRB- -RRB-)) (VP (VBD left)))
(X (. .))
"""


def table(folder: Path, text: str = GOLD) -> Path:
    (folder / "gold.mrg").write_text(text)
    done = CliRunner().invoke(
        app,
        ["treebank", str(folder / "gold.mrg"), "--output", str(folder / "gold.parquet"),
         "--punctuation", "ptb", "--language", "x", "--split-name", "test", "--accept-loss", "1"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return folder / "gold.parquet"


def imported(folder: Path, text: str, sentences: Path) -> list[tuple[str, list[tuple[int, int]]]]:
    (folder / "p.mrg").write_text(text)
    write_imported(
        [folder / "p.mrg"], sentences, folder / "p.parquet", SplitSettings(), accept_loss=1
    )
    rows = read_table(folder / "p.parquet", schema=PARSES_SCHEMA)[0].to_pylist()
    return [(r["status"], list(zip(r["starts"], r["ends"], strict=True))) for r in rows]


def test_trees_lose_what_cleaning_took_out(tmp_path: Path) -> None:
    sentences = table(tmp_path)
    other = """\
(TOP (X (Y (Z the) (Z man) (Z walked)) (Z home) (Z .)))
(TOP (Z ``) (X (Z rain) (Z '')) (X (Z began) (Z .)))
(TOP (X (Z Basil) (X (Z -LRB-) (X (Z a) (Z cat)) (Z -RRB-))) (Z left))
"""
    assert imported(tmp_path, other, sentences) == [
        ("ok", [(0, 4), (0, 3)]),
        ("ok", [(0, 2)]),
        ("ok", [(0, 4), (0, 3), (1, 3)]),
    ]
    bare = "(A (A the) (A man) (A walked) (A home))\n(A (A rain) (A began))\n"
    assert imported(tmp_path, bare, sentences)[:2] == [("ok", [(0, 4)]), ("ok", [(0, 2)])]


def nodes(folder: Path) -> list[list[tuple[int, int, str]]]:
    """Return the labelled spans of the parses that were imported last."""
    rows = read_table(folder / "p.parquet", schema=PARSES_SCHEMA)[0].to_pylist()
    sides = ("starts", "ends", "labels")
    return [list(zip(*(row[side] for side in sides), strict=True)) for row in rows]


def test_labels_are_kept_as_gold_trees_have_them(tmp_path: Path) -> None:
    other = """\
(TOP (S-1 (NP-SBJ (DT the) (NN man)) (VP (VBD walked) (NP (ADVP=2 (RB home)))) (. .)))
( (NP (NN rain)) (VP (VBD began) (PRN (, ,))))
"""
    found = imported(tmp_path, other, table(tmp_path))
    man = [(0, 4, "S"), (0, 2, "NP"), (2, 4, "VP"), (3, 4, "NP"), (3, 4, "ADVP")]
    rain = [(0, 1, "NP"), (1, 2, "VP")]  # two tops: no phrase is the whole sentence
    assert nodes(tmp_path) == [man, rain, []]
    assert [status for status, _ in found] == ["ok", "ok", "skipped"]


def test_functions_stay_where_the_gold_table_has_them(tmp_path: Path) -> None:
    (tmp_path / "p.mrg").write_text("(S (NP-SBJ (N rain)) (VP (V began)))\n")
    for functions, subject in (("cut", "NP"), ("keep", "NP-SBJ")):
        command = ["treebank", str(tmp_path / "p.mrg"), "--output", str(tmp_path / "g.parquet")]
        done = CliRunner().invoke(app, [*command, "--functions", functions, "--overwrite"])
        assert done.exit_code == 0, done.output
        mine, gold, parses = (tmp_path / name for name in ("p.mrg", "g.parquet", "p.parquet"))
        write_imported([mine], gold, parses, SplitSettings())
        assert nodes(tmp_path) == [[(0, 2, "S"), (0, 1, subject), (1, 2, "VP")]]


@pytest.mark.parametrize(
    ("tree", "told"),
    [
        ("(NT (NT (A the) (A man)) (A walked) (A home))", "every phrase is labelled NT"),
        ("(X (S (X (A the) (A man)) (A walked) (A home)))", "every phrase is labelled S"),
        ("( ( (A the) (A man) ) ( (A walked) (A home) ) )", ""),
        ("(X (X (A the) (A man)) (X (A walked) (A home)))", ""),
    ],
)
def test_a_label_that_tells_nothing_is_none(
    tmp_path: Path, tree: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    imported(tmp_path, f"{tree}\n", table(tmp_path))
    assert "labels" not in pq.read_schema(tmp_path / "p.parquet").names
    said = capsys.readouterr().err
    assert (told or "labelled") in said if told else "labelled" not in said


def scores(folder: Path, sentences: Path) -> dict[str, Any]:
    done = CliRunner().invoke(
        app,
        ["score", str(folder / "p.parquet"), "--sentences", str(sentences), "--encoder-name",
         "imported", "--parser-name", "theirs", "--output", str(folder / "s.parquet"),
         "--summary", str(folder / "s.json")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return dict(json.loads((folder / "s.json").read_text()))


@pytest.mark.parametrize("place", ["english/test.mrg", "german/test.ptb", "hebrew/test.ptb"])
def test_labelled_f1_is_evalb_s_on_the_bundled_treebanks(tmp_path: Path, place: str) -> None:
    """Trees of some other spans and labels, in brackets without punctuation, as EVALB wants."""
    source = ROOT / "workflow/resources/treebanks" / place
    done = CliRunner().invoke(
        app, ["treebank", str(source), "--output", str(tmp_path / "gold.parquet")]
    )
    assert done.exit_code == 0, done.output
    gold = list(from_table(read_table(tmp_path / "gold.parquet", schema=SENTENCES_SCHEMA)[0]))
    generator = np.random.default_rng(0)
    kept = [
        [(i, j, label if generator.random() < 0.8 else "NP") for i, j, label in one.spans
         if j - i == len(one.words) or generator.random() < 0.8]
        for one in gold
    ]  # fmt: skip
    tags = [[f"T{number}" for number, _ in enumerate(one.words)] for one in gold]
    files = {"p.mrg": kept, "g.mrg": [one.spans for one in gold]}
    for name, spans in files.items():
        lines = [
            bracketed(one.words, tag, own) for one, tag, own in zip(gold, tags, spans, strict=True)
        ]
        # a top that the gold tree lacks is one that EVALB deletes
        tops = [line.replace("( (", "(TOP (", 1) if line[:2] == "( " else line for line in lines]
        (tmp_path / name).write_text("\n".join(tops), encoding="utf-8")
    sentences = tmp_path / "gold.parquet"
    write_imported([tmp_path / "p.mrg"], sentences, tmp_path / "p.parquet", SplitSettings())
    found = scores(tmp_path, sentences)
    rows = list(results([tmp_path / "g.mrg"], [tmp_path / "p.mrg"], COLLINS))
    assert {one.status for one in rows} == {0}
    both, right, guessed = (
        sum(getattr(row, x) for row in rows) for x in ("matched", "gold", "test")
    )
    assert found["labelled_f1"] == pytest.approx(200 * both / (right + guessed))
    assert 50 < found["labelled_f1"] < 95
    exact = 100 * sum(row.complete for row in rows) / len(rows)
    assert found["labelled_exact_match"] == pytest.approx(exact)
    assert np.trace(np.array(found["label_confusion"]["counts"])) == both
    assert found["tag_accuracy"] is None


def test_sentences_without_a_tree_are_skipped_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = """\
(A (A the) (A man) (A walked) (A home))
(A (A another) (A one))
(A (A Basil) (A a) (A cat) (A left) (A .))
"""
    found = imported(tmp_path, other, table(tmp_path))
    assert [status for status, _ in found] == ["ok", "skipped", "ok"]
    error = capsys.readouterr().err
    assert "p.mrg:2: word 'another' is 'rain' in" in error
    assert "gold.mrg:2: no tree of this sentence" in error
    assert "trees of 2 of 3 sentences" in error


def test_repeated_and_reordered_words_are_not_taken_for_a_sentence(tmp_path: Path) -> None:
    found = imported(tmp_path, "(A (A rain) (A began))\n(A (A man) (A the))\n", table(tmp_path))
    assert [status for status, _ in found] == ["skipped", "ok", "skipped"]


def test_a_file_of_other_sentences_is_one_line(tmp_path: Path) -> None:
    sentences = table(tmp_path)
    (tmp_path / "p.mrg").write_text("(A (A quite) (A different))\n")
    with refused("other-sentences", file="p.mrg"):
        write_imported([tmp_path / "p.mrg"], sentences, tmp_path / "p.parquet", SplitSettings())
    assert not (tmp_path / "p.parquet").exists()


def test_more_than_a_tenth_without_a_tree_stops_unless_it_is_allowed(tmp_path: Path) -> None:
    sentences, output = table(tmp_path), tmp_path / "p.parquet"
    (tmp_path / "p.mrg").write_text(GOLD.split("\n", 1)[1])
    command = ["import", str(tmp_path / "p.mrg"), "--output", str(output), "--sentences"]
    refused = CliRunner().invoke(app, [*command, str(sentences)])
    assert refused.exit_code == 1
    assert "p.mrg: only 2 of 3 sentences have a tree (first: " in str(refused.exception)
    assert "gold.mrg:1: no tree of this sentence" in str(refused.exception)
    assert "--accept-loss" in str(refused.exception)
    assert not output.exists()
    plain = tmp_path / "plain.mrg"  # a treebank file will do for the table
    plain.write_text("(S (D the) (N man))\n(S (N rain) (V began))\n(S (N Basil) (V left))\n")
    (tmp_path / "p.mrg").write_text("(S rain began)\n(S Basil left)\n")
    done = CliRunner().invoke(app, [*command, str(plain), "--accept-loss", "0.4"])
    assert done.exit_code == 0, done.output
    assert read_table(output, schema=PARSES_SCHEMA)[0]["status"].to_pylist() == [
        "skipped",
        "ok",
        "ok",
    ]


def test_an_average_has_the_spans_that_most_members_have(tmp_path: Path) -> None:
    sentences = table(tmp_path)
    members = []
    for number, tree in enumerate(
        ("(A (A (A the) (A man)) (A (A walked) (A home)))",
         "(A (A (A the) (A man)) (A walked) (A home))",
         "(A (A the) (A (A man) (A (A walked) (A home))))")
    ):  # fmt: skip
        rest = "(A (A rain) (A began))\n" if number else ""
        imported(tmp_path, f"{tree}\n{rest}", sentences)
        members.append((tmp_path / "p.parquet").rename(tmp_path / f"{number}.parquet"))
    imported(tmp_path, "(S (NP (A the) (A man)) (VP (A walked) (NP (A home))))\n", sentences)
    write_average([*members, tmp_path / "p.parquet"], tmp_path / "mean.parquet", threshold=None)
    assert "labels" not in pq.read_schema(tmp_path / "mean.parquet").names
    found = Parses.of_table(read_table(tmp_path / "mean.parquet", schema=PARSES_SCHEMA)[0])
    assert list(found.trees.of(0).spans) == [(0, 4), (0, 2), (2, 4)]
    assert found.status.tolist() == ["ok", "skipped", "skipped"]  # one member lacks the second
    assert list(found.trees.of(1).spans) == []


def test_an_average_rests_on_the_trees_that_its_members_rest_on(tmp_path: Path) -> None:
    imported(tmp_path, "(A (A rain) (A began))\n", table(tmp_path))
    rows, metadata = read_table(tmp_path / "p.parquet", schema=PARSES_SCHEMA)
    members = [tmp_path / f"{number}.parquet" for number in range(3)]
    for path, chosen, seen in zip(members, ("welsh dev", "manx dev", None), (0, 2, 1), strict=True):
        made = {"selection": chosen, "provenance": {"settings": {"overlap": seen}}}
        write_table(path, rows, schema=PARSES_SCHEMA, metadata={**metadata, **made})
    write_average([members[0], *members], tmp_path / "mean.parquet", threshold=None)
    _, found = read_table(tmp_path / "mean.parquet", schema=PARSES_SCHEMA)
    assert found["selection"] == "welsh dev, manx dev"
    assert found["provenance"]["settings"]["overlap"] == 2


def test_an_average_of_other_sentences_is_refused(tmp_path: Path) -> None:
    sentences = table(tmp_path)
    imported(tmp_path, "(A (A rain) (A began))\n", sentences)
    rows, metadata = read_table(tmp_path / "p.parquet", schema=PARSES_SCHEMA)
    words = pa.array(rows["n_words"].to_numpy() + 1)
    longer = rows.set_column(1, rows.schema.field("n_words"), words)
    for others in (rows.slice(0, 2), longer):
        write_table(tmp_path / "q.parquet", others, schema=PARSES_SCHEMA, metadata=metadata)
        with refused("other-sentences", file="q.parquet"):
            members = [tmp_path / "p.parquet", tmp_path / "q.parquet"]
            write_average(members, tmp_path / "o", threshold=None)


def test_imported_trees_are_scored_like_any_other(tmp_path: Path) -> None:
    sentences = table(tmp_path)
    rows = read_table(sentences, schema=SENTENCES_SCHEMA)[0]
    assert rows.num_rows == 3
    imported(tmp_path, GOLD, sentences)
    found = scores(tmp_path, sentences)
    assert (found["corpus_f1"], found["labelled_f1"]) == (100.0, 100.0)
    bare = GOLD.replace("(S (", "(X (").replace("NP", "X").replace("VP", "X").replace("ADVP", "X")
    imported(tmp_path, bare, sentences)
    found = scores(tmp_path, sentences)
    assert found["corpus_f1"] == 100.0
    assert found["labelled_f1"] is found["label_confusion"] is None


def test_a_status_without_a_value_is_one_line(tmp_path: Path) -> None:
    imported(tmp_path, GOLD, table(tmp_path))
    rows = pq.read_table(tmp_path / "p.parquet")
    place = rows.schema.names.index("status")
    nulls = pa.array([None] * len(rows), pa.string())
    pq.write_table(rows.set_column(place, "status", nulls), tmp_path / "p.parquet")
    with refused("empty-cells", file="p.parquet"):
        read_table(tmp_path / "p.parquet", schema=PARSES_SCHEMA)
