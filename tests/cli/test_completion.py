"""What the shell offers at TAB, asked for as the shells ask."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from attree.cli.main import COMMANDS, app
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


def test_commands_and_options_are_offered(asked: Asked) -> None:
    assert asked("") == list(COMMANDS)
    assert asked("tr") == ["try", "train", "treebank"]
    assert asked("treebank", "con") == ["convert"]
    assert {"--parser", "--compare", "--svg"} <= set(asked("try", "--"))


def test_nothing_heavy_is_imported(asked: Asked) -> None:
    refuse = "import sys; sys.modules.update(dict.fromkeys(('torch', 'transformers', 'spacy')))"
    for words in (("train", "--dec"), ("parse", "--enc"), ("treebank", "--f")):
        assert asked(*words, more=refuse)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_scripts_too(shell: Literal["zsh", "fish"], tmp_path: Path) -> None:
    script = app.generate_completion(shell=shell)
    assert all(name in script for name in (*COMMANDS, "evaluate-on"))
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(script, encoding="utf-8")
        subprocess.run([program, "-n", tmp_path / "script"], check=True)


def test_it_is_installed(tmp_path: Path) -> None:
    python(_PROGRAM, "--install-completion", "--shell", "bash", HOME=str(tmp_path))
    script = tmp_path / ".local/share/bash-completion/completions/attree"
    assert "complete -F _attree attree" in script.read_text(encoding="utf-8")
    assert str(script) in (tmp_path / ".bashrc").read_text(encoding="utf-8")
