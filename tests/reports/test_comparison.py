"""The comparison: what is computed, imported and published side by side, and its p values."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from attree.base import tables as render
from attree.base.files import write_json
from attree.base.schemas import PARSES_SCHEMA, write_table
from attree.cli import tables as command
from attree.decoding.fixed import fixed_trees
from attree.evaluation.baselines import write_baselines
from attree.evaluation.resampling import every_difference
from attree.evaluation.summary import score_parses
from attree.reports.tables.comparison import System, compared, comparison, read_figures, systems
from attree.trees.parses import Parses
from tests.refusals import refused
from tests.training.conftest import table as make_table

PUBLISHED = """\
table,row,language,metric,value,source
cross,theirs,toy,sentence_f1,40.5,x
few,berkeley,toy,corpus_f1@80,57.6,x
few,berkeley,toy,corpus_f1@10,27.2,x
old,c-pcfg,toy,corpus_f1,52.4,x
old,c-pcfg,toy,recall_NP,74.7,x
few,fss,toy,corpus_f1_max@20,53.4,x
"""
HOW: dict[str, Any] = {"max_words": None}
PARSERS = ["random_uniform_tree", "random_shift_reduce", "random_uniform_split"]


def scored(sentences: Path, parses: Parses, name: str, encoder: str) -> Path:
    """Score parses; return the summary, beside the sentences."""
    table = sentences.with_name(f"{name}.parses.parquet")
    about = {"selection": "toy dev", "language": "toy", "split": "test"}
    write_table(table, parses.table(), schema=PARSES_SCHEMA, metadata=about)
    output, who = table.with_name(f"{name}.parquet"), {"encoder": encoder, "parser": name}
    summary = output.with_suffix(".json")
    score_parses(table, sentences, output=output, summary=summary, labels=["X"], **who, **HOW)
    return summary


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    """Three parsers, whose trees are random, on forty sentences; one of them imported."""
    sentences = make_table(tmp_path / "test.parquet", 40, 5, longest=14)
    gold = Parses.gold(pq.read_table(sentences))
    summaries = []
    for name, fixed in zip(("good", "theirs", "bad"), PARSERS, strict=True):
        trees = fixed_trees(fixed, gold.n_words, seed=1, sentences=gold.sentence)
        encoder = "imported" if name == "theirs" else "tiny"
        summaries.append(scored(sentences, Parses.all_ok(gold.sentence, trees), name, encoder))
    baselines = tmp_path / "baselines.json"
    write_baselines(sentences, baselines, labels=["X"], seeds=2, **HOW)
    speeds, figures = tmp_path / "speeds.json", tmp_path / "article.csv"
    where = {"language": "toy", "split": "test", "encoder": "tiny"}
    write_json(speeds, {**where, "sentences_a_second": {"good": 120.4}})
    figures.write_text(PUBLISHED)
    files = {"tables": [sentences], "speeds": [speeds], "figures": figures}
    return {"summaries": [*summaries, baselines], **files}


ROWS = ["theirs=cross/theirs", "bad=few/berkeley@80", "c-pcfg=old/c-pcfg", "fss=few/fss@20"]


def all_systems(given: dict[str, Any], rows: list[str] = ROWS) -> Any:
    figures = read_figures(given["figures"], rows)
    found = systems(given["summaries"], given["tables"], given["speeds"], figures, **HOW)
    return compared(found, [5, 9])


def changed(one: System, **fields: Any) -> System:
    return replace(one, row=replace(one.row, **fields))


def test_a_system_says_where_its_figures_come_from(given: dict[str, Any]) -> None:
    ordered, _ = all_systems(given)
    by_name = {one.name: one for one in ordered}
    kinds = {name: one.kind for name, one in by_name.items()}
    assert kinds["good"] == kinds["right"] == "computed"
    assert (kinds["theirs"], kinds["c-pcfg"]) == ("imported", "published")
    assert by_name["good"].speed == 120.4 and by_name["bad"].speed is None
    assert by_name["good"].row.selection == "toy dev" and by_name["right"].row.selection == ""
    assert by_name["bad"].row.published == {"corpus_f1": 57.6}
    assert by_name["c-pcfg"].row.recall == {"NP": 74.7}
    corpus = [one.row.values["corpus_f1"] for one in ordered[:3]]
    assert corpus == sorted(corpus, reverse=True)
    assert [one.name for one in ordered][-2:] == ["fss", "c-pcfg"]
    assert by_name["fss"].row.values["corpus_f1"] == 53.4  # the best run: there is no mean


@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        (["left_branching", "left_branching"], "computed, undertrained"),
        (["left_branching", "gold"], "computed"),  # the mean counts, and not each seed
    ],
)
def test_a_grammar_is_undertrained_or_not_by_the_mean_of_its_seeds(
    given: dict[str, Any], kinds: list[str], kind: str
) -> None:
    sentences = given["tables"][0]
    gold = Parses.gold(pq.read_table(sentences))
    for seed, trees in enumerate(kinds):
        made = gold.trees if trees == "gold" else fixed_trees(trees, gold.n_words)
        parses = Parses.all_ok(gold.sentence, replace(made, labels=None, label_names=()))
        given["summaries"].append(scored(sentences, parses, f"pcfg-{seed}", "grammar"))
    rows = ["pcfg-0=old/c-pcfg", "pcfg-1=old/c-pcfg"]
    ordered, _ = all_systems(given, rows)
    seeds = [one for one in ordered if one.row.encoder == "grammar"]
    assert [one.kind for one in seeds] == [kind, kind]
    assert {one.row.published["corpus_f1"] for one in seeds} == {52.4}
    assert {one.kind for one in ordered if one.row.encoder != "grammar"} == {"computed", "imported"}
    mean = np.mean([one.row.values["corpus_f1"] for one in seeds])
    note = comparison(ordered, "All", 100)[0].note
    assert f" pcfg: mean of 2 seeds {mean:.2f} corpus F1." in note
    assert ("undertrained: " in note) == (kind != "computed")


def test_lengths_are_scored_by_themselves(given: dict[str, Any]) -> None:
    ordered, _ = all_systems(given)
    one = next(one for one in ordered if one.name == "good")
    assert one.each is not None
    for longest in (5, 9):
        each, short = one.each.each, one.each.n_words <= longest
        spans = (each.gold + each.predicted)[short].sum()
        assert one.by_length[longest] == pytest.approx(200 * each.matched[short].sum() / spans)
    fixed = next(one for one in ordered if one.name == "right")
    assert fixed.each is not None
    assert fixed.each.counts.corpus_f1 == pytest.approx(fixed.row.values["corpus_f1"])


def test_every_two_are_compared_as_two_alone_are(given: dict[str, Any]) -> None:
    ordered, pairs = all_systems(given)
    tested = [one for one in ordered if one.each is not None]
    assert len(tested) == 6
    names = {frozenset((one["first"], one["second"])) for one in pairs}
    assert names == {frozenset((a.name, b.name)) for a, b in itertools.combinations(tested, 2)}
    scores = {one.name: one.each for one in tested}
    for record in pairs:
        alone = every_difference("ab", [scores[record["first"]], scores[record["second"]]])
        assert record["p"] == alone[record["metric"]][0, 1].p
        assert record["difference"] == pytest.approx(alone[record["metric"]][0, 1].difference)
    best = max(tested, key=lambda one: one.row.values["corpus_f1"])
    assert np.isnan(best.p)
    for one in (one for one in tested if one is not best):
        assert one.p == every_difference("ab", [best.each, one.each])["corpus_f1"][0, 1].p
    assert all(one.p is None for one in ordered if one.each is None)


def test_the_tables_fit_a_terminal_and_say_what_they_show(
    given: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered, _ = all_systems(given)
    tables = comparison(ordered, "Side by side", 100)
    titles = [table.title.removeprefix("Side by side: ") for table in tables]
    where = "toy, test"
    assert titles == [where, f"{where}: by length", f"{where}: recall by label", "systems"]
    scores = {row[0]: row for row in tables[0].rows}
    assert scores["theirs"][1] == "imported" and scores["theirs"][-1] == "40.5 (s)"
    assert scores["bad"][-1] == "57.6" and scores["good"][6] == "120"
    assert scores["c-pcfg"][1:] == ["published", "52.40", "–", "–", "–", "–", "–"]
    assert sum(row[5] == "(best)" for row in tables[0].rows) == 1
    best = [changed(one, published={"corpus_f1_max": 61.2}) for one in ordered]
    assert comparison(best, "Side by side", 100)[0].rows[0][-1] == "61.2 (max)"
    monkeypatch.setenv("COLUMNS", "80")
    render.show(tables)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any({"system", "kind", "article"} <= set(line.split()) for line in lines)  # it is whole
    assert not any("…" in line for line in lines)


def test_systems_with_labels_have_a_table_of_their_own(given: dict[str, Any]) -> None:
    labelled = {"labelled_f1": 61.25, "labelled_exact_match": 12.5}
    ordered = [
        changed(one, values={**one.row.values, **labelled}) if one.name == "theirs" else one
        for one in all_systems(given)[0]
    ]
    found = {table.title: table for table in comparison(ordered, "T", 1)}["T: toy, test: labels"]
    assert found.headings == ["system", "Labelled F1", "Exact match"]
    assert found.rows == [["theirs", "61.25", "12.50"]]
    flat = {row["system"]: row["labelled_f1"] for row in (one.flat() for one in ordered)}
    assert flat["theirs"] == 61.25 and flat["good"] is None


def test_the_note_says_whether_an_average_beats_its_best_member(given: dict[str, Any]) -> None:
    ordered, _ = all_systems(given)
    plain = comparison(ordered, "Side by side", 100)[0].note

    def said(f1: dict[str, float], averages: dict[str, list[str]]) -> str:
        """What the note says beside the rest, of systems with these scores."""
        others = [
            changed(one, values={**one.row.values, "corpus_f1": f1.get(one.row.parser, 0.0)})
            for one in ordered
        ]
        return comparison(others, "Side by side", 100, averages)[0].note.removeprefix(plain)

    scores = {"good": 62.0, "theirs": 60.5, "bad": 61.0}
    assert said(scores, {"good": ["theirs", "bad"]}) == (
        " good beats its best member, bad, by 1 corpus F1 or more: 62.00 to 61.00."
    )
    assert said({**scores, "good": 61.9}, {"good": ["theirs", "bad"]}) == (
        " good does not beat its best member, bad, by 1 corpus F1 or more: 61.90 to 61.00."
    )
    # members that are not in the table, imported trees that have the name of an average
    assert said(scores, {"good": ["absent"]}) == said(scores, {"theirs": ["good"]}) == ""


def test_the_command_writes_tables_and_pairs(given: dict[str, Any], tmp_path: Path) -> None:
    command.comparison(
        given["summaries"],
        output_prefix=str(tmp_path / "out"),
        sentences=given["tables"],
        speeds=given["speeds"],
        lengths=[5],
        published=given["figures"],
        row=ROWS,
        average=["good=bad,theirs"],
    )
    assert "good beats" in (tmp_path / "out.md").read_text()
    flat = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert {row["system"]: row["published_sentence_f1"] for row in flat}["theirs"] == 40.5
    pairs = pq.read_table(tmp_path / "out.pairs.parquet")
    assert pairs.num_rows == 15 * 3 and pairs["p"].null_count == 0
    assert len(render.saved_tables(tmp_path / "out.parquet")) == 4
    assert (tmp_path / "out.md").read_text().startswith("## Comparison: toy, test\n")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("theirs", "bad-reference theirs"),
        ("theirs=cross/other", "no-such-row other cross"),
        ("bad=few/berkeley", "no-such-row berkeley few"),
        ("bad=few/berkeley@7", "no-such-row berkeley@7 few"),
    ],
)
def test_a_published_row_that_is_not_there_is_one_line(
    given: dict[str, Any], row: str, said: str
) -> None:
    with refused(*said.split()):
        read_figures(given["figures"], [row])


def test_an_average_without_members_is_one_line(given: dict[str, Any]) -> None:
    with refused("bad-average", "good="):
        command.comparison(given["summaries"], output_prefix="out", average=["good="])


def test_other_sentences_are_refused(given: dict[str, Any]) -> None:
    path = given["summaries"][0].with_suffix(".parquet")
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 30).replace_schema_metadata(table.schema.metadata), path)
    with refused("other-sentences"):
        all_systems(given)


def test_speeds_that_are_none_are_one_line(given: dict[str, Any]) -> None:
    given["speeds"][0].write_text(json.dumps({"encoder": "x", "sentences_a_second": [3]}))
    with refused("bad-form", file="speeds.json"):
        all_systems(given)


def test_a_split_without_scored_sentences_has_no_p(tmp_path: Path, given: dict[str, Any]) -> None:
    found = systems(given["summaries"][-1:], [], [], {}, **HOW)
    ordered, pairs = compared(found, [5])
    assert pairs == [] and all(one.p is None for one in ordered)
    assert [table.title for table in comparison(ordered, "T", 1)][-1] == "T: systems"
