"""The report as a browser shows it."""

from __future__ import annotations

import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.workflow.conftest import Checkout

#: No sandbox for root, and nothing that looks for a network.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


class Visible(HTMLParser):
    """Collects the text that is no script and no style."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self._inside = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._inside += tag in ("script", "style", "noscript")

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag in ("script", "style", "noscript")

    def handle_data(self, data: str) -> None:
        if not self._inside and data.strip():
            self.text.append(data.strip())


@pytest.mark.full
def test_the_report_shows_its_tables_and_figures(
    finished: Checkout, chromium: str, tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    ran = finished.snakemake("all", "--report", str(report))
    assert ran.status == 0, ran.text
    done = subprocess.run(
        [chromium, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}",
         "--virtual-time-budget=10000", "--dump-dom", report.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = Visible()
    page.feed(done.stdout)
    assert {"Results", "Tables", "Figures", "Workflow"} <= set(page.text)
    assert any("Heads are ranked on" in text for text in page.text)
    assert any("upio" in text for text in page.text)
