"""Training, resuming, the folder, the commands, and what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.numpy import load_file, save_file

from attree.base.schemas import PARSES_SCHEMA, read_table
from attree.cli import train as command
from attree.grammar.folder import read_grammar
from attree.grammar.learning import batches, learn, read_sentences
from attree.grammar.model import Vocabulary
from attree.grammar.options import GrammarRecipe, Sizes
from attree.parsers.parser import Parser
from tests.refusals import refused
from tests.workflow.conftest import TOY, TREES

SIZES = Sizes(nonterminals=4, preterminals=6, symbol=16, latent=4, hidden=8)
RECIPE = GrammarRecipe(SIZES, epochs=4, batch=4, learning_rate=1e-2, least=1, held_out=0.1)
NOUNS = ("man", "dog", "cat", "house")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Sentences of a tiny grammar, of 5 to 8 words."""
    generator = np.random.default_rng(0)
    lines = []
    for _ in range(80):
        first, second, third = generator.choice(NOUNS, 3)
        more = f" near the {third}" if generator.random() < 0.5 else ""
        lines.append(f"the {first} saw a {second}{more}")
    path = tmp_path / "toy.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def run(
    text: Path, output: Path, recipe: GrammarRecipe = RECIPE, **more: Any
) -> list[dict[str, Any]]:
    learn([text], output, seed=0, recipe=recipe, **more)
    epochs: list[dict[str, Any]] = json.loads((output / "provenance.json").read_text())["epochs"]
    return epochs


def test_the_bound_of_sentences_held_out_improves(text: Path, tmp_path: Path) -> None:
    epochs = run(text, tmp_path / "out")
    assert [one["epoch"] for one in epochs] == [1, 2, 3, 4]
    assert epochs[-1]["held_out"] < 0.7 * epochs[0]["held_out"]
    assert all(one["reconstruction"] <= one["held_out"] for one in epochs)
    made = json.loads((tmp_path / "out/grammar.json").read_text())["provenance"]
    assert made["text"] == ["toy.txt"]
    assert made["best_epoch"] == min(epochs, key=lambda one: one["held_out"])["epoch"]
    assert not list(tmp_path.glob(".out*"))


def kill_at_the_third(text: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill a run while its third epoch is kept."""
    save = torch.save

    def kill(state: dict[str, Any], path: Path) -> None:
        save(state, path)
        if len(state["curve"]) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(torch, "save", kill)
        run(text, output)


def test_a_killed_run_ends_as_one_undisturbed(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(text, tmp_path / "whole")
    kill_at_the_third(text, tmp_path / "out", monkeypatch)
    assert not (tmp_path / "out").exists()
    (left,) = tmp_path.glob(".out*/*/checkpoint*")
    assert len(torch.load(left, weights_only=True)["curve"]) == 2
    again = run(text, tmp_path / "out")
    assert [{**one, "seconds": 0} for one in again] == [{**one, "seconds": 0} for one in whole]
    files = [tmp_path / name / "weights.safetensors" for name in ("out", "whole")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_another_run_s_checkpoint_is_not_continued(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at_the_third(text, tmp_path / "out", monkeypatch)
    with refused("other-run", file=".out.checkpoints"):
        learn([text], tmp_path / "out", seed=1, recipe=RECIPE)
    learn([text], tmp_path / "out", seed=1, recipe=RECIPE, restart=True)
    learn([text], tmp_path / "other", seed=1, recipe=RECIPE)
    files = [tmp_path / name / "weights.safetensors" for name in ("out", "other")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_seeds_differ_and_other_settings_are_not_mixed(text: Path, tmp_path: Path) -> None:
    run(text, tmp_path / "out")
    learn([text], tmp_path / "other", seed=1, recipe=RECIPE)
    files = [tmp_path / name / "weights.safetensors" for name in ("out", "other")]
    assert files[0].read_bytes() != files[1].read_bytes()
    before = files[0].stat().st_mtime_ns
    run(text, tmp_path / "out")
    assert files[0].stat().st_mtime_ns == before
    with refused("other-run", file="out"):
        learn([text], tmp_path / "out", seed=1, recipe=RECIPE)
    more = text.with_name("more.txt")
    more.write_text(f"{text.read_text()}\none more\n")
    with refused("other-run", file="out"):
        run(more, tmp_path / "out")
    learn([text], tmp_path / "out", seed=1, recipe=RECIPE, restart=True)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_text_with_other_words_is_another_run(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they have the same letters: words of punctuation, or capitals."""
    text.write_text("\n".join(text.read_text().splitlines()[:20]))
    other, once = text.with_name("other.txt"), replace(RECIPE, epochs=1)
    kill_at_the_third(text, tmp_path / "killed", monkeypatch)
    run(text, tmp_path / "out", once)
    weights = (tmp_path / "out/weights.safetensors").read_bytes()
    for pattern, words in ((r"$", " ."), (r" saw", " - saw"), (r"^the", "The")):
        other.write_text(re.sub(pattern, words, text.read_text(), flags=re.MULTILINE))
        with refused("other-run", file=".killed.checkpoints"):
            run(other, tmp_path / "killed")
        with refused("other-run", file="out"):
            run(other, tmp_path / "out", once)
    assert (tmp_path / "out/weights.safetensors").read_bytes() == weights


def test_batches_have_one_length_and_miss_no_sentence() -> None:
    generator = np.random.default_rng(0)
    sentences = [generator.integers(0, 9, n) for n in generator.integers(2, 6, 50)]
    found = [row.tolist() for batch in batches(sentences, 3) for row in batch]
    assert sorted(found) == sorted(one.tolist() for one in sentences)
    assert all(len(batch) <= 3 for batch in batches(sentences, 3))


def test_words_are_lower_case_and_numbers_alike() -> None:
    known = Vocabulary.count([["The", "12,000.5", "cats"], ["the", "3", "dogs", "3b"]], least=1)
    assert known.words == ("", "0", "the", "0b", "cats", "dogs")
    assert known.numbers(["THE", "1989", "birds"]).tolist() == [2, 1, 0]
    rare = Vocabulary.count([["a", "a", "b"]], least=2)
    assert rare.words == ("", "a")
    (pieces,) = rare.tokenise([["a", "b", "c"]])
    assert (pieces.n_words, pieces.n_unknown, pieces.too_long) == (3, 2, False)


def test_a_grammar_parses_whatever_it_is_given(text: Path, tmp_path: Path) -> None:
    run(text, tmp_path / "out")
    parser = Parser.load(str(tmp_path / "out"))
    sentences = [
        ["the", "man", "saw", "a", "dog", "near", "the", "cat"],
        [],
        ["man"],
        ["nowhere", "heard", "of"],
        ["the"] * 200,
        ["the"] * 251,
        ["the", "man"],
    ]
    trees = parser.parse(sentences)
    assert [len(tree.spans) for tree in trees] == [7, 0, 0, 2, 199, 250, 1]
    assert [tree.status for tree in trees] == ["ok"] * 5 + ["too_long", "ok"]
    assert trees[0].spans == parser.parse([sentences[0]])[0].spans
    assert parser.k_best(sentences[0], 2)[0].tree.spans == trees[0].spans
    with refused("no-association"):
        parser.association(["the", "man"])
    with refused("grammar-without-encoder", file="out"):
        Parser.load(str(tmp_path / "out"), encoder="x")


def test_marginals_pick_the_tree(text: Path, tmp_path: Path) -> None:
    """Among all trees the one that is returned has the highest sum of probabilities."""
    from tests.training import reference

    run(text, tmp_path / "out")
    parser = Parser.load(str(tmp_path / "out"))
    words = ["the", "man", "saw", "a", "dog", "near"]
    prepared = parser.prepare([words])
    likely = prepared.encode(prepared.batches[0]).likely[0]
    best = max(sum(likely[span] for span in tree) for tree in reference.trees(0, len(words)))
    (tree,) = parser.parse([words])
    assert sum(likely[span] for span in tree.spans) == pytest.approx(best)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("one\ntwo\n", "too-few-sentences 2 40 0"),
        ("a b\n" + "word\n" * 30, "too-few-sentences 1"),
        ("", "no-text"),
    ],
)
def test_too_little_text(tmp_path: Path, lines: str, said: str) -> None:
    path = tmp_path / "few.txt"
    path.write_text(lines)
    with refused(*said.split()):
        learn([path], tmp_path / "out", seed=0, recipe=RECIPE)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.4, 0.45])
def test_the_share_asked_for_is_held_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], share: float
) -> None:
    (tmp_path / "some.txt").write_text("one two three\n" * 200)
    learn(
        [tmp_path / "some.txt"],
        tmp_path / "out",
        seed=0,
        recipe=replace(RECIPE, epochs=1, held_out=share),
    )
    numbers = re.findall(r"[\d,]+", capsys.readouterr().err)
    assert numbers[:2] == [str(round(200 * (1 - share))), str(round(200 * share))]


def test_bad_input(text: Path, tmp_path: Path) -> None:
    with refused("bad-share"):
        GrammarRecipe(SIZES, held_out=0.0)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 noir\n")
    with refused("encoding", "UTF-8", file="latin.txt", line=1):
        read_sentences([tmp_path / "latin.txt"])
    with refused("missing-file", file="none.txt"):
        read_sentences([tmp_path / "none.txt"])
    pq.write_table(pa.table({"epoch": [1]}), tmp_path / "other.parquet")
    with refused("no-column", file="other.parquet"):
        read_sentences([tmp_path / "other.parquet"])
    other = tmp_path / "mine"
    other.mkdir()
    (other / "notes").write_text("mine")
    with refused("foreign-output", file="mine"):
        learn([text], other, seed=0, recipe=RECIPE)
    assert (other / "notes").read_text() == "mine"


def test_damaged_folders(text: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run(text, folder)
    weights, about = folder / "weights.safetensors", folder / "grammar.json"
    whole, described = weights.read_bytes(), json.loads(about.read_text())
    tensors = {name: tensor.copy() for name, tensor in load_file(weights).items()}
    weights.write_bytes(whole[:-9])
    with refused("damaged-weights", file="weights.safetensors"):
        read_grammar(folder)
    tensors["root_symbol"][:] = np.nan
    save_file(tensors, weights)
    with refused("not-finite", file="weights.safetensors"):
        read_grammar(folder)
    weights.write_bytes(whole)
    for change, said in (
        ({"sizes": {**described["sizes"], "hidden": 9}}, "damaged-weights"),
        ({"sizes": {**described["sizes"], "hidden": 10**9}}, "bad-form sizes.hidden"),
        ({"sizes": {**described["sizes"], "symbol": 10_000}}, "damaged-weights"),
        ({"words": described["words"][1:]}, "bad-form words"),
        ({"words": [*described["words"], "the"]}, "bad-form words"),
        ({"words": 3}, "bad-form words"),
    ):
        about.write_text(json.dumps({**described, **change}))
        with refused(*said.split()):
            read_grammar(folder)
    weights.unlink()
    about.write_text(json.dumps(described))
    with refused("missing-file", file="weights.safetensors"):
        Parser.load(str(folder))


_SIZES = {field.name for field in fields(Sizes)}
SMALL = GrammarRecipe(
    sizes=Sizes(**{key: value for key, value in TOY.items() if key in _SIZES}),
    **{key: TOY[key] for key in ("epochs", "least", "held_out")},
)


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    path = tmp_path / "mine.mrg"
    path.write_text(TREES, encoding="utf-8")
    return path


def test_from_a_treebank_to_parses(trees: Path, tmp_path: Path) -> None:
    command.train([trees], output=tmp_path / "out", threads=1, recipe=SMALL)
    parses = tmp_path / "parses.parquet"
    command.parse([trees], grammar=tmp_path / "out", output=parses)
    table, about = read_table(parses, schema=PARSES_SCHEMA)
    assert table["status"].to_pylist() == ["ok"] * 6
    for n, starts in zip(*(table[key].to_pylist() for key in ("n_words", "starts")), strict=True):
        assert len(starts) == n - 1
    assert about["selection"] == "words of mine (no trees, seed 0)"
    assert about["language"] == "mine"


def test_text_and_trees_are_read_together(
    trees: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "more.txt").write_text("a cat slept\na cat slept\nyes\n", encoding="utf-8")
    both = [trees, tmp_path / "more.txt"]
    command.train(both, output=tmp_path / "out", threads=1, recipe=SMALL)
    told = re.search(
        r"(\d+) sentences to .* and (\d+) held out, (\d+) that", capsys.readouterr().err
    )
    assert told and sum(map(int, told.groups())) == 6 + 3 and told[3] == "1"
    said = (tmp_path / "out/grammar.json").read_text(encoding="utf-8")
    assert '"slept"' in said and '"more.txt"' in said


def test_lines_that_are_passed_over_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, fine = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_bytes(b"the cat\nb\x07ll\n\n\x1b[0m\nthe dog\n")
    fine.write_text("the man\n")
    sentences, names = read_sentences([path, fine])
    assert sentences == [["the", "cat"], ["the", "dog"], ["the", "man"]]
    assert names == ["a.txt", "b.txt"]
    (told,) = capsys.readouterr().err.splitlines()
    assert re.findall(r"\d+", told) == ["2"] and told.endswith("control")


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    with refused("missing-file", file="none.mrg"):
        command.train([tmp_path / "none.mrg"], output=tmp_path / "out")
    with refused("missing-file", file="grammar.json"):
        command.parse(
            [tmp_path / "x.parquet"], grammar=tmp_path / "none", output=tmp_path / "y.parquet"
        )
