"""Each rule's hash of code covers what its command really imports, workers included."""

from __future__ import annotations

import re

import pytest

from attree.association.sources import not_run_by
from attree.base.provenance import NEUTRAL, closure
from attree.bulk import run
from attree.cli.main import COMMANDS
from tests.workflow.conftest import (
    EXPERIMENT_OF_OUTPUT,
    ROOT,
    RULE_OF_OUTPUT,
    Checkout,
    recorded,
)

_RULE = re.compile(r"^(?:use )?rule (?:\w+ as )?(\w+)(?: with)?:\n((?:(?: .*)?\n)+)", re.MULTILINE)
#: What a rule's ``not_run`` stands for in the run that is recorded.
NOT_RUN = {"HEADS.not_run": not_run_by(["heads"]), "EXPERIMENTS.not_run": ()}


def rules() -> dict[str, str]:
    """Return the text of every rule that has a hash of code or a command."""
    files = sorted((ROOT / "workflow/rules").glob("*.smk"))
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return {n: body for n, body in _RULE.findall(text) if "code_of" in body or "shell" in body}


def entry(body: str) -> tuple[str, tuple[str, ...]]:
    """Return what a rule gives ``code_of``: the entry, and what is left out."""
    found = re.search(r'code=code_of\(\s*"([\w.:]+)"(?:, not_run=([\w.]+))?\s*\)', body)
    assert found, body
    return found[1], NOT_RUN[found[2]] if found[2] else ()


def test_every_rule_hashes_the_code_of_the_command_that_it_runs() -> None:
    assert {*RULE_OF_OUTPUT.values(), *EXPERIMENT_OF_OUTPUT.values()} <= set(rules())
    for name, body in rules().items():
        commands = re.findall(r'"attree (\w+)', body)
        if "{output" in body:
            module, _ = entry(body)
            if commands:
                called = COMMANDS[commands[-1]]
                assert module.startswith(called.rpartition(".")[0]), name
                assert not called.endswith("_command") or module in COMMANDS.values(), name


#: What every command starts with, before its own module, and what spaCy imports wherever it runs.
_PROGRAM = {"attree", "attree.cli.main", "attree.apps", "attree.apps.spacy_pipe"}


@pytest.mark.parametrize("rule", sorted(RULE_OF_OUTPUT.values()))
def test_a_rule_covers_what_its_command_imports(rule: str, finished: Checkout) -> None:
    check_covered(rule, finished)


def check_covered(rule: str, checkout: Checkout) -> None:
    """Check that the closure of a rule's entry holds every module that was imported."""
    imports = recorded(checkout)[rule] - {NEUTRAL} - _PROGRAM
    assert imports, rule
    module, not_run = entry(rules()[rule])
    assert imports <= set(closure(module, not_run=not_run))


@pytest.mark.parametrize(
    ("rule", "own", "never"),
    [
        # where own is empty, what the rule's command imports is recorded above
        ("treebank", {"treebank"}, {"encoder", "decoding", "evaluation", "scoring", "cli.main"}),
        ("attention_all", {"encoder.pieces"},
         {"decoding", "scoring", "association.ranking", "evaluation"}),
        ("attention_selected", {"encoder.pieces"}, {"stages.from_shards"}),
        ("heads", {"scoring", "evaluation.metrics"},
         {"encoder", "training", "treebank.formats", "reports", "stages", "cli.main"}),
        ("parse", {"scoring.prefix", "stages.from_shards"},
         {"encoder", "evaluation", "association.ranking", "training", "reports"}),
        ("score", {"evaluation.metrics"},
         {"decoding", "scoring", "encoder", "training", "cli.main"}),
        ("baselines", {"evaluation.metrics"}, {"encoder"}),
        ("crosslingual_table", {"base.tables"}, {"evaluation.summary", "experiments"}),
        # A plot touches nothing but itself.
        ("heads_figure", {"reports.figures"}, {"association", "reports.tables", "evaluation"}),
        ("parse_corpus", {"scoring"}, {"experiments"}),
    ],
)  # fmt: skip
def test_a_rule_hangs_on_the_code_that_decides_it_alone(
    rule: str, own: set[str], never: set[str]
) -> None:
    module, not_run = entry(rules()[rule])
    found = set(closure(module, not_run=not_run))
    assert found >= {f"attree.{name}" for name in own}
    assert not found & {f"attree.{name}" for name in never}


def test_a_corpus_is_parsed_anew_for_the_code_of_its_own_parser_alone() -> None:
    """Averaged heads run no training; partly bracketed lines are read, and no treebank."""
    found = set(closure(run.CODE, not_run=(run.SCORING, run.TRAINED)))
    never = ("training", "treebank.formats", "experiments")
    assert "attree.scoring" in found and not found & {f"attree.{name}" for name in never}
