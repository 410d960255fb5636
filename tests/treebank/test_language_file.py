"""The keys of ``language.yaml``: one definition for check, schema and help."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from attree.base.errors import AttreeError
from attree.base.settings import form_of, hints_of, meanings
from attree.cli.help import declared
from attree.cli.main import app
from attree.treebank.cleaning import POLICIES, policies
from attree.treebank.formats import FORMATS
from attree.treebank.language_file import LAYOUTS, LanguageKeys, SplitKeys, check_settings
from attree.treebank.sentence import SplitSettings

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


def _is_valid(settings: dict[str, Any]) -> bool:
    return Draft202012Validator(msgspec.json.schema(LanguageKeys)).is_valid(settings)


@given(
    st.sampled_from(
        [
            key
            for key in hints_of(LanguageKeys)
            if key not in ("encoding", "splits", "traces", "accept_loss", "format", "layout")
        ]
    ),
    _SOME,
)
def test_the_json_schema_and_the_check_accept_the_same_values(key: str, value: Any) -> None:
    if isinstance(value, float):  # JSON knows no difference between 1 and 1.0
        value += 0.25
    assert accepted({key: value}) == _is_valid({key: value})


@given(_SOME)
def test_what_the_check_accepts_of_splits_is_valid(value: Any) -> None:
    """It also wants exactly one of files and from."""
    if isinstance(value, dict) and "max_words" in value:
        value["max_words"] = 7
    one = not isinstance(value, dict) or ("files" in value) != ("from" in value)
    assert accepted({"splits": {"dev": value}}) == (one and _is_valid({"splits": {"dev": value}}))


def test_every_key_is_described() -> None:
    for kind in (LanguageKeys, SplitKeys):
        assert set(hints_of(kind)) <= set(meanings(kind))


def test_choices_come_from_their_registries() -> None:
    assert form_of(LanguageKeys, "format") == ", ".join(FORMATS)
    assert form_of(LanguageKeys, "layout") == ", ".join(LAYOUTS)
    for name, takes in POLICIES.items():
        assert (f"{name}:{takes}" if takes else name) in policies()


def test_every_setting_is_a_key_and_an_option() -> None:
    settings = {one.name for one in dataclasses.fields(SplitSettings)}
    assert settings == set(hints_of(LanguageKeys)) - {"folder", "layout", "splits"}
    options = {one.name for one in declared(app) if one.command == "treebank read"}
    keys = {
        key.removesuffix("s") if key.endswith(("_roots", "_labels")) else key for key in settings
    }
    assert {f"--{key.replace('_', '-')}" for key in keys} <= options


@pytest.mark.parametrize("key", sorted(hints_of(LanguageKeys)))
def test_help_is_one_phrase_in_plain_words(key: str) -> None:
    assert meanings(LanguageKeys)[key][-1] != "."
