"""The keys of ``language.yaml``: one definition for check, schema and help."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from attree.cli import app
from attree.errors import AttreeError
from attree.option_table import declared
from attree.treebank.cleaning import POLICIES, policies
from attree.treebank.formats import FORMATS
from attree.treebank.language_file import (
    LANGUAGE_KEYS,
    LAYOUTS,
    SPLIT_KEYS,
    check_settings,
    language_schema,
)
from attree.treebank.sentence import Settings

_SOME = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 3), st.floats(0, 2), st.sampled_from(
        ["", " ", "ptb", "keep", "drop:", "drop:X", "drop: ", "undo", "lift", "dependency", "utf-8",
         "spmrl", "conllu", *FORMATS, *LAYOUTS, *POLICIES]
    ), st.lists(st.sampled_from(["a", "", 1]), max_size=2),
    st.dictionaries(st.sampled_from(["files", "from", "max_words", "x"]), st.just("a"), max_size=2),
)  # fmt: skip


def accepted(settings: dict[str, Any]) -> bool:
    try:
        check_settings(settings, "here")
    except AttreeError as error:
        assert "\n" not in str(error)
        return False
    return True


@given(
    st.sampled_from([key for key in LANGUAGE_KEYS if key not in ("encoding", "splits", "traces")]),
    _SOME,
)
def test_the_schema_and_the_check_accept_the_same_values(key: str, value: Any) -> None:
    schema = Draft202012Validator(language_schema())
    if isinstance(value, float):  # JSON knows no difference between 1 and 1.0
        value += 0.25
    assert accepted({key: value}) == schema.is_valid({key: value})


@given(_SOME)
def test_the_schema_and_the_check_accept_the_same_splits(value: Any) -> None:
    schema = Draft202012Validator(language_schema())
    if isinstance(value, dict) and "max_words" in value:
        value["max_words"] = 7
    assert accepted({"splits": {"dev": value}}) == schema.is_valid({"splits": {"dev": value}})


def test_the_schema_is_strict_and_describes_every_key() -> None:
    schema = language_schema()
    Draft202012Validator.check_schema(schema)
    split = schema["properties"]["splits"]["additionalProperties"]["anyOf"][1]
    for part, keys in [(schema, LANGUAGE_KEYS), (split, SPLIT_KEYS)]:
        assert part["additionalProperties"] is False
        assert set(part["properties"]) == set(keys)
        assert all(one["description"] for one in part["properties"].values())


def test_choices_come_from_their_registries() -> None:
    properties = language_schema()["properties"]
    assert properties["format"]["enum"] == list(FORMATS)
    assert properties["layout"]["enum"] == list(LAYOUTS)
    for name, one in POLICIES.items():
        assert f"{name}:{one.takes}" if one.takes else name in policies()


def test_every_setting_is_a_key_and_an_option() -> None:
    settings = {one.name for one in dataclasses.fields(Settings)}
    assert settings == set(LANGUAGE_KEYS) - {"folder", "layout", "splits"}
    options = {one.name for one in declared(app) if one.command == "treebank read"}
    keys = {
        key.removesuffix("s") if key.endswith(("_roots", "_labels")) else key for key in settings
    }
    assert {f"--{key.replace('_', '-')}" for key in keys} <= options


@pytest.mark.parametrize("key", sorted(LANGUAGE_KEYS))
def test_help_is_one_phrase_in_plain_words(key: str) -> None:
    assert LANGUAGE_KEYS[key].sets[-1] != "."
