"""Tuning tiny checkpoints: loss, resumption, provenance, and what may not be done."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer, TrainerState

from attree.encoder import masked_lm, tuning
from attree.encoder.load import load_encoder
from attree.encoder.source import EncoderSource, ResolvedEncoder, resolve
from attree.encoder.tuning import TuningRecipe, tune
from attree.parsers.parser import Parser
from tests.command_line import attree
from tests.encoder.checkpoints import TEXT, headed, headless
from tests.refusals import refused

RECIPE = TuningRecipe(epochs=4, batch=8, learning_rate=3e-3, length=32, head_steps=6)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A repetitive little corpus."""
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXT * 8), encoding="utf-8")
    return path


def run(encoder: ResolvedEncoder, text: Path, output: Path, **changes: Any) -> dict[str, Any]:
    """Tune on a CPU and return the provenance."""
    named: dict[str, Any] = {"seed": 1, "recipe": RECIPE, **changes}
    tune(encoder, [text], output, device="cpu", **named)
    found: dict[str, Any] = json.loads((output / "provenance.json").read_text())
    return found


@pytest.fixture
def bert(tmp_path: Path) -> ResolvedEncoder:
    """A checkpoint with a language-model head."""
    return headed("bert", tmp_path / "base")


def weights_of(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def kill_while_saving(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Let the run die when the checkpoint of ``step`` is written but for the Trainer's state."""
    write = TrainerState.save_to_json

    def save(state: TrainerState, path: str) -> None:
        if state.global_step == step:
            raise KeyboardInterrupt
        write(state, path)

    monkeypatch.setattr(TrainerState, "save_to_json", save)


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "modernbert", "ernie"])
def test_the_loss_falls_on_a_repetitive_corpus(family: str, text: Path, tmp_path: Path) -> None:
    made = run(headed(family, tmp_path / "base"), text, tmp_path / "out")
    losses = [entry["loss"] for entry in made["curve"]]
    steps = [entry["step"] for entry in made["curve"]]
    assert steps == [epoch * steps[0] for epoch in range(1, 1 + RECIPE.epochs)]
    assert losses[-1] < 0.9 * losses[0]
    assert made["new_head"] is False


def test_warming_up_a_new_head_changes_no_weight_of_the_encoder(text: Path, tmp_path: Path) -> None:
    encoder = headless("bert", tmp_path / "base")
    before = load_file(tmp_path / "base" / "model.safetensors")
    run(encoder, text, tmp_path / "out", recipe=replace(RECIPE, epochs=1, learning_rate=0.0))
    after = load_file(tmp_path / "out" / "model.safetensors")
    shared = [name for name in before if "pooler" not in name]
    assert all(torch.equal(before[name], after[f"bert.{name}"]) for name in shared)
    new, _ = masked_lm.load_for_masking(tmp_path / "base", seed=1)
    changed = new.get_parameter("cls.predictions.transform.dense.weight")
    assert not torch.equal(changed, after["cls.predictions.transform.dense.weight"])


@pytest.mark.parametrize(("make", "step"), [(headless, 5), (headless, 10), (headed, 20)])
def test_a_killed_run_continues_and_ends_as_one_undisturbed(
    make: Any, step: int, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, out = make("bert", tmp_path / "base"), tmp_path / "out"
    whole = run(encoder, text, tmp_path / "whole")
    with monkeypatch.context() as dying, pytest.raises(KeyboardInterrupt):
        kill_while_saving(dying, step)
        run(encoder, text, out)
    assert not out.exists()
    assert next(tmp_path.glob(f".out*/tuning/checkpoint-{step}")).exists()  # cut short
    steps: list[int] = []
    monkeypatch.setattr(
        masked_lm._Progress, "on_step_end", lambda *given, **_: steps.append(given[2].global_step)
    )
    assert run(encoder, text, out) == whole
    assert steps[-20:] == list(range(step - 4, 21))[-20:]
    assert whole["new_head"] is (make is headless)
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not list(tmp_path.glob(".out*"))


def test_a_run_killed_before_its_result_is_written_trains_no_more(
    bert: ResolvedEncoder, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(bert, text, tmp_path / "whole")
    with monkeypatch.context() as dying, pytest.raises(KeyboardInterrupt):
        dying.setattr(tuning, "whole_folder", Mock(side_effect=KeyboardInterrupt))
        run(bert, text, tmp_path / "out")
    monkeypatch.setattr(masked_lm._Trainer, "training_step", Mock(side_effect=AssertionError))
    assert run(bert, text, tmp_path / "out") == whole


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth"])
def test_no_code_of_a_checkpoint_is_run(
    name: str, bert: ResolvedEncoder, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dying, pytest.raises(KeyboardInterrupt):
        kill_while_saving(dying, 10)
        run(bert, text, tmp_path / "out")
    (checkpoint,) = tmp_path.glob(".out*/tuning/checkpoint-5")
    for file in (name, "training_args.bin"):
        torch.save(Evil(tmp_path / "evil"), checkpoint / file)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        run(bert, text, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "evil").exists()


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.full
def test_kill_9(bert: ResolvedEncoder, text: Path, tmp_path: Path) -> None:
    bert.write(tmp_path / "base.json")
    command = ["tune", "--encoder", tmp_path / "base.json", "--text", text, "--device", "cpu"]
    command += ["--seed", "1", "--output"]
    program = [sys.executable, "-m", "attree.cli.main", "encoder", *map(str, command)]
    # by a process of its own too: on some processors the number of threads decides the last bits
    subprocess.run([*program, tmp_path / "whole"], check=True)
    program.append(str(tmp_path / "out"))
    first = subprocess.Popen(program)
    while not list(tmp_path.glob(".out*/*/checkpoint-*")):
        assert first.poll() is None
        time.sleep(0.01)
    first.kill()
    first.wait()
    assert not (tmp_path / "out").exists()
    subprocess.run(program, check=True)
    out, whole = (
        json.loads((tmp_path / name / "provenance.json").read_text()) for name in ("out", "whole")
    )
    assert out == whole
    assert weights_of(tmp_path / "out") == weights_of(tmp_path / "whole")


def test_the_result_is_an_encoder(text: Path, tmp_path: Path) -> None:
    base = headless("bert", tmp_path / "base")
    made = run(base, text, tmp_path / "out")
    assert made["new_head"] is True
    assert made["base"]["fingerprint"] == base.fingerprint
    assert made["settings"]["seed"] == 1
    assert made["settings"]["recipe"]["epochs"] == RECIPE.epochs
    assert made["data"]["text"]["lines"] == 40
    tuned = resolve(EncoderSource(slug="tuned", kind="path", id=str(tmp_path / "out")))
    assert tuned.fingerprint != base.fingerprint
    encoder = load_encoder(tuned, device="cpu")
    pieces = encoder.tokenise([["the", "old", "man"]])
    assert encoder.run(pieces, heads=[(1, 0)]).attention.shape == (1, 1, 3, 3)
    model = AutoModel.from_pretrained(tmp_path / "out")
    saved = load_file(tmp_path / "out" / "model.safetensors")
    embeddings = model.get_input_embeddings().weight
    assert torch.equal(embeddings, saved["bert.embeddings.word_embeddings.weight"])
    parser = Parser.load("upio", encoder=str(tmp_path / "out"), heads="list:1.0", device="cpu")
    (tree,) = parser.parse([["the", "old", "man", "walked"]])
    assert (len(tree.spans), tree.status) == (3, "ok")


def test_an_encoder_tuned_twice_keeps_its_mark(text: Path, tmp_path: Path) -> None:
    run(headless("bert", tmp_path / "base"), text, tmp_path / "once")
    once = resolve(EncoderSource(slug="once", kind="path", id=str(tmp_path / "once")))
    twice = run(once, text, tmp_path / "twice")
    assert twice["new_head"] is True


def test_seeds_differ_and_a_seed_repeats(text: Path, tmp_path: Path) -> None:
    encoder = headed("distilbert", tmp_path / "base")
    weights = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(encoder, text, tmp_path / name, seed=seed)
        weights.append(weights_of(tmp_path / name))
    assert weights[0] == weights[1] != weights[2]


def test_an_output_is_made_once_and_never_overwritten(
    bert: ResolvedEncoder, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, mine = tmp_path / "out", tmp_path / "mine"
    run(bert, text, out)
    at = (out / "model.safetensors").stat().st_mtime_ns
    run(bert, text, out)
    assert "this run is finished" in capsys.readouterr().err
    assert (out / "model.safetensors").stat().st_mtime_ns == at
    with refused("other-run", file="out"):
        run(bert, text, out, seed=2)
    run(bert, text, out, seed=2, restart=True)
    assert (out / "model.safetensors").stat().st_mtime_ns != at
    assert [path.name for path in tmp_path.glob(".out*")] == []
    mine.mkdir()
    (mine / "thesis.tex").write_text("irreplaceable")
    with refused("foreign-output", file="mine"):
        run(bert, text, mine, restart=True)


def test_checkpoints_of_another_run_are_not_gone_on_with(
    bert: ResolvedEncoder, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dying, pytest.raises(KeyboardInterrupt):
        kill_while_saving(dying, 10)
        run(bert, text, tmp_path / "out")
    with refused("other-run", file=".out.checkpoints"):
        run(bert, text, tmp_path / "out", recipe=replace(RECIPE, epochs=5))
    short = replace(RECIPE, epochs=1)
    run(bert, text, tmp_path / "out", recipe=short, restart=True)
    run(bert, text, tmp_path / "new", recipe=short)
    assert weights_of(tmp_path / "out") == weights_of(tmp_path / "new")


def test_a_loss_that_is_not_a_number_stops_the_run(
    bert: ResolvedEncoder, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = masked_lm.Masking.torch_mask_tokens
    drawn = iter(range(100))

    def broken(masking: Any, inputs: Any, *more: Any, **named: Any) -> Any:
        masked, labels = real(masking, inputs, *more, **named)
        return masked, torch.full_like(labels, -100) if next(drawn) == 6 else labels

    monkeypatch.setattr(masked_lm.Masking, "torch_mask_tokens", broken)
    with refused("loss-not-finite", "7"):
        run(bert, text, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_too_little_text(bert: ResolvedEncoder, text: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.txt"
    few.write_text("the old man\nthe harbour\n")
    with refused("too-little-text"):
        run(bert, few, tmp_path / "out")
    run(bert, text, tmp_path / "out")  # nothing was begun that would be in the way


def test_a_tokeniser_of_another_model(bert: ResolvedEncoder, text: Path, tmp_path: Path) -> None:
    tokeniser = AutoTokenizer.from_pretrained(bert.folder)
    tokeniser.add_tokens([f"zz{number}" for number in range(400)])
    tokeniser.save_pretrained(bert.folder)
    encoder = resolve(EncoderSource(slug="odd", kind="path", id=bert.folder))
    with refused("piece-count", file="base"):
        run(encoder, text, tmp_path / "out")


def test_a_device_that_is_not_there(bert: ResolvedEncoder, text: Path, tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    with refused("no-device"):
        tune(bert, [text], tmp_path / "out", seed=0, recipe=RECIPE, device="cuda")


def test_the_command_takes_a_folder_or_a_description(
    bert: ResolvedEncoder, text: Path, tmp_path: Path
) -> None:
    bert.write(tmp_path / "base.json")
    weights = []
    for encoder in ("base", "base.json"):
        output = tmp_path / f"of-{encoder}"
        words = ["encoder", "tune", "--encoder", tmp_path / encoder, "--text", text]
        words += ["--output", output, "--epochs", 1, "--batch", 8, "--device", "cpu"]
        done = attree(*words)
        assert done.status == 0, done.err
        weights.append(weights_of(output))
    assert weights[0] == weights[1]
