"""How long Snakemake plans the article's whole run."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from tests.workflow.conftest import make_checkout
from tests.workflow.test_dry_runs import lay_out_ptb, lay_out_spmrl

SECONDS = 10.0


def rows() -> list[dict[str, Any]]:
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
            found.append(
                {
                    "name": f"dry run of paper.yaml, {' and '.join(targets)} "
                    f"({len(ran.jobs):,} jobs) ÷ {SECONDS:.0f} s",
                    "ratio": seconds / SECONDS,
                    "goal": "<= 1.0",
                    "unit": "s",
                    "ours": seconds,
                    "baseline": SECONDS,
                }
            )
    return found
