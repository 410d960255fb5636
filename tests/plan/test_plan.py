"""What a configuration asks for."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attree.base.errors import AttreeError
from attree.base.registry import nearest
from attree.base.settings import expand_variables
from attree.plan.configuration import TuningSettings, configured
from attree.plan.inputs import (
    Comparisons,
    Corpora,
    Encoders,
    Grammars,
    Section,
    Tables,
    Trained,
    as_options,
)
from attree.plan.paths import TableRow
from attree.plan.plan import Plan
from attree.ready import trained_folder
from tests.refusals import refused

TRAINING = {"language": "english", "split": "dev", "trees": 5, "seed": 1}
SPLITS = {"basque": ("test",), "english": ("train", "dev", "test"), "polish": ("dev",)}


def config(**changed: Any) -> dict[str, Any]:
    recipe = {"association": "raw", "score": "outside", "decoder": "greedy", "heads": "above:30"}
    return {
        "encoders": {"one": {"path": "x"}, "two": {"path": "y"}},
        "parsers": {"upoa": recipe, "few": {**recipe, "tuning": {"trees": 5, "seed": 3}}},
        "tuning": {"language": "english", "split": "dev", "trees": "all", "seed": 0},
        "tables": {"t": run(["one"], ["upoa"], "all", "test")},
    } | changed


def make_plan(given: dict[str, Any], splits: Any, problems: Any = None) -> Plan:
    return Plan(configured(given), splits, problems or {})


def inputs(kind: type[Any], given: dict[str, Any], splits: Any = SPLITS) -> Any:
    """The input functions of a section."""
    assert issubclass(kind, Section)
    return kind(make_plan(given, splits))


def run(encoders: list[str], parsers: list[str], languages: Any, split: str) -> dict[str, Any]:
    entry = {"encoders": encoders, "parsers": parsers, "languages": languages, "split": split}
    return {"title": "", "runs": [entry]}


def row(words: str) -> TableRow:
    return TableRow(*words.split())


def table(words: str, **more: Any) -> dict[str, Any]:
    """A table of one entry: ``encoder parser language split``."""
    encoder, parser, language, split = words.split()
    made = run([encoder], [parser], "all" if language == "all" else [language], split)
    return {**made, "runs": [{**made["runs"][0], **more}]}


def test_all_languages_are_those_that_have_the_split() -> None:
    plan = make_plan(config(), SPLITS)
    assert plan.rows == (row("one upoa basque test"), row("one upoa english test"))
    assert plan.languages == ("basque", "english")
    assert plan.tunings == {("one", "upoa"): TuningSettings("english", "dev", "all", 0)}
    assert plan.sized == (("basque", "test"), *(("english", one) for one in SPLITS["english"]))


def test_rows_shared_by_two_tables_are_one() -> None:
    tables = {
        "a": run(["one", "two"], ["upoa"], ["english"], "test"),
        "b": run(["one"], ["upoa", "few"], ["english"], "test"),
        "left-out": None,
    }
    plan = make_plan(config(tables=tables), SPLITS)
    assert len(plan.rows) == 3
    assert list(plan.tables) == ["a", "b"]
    assert plan.parsers("one", "english", "test") == ("upoa", "few")
    assert plan.parsers("two", "english", "test") == ("upoa",)
    assert plan.parsers("two", "english", "dev") == ()
    asked = inputs(Tables, config(tables=tables)).scores(SimpleNamespace(table="b"))
    assert asked == [
        "<results>/scores/one/upoa/english/test.json",
        "<results>/scores/one/few/english/test.json",
        "<results>/scores/baselines/english/test.json",
    ]


def test_two_encoders_are_tuned_and_scored_on_sets_of_their_own() -> None:
    encoders = {"one": {"path": "x"}, "two": {"path": "y", "tuning": {"language": "polish"}}}
    tables = {"t": table("one upoa english test"), "u": table("two upoa basque test")}
    asked = inputs(Tables, config(encoders=encoders, tables=tables))
    assert asked.plan.tunings["two", "upoa"].language == "polish"
    assert asked.rows(SimpleNamespace(table="u")) == (row("two upoa basque test"),)
    assert asked.rows(SimpleNamespace(language="english")) == (row("one upoa english test"),)
    assert asked.rows(SimpleNamespace()) == asked.plan.rows


def test_a_parser_overrides_the_tuning_key_by_key() -> None:
    assert configured(config()).tuning_of("one", "few") == TuningSettings("english", "dev", 5, 3)


def tuned_on(words: str) -> dict[str, Any]:
    language, split = words.split()
    return {"tuning": {"language": language, "split": split, "trees": "all", "seed": 0}}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"tables": {"t": table("onee upoa all test")}}, "did you mean one?"),
        ({"tables": {"t": table("one upao all test")}}, "did you mean upoa?"),
        ({"tables": {"t": table("one upoa englsh test")}}, "did you mean english?"),
        ({"tables": {"t": table("one upoa polish test")}}, "polish has no split test"),
        ({"tables": {"t": table("one upoa all devel")}}, "no language has a split devel"),
        (tuned_on("basque dev"), "no split dev"),
        (tuned_on("dutch dev"), "dutch does not exist"),
    ],
)
def test_what_is_not_there_is_one_line_with_the_nearest(
    changed: dict[str, Any], problem: str
) -> None:
    with pytest.raises(AttreeError) as error:
        make_plan(config(**changed), SPLITS)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_imported_trees_and_averages_are_rows() -> None:
    given = config(
        tables={"t": table("one voted all test", systems=["theirs"])},
        systems={"theirs": {"english/test": "x.mrg", "basque/test": "y.mrg"}},
        averages={"voted": {"of": ["upoa", "few", "theirs"]}},
    )
    plan = make_plan(given, SPLITS)
    assert [(row.encoder, row.parser, row.language) for row in plan.rows] == [
        ("one", "voted", "basque"),
        ("one", "voted", "english"),
        ("imported", "theirs", "basque"),
        ("imported", "theirs", "english"),
    ]
    members = ("one upoa", "one few", "imported theirs")
    assert plan.members(plan.rows[1]) == tuple(row(f"{one} english test") for one in members)
    assert set(plan.tunings) == {("one", "upoa"), ("one", "few")}
    assert plan.parsers("one", "english", "test") == ("upoa", "few")
    del given["systems"]["theirs"]["basque/test"]
    with refused("missing-trees", "basque/test"):
        make_plan(given, SPLITS)
    given["averages"]["voted"]["of"] = ["upoa"]  # of all languages, those that it has trees of
    assert [row.language for row in make_plan(given, SPLITS).rows[2:]] == ["english"]


def test_a_corpus_needs_its_parser_s_heads_whether_a_table_has_it_or_not() -> None:
    corpora = {"news": {"inputs": ["x"], "encoder": "two", "parser": "few"}}
    tunings = make_plan(config(corpora=corpora), SPLITS).tunings
    assert list(tunings) == [("one", "upoa"), ("two", "few")]
    corpora["news"]["parser"] = "fewer"
    with refused("unknown-name", "corpora.news"):
        make_plan(config(corpora=corpora), SPLITS)


def test_a_corpus_and_an_encoder_in_folders_hang_on_the_files_in_them(tmp_path: Path) -> None:
    corpora = {"news": {"inputs": [str(tmp_path)], "encoder": "two", "parser": "few"}}
    given = config(corpora=corpora)
    given["encoders"]["two"] = {"path": str(tmp_path)}
    for name in ("a.txt", ".hidden"):
        (tmp_path / name).touch()
    (tmp_path / "below").mkdir()
    (tmp_path / "below/b.txt").touch()
    job = SimpleNamespace(corpus="news", encoder="two")
    asked, encoders = inputs(Corpora, given), inputs(Encoders, given)
    assert sorted(asked.text(job)) == [f"{tmp_path}/a.txt", f"{tmp_path}/below/b.txt"]
    assert asked.inputs(job) == [str(tmp_path)]
    assert encoders.files(job) == [f"{tmp_path}/.hidden", f"{tmp_path}/a.txt"]


def test_a_language_with_a_problem_is_left_out_of_all_and_told_when_it_is_named() -> None:
    problems = {"dutch": AttreeError("bad-setting", "dutch/language.yaml: unknown key formt")}
    assert len(make_plan(config(), SPLITS, problems).rows) == 2
    both = table("one upoa - test", languages=["english", "dutch"])
    named = config(tables={"t": both})
    with refused("bad-setting", "formt"):
        make_plan(named, SPLITS, problems)
    for given, code in ((problems, "bad-setting"), ({}, "unknown-split")):
        with refused(code):  # no other language has a test split
            make_plan(
                config(tables={"t": table("one upoa all test")}),
                {"english": ("train", "dev")},
                given,
            )


def test_variables_are_expanded_at_any_depth() -> None:
    value = {"a": ["$X/b", "${X}c"], "d": {"e": 1, "f": "plain"}}
    found = expand_variables(value, "where", {"X": "x"})
    assert found == {"a": ["x/b", "xc"], "d": {"e": 1, "f": "plain"}}


def test_an_unset_variable_is_named_with_its_key() -> None:
    with refused("unset-variable", "treebanks.a.b"):
        expand_variables({"a": {"b": ["$NO/x"]}}, "treebanks", {})


def test_options_are_quoted_and_lists_repeated() -> None:
    settings = {"max_words": 3, "labels": ["NP", "A B"], "none": None}
    line = as_options(settings | {"quick": True, "slow": False})
    assert shlex.split(line) == ["--max-words", "3", "--labels", "NP", "--labels", "A B", "--quick"]


@pytest.mark.parametrize("address", ["local", "tcp://host:8786"])
def test_a_local_run_has_no_scheduler(address: str) -> None:
    asked = inputs(Encoders, config(attention={"scheduler": address}))
    named = f" --scheduler {address}" if address != "local" else ""
    assert asked.running_options(SimpleNamespace()).endswith(f" --partition-size 500{named}")


def test_nearest_lists_what_there_is_when_nothing_is_near() -> None:
    assert nearest("zzz", ["b", "a"]) == "there are a, b"
    assert nearest("zzz", []) == "there are none"


def test_comparisons_stand_apart_and_train_what_they_name() -> None:
    given = config(
        comparisons={"c": table("one few english test", trained=["fpio", "mine"])},
        training=TRAINING,
        trained={"mine": {"recipe": "fpoa", "decoder": "chart", "steps": 9}},
    )
    plan = make_plan(given, SPLITS)
    assert [row.parser for row in plan.compared("c")] == ["few", "fpio", "mine"]
    assert [row.parser for row in plan.rows] == ["upoa", "upoa"]
    assert plan.parsers("one", "english", "test") == ("upoa", "few")
    assert set(plan.tunings) == {("one", "upoa"), ("one", "few")}
    asked, compared = inputs(Trained, given), inputs(Comparisons, given)
    job = SimpleNamespace(
        comparison="c", encoder="one", parser="mine", language="english", split="test"
    )
    assert asked.sentences(job) == ["<results>/treebanks/english/dev.parquet"]
    files = SimpleNamespace(sentences=["dev.parquet"], evaluated=asked.evaluated(job))
    options = "--sentences dev.parquet --parser fpoa --trees 5 --seed 1 --decoder chart --steps 9"
    assert asked.options(job, files) == options
    assert asked.applying_options(job) == "--decoder chart --too-long right_branching"
    assert compared.speeds(job) == ["<results>/comparisons/c/one/english/test.json"]
    assert compared.timed(job) == [
        "<results>/heads/one/few/english/dev.json",
        "<results>/fewshot/one/fpio/parser.json",
        "<results>/fewshot/one/mine/parser.json",
    ]


def test_training_reads_the_parser_that_it_starts_from() -> None:
    own = {"mine": {"recipe": "fpio", "start": "universal"}, "other": {"recipe": "fpio"}}
    tables = {"t": table("one - english test", parsers=[], trained=["mine", "other"])}
    asked = inputs(Trained, config(trained=own, training=TRAINING, tables=tables))
    folder = trained_folder("universal")
    files = [f"{folder}/weights.safetensors", f"{folder}/parser.json"]
    assert asked.start(SimpleNamespace(parser="mine")) == files
    assert asked.start(SimpleNamespace(parser="other")) == []


def test_a_parser_is_trained_on_treebanks_of_its_own() -> None:
    sources = [
        {"treebanks": ["english/dev", "french/test"], "trees": 600, "share": 0.6},
        {"treebanks": ["english/test"], "trees": "all", "share": 0.4},
    ]
    own = {"recipe": "fpio", "sources": sources, "without": ["english/test"]}
    tables = {
        name: table(f"one - {name} test", parsers=[], trained=["many"])
        for name in ("french", "basque")
    }
    given = config(trained={"many": own}, training=TRAINING, tables=tables)
    splits = {"english": ["dev", "test"], "french": ["test"], "basque": ["test"]}
    asked = Trained(Plan(configured(given), splits, partly={"basque"}))
    job = SimpleNamespace(encoder="one", parser="many")
    assert asked.sentences(job) == [
        "<results>/treebanks/english/dev.parquet",
        "<results>/treebanks/french/test.parquet",
    ]
    files = SimpleNamespace(sentences=["a", "b"], evaluated=["c"])
    told = asked.options(job, files)
    assert "--sentences a --sentences b --evaluate-on c" in told
    assert asked.evaluated(job) == ["<results>/treebanks/french/test.parquet"]
    assert "--trees 600,600" in told and "--shares 0.3,0.3" in told
    own["without"] = ["english/train"]
    with refused("unknown-name", "english/train"):
        make_plan(given, splits)


def test_rows_with_labels_have_a_picture_of_them() -> None:
    trained = {"mine": {"recipe": "tree-crf-labelled"}}
    trained["binary"] = {"recipe": "tree-crf-labelled", "decoder": "minimum_risk"}
    asked = inputs(Trained, config(trained=trained))
    parsers = ("upoa", "tree-crf-full", "tree-crf-labelled", "mine", "binary")
    rows = [row(f"one {parser} english test") for parser in parsers]
    assert asked.labelled(rows) == [
        f"<results>/figures/labels/one/{parser}/english/test.png"
        for parser in ("tree-crf-labelled", "mine")
    ]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            {"trained": {"mine": {"recipe": "fpio", "label_layers": [3]}}},
            "experiments-alone trained.mine label_layers",
        ),
        (
            {"trained": {"mine": {"recipe": "tree-crf-full", "threshold": "chosen"}}},
            "experiments-alone trained.mine",
        ),
        ({"trained": {"upoa": {"recipe": "fpio"}}}, "name-taken upoa"),
        ({"averages": {"fpio": {"of": ["few"]}}}, "name-taken fpio"),
        ({"masked_lm": {"m": {"encoder": "onee", "text": ["english/dev"]}}}, "unknown-name onee"),
        ({"trained": {"mine": {"recipe": "fpio", "start": "univrsal"}}}, "no-parser univrsal"),
        ({"trained": {}}, "unknown-name mine"),
        ({"training": {"language": "basque", "split": "dev"}}, "unknown-split basque"),
    ],
)
def test_a_few_shot_parser_that_cannot_be_a_row_is_one_line(
    changed: dict[str, Any], problem: str
) -> None:
    name = next(iter(changed.get("trained", {"mine": 0})), "mine")
    given = {
        "comparisons": {"c": table("one few english test", trained=[name])},
        "training": TRAINING,
        "trained": {"mine": {"recipe": "fpio"}},
    }
    with refused(*problem.split()):
        make_plan(config(**given | changed), SPLITS)


def test_a_ready_parser_needs_no_entry_unless_another_parser_has_its_name() -> None:
    tables = {"t": table("one few english test", trained=["universal"])}
    given = config(tables=tables)
    plan = make_plan(given, SPLITS)
    assert plan.rows[-1] == row("one universal english test")
    asked = inputs(Trained, given)
    folder = trained_folder("universal")
    assert asked.file(plan.rows[-1]) == f"{folder}/parser.json"
    assert asked.weights(plan.rows[-1]) == [f"{folder}/weights.safetensors"]
    assert "fpio" in asked.trainable and "universal" not in asked.trainable

    def folders(section: str, **entry: Any) -> dict[str, str]:
        used = {**given.get(section, {}), "universal": entry}
        return configured({**given, section: used}).folders

    assert folders("trained", folder="parsers/mine")["universal"] == "parsers/mine"
    assert "universal" not in folders("trained", recipe="fpoa")
    assert "universal" not in folders("averages", of=["upoa"])
    assert "universal" not in folders("parsers", score="outside", decoder="greedy")


def test_grammars_have_a_row_for_each_seed_and_one_vote() -> None:
    grammars = {"g": {"text": "train", "seeds": 2, "epochs": 3}}
    both = {"parsers": ["upoa", "both"], "grammars": ["g"]}
    learnt = {**table("one - english test", **both), "published": {"g": ["a/g"]}}
    averaged = table("one both english test")
    plain = {**table("one upoa english test"), "published": {"g": ["a/g"]}}
    full = config(
        grammars=grammars,
        averages={"both": {"of": ["upoa", "g"]}},
        comparisons={"learnt": learnt, "averaged": averaged, "plain": plain},
    )
    plan = make_plan(full, SPLITS)
    seeds = [row(f"grammar g-{seed} english test") for seed in (0, 1)]
    assert [row for row in plan.compared("learnt") if row.encoder == "grammar"] == seeds
    members = plan.members(row("one both english test"))
    assert members == (row("one upoa english test"), *seeds)
    assert plan.weights("both") == [1.0, 0.5, 0.5]
    assert plan.tunings.keys() == {("one", "upoa")}
    asked, learning = inputs(Comparisons, full), inputs(Grammars, full)
    assert asked.with_grammars(True) == ["learnt", "averaged"]
    assert asked.with_grammars(False) == ["plain"]
    wildcards = SimpleNamespace(language="english", parser="g-1")
    assert learning.text(wildcards) == "<results>/treebanks/english/train.parquet"
    assert learning.options(wildcards) == "--seed 1 --epochs 3"
    assert asked._rows_of("g", SimpleNamespace(comparison="learnt")) == ("g-0", "g-1")
    assert asked._rows_of("g", SimpleNamespace(comparison="plain")) == ("g",)


def test_a_grammar_that_cannot_be_learnt() -> None:
    own = {
        "averages": {"both": {"of": ["g"]}},
        "grammars": {"g": {"text": "train", "seeds": 2}},
        "comparisons": {},
    }
    grammar = table("one upoa basque test", grammars=["g"])
    unknown = table("one upoa basque test", grammars=["h"])
    average = table("one both basque test")
    of_encoder = {"grammar": {"path": "x"}, **config()["encoders"]}
    for change, said in (
        ({"comparisons": {"c": grammar}}, "unknown-split grammars.g basque train"),
        ({"comparisons": {"c": unknown}}, "unknown-name h g"),
        ({"tables": {"t": average}}, "unknown-split grammars.g basque train"),
        ({"tables": {"t": grammar}}, "grammar-in-table tables.t.runs[0] g"),
        ({"systems": {"g": {"basque/test": "x.mrg"}}}, "name-taken grammars g"),
        ({"encoders": of_encoder}, "name-taken encoders grammar"),
    ):
        with refused(*said.split()):
            make_plan(config(**{**own, **change}), SPLITS)
    every = table("one upoa all test", grammars=["g"])
    plan = make_plan(config(**{**own, "comparisons": {"c": every}}), SPLITS)
    assert {row.language for row in plan.compared() if row.encoder == "grammar"} == {"english"}


READY = {"encoder": "one", "tables": ["t"], "licence": "x", "sources": "y"}


@pytest.mark.parametrize(
    ("changed", "code", "name"),
    [
        ({"averages": {"right": {"of": ["upoa"]}}}, "name-taken", "right"),
        ({"systems": {"balanced": {"english/test": "x"}}}, "name-taken", "balanced"),
        ({"masked_lm": {"one": {"encoder": "two", "text": ["english/dev"]}}}, "name-taken", "one"),
        ({"encoders": {"one": {"path": "x"}, "m-1": {"path": "y"}},
          "masked_lm": {"m": {"encoder": "one", "text": ["english/dev"]}}}, "name-taken", "m-1"),
        ({"masked_lm": {"m": {"encoder": "one", "text": ["basque/dev"]}}}, "unknown-split", "dev"),
        ({"ready": {"fpao": READY}}, "unknown-name", "fpao"),
        ({"ready": {"fpoa": {**READY, "encoder": "three"}}}, "unknown-name", "three"),
        ({"ready": {"fpoa": {**READY, "tables": ["tt"]}}}, "unknown-name", "tt"),
        ({"ready": {"fpoa": READY}, "training": {**TRAINING, "split": "x"}}, "unknown-split", "x"),
    ],
)  # fmt: skip
def test_a_name_means_one_thing_that_exists(changed: Any, code: str, name: str) -> None:
    make_plan(config(training=TRAINING, ready={"fpoa": READY}), SPLITS)
    with refused(code, name):
        make_plan(config(**changed), SPLITS)


def test_no_parser_is_timed_by_another_decoder_than_that_of_its_rows(tmp_path: Path) -> None:
    (tmp_path / "parser.json").write_text("{}")
    folder = {"folder": str(tmp_path)}
    own = {"mine": folder, "chart": {**folder, "decoder": "chart"}}
    comparisons = {"c": table("one upoa english test", parsers=[], trained=list(own))}
    asked = inputs(Comparisons, config(comparisons=comparisons, trained=own))
    job = SimpleNamespace(comparison="c", encoder="one", language="english", split="test")
    assert asked.timed(job) == [f"{tmp_path}/parser.json"]
