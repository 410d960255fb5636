"""How long Snakemake plans the article's whole run."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.benchmarks import Row
from tests.workflow.conftest import make_checkout
from tests.workflow.test_dry_runs import lay_out_ptb, lay_out_spmrl

SECONDS = 10.0


def rows() -> list[Row]:
    """Dry runs of paper.yaml on folders shaped like PTB and SPMRL: tables, and all experiments."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkout = make_checkout(folder / "checkout")
        homes = {
            "PTB_HOME": str(lay_out_ptb(folder / "ptb")),
            "SPMRL_HOME": str(lay_out_spmrl(folder / "spmrl")),
        }
        found = []
        for targets in (["all"], ["all", "experiments"]):
            began = time.perf_counter()
            ran = checkout.plan(*targets, "--configfile", "workflow/configs/paper.yaml", **homes)
            seconds = time.perf_counter() - began
            what = f"{' and '.join(targets)} ({len(ran.jobs):,} jobs) ÷ {SECONDS:.0f} s"
            found.append(Row(f"dry run of paper.yaml, {what}", "<= 1.0", "s", seconds, SECONDS))
    return found
