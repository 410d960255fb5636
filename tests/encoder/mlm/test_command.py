"""The two commands, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cyclopts import CycloptsError

from attree.cli import app
from tests.command_line import CliRunner
from tests.encoder.mlm.conftest import headed


def call(*arguments: object) -> None:
    result = CliRunner().invoke(app, ["encoder", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output


def test_tune_takes_a_folder_or_a_description(text: Path, tmp_path: Path) -> None:
    encoder = headed("bert", tmp_path / "base")
    encoder.write(tmp_path / "base.json")
    short = ("--epochs", 1, "--batch", 8, "--device", "cpu")
    call("tune", "--encoder", tmp_path / "base", "--text", text, "--output", tmp_path / "a", *short)
    from_json = tmp_path / "base.json"
    call("tune", "--encoder", from_json, "--text", text, "--output", tmp_path / "b", *short)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in "ab"]
    assert weights[0] == weights[1]


def test_pretrain_counts_steps_or_tokens(text: Path, tmp_path: Path) -> None:
    small = ("--layers", 1, "--layer-heads", 2, "--hidden", 8, "--vocabulary", 100, "--length", 16)
    more = ("--batch", 4, "--held-out-share", 0.1, "--device", "cpu")
    call("pretrain", text, "--output", tmp_path / "a", *small, *more, "--tokens", 130)
    made = json.loads((tmp_path / "a" / "provenance.json").read_text())
    assert made["settings"]["recipe"]["steps"] == 3
    with pytest.raises(CycloptsError, match="exclude each other"):
        call("pretrain", text, "--output", tmp_path / "b", "--steps", 3, "--tokens", 130)
