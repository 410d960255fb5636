"""Speeds of parsers side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from attree.base.files import write_json
from attree.base.reading import read_json
from attree.cli.decode import speed_command
from tests.association.conftest import MakeTable, encoder, make_table
from tests.refusals import refused

__all__ = ["encoder", "make_table"]


@pytest.fixture
def selection(tmp_path: Path) -> Path:
    path = tmp_path / "upio.json"
    how = {"association": "raw", "score": "inside_outside", "decoder": "chart"}
    write_json(path, {"heads": [[0, 1], [2, 3]], **how})
    return path


def test_every_parser_has_its_speed(
    make_table: MakeTable, encoder, selection: Path, tmp_path: Path
) -> None:
    description, output = tmp_path / "bert.json", tmp_path / "speed.json"
    encoder.write(description)
    names = ["one", "two"]
    given = [f"{name}={selection}" for name in names]
    speed_command([make_table()], parser=given, encoder=description, output=output, first=4)
    found = read_json(output, what="speeds")
    assert (found["language"], found["split"], found["sentences"]) == ("english", "dev", 4)
    assert list(found["sentences_a_second"]) == names
    assert min(found["sentences_a_second"].values()) > 0


@pytest.mark.parametrize("given", [["upio"], ["a=x", "a=y"], ["a="]])
def test_parsers_without_a_path_or_of_one_name_are_one_line(
    make_table: MakeTable, given: list[str], tmp_path: Path
) -> None:
    with refused("bad-option", "NAME=PATH"):
        speed_command(
            [make_table()], parser=given, encoder=tmp_path / "e.json", output=tmp_path / "out.json"
        )
    assert not (tmp_path / "out.json").exists()
