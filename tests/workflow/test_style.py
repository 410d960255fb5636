"""The workflow's own style: formatted, linted, small, and without logic in the Snakefile."""

from __future__ import annotations

import inspect
import itertools
import re
from pathlib import Path

import msgspec
import pytest
import yaml

from attree.plan import inputs
from attree.plan.configuration import Configuration
from attree.plan.jobs import Experiments
from attree.treebank.language import NAME
from tests.workflow.conftest import ROOT, Checkout

RULES = sorted((ROOT / "workflow/rules").glob("*.smk"))
STAGES = ("treebanks", "encoders", "attention", "heads", "parses", "scores", "tables", "figures")


def test_lint(checkout: Checkout) -> None:
    ran = checkout.snakemake("--lint")
    assert ran.status == 0, ran.text


def test_snakefile_is_short_and_without_logic() -> None:
    lines = (ROOT / "Snakefile").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 45
    assert not [line for line in lines if re.match(r"\s*(def|if|for|while|lambda)\b", line)]


def test_a_file_of_rules_for_each_stage() -> None:
    assert {path.stem for path in RULES} >= {*STAGES, "common"}
    text = (ROOT / "Snakefile").read_text(encoding="utf-8")
    included = re.findall(r'include: "workflow/rules/(\w+)\.smk"', text)
    assert included[0] == "common"
    assert set(included) == {path.stem for path in RULES}


@pytest.mark.parametrize("profile", ["local", "slurm"])
def test_a_profile_names_rules_that_there_are_and_explains_every_setting(profile: str) -> None:
    text = (ROOT / "workflow/profiles" / profile / "config.yaml").read_text(encoding="utf-8")
    for before, line in itertools.pairwise(text.splitlines()):
        if re.match(r"[a-z]", line):
            assert before.startswith("#"), f"{profile}: no comment above {line!r}"
    settings = yaml.safe_load(text)
    every = "\n".join(path.read_text(encoding="utf-8") for path in RULES)
    rules = set(re.findall(r"^(?:use rule \w+ as|rule) (\w+)", every, re.MULTILINE))
    for key in ("set-threads", "set-resources"):
        assert set(settings.get(key, {})) <= rules, key


def test_every_setting_of_config_has_a_comment() -> None:
    lines = (ROOT / "config.yaml").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if re.match(r"[a-z]\w*:", line):
            after = lines[number + 1 : number + 2]
            commented = lines[number - 1].startswith("#") or re.match(r"\s+#", "".join(after))
            assert commented, f"config.yaml: no comment beside {line!r}"


#: Parameters that are options already quoted, by :func:`attree.plan.plan.as_options` and its like.
QUOTED = {"arguments", "heads", "options", "recipe", "selection", "source"}


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_rules_are_plain_and_quote_what_reaches_a_shell(path: Path) -> None:
    """Functions live in common.smk only, and Slurm is left to its profile."""
    text = path.read_text(encoding="utf-8")
    assert "slurm_" not in text
    assert "lambda" not in text
    if path.stem != "common":
        assert not re.search(r"^\s*def ", text, re.MULTILINE)
    shells = re.findall(r"^    shell:\n((?:        .*\n?)+)", text, re.MULTILINE)
    assert len(shells) == len(re.findall(r"^    shell:", text, re.MULTILINE))
    # of one content whatever made it, an empty file is as it was to a run that was cut short
    assert not re.search(r"\btouch\b", "".join(shells))
    for value in re.findall(r"\{([^{}]+)\}", "".join(shells)):
        kind, _, name = value.partition(".")
        quoted = value == "threads" or value.endswith(":q") or (kind == "params" and name in QUOTED)
        assert quoted, f"{{{value}}} is not quoted"


#: Functions of parameters that tell of the job's input alone, which Snakemake compares itself.
OF_INPUT = {"selections_options", "parser_option"}


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_options_that_read_the_input_are_compared_with_those_of_the_last_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    common = (path.parent / "common.smk").read_text(encoding="utf-8")
    classes = {**vars(inputs), "Experiments": Experiments}
    sections = dict(re.findall(r"^ *([A-Z]+) = (?:inputs\.)?(\w+)\(", common, re.MULTILINE))
    for section, name in re.findall(r"^        \w+=([A-Z]+)\.(\w+),$", text, re.MULTILINE):
        function = getattr(classes[sections[section]], name)
        if "input" in inspect.signature(function).parameters and name not in OF_INPUT:
            assert re.search(rf"asked_of\(\s*{section}\.{name}\b", text), name


def test_patterns_of_the_configuration_match_whole_values() -> None:
    """A pattern that ends in ``$`` lets a newline through."""
    patterns: list[str] = []

    def walk(node: object) -> None:
        if isinstance(node, dict):
            patterns.extend(one for key, one in node.items() if key == "pattern")
            node = list(node.values())
        for one in node if isinstance(node, list) else ():
            walk(one)

    walk(msgspec.json.schema(Configuration))
    assert len(patterns) > 10
    for pattern in patterns:
        assert (pattern[:2], pattern[-2:]) == (r"\A", r"\Z") or pattern == r"\S"
    slug = rf"\A{NAME.pattern}\Z"
    assert slug in patterns
    for name in ("हिन्दी", "e\u0301", "é", "a-1_b.c+d", "中文"):
        assert NAME.fullmatch(name), name
    for name in ("a\n", "a b", "{x}", "<x>", "a|b", "$(id)", "a/b", "-a", "a'b", "a\u202eb", ".a"):
        assert not re.search(slug, name) and not NAME.fullmatch(name), name
