"""What reaches a terminal."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from attree.base.text import in_json


@given(st.dictionaries(st.text(), st.text()), st.sampled_from([None, 2]))
def test_json_is_the_same_value_in_printable_characters(value: object, indent: int | None) -> None:
    text = in_json(value, indent=indent)
    assert json.loads(text) == value
    text.encode("utf-8")


def test_json_has_letters_as_they_are_and_no_control_character() -> None:
    assert in_json(["hún 中 ✓"]) == '["hún 中 ✓"]'
    assert in_json(["\x1b\x9b\u202e\ud800\n"]) == r'["\u001b\u009b\u202e\ud800\n"]'
