"""Trained parsers on disk with their model cards, and the command that makes them."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
import torch

from attree import Parser
from attree.encoder.source import ResolvedEncoder
from attree.parsers.find import Overrides, find_parser
from attree.stages.train import check_output
from attree.training.card import fill_in
from attree.training.fit import fit
from attree.training.parser import load_parser, save_parser
from attree.training.parts import BatchSource
from attree.training.recipes import RECIPES, WEIGHTS, TrainingPlan, recipe
from attree.treebank import formats
from attree.treebank.convert import convert
from attree.treebank.sentence import SplitSettings
from tests.command_line import attree
from tests.refusals import refused
from tests.training.conftest import read, run, train_into


@pytest.mark.parametrize("name", [name for name, one in RECIPES.items() if not one.rank])
def test_a_parser_read_back_parses_the_same(name: str, encoder, treebank: Path, tmp_path: Path):
    trees = read(treebank, range(3, 15))
    plan = TrainingPlan(RECIPES[name], layers=(1, 2), steps=5)
    parser = fit(encoder, trees, plan)
    save_parser(parser, tmp_path / "p")
    again = load_parser(tmp_path / "p")
    source = BatchSource.of(encoder, trees.words, parser.scorer)
    assert parser.decode(source) == again.decode(source)
    assert again.recipe == parser.recipe
    assert again.shape == parser.shape
    np.testing.assert_array_equal(again.trained_on, parser.trained_on)
    again.check(encoder)
    again.encoder["fingerprint"] = "another"
    with refused("other-encoder"):
        again.check(encoder)


@pytest.fixture(scope="module")
def folder(resolved: Path, treebank: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "p"
    options = ["--trees", 10, "--seed", 1, "--layer", 2, "--steps", 5, "--held-out", 4]
    result = train_into(out, treebank, resolved, *options)
    assert "10 trees, 5 steps" in result.output
    f1, right, following = result.stdout.splitlines()[-3:]
    told = json.loads((out / "parser.json").read_text())["about"]
    assert re.match(r"F1 [\d.]+ \([\d.]+ to [\d.]+\) unlabelled.* on the 4 trees held out", f1)
    assert right.startswith(f"right branching {told['dev_right_branching']:.1f} on the held-out")
    assert following == f'next: attree try "A sentence." --parser {out}'
    assert "training: 5 of 5 steps" in result.stderr
    return out


def test_the_command_says_what_it_did(folder: Path):
    about = json.loads((folder / "parser.json").read_text())
    assert about["encoder"]["slug"] == "bert"
    assert about["shape"]["projection"]["layers"] == [2]
    assert about["recipe"]["objective"] == "tree_crf"
    told = about["about"]
    assert told["seed"] == 1
    assert told["trees"] == len(told["sentences"]) == 10
    assert told["dev_trees"] == 4
    assert 0 <= told["dev_f1"] <= 100
    parser = load_parser(folder)
    structure = load_parser(folder, decoder="minimum_risk")
    assert structure.threshold("chosen") == told["threshold"]
    with refused("no-threshold"):  # it was chosen for spans, not for labels
        parser.threshold("chosen")
    assert parser.threshold("0.3") == 0.3
    for wrong in ("2", "x"):
        with refused("not-a-share"):
            parser.threshold(wrong)
    assert {"attree", "torch"} <= set(told["versions"])


def test_a_parser_finds_its_encoder_by_itself(folder: Path, resolved: Path, tmp_path: Path):
    alone = shutil.copytree(folder, tmp_path / "alone")
    source = find_parser(str(alone), Overrides())
    assert source.encoder.fingerprint == ResolvedEncoder.read(resolved).fingerprint
    tree = Parser.of(source, device="cpu").parse([["the", "old", "man"]])[0]
    assert tree.status == "ok" and (0, 3) in tree.spans


def test_a_parser_of_the_same_weights_and_other_labels_is_another(folder: Path, tmp_path: Path):
    other = shutil.copytree(folder, tmp_path / "other")
    about = json.loads((other / "parser.json").read_text())
    about["shape"]["labels"]["names"] = ["", "Y"]
    (other / "parser.json").write_text(json.dumps(about))
    one, two = (find_parser(str(path), Overrides()).describe() for path in (folder, other))
    assert one["trained"] != two["trained"]


@pytest.mark.parametrize(
    ("damage", "code"),
    [("cut", "damaged-weights"), ("absent", "missing-file"), ("other shape", "damaged-weights")],
)
def test_damaged_folders_are_told(damage: str, code: str, folder: Path, tmp_path: Path):
    broken = tmp_path / "p"
    broken.mkdir()
    about = json.loads((folder / "parser.json").read_text())
    weights = (folder / "weights.safetensors").read_bytes()
    if damage == "other shape":
        about["shape"]["projection"]["layers"] = [1, 2]
    (broken / "parser.json").write_text(json.dumps(about))
    if damage != "absent":
        (broken / "weights.safetensors").write_bytes(weights[: -100 if damage == "cut" else None])
    with refused(code):
        load_parser(broken)


def test_a_folder_that_is_no_parser_is_told(tmp_path: Path):
    with refused("missing-file", file="parser.json"):
        load_parser(tmp_path)
    (tmp_path / "parser.json").write_text("{}")
    with refused("bad-form", file="parser.json"):
        load_parser(tmp_path)


def test_training_goes_on_from_a_parser_s_folder(
    folder: Path, resolved: Path, treebank: Path, tmp_path: Path
):
    train_into(tmp_path / "on", treebank, resolved, "--layer", 2, "--start", folder)
    parser = load_parser(tmp_path / "on")
    assert (parser.about["trees"], parser.about["first"]["trees"]) == (5, 10)
    assert set(load_parser(folder).trained_on) < set(parser.trained_on)
    for code, layer, start in (("other-parts", 1, folder), ("unknown-name", 2, "nowhere")):
        options = ["--layer", layer, "--start", start]
        with refused(code):
            raise train_into(tmp_path / "no", treebank, resolved, *options, ok=False).exception
    with refused("unknown-name", "nowhere"):  # by parsers too that read no start
        options = ["--parser", "span-parser", "--start", "nowhere"]
        raise train_into(tmp_path / "no", treebank, resolved, *options, ok=False).exception
    assert [one.name for one in tmp_path.iterdir()] == ["on"]


def test_unknown_parsers_are_told():
    with refused("unknown-name", "fpio"):
        recipe("nonsense")


def test_a_folder_of_others_is_never_written_to(
    folder: Path, resolved: Path, treebank: Path, tmp_path: Path
):
    mine = shutil.copytree(folder, tmp_path / "p")
    before = (mine / "parser.json").read_bytes()
    with refused("folder-exists", "--overwrite", file="p"):
        check_output(mine, overwrite=False)
    check_output(mine, overwrite=True)
    assert (mine / "parser.json").read_bytes() == before
    (mine / "thesis.txt").touch()
    with refused("foreign-folder", "thesis.txt", file="p"):
        check_output(mine, overwrite=True)
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    for name in ("weights.safetensors", ".parser.json.host-1-ab.part"):
        (unfinished / name).touch()
    check_output(unfinished, overwrite=False)
    train_into(unfinished, treebank, resolved)
    assert load_parser(unfinished).about["trees"] == 5


def test_files_have_ordinary_permissions(folder: Path):
    mask = os.umask(0)
    os.umask(mask)
    for name in ("parser.json", "weights.safetensors"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o666 & ~mask


def test_a_treebank_file_and_a_folder_of_an_encoder_will_do(
    resolved: Path, treebank: Path, tmp_path: Path
):
    mine = tmp_path / "mine.mrg"
    convert([([treebank], formats.resolve(SplitSettings(), [treebank]))], mine, "ptb")
    checkpoint = Path(json.loads(resolved.read_text())["folder"])
    train_into(tmp_path / "a", mine, checkpoint)
    train_into(tmp_path / "b", treebank, resolved)
    ours, theirs = (load_parser(tmp_path / name) for name in "ab")
    assert ours.about["data"] == theirs.about["data"]
    assert ours.encoder["fingerprint"] == theirs.encoder["fingerprint"]


def test_weights_in_half_precision_take_half_the_room(encoder, treebank: Path, tmp_path: Path):
    """They are rounded to 16 bits once, and floats of 32 again when read."""
    trees = read(treebank, range(3, 9))
    plan = TrainingPlan(RECIPES["tree-crf-labelled"], layers=(1,), steps=2)
    parser = fit(encoder, trees, plan)
    for half in (False, True):
        save_parser(parser, tmp_path / str(half), half=half)
    sizes = [(tmp_path / str(half) / WEIGHTS).stat().st_size for half in (False, True)]
    given = parser.scorer.state_dict()
    assert sizes[0] - sizes[1] == pytest.approx(2 * sum(x.numel() for x in given.values()), abs=64)
    found = load_parser(tmp_path / "True")
    for name, one in found.scorer.state_dict().items():
        assert one.dtype == torch.float32 and torch.equal(one, given[name].half().float())
    np.testing.assert_array_equal(found.trained_on, parser.trained_on)


def card_of(output: Path, treebank: Path, resolved: Path, *options: object) -> dict[str, str]:
    """Train a parser; return the facts of its card."""
    train_into(output, treebank, resolved, *options)
    text = (output / "README.md").read_text(encoding="utf-8")
    assert "Fill in." in text and "parser = Parser.load(" in text
    assert "{" not in text and "None" not in text
    return dict(re.findall(r"^\| ([A-Z][^|]*) \| (.*) \|$", text, re.MULTILINE))


def test_a_card_says_what_a_parser_is(resolved: Path, treebank: Path, tmp_path: Path) -> None:
    facts = card_of(
        tmp_path / "p", treebank, resolved, "--parser", "tree-crf-full", "--held-out", 4
    )
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
    facts = card_of(tmp_path / "p", treebank, resolved, "--parser", "tree-crf-labelled")
    assert facts["Labels"].split(", ")[0] == "X"
    assert facts["F1"].startswith("not measured")


def test_trees_to_be_evaluated_on_are_scored(
    resolved: Path, treebank: Path, tmp_path: Path
) -> None:
    (tmp_path / "t.mrg").write_text(LABELLED * 3)
    facts = card_of(tmp_path / "p", treebank, resolved, "--evaluate-on", tmp_path / "t.mrg")
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
        (LABELLED * 7, ["--trees", 40], "tree-crf-labelled"),
        (LABELLED, ["--parser", "fpio"], "fpio"),
    ],
)
def test_trees_choose_their_parser(
    resolved: Path, tmp_path: Path, trees: str, options: list[object], trained: str
) -> None:
    mine = tmp_path / ("mine.half" if "?" in trees else "mine.mrg")
    mine.write_text(trees * 6)
    facts = card_of(tmp_path / "p", mine, resolved, *options)
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
    card_of(tmp_path / "p", mine, resolved, *asked)
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
    card_of(tmp_path / "p", treebank, resolved, "--seed", 1)
    facts = card_of(tmp_path / "p", treebank, resolved, "--seed", 2, "--overwrite")
    assert "seed 2" in facts["Settings"]


def test_what_people_named_is_text(resolved: Path, treebank: Path, tmp_path: Path) -> None:
    source = tmp_path / "<b>a|b`.parquet"
    source.write_bytes(treebank.read_bytes())
    facts = card_of(tmp_path / "p", source, resolved)
    assert "&lt;b>a\\|b\\`.parquet" in facts["Trees"]


def test_a_published_parser_has_its_licence_sources_and_f1(
    resolved: Path, treebank: Path, tmp_path: Path
) -> None:
    card_of(tmp_path / "p", treebank, resolved, "--parser", "tree-crf-full")
    (tmp_path / "t.md").write_text("## F1 of mine\n\n| a |\n| --- |\n")
    made = ["--licence", "cc-by-4.0", "--sources", "- mine (CC0)", "--table", tmp_path / "t.md"]
    run("publish", tmp_path / "p", *made, "--output", tmp_path / "q")
    text = (tmp_path / "q/README.md").read_text(encoding="utf-8")
    assert "\nlicense: cc-by-4.0\n" in text and "Fill in" not in text
    assert text.index("## F1 of mine") < text.index("- mine (CC0)") < text.index("cc-by-4.0.")
    assert "| F1 | in the tables below |" in text
    for name in ("parser.json", "weights.safetensors"):
        assert (tmp_path / "q" / name).read_bytes() == (tmp_path / "p" / name).read_bytes()
    card = (tmp_path / "p/README.md").read_text(encoding="utf-8")
    began = card.replace("| First weights | of ", "| First weights | of universal, ")
    with refused("other-licence", "cc-by-sa-4.0"):
        fill_in(began, licence="cc-by-4.0", sources="mine")
    assert "license: cc-by-sa-4.0" in fill_in(began, licence="cc-by-sa-4.0", sources="mine")
    with refused("filled-in"):
        raise run("publish", tmp_path / "q", *made, "--output", tmp_path / "r", ok=False).exception
