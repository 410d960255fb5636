"""Each rule's hash of code names the modules that its command really imports, workers included."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attree import provenance
from tests.workflow.conftest import ROOT, RULE_OF_OUTPUT

#: Modules that decide how a command is called, how it reports and what it writes down, but no
#: result. Were they hashed, another word in a message would re-run everything.
NEUTRAL = {
    *("__init__", "cli", "errors", "files", "process", "progress", "provenance"),
    *("plan", "configuration"),
}

_RULE = re.compile(r"^(?:use )?rule (?:\w+ as )?(\w+)(?: with)?:\n((?:(?: .*)?\n)+)", re.MULTILINE)


def text() -> str:
    """Return all files of rules."""
    files = sorted((ROOT / "workflow/rules").glob("*.smk"))
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def rules() -> dict[str, str]:
    """Return the text of every rule that runs a command."""
    return {n: body for n, body in _RULE.findall(text()) if "code_hash" in body or "shell" in body}


def named(body: str) -> list[str]:
    """Return the arguments of ``code_hash`` in a rule, those of a tuple with a name too."""
    found = re.search(r"code=code_hash\(([^)]*)\)", body)
    assert found, body
    listed = found[1]
    if constant := re.fullmatch(r"\*(\w+)", listed):
        listed = re.search(rf"^{constant[1]} = \(([^)]*)\)", text(), re.MULTILINE)[1]
    return re.findall(r'"([\w.]+)"', listed)


def modules(names: list[str]) -> set[str]:
    """Return the modules that names stand for, relative to attree."""
    root = Path(provenance.__file__).parent
    files = provenance.module_files(names)
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            for path in files}  # fmt: skip


def test_every_rule_that_runs_a_command_hashes_its_code() -> None:
    assert set(RULE_OF_OUTPUT.values()) <= set(rules())
    for name, body in rules().items():
        if "{output" in body:
            assert named(body), name


@pytest.mark.parametrize("rule", sorted(RULE_OF_OUTPUT.values()))
def test_a_rule_names_the_modules_that_its_command_imports(
    rule: str, imported: dict[str, set[str]]
) -> None:
    check_named(rule, imported[rule])


def check_named(rule: str, imports: set[str]) -> None:
    """Check that a rule names every module that was imported, and none that was not."""
    names = named(rules()[rule])
    seen = imports - NEUTRAL
    missing = seen - modules(names)
    assert not missing, f"{rule}: add {', '.join(sorted(missing))} to its code_hash"
    for name in names:
        assert modules([name]) & seen, f"{rule}: its command does not import {name}"
