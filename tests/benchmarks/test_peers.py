"""The benchmark beside other parsers, without them: nothing is installed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.benchmarks.peers import ROOT


@pytest.mark.full
def test_attree_is_measured() -> None:
    options = "--peers --sentences 10 --rounds 1"
    command = [sys.executable, "-m", "tests.benchmarks.peers", *options.split()]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    row = re.search(r"^attree" + r" +([\d.,]+) \(1\.00 ×\)" * 3 + "$", ran.stdout, re.M)
    assert row, ran.stdout
    assert all(float(figure.replace(",", "")) > 0 for figure in row.groups())
