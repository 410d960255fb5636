"""A copy of the workflow with tiny treebanks and a tiny encoder, to run for real."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]

#: Six trees whose words the tiny encoder knows.
TREES = """\
(S (NP (DT the) (JJ old) (NN man)) (VP (VBD walked) (NP (NN home))) (. .))
(S (NP (DT a) (NN cat)) (VP (VBD chased) (NP (DT the) (NNS mice))) (. .))
(S (NP (DT the) (NNS dogs)) (VP (VBD barked) (ADVP (RB loudly)) (PP (IN at) (NP (PRP them)))))
(S (SBAR (WRB when) (S (NP (DT the) (NN rain)) (VP (VBD began)))) (NP (PRP they)) (VP (VBD left)))
(S (NP (NP (DT the) (NN man)) (PP (IN near) (NP (DT the) (NN harbour)))) (VP (VBD walked)))
(FRAG (RB again) (CC and) (RB again))
"""
#: Put on the path as sitecustomize.py: a command and its workers write down what they import.
_RECORDER = """\
import os, sys, uuid

argv = sys.orig_argv
for flag, value in zip(argv, argv[1:]):
    if flag in ("--output", "--output-prefix"):
        os.environ["ATTREE_OUTPUT"] = value  # workers inherit it
if "ATTREE_IMPORTS" in os.environ and "ATTREE_OUTPUT" in os.environ:
    name = os.path.join(os.environ["ATTREE_IMPORTS"], uuid.uuid4().hex)
    seen = open(name, "w", buffering=1)
    print(os.environ["ATTREE_OUTPUT"], file=seen)

    class Recorder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.split(".")[0] == "attree":
                print(name, file=seen)

    sys.meta_path.insert(0, Recorder)
"""
#: What the recorder's first line, a command's output, says of the rule of an experiment.
EXPERIMENT_OF_OUTPUT = {
    "results/experiments/jobs/": "experiment_rows",
    r"results/experiments/tables/.*\.weights$": "experiment_weights",
    r"results/experiments/tables/.*\.sentence$": "experiment_sentence",
    r"results/experiments/tables/.*\.png$": "experiment_picture",
    "results/experiments/tables/": "experiment_table",
    "results/experiments/encoders/": "tune_encoder",
    "results/encoders/tuned-0": "tuned_encoder",
}
#: The same of other rules. A rule is found by the first pattern that fits.
RULE_OF_OUTPUT = {
    "results/treebanks/": "treebank",
    "results/encoders/": "encoder",
    "results/attention/[^/]+/all/": "attention_all",
    "results/attention/[^/]+/selected/": "attention_selected",
    "results/heads/": "heads",
    "results/fewshot/": "train",
    "results/grammars/": "grammar",
    "results/parses/[^/]+/span-parser/": "trained_parses",
    "results/parses/imported/": "imported_parses",
    "results/parses/grammar/": "grammar_parses",
    "results/parses/[^/]+/(voted|blended)/": "averaged_parses",
    "results/parses/": "parse",
    "results/scores/baselines/": "baselines",
    "results/scores/": "score",
    "results/tables/languages/": "language_table",
    "results/tables/sizes": "sizes_table",
    "results/tables/": "crosslingual_table",
    "results/comparisons/[^/]+/": "speeds",
    "results/comparisons/": "comparison_table",
    "results/figures/": "heads_figure",
    "results/report/": "page",
    "results/corpus/": "parse_corpus",
}
_PUBLISHED = """\
table,row,language,metric,value
some,upoa,other,corpus_f1,12.34
dataset-size,test,other,sentences,5678
"""
#: The configuration of two languages of six trees; the grammar is learnt in a second.
_TINY = yaml.safe_load("""\
treebanks: {folders: [treebanks], languages: {}}
parsers:
  upoa: {association: raw, score: outside, decoder: greedy, heads: "best:2"}
  upio: {association: raw, score: inside_outside, decoder: chart, heads: "best:2"}
attention: {partition_size: 3}
corpora:
  news: {inputs: [news.txt], encoder: tiny, parser: upio}
tables:
  crosslingual:
    published: some
    runs: [{encoders: [tiny], parsers: [upoa, upio]}]
  rivals:
    runs: [{encoders: [tiny], parsers: [voted], systems: [gold]}]
comparisons:
  sides:
    runs:
      - encoders: [tiny]
        parsers: [upoa, voted]
        trained: [span-parser]
        systems: [gold]
        languages: [other]
    published: {upoa: [some/upoa], others: [some/upoa]}
  learnt:
    runs: [{encoders: [tiny], parsers: [upoa, blended], grammars: [toy], languages: [other]}]
    published: {toy: [some/upoa]}
training: {trees: 3}
systems:
  gold: {other/test: treebanks/other/test.mrg}
averages:
  voted: {of: [upoa, upio]}
  blended: {of: [upoa, toy]}
grammars:
  toy:
    {text: test, seeds: 2, epochs: 1, least: 1, held_out: 0.3, nonterminals: 2, preterminals: 3,
     symbol: 4, latent: 2, hidden: 4}
published: published.csv
""")
TOY = _TINY["grammars"]["toy"]
_JOB = re.compile(r"^(?:local)?rule (\w+):\n((?: {4}.*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Ran:
    """What one call of snakemake did."""

    status: int
    text: str

    @property
    def jobs(self) -> list[tuple[str, dict[str, str]]]:
        """Rule and wildcards of every job that was run, or in a dry run would be."""
        return [job for job, _ in self._told()]

    @property
    def finished(self) -> list[tuple[str, dict[str, str]]]:
        """Rule and wildcards of every job that ended well, but for the target, which is job 0.

        So is, to itself, a job on a cluster; its log is shown within this one where it failed.
        """
        ended = set(re.findall(r"^Finished jobid: (\d+)", self.text, re.MULTILINE)) - {"0"}
        return [job for job, number in self._told() if number in ended]

    def _told(self) -> Iterator[tuple[tuple[str, dict[str, str]], str]]:
        for rule, body in _JOB.findall(self.text):
            said = dict(re.findall(r"^ +(wildcards|jobid): (.*)$", body, re.MULTILINE))
            pairs = said["wildcards"].split(", ") if "wildcards" in said else []
            yield (rule, dict(pair.split("=", 1) for pair in pairs)), said.get("jobid", "")

    @property
    def counts(self) -> Counter[str]:
        """Rule → how many jobs of it."""
        return Counter(rule for rule, _ in self.jobs)

    @property
    def rules(self) -> set[str]:
        """The rules of its jobs."""
        return set(self.counts)

    def of(self, wildcard: str, *rules: str) -> set[str]:
        """Return the values of a wildcard in jobs of some rules, or of all."""
        return {w[wildcard] for rule, w in self.jobs if wildcard in w and rule in (rules or [rule])}


@dataclass(frozen=True)
class Checkout:
    """A folder with Snakefile, workflow/ and config.yaml, and the code that it runs."""

    folder: Path
    source: Path = ROOT / "src"

    def snakemake(self, *arguments: str, **environment: str) -> Ran:
        """Run snakemake here; its two streams come back as one text."""
        with self.start(*arguments, **environment) as running:
            text, _ = running.communicate(timeout=3600)
        return Ran(running.returncode, text)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start snakemake here."""
        return subprocess.Popen(
            ["snakemake", "--nocolor", *arguments],
            cwd=self.folder,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def environment(self) -> dict[str, str]:
        """What snakemake and its jobs find here."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": path, "PYTHONPATH": str(self.source), "OMP_NUM_THREADS": "1"}
        return {**os.environ, **own, "HF_HUB_OFFLINE": "1"}

    def is_working(self) -> bool:
        """Whether a process runs a command of attree in this folder."""
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                command = (process / "cmdline").read_bytes().split(b"\0")
                attree = any(part.endswith(b"/attree") for part in command[:2])
                if attree and (process / "cwd").readlink() == self.folder:
                    return True
        return False

    def run(self, *arguments: str, **environment: str) -> Ran:
        """Run everything on two cores; it must succeed."""
        ran = self.snakemake("--cores", "2", *arguments, **environment)
        assert ran.status == 0, f"{ran.text}\n{self.logs()}"
        return ran

    def plan(self, *arguments: str, **environment: str) -> Ran:
        """Dry-run; it must succeed."""
        ran = self.snakemake("--dry-run", *arguments, **environment)
        assert ran.status == 0, ran.text
        return ran

    def refused(self, **environment: str) -> str:
        """Dry-run with a mistake in the configuration; return the line that says so."""
        ran = self.snakemake("--dry-run", **environment)
        assert ran.status == 1, ran.text
        lines = [line for line in ran.text.splitlines() if line.startswith("attree: error: ")]
        assert len(lines) == 1, ran.text
        assert "Traceback" not in ran.text
        return lines[0]

    @property
    def config(self) -> dict[str, Any]:
        """What config.yaml says."""
        found: dict[str, Any] = yaml.safe_load((self.folder / "config.yaml").read_text("utf-8"))
        return found

    def configure(self, change: dict[str, Any]) -> None:
        """Replace top-level keys of config.yaml."""
        text = yaml.safe_dump({**self.config, **change})
        (self.folder / "config.yaml").write_text(text, encoding="utf-8")

    def logs(self) -> str:
        """Return what the jobs' logs hold."""
        files = sorted((self.folder / "results/logs").rglob("*.log"))
        return "\n".join(f"{file}:\n{file.read_text()}" for file in files if file.stat().st_size)


def make_checkout(folder: Path) -> Checkout:
    """Copy the workflow to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(ROOT / name, folder / name)
    for name in ("workflow", "envs"):
        shutil.copytree(ROOT / name, folder / name)
    return Checkout(folder)


def make_tiny(folder: Path, encoder: Path) -> Checkout:
    """Lay out a checkout with two languages of six trees and a three-layer encoder."""
    checkout = make_checkout(folder)
    for name in ("english/dev", "english/test", "other/test"):
        put(folder / f"treebanks/{name}.mrg")
    (folder / "published.csv").write_text(_PUBLISHED)
    (folder / "news.txt").write_text("the old man walked home\n\na cat chased mice\n")
    checkout.configure({**_TINY, "encoders": {"tiny": {"path": str(encoder)}}})
    return checkout


def put(path: Path, text: str = TREES) -> None:
    """Write a file, and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def add(path: Path, line: str) -> None:
    """Add a line to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """The workflow as it stands, in a folder of its own."""
    return make_checkout(tmp_path / "checkout")


@pytest.fixture
def small(tmp_path: Path) -> Checkout:
    """Two languages of six trees, and an encoder that a dry run does not look for."""
    return make_tiny(tmp_path / "small", tmp_path / "encoder")


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A three-layer BERT with random weights."""
    from tests.encoder import checkpoints

    folder = tmp_path_factory.mktemp("encoder")
    checkpoints.save("bert", folder)
    return folder


@pytest.fixture
def tiny(tmp_path: Path, encoder: Path) -> Checkout:
    """A checkout that runs in seconds, with nothing run yet."""
    return make_tiny(tmp_path / "tiny", encoder)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Checkout:
    """A tiny checkout that has been run once. Tests copy it before they change it."""
    # Attention on two workers, and in one process: what either imports counts.
    workers = ("--set-threads", "attention_all=2", "attention_selected=1", "parse_corpus=1")
    made = with_code(make_tiny(tmp_path_factory.mktemp("finished"), encoder))
    run_recorded(made, "all", "corpus", "comparison", "grammars", *workers)
    return made


def with_code(checkout: Checkout) -> Checkout:
    """Give a checkout its own copy of the code."""
    source = checkout.folder.with_name(f"{checkout.folder.name}-src")
    shutil.copytree(checkout.source / "attree", source / "attree")
    return Checkout(checkout.folder, source)


def run_recorded(checkout: Checkout, *arguments: str) -> None:
    """Run a checkout; every process writes down what it imports."""
    imports = checkout.source / "imports"
    imports.mkdir()
    put(checkout.source / "sitecustomize.py", _RECORDER)
    checkout.run(*arguments, ATTREE_IMPORTS=str(imports))


def recorded(checkout: Checkout) -> dict[str, set[str]]:
    """Return rule → what the processes of its command imported of attree."""
    found: dict[str, set[str]] = {}
    rules = {**EXPERIMENT_OF_OUTPUT, **RULE_OF_OUTPUT}
    for file in (checkout.source / "imports").iterdir():
        output, *modules = file.read_text(encoding="utf-8").split()
        rule = next(rule for pattern, rule in rules.items() if re.match(pattern, output))
        found.setdefault(rule, set()).update(modules)
    return found


def copied(checkout: Checkout, folder: Path) -> Checkout:
    """Copy a checkout and its code, file times kept, to change and run again."""
    shutil.copytree(checkout.folder, folder / "rerun")
    return with_code(Checkout(folder / "rerun", checkout.source))


@pytest.fixture
def rerun(finished: Checkout, tmp_path: Path) -> Checkout:
    """A copy to change and run again."""
    return copied(finished, tmp_path)
