"""Finding encoders, and one clear line for each that cannot be used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attree.encoder import source as sources
from attree.encoder.load import load_encoder
from attree.encoder.source import EncoderSource, ResolvedEncoder, find_encoder, resolve
from tests.command_line import attree
from tests.encoder.checkpoints import at, edit
from tests.refusals import refused


def test_the_description_is_written_and_read_back(checkpoint: Path, tmp_path: Path) -> None:
    found = resolve(at(checkpoint))
    assert (found.family, found.n_layers, found.n_heads) == ("bert", 3, 4)
    assert (found.hidden_size, found.max_pieces, found.revision) == (32, 64, None)
    found.write(tmp_path / "tiny.json")
    assert ResolvedEncoder.read(tmp_path / "tiny.json") == found


def test_an_encoder_is_found_by_every_name_that_a_user_may_give(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = resolve(at(checkpoint)).fingerprint
    resolve(at(checkpoint)).write(tmp_path / "results/encoders/mine.json")
    shutil.copytree(checkpoint, tmp_path / "site/my_encoder/model")
    imported = "raise RuntimeError('a package is looked up and not imported')"
    (tmp_path / "site/my_encoder/__init__.py").write_text(imported)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    names = ("results/encoders/mine.json", "checkpoint", checkpoint, "mine", "my-encoder")
    assert {find_encoder(name).fingerprint for name in names} == {wanted}
    assert load_encoder(find_encoder("mine"), device="cpu").fingerprint == wanted
    for name, says in (("min", "unknown-encoder min"), ("no/such", "no-hub no/such")):
        with refused(*says.split()):
            find_encoder(name)


def test_the_tokenisers_own_limit_counts(checkpoint: Path) -> None:
    edit(checkpoint, "tokenizer_config.json", model_max_length=20)
    assert resolve(at(checkpoint)).max_pieces == 20


def test_the_fingerprint_is_of_contents_and_not_of_places(bert: Path, checkpoint: Path) -> None:
    assert resolve(at(bert)).fingerprint == resolve(at(checkpoint)).fingerprint
    edit(checkpoint, layer_norm_eps=1e-7)
    assert resolve(at(bert)).fingerprint != resolve(at(checkpoint)).fingerprint


def test_a_changed_checkpoint_is_not_loaded(checkpoint: Path) -> None:
    found = resolve(at(checkpoint))
    os.utime(checkpoint / "config.json", (1, 1))
    load_encoder(found, device="cpu")  # touched, and the same
    edit(checkpoint, layer_norm_eps=1e-3)
    with refused("encoder-changed", file="checkpoint"):
        load_encoder(found, device="cpu")


def cut_short(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "missing-folder"),
        (without("config.json"), "missing-config"),
        (lambda f: (f / "config.json").write_text("{"), "not-json"),
        (lambda f: (f / "config.json").write_text("[]"), "bad-form"),
        (without("model.safetensors"), "no-safetensors"),
        (pickled, "no-safetensors pytorch_model.bin"),
        (without("tokenizer.json"), "no-tokeniser"),
        (lambda f: edit(f, num_attention_heads=None), "no-attention"),
        (lambda f: edit(f, model_type=None), "no-model-type"),
        (cut_short, "unloadable"),
        (lambda f: edit(f, num_hidden_layers=4), "lacking-weights 16"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    checkpoint: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(checkpoint)
    with refused(*message.split()) as caught:
        load_encoder(resolve(at(checkpoint)), device="cpu")
    assert "\n" not in str(caught.value) and str(checkpoint) in str(caught.value)


def test_heads_and_layers_that_do_not_exist(bert: Path) -> None:
    encoder = load_encoder(resolve(at(bert)), device="cpu")
    batch = encoder.tokenise([["cat"]])
    with refused("no-such-head", "3.0", "0", "2", "3"):
        encoder.run(batch, heads=[(3, 0)])
    with refused("no-such-layer", "4"):
        encoder.run(batch, states=[4])


def test_unknown_kinds_and_absent_packages() -> None:
    with refused("unknown-name", "of"):
        resolve(EncoderSource("tiny", "ftp", "x"))
    with refused("not-installed"):
        resolve(EncoderSource("tiny", "package", "no-such-encoder"))
    with refused("unknown-name", "int8"):
        resolve(EncoderSource("tiny", "path", "x", dtype="int8"))


def test_the_hub_offline_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "attree.cli.main", "encoder", "resolve", "--slug", "bert"]
    command += ["--hub", "someone/absent-model", "--output", str(tmp_path / "bert.json")]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "cannot be reached" in done.stderr
    assert not (tmp_path / "bert.json").exists()


class Hub:
    """A hub that serves one checkpoint from its cache, at whatever commit it is now at."""

    def __init__(self, checkpoint: Path, cache: Path) -> None:
        self.checkpoint, self.cache, self.commit = checkpoint, cache, "a" * 40

    def download(self, _: str, revision: str | None, **__: Any) -> str:
        folder = self.cache / (revision or self.commit)
        if not folder.exists():
            shutil.copytree(self.checkpoint, folder)
        return str(folder)


@pytest.fixture
def fake_hub(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    served = Hub(checkpoint, tmp_path / "snapshots")
    monkeypatch.setattr("huggingface_hub.snapshot_download", served.download)
    monkeypatch.setattr(sources, "_current_revision", lambda _: served.commit)
    return served


def test_the_first_run_records_the_revision_and_a_later_change_is_refused(
    fake_hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "bert.revision.json"
    wanted = EncoderSource("bert", "hub", "someone/bert")
    assert resolve(wanted, record=record).revision == "a" * 40
    assert resolve(wanted, record=record).revision == "a" * 40
    fake_hub.commit = "b" * 40
    with refused("revision-changed", file="bert.revision.json"):
        resolve(wanted, record=record)
    with monkeypatch.context() as offline:  # no news from the hub: the recorded one stands
        offline.setattr(sources, "_current_revision", lambda _: None)
        assert resolve(wanted, record=record).revision == "a" * 40
    pinned = EncoderSource("bert", "hub", "someone/bert", revision="b" * 40)
    assert resolve(pinned, record=record).revision == "b" * 40
    record.unlink()
    assert resolve(wanted, record=record).revision == "b" * 40


def test_a_hub_encoder_resolved_elsewhere_is_fetched_at_its_revision(fake_hub: Hub) -> None:
    found = resolve(EncoderSource("bert", "hub", "someone/bert"))
    shutil.rmtree(found.folder)
    fake_hub.commit = "b" * 40
    assert load_encoder(found, device="cpu").fingerprint == found.fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "has no source"),
        (["--path", "x", "--package", "y"], "--path and --package exclude each other"),
        (["--path", "x", "--revision", "z"], "--revision has no effect without --hub"),
    ],
)
def test_the_command_wants_one_source(options: list[str], message: str, tmp_path: Path) -> None:
    done = attree("encoder", "resolve", "--slug", "x", "--output", tmp_path / "x.json", *options)
    assert done.status in (1, 2) and message in done.err
