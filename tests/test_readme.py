"""The commands of README.md and docs/, read out of them and run page by page; links."""

from __future__ import annotations

import importlib.util
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

from attree.treebank.as_table import Treebank
from attree.treebank.sentence import SplitSettings
from tests.workflow.conftest import ROOT, Checkout, make_checkout

#: What stands between <!-- and --> is not shown.
PAGES = {
    str(path.relative_to(ROOT)): re.sub(
        r"<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.S
    )
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
DEMO = ROOT / "workflow/resources/treebanks"

#: What trains a parser, loads one once more, or takes long otherwise; the rest takes seconds.
LONG = {
    "import spacy",
    "from attree import Constraints, Parser",
    'attree try "Old men and women left." --best 3',
    'attree try "A cat slept." --compare universal,upio-log',
    'attree try "The old man walked home." --parser my-parser',
    "attree evaluate --train mine.mrg --test test.mrg --trees 10,20,40",
    "attree evaluate mine.mrg --split 100:",
    "attree evaluate predictions.mrg --gold test.mrg --worst 3",
    "attree evaluate --test test.mrg --parser my-parser,upio",
    "attree evaluate --test x.conllu --parser universal,my-parser",
    "attree evaluate --test test.mrg --parser my-parser,upio,predictions.mrg",
    "attree annotate text.txt --output treebanks/mine",
    "attree annotate text.txt --language icelandic --output treebanks/icelandic",
    "attree annotate mine.mrg",
    "attree train --sentences mine.mrg --output my-parser",
    "attree train --sentences a.mrg --sentences b.mrg --shares even --output two",
    "attree train --sentences x.conllu --dependencies half --labels universal --output my-parser",
    "attree train --sentences mine.half --output my-parser",
    "attree parse mine.half --output half-trees/",
    "attree publish my-parser --licence cc-by-sa-4.0 --sources "
    '"Mine (CC BY 4.0)" --output published',
    "attree parse corpus.txt.xz --output mine-trees/ --parser my-parser",
    "attree parse corpus.txt.xz --output more-trees/ --workers 2",
    "attree try --constraints mine.half",
    "attree choose text.txt --number 20",
    "snakemake --cores all --logger attree",
}
_INSTALL, _SLURM = "installs; tests/test_install.py", "needs Slurm; tests/workflow/test_slurm.py"
_DATA = "needs treebanks that are not shipped"
NOT_RUN = {
    "python3 -m venv .venv && . .venv/bin/activate": _INSTALL,
    "pip install .": _INSTALL,
    "pip install '.[annotate]'": _INSTALL,
    "pip install '.[tune]'": _INSTALL,
    "pip install '.[workflow]'": _INSTALL,
    "pip install torch --index-url https://download.pytorch.org/whl/cpu": _INSTALL,
    "attree --install-completion": "writes to the shell's files; tests/cli/test_completion.py",
    "snakemake comparison --cores all --configfile=workflow/configs/open.yaml": "an hour",
    "snakemake grammars --cores all --configfile=workflow/configs/open.yaml": "hours",
    "snakemake --workflow-profile workflow/profiles/slurm": _SLURM,
    "attree parse corpus/ --output slurm-trees/ --workers 32 --slurm queue=NAME": _SLURM,
    "python -m tests.benchmarks.languages": _DATA,
    "snakemake comparison --configfile=workflow/configs/open.yaml": _DATA,
    "attree evaluate --train train.mrg --test dev.mrg --parser upio-log": _DATA,
    "attree evaluate --train TRAIN --test TEST --labels universal --parser tree-crf-labelled "
    "--trees 10,40,80 --draws N --start S": _DATA,
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
    """A command of a page, and what stands below it as its output."""

    text: str
    language: str = "sh"
    printed: str = ""

    @property
    def name(self) -> str:
        """The command, of Python the first line."""
        return self.text.partition("\n")[0]


def _commands(text: str) -> Iterator[Command]:
    """Yield commands of blocks, and whole ones within a sentence, in the text's order."""
    block_or_span = r"^```(\w*)\n(.*?)^```|(?<!`)`((?:attree|snakemake|pip|python)\s[^`]+)`"
    for one in re.finditer(block_or_span, text, re.M | re.S):
        language, block, inline = one.groups()
        if inline is not None:
            if re.search(r"^\w+ -|[-.\"'=]", inline):  # else it is a command's name
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


COMMANDS = {page: list(_commands(text)) for page, text in PAGES.items()}


def test_what_is_left_out_is_on_a_page() -> None:
    """Every other command is run."""
    named = [*LONG, *NOT_RUN]
    assert len(named) == len(set(named))
    assert set(named) <= {one.name for commands in COMMANDS.values() for one in commands}


_SIMPLE = "language\twords\tphrases\timpossible\nen\tThe cat slept .\t0-2\t1-3\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout with the files that the pages take for granted, out of the demo's treebanks."""
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
    (folder / "sentences.tsv").write_text(_SIMPLE)
    for name in ("a.mrg", "b.mrg"):
        shutil.copy(folder / "mine.mrg", folder / name)
    shutil.copytree(ROOT / "src/attree/ready/universal", folder / "my-parser")
    partial = re.findall(r"`(\( \(NP the old .*?\))`", PAGES["docs/annotating.md"])
    assert len(partial) == 1
    (folder / "mine.half").write_text(f"{partial[0]}\n" * 10)
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
@pytest.mark.parametrize("page", [page for page, commands in COMMANDS.items() if commands])
def test_commands_do_what_is_said(checkout: Checkout, page: str, long: bool) -> None:
    for command in COMMANDS[page]:
        if command.name in NOT_RUN or (command.name in LONG and not long):
            continue
        library = re.match(r"import (polars|duckdb)$", command.name)
        if library and importlib.util.find_spec(library[1]) is None:
            continue
        printed = _run(command, checkout)
        assert "Traceback" not in printed
        if command.printed:
            assert printed == command.printed


@pytest.mark.parametrize(
    ("page", "lines", "words"),
    [("README.md", 120, 1000), ("CHANGELOG.md", 20, 400), ("docs/results.md", 150, 3000)],
)
def test_pages_stay_short(page: str, lines: int, words: int) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text.count("\n") <= lines
    assert len(text.split()) <= words


def _anchor(heading: str) -> str:
    """Return the anchor that a heading gets where Markdown is shown."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


TEXTS = [
    path
    for pattern in ("*.md", "docs/**/*.md", "workflow/**/*.md", "src/**/*.md", "tests/**/*.md")
    for path in ROOT.glob(pattern)
]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
            assert anchor in map(_anchor, headings), link
