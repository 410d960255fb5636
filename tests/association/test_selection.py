from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from attree.association.columns import heads_key, read_selection
from attree.association.selection import HeadSelection
from tests.refusals import refused

F1 = np.array([[20.0, 31.0, 30.0], [31.0, 45.5, 12.0]])


@pytest.mark.parametrize(
    ("text", "heads"),
    [
        ("all", [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]),
        ("best", [(1, 1)]),
        ("best:1", [(1, 1)]),
        ("best:2", [(0, 1), (1, 1)]),  # a tie goes to the lower layer
        ("best:3", [(0, 1), (1, 0), (1, 1)]),
        ("above:30", [(0, 1), (1, 0), (1, 1)]),  # above, not at
        ("above:31.5", [(1, 1)]),
        ("list:1.2,0.0, 1.2", [(0, 0), (1, 2)]),
    ],
)
def test_heads_chosen(text: str, heads: list[tuple[int, int]]) -> None:
    assert HeadSelection.parse(text).apply(F1) == heads


@pytest.mark.parametrize(
    "text", ["all", "best:1", "best:10", "above:30", "above:12.5", "list:1.7,0.11"]
)
def test_the_text_form_is_read_back(text: str) -> None:
    assert HeadSelection.parse(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "any",
        "all:3",
        "best:0",
        "best:x",
        "best:-1",
        "above",
        "above:",
        "list",
        "list:7",
        "list:1.7,",
        "list:1.-7",
    ],
)
def test_what_is_no_selection_is_one_line(text: str) -> None:
    with refused("bad-selection"):
        HeadSelection.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("above:60", "no-head-above 60 1.1 45.50"),
        ("best:7", "too-few-heads 7 6"),
        ("list:2.0", "no-such-head 2.0 1 2"),
        ("list:0.3", "no-such-head 0.3"),
    ],
)
def test_what_cannot_be_chosen_is_one_line(text: str, message: str) -> None:
    with refused(*message.split()):
        HeadSelection.parse(text).apply(F1)


def test_a_set_of_heads_has_one_name() -> None:
    assert heads_key([(2, 8), (1, 10), (1, 7), (2, 8)]) == "1.7+1.10+2.8"


@pytest.mark.parametrize("content", [[], {}, {"heads": []}, {"heads": [[1]]}, {"heads": "1.7"}])
def test_a_file_that_is_no_selection_is_one_line(content: object, tmp_path: Path) -> None:
    file = tmp_path / "selection.json"
    file.write_text(json.dumps(content))
    with refused("bad-form", file="selection.json"):
        read_selection(file)
