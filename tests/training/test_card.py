"""The model card in the folder of a trained parser."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from attree import Parser
from attree.stages.train import check_output
from tests.command_line import attree
from tests.refusals import refused
from tests.training.conftest import run, train_into


def train(output: Path, treebank: Path, resolved: Path, *options: object) -> dict[str, str]:
    """Train a parser; return the facts of its card."""
    train_into(output, treebank, resolved, *options)
    text = (output / "README.md").read_text(encoding="utf-8")
    assert "Fill in." in text and "parser = Parser.load(" in text
    assert "{" not in text and "None" not in text
    return dict(re.findall(r"^\| ([A-Z][^|]*) \| (.*) \|$", text, re.MULTILINE))


def test_a_card_says_what_a_parser_is(resolved: Path, treebank: Path, tmp_path: Path) -> None:
    facts = train(tmp_path / "p", treebank, resolved, "--parser", "tree-crf-full", "--held-out", 4)
    about = json.loads((tmp_path / "p/parser.json").read_text())
    assert facts["Parser"].startswith("tree-crf-full: projection + boundary + heads, objective")
    assert facts["Encoder's fingerprint"] == about["encoder"]["fingerprint"]
    assert facts["Encoder"].startswith("bert (path ")
    assert facts["Trees"] == f"5 of {treebank} (toy, dev)"
    assert "seed 0" in facts["Settings"] and "steps of 10 trees" in facts["Settings"]
    told = about["about"]
    (score,) = told["scores"]
    low, high = score["intervals"]["corpus_f1"]
    assert score["corpus_f1"] == pytest.approx(told["dev_f1"])  # on the same trees
    assert facts["F1"].startswith(
        f"{told['dev_f1']:.1f} ({low:.1f} to {high:.1f}) unlabelled on the 4 trees held out; "
        f"right branching {told['dev_right_branching']:.1f} "
    )
    assert facts["Labels"] == "none: its trees are brackets without labels"
    assert "torch 2" in facts["Versions"]
    assert Parser.load(str(tmp_path / "p"), device="cpu").parse([["a", "cat"]])[0].status == "ok"


def test_labels_and_what_was_not_measured(resolved: Path, treebank: Path, tmp_path: Path) -> None:
    facts = train(tmp_path / "p", treebank, resolved, "--parser", "tree-crf-labelled")
    assert facts["Labels"].split(", ")[0] == "X"
    assert facts["F1"].startswith("not measured")


def test_trees_to_be_evaluated_on_are_scored(
    resolved: Path, treebank: Path, tmp_path: Path
) -> None:
    (tmp_path / "t.mrg").write_text(LABELLED * 3)
    facts = train(tmp_path / "p", treebank, resolved, "--evaluate-on", tmp_path / "t.mrg")
    found = Parser.load(str(tmp_path / "p"), device="cpu", dtype="float32")
    score = found.evaluate(tmp_path / "t.mrg", punctuation="keep")
    assert facts["F1"].startswith(f"{score.corpus_f1:.1f} (")
    assert facts["F1"].endswith("on the 3 trees to be evaluated on")


LABELLED = "( (S (NP (D the) (N cat)) (VP (V saw) (NP (D a) (N dog)))) )\n"


@pytest.mark.parametrize(
    ("trees", "options", "trained"),
    [
        (LABELLED, [], "tree-crf-labelled"),
        (LABELLED.replace("S", "X").replace("NP", "X").replace("VP", "X"), [], "tree-crf-labelled"),
        (LABELLED.replace("S", "").replace("NP", "").replace("VP", ""), [], "tree-crf-full"),
        (
            LABELLED.replace("(S", "(?").replace("(NP", "(?").replace("(VP", "(!"),
            [],
            "tree-crf-full",
        ),
        (LABELLED.replace("VP", "?"), [], "tree-crf-labelled"),
        (LABELLED, ["--parser", "fpio"], "fpio"),
    ],
)
def test_trees_choose_their_parser(
    resolved: Path, tmp_path: Path, trees: str, options: list[object], trained: str
) -> None:
    mine = tmp_path / ("mine.half" if "?" in trees else "mine.mrg")
    mine.write_text(trees * 6)
    facts = train(tmp_path / "p", mine, resolved, *options)
    assert facts["Parser"].startswith(f"{trained}: ")


@pytest.mark.parametrize(("options", "policy"), [((), "keep"), (("ptb",), "ptb")])
def test_punctuation_of_files_is_kept_unless_asked(
    resolved: Path, tmp_path: Path, options: tuple[str, ...], policy: str
) -> None:
    """A sentence is known again with its punctuation and without."""
    mine, cleaned = tmp_path / "mine.mrg", tmp_path / "cleaned.parquet"
    trees = "( (S (NP (DT the) (NN n{0})) (VP (VBD saw) (NP (DT a) (NN dog))) (. .)) )\n"
    mine.write_text("".join(map(trees.format, range(6))))
    asked = [part for one in options for part in ("--punctuation", one)]
    train(tmp_path / "p", mine, resolved, *asked)
    about = json.loads((tmp_path / "p/parser.json").read_text())
    assert about["about"]["table"]["punctuation"] == policy
    run("treebank", mine, "--punctuation", "ptb", "--output", cleaned)
    with refused("all-evaluated-on"):
        options = ["--evaluate-on", cleaned, *asked]
        raise train_into(tmp_path / "q", mine, resolved, *options, ok=False).exception
    options = ["--evaluate-on", mine, *(asked or ["--punctuation", "keep"])]
    failed = train_into(tmp_path / "q", cleaned, resolved, *options, ok=False)
    assert "this table was cleaned when it was made" in str(failed.exception)
    parsed = Parser.load(str(tmp_path / "p"), device="cpu").parse([["a", "cat", "sat", "."]])
    assert parsed[0].status == "ok"


def test_a_wrong_setting_is_told_before_anything_is_read(tmp_path: Path) -> None:
    for wrong, said in ((["--objective", "best"], "unknown objective"), ([], "no.mrg")):
        given = (tmp_path / "p", tmp_path / "no.mrg", Path("no"), *wrong)
        assert said in str(train_into(*given, ok=False).exception)


@pytest.mark.parametrize(
    "options",
    [
        *("head-weights --size 5", "span-parser --specials"),
        *("head-weights --association log", "span-parser --association raw"),
    ],
)
def test_a_setting_that_a_parser_has_no_use_for_is_refused(options: str, tmp_path: Path) -> None:
    parser, option = options.split()[:2]
    out = tmp_path / "out"
    ran = attree("train", "--sentences", "x.mrg", "--parser", *options.split(), "--output", out)
    assert (ran.status, out.exists()) == (1, False)
    assert f"{parser} has no use for {option} " in ran.err


def test_a_card_is_replaced_with_its_parser_and_a_readme_of_others_is_not(
    resolved: Path, treebank: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/README.md").write_text("mine")
    with refused("foreign-folder", "README.md", file="mine"):
        check_output(tmp_path / "mine", overwrite=True)
    train(tmp_path / "p", treebank, resolved, "--seed", 1)
    facts = train(tmp_path / "p", treebank, resolved, "--seed", 2, "--overwrite")
    assert "seed 2" in facts["Settings"]


def test_what_people_named_is_text(resolved: Path, treebank: Path, tmp_path: Path) -> None:
    source = tmp_path / "<b>a|b`.parquet"
    source.write_bytes(treebank.read_bytes())
    facts = train(tmp_path / "p", source, resolved)
    assert "&lt;b>a\\|b\\`.parquet" in facts["Trees"]


def test_a_published_parser_has_its_licence_sources_and_f1(
    resolved: Path, treebank: Path, tmp_path: Path
) -> None:
    train(tmp_path / "p", treebank, resolved, "--parser", "tree-crf-full")
    (tmp_path / "t.md").write_text("## F1 of mine\n\n| a |\n| --- |\n")
    made = ["--licence", "cc-by-4.0", "--sources", "- mine (CC0)", "--table", tmp_path / "t.md"]
    run("publish", tmp_path / "p", *made, "--output", tmp_path / "q")
    text = (tmp_path / "q/README.md").read_text(encoding="utf-8")
    assert "\nlicense: cc-by-4.0\n" in text and "Fill in" not in text
    assert text.index("## F1 of mine") < text.index("- mine (CC0)") < text.index("cc-by-4.0.")
    assert "| F1 | in the tables below |" in text
    for name in ("parser.json", "weights.safetensors"):
        assert (tmp_path / "q" / name).read_bytes() == (tmp_path / "p" / name).read_bytes()
    with refused("filled-in"):
        raise run("publish", tmp_path / "q", *made, "--output", tmp_path / "r", ok=False).exception
