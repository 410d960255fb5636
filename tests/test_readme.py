"""The commands of README.md, read out of it and run in its order in a checkout."""

from __future__ import annotations

import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from attree.treebank.given import Treebank
from attree.treebank.sentence import SplitSettings
from tests.workflow.conftest import ROOT, Checkout, make_checkout

README = (ROOT / "README.md").read_text(encoding="utf-8")
DEMO = ROOT / "workflow/resources/treebanks"

#: What is run in seconds.
QUICK = {
    'attree try "Ein alter Mann ging nach Hause."',
    "attree --help",
    "attree treebank mine.mrg --check",
    "attree treebank convert x.conllu --to half --labels universal --output x.half",
    "attree evalb GOLD TEST --prm collins --punctuation keep",
    "attree parse corpus.txt.xz --output trees/",
    "attree corpus status trees/",
    'echo "Words and sentences are split." | attree parse - --to brackets',
    "attree measures trees/ --output measures/",
    "from attree import Parser",
    "from pathlib import Path",
}
#: What trains a parser, or loads one once more.
LONG = {
    "import spacy",
    'attree try "…"',
    "attree evaluate --train mine.mrg --test test.mrg --trees 10,20,40",
    "attree evaluate mine.mrg --split 100:",
    "attree train --sentences mine.mrg --output my-parser",
    'attree try "…" --parser my-parser',
    "attree evaluate --test test.mrg --parser my-parser,upio,predictions.mrg",
    "attree annotate text.txt --language icelandic --output treebanks/icelandic",
    "attree annotate mine.mrg",
    "attree train --sentences x.conllu --dependencies half --labels universal --output my-parser",
    "attree train --sentences mine.half --output my-parser",
    "attree parse mine.half --output trees/",
    "attree choose text.txt --number 20",
    "snakemake --cores all --logger attree",
}
NOT_RUN = {
    "make demo": "builds an environment; its workflow is run below",
    "make test": "is what runs this",
    ". .venv/bin/activate": "tests run in an environment",
    "attree --install-completion": "writes to the shell's files; tests/test_completion.py",
    "snakemake comparison --cores all --configfile=workflow/configs/open.yaml": "an hour",
    "snakemake grammars --cores all --configfile=workflow/configs/open.yaml": "hours",
    "snakemake --workflow-profile workflow/profiles/slurm": "needs Slurm; workflow/test_slurm.py",
    "attree parse corpus/ --output trees/ --workers 32 --slurm queue=NAME": "needs Slurm",
}

#: Two sentences as Universal Dependencies has them.
_CONLLU = "\n".join(
    "\n".join(
        "\t".join((f"{at}", word, word.lower(), tag, "_", "_", f"{head}", relation, "_", "_"))
        for at, (word, tag, head, relation) in enumerate(words, 1)
    )
    + "\n"
    for words in (
        (("The", "DET", 3, "det"), ("old", "ADJ", 3, "amod"), ("man", "NOUN", 4, "nsubj"),
         ("walked", "VERB", 0, "root"), ("to", "ADP", 6, "case"), ("town", "NOUN", 4, "obl")),
        (("A", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("chased", "VERB", 0, "root"),
         ("the", "DET", 5, "det"), ("mice", "NOUN", 3, "obj")),
    )
)  # fmt: skip


@dataclass(frozen=True)
class Command:
    """A command of the README, and what stands below it as its output."""

    text: str
    language: str = "sh"
    printed: str = ""

    @property
    def name(self) -> str:
        """The command, of Python the first line."""
        return self.text.partition("\n")[0]


def _commands(text: str) -> Iterator[Command]:
    """Yield commands of blocks, and whole ones within a sentence, in the text's order."""
    block_or_span = r"^```(\w*)\n(.*?)^```|(?<!`)`((?:attree|snakemake) [^`]+)`"
    for one in re.finditer(block_or_span, text, re.M | re.S):
        language, block, inline = one.groups()
        if inline is not None:
            if re.search(r"^\w+ -|[-.\"=]", inline):  # else it is a command's name
                yield Command(" ".join(inline.split()))
        elif language == "sh":
            yield from (Command(line) for raw in block.splitlines() if (line := _code(raw)))
        elif language:
            yield Command(block, language)
        elif block.startswith("$ "):
            line, _, printed = block.partition("\n")
            yield Command(line[2:], printed=printed)
        else:  # names of files
            yield from (
                Command(_code(line))
                for line in block.splitlines()
                if re.match("(attree|snakemake|make) ", line)
            )


def _code(line: str) -> str:
    return re.sub(r"(^|\s)#\s.*", "", line).strip()


COMMANDS = list(_commands(README))


def test_every_command_is_run_or_left_out_for_a_reason() -> None:
    named = [*QUICK, *LONG, *NOT_RUN]
    assert len(named) == len(set(named))
    assert sorted({one.name for one in COMMANDS}) == sorted(named)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout with the files that the README takes for granted, out of the demo's treebanks."""
    made = make_checkout(tmp_path / "checkout")
    folder = made.folder
    trees = [
        tree
        for split in ("train", "dev", "test")
        for tree in re.split(r"^(?=\()", (DEMO / f"english/{split}.mrg").read_text(), flags=re.M)
        if tree.strip()
    ]
    (folder / "mine.mrg").write_text("".join(trees[:110]))
    for name in ("test.mrg", "predictions.mrg"):
        (folder / name).write_text("".join(trees[110:]))
    flat = "".join(" ".join(tree.split()) + "\n" for tree in trees[110:])
    for name in ("GOLD", "TEST"):
        (folder / name).write_text(flat)
    read = Treebank.read([folder / "mine.mrg"], SplitSettings(punctuation="keep"))
    text = "".join(f"{' '.join(words)}\n" for words in read.table["words"].to_pylist())
    (folder / "text.txt").write_text(text)
    (folder / "corpus.txt.xz").write_bytes(lzma.compress(text.encode()))
    (folder / "x.conllu").write_text(_CONLLU)
    half = re.findall(r"`(\( \(NP the old .*?\))`", README)
    assert len(half) == 1
    (folder / "mine.half").write_text(f"{half[0]}\n" * 10)
    return made


def _open(link: str) -> None:
    """Open the page as a browser does, which keeps its cookie."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(link, timeout=60) as page:
        assert page.status == 200


def _run(command: Command, here: Checkout) -> str:
    """Run a command, which must end well; return what it printed."""
    environment = {**here.environment, "COLUMNS": "80", "BROWSER": "true"}
    if output := re.search(r"--output (\S+)", command.text):  # of a command before
        shutil.rmtree(here.folder / output[1], ignore_errors=True)
    start = [sys.executable, "-c"] if command.language == "python" else ["bash", "-c"]
    with subprocess.Popen(
        [*start, command.text],
        cwd=here.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        printed = ""
        try:
            if command.text.startswith("attree annotate"):  # until Ctrl-C
                while "Ctrl-C" not in printed:
                    printed += (line := running.stdout.readline())
                    assert line, printed
                _open(re.findall(r"http://\S+", printed)[0])
                os.killpg(running.pid, signal.SIGINT)
            printed += running.communicate(timeout=1800)[0]
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 0, f"{command.text}\n{printed}"
    assert printed, command.text
    return printed


@pytest.mark.parametrize(
    "long", [False, pytest.param(True, marks=pytest.mark.full)], ids=["quick", "all"]
)
def test_commands_do_what_is_said(checkout: Checkout, long: bool) -> None:
    for command in COMMANDS:
        if command.name in QUICK or (long and command.name in LONG):
            printed = _run(command, checkout)
            assert "Traceback" not in printed
            if command.printed:
                assert printed == command.printed
