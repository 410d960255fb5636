"""The command, and its page in headless Chromium, as a person uses them."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LINK = re.compile(r"http://127\.0\.0\.1:\d+/open\?token=\S+")


@dataclass
class Running:
    """A running ``attree annotate``."""

    process: subprocess.Popen[str]
    link: str = ""
    said: list[str] = field(default_factory=list)

    def end(self) -> str:
        """Press Ctrl-C; return what it said in all."""
        self.process.send_signal(signal.SIGINT)
        _, rest = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, rest
        return "".join([*self.said, rest])


@contextlib.contextmanager
def annotating(text: Path, output: Path, *options: str) -> Iterator[Running]:
    """Run the command until its link is printed."""
    command = [sys.executable, "-m", "attree.cli.main", "annotate", str(text), "--no-browser"]
    command += ["--output", str(output), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    running = Running(process)
    assert process.stderr is not None
    try:
        while not running.link:
            line = process.stderr.readline()
            assert line, "".join(running.said)
            running.said.append(line)
            found = LINK.search(line)
            running.link = found[0] if found else ""
        yield running
    finally:
        process.kill()
        process.wait()


class Annotator:
    """Somebody who corrects proposals until they are the trees that she has in mind.

    Args:
        page: of playwright, with the page open.
    """

    def __init__(self, page: Any) -> None:
        self.page = page
        self.seconds: list[float] = []
        page.wait_for_selector("#tree .node")

    def words(self) -> tuple[str, ...]:
        return tuple(self.page.locator("#words .word").all_text_contents())

    def shown(self) -> dict[tuple[int, int], str]:
        """The phrases on the page, with their labels."""
        nodes = self.page.eval_on_selector_all(
            "#tree .node", "all => all.map(one => [one.id, one.textContent])"
        )
        spans = {name: tuple(map(int, name[1:].split("-"))) for name, _ in nodes}
        return {spans[name]: label for name, label in nodes}

    def wait(self, do: Any) -> None:
        """Do something that asks the server, and wait until the page shows the answer."""
        began = time.perf_counter()
        with self.page.expect_response(lambda answer: answer.url.endswith("/act")) as answer:
            do()
        assert answer.value.status == 200, answer.value.text()
        self.page.locator("body:not([aria-busy])").wait_for(state="attached")
        self.seconds.append(time.perf_counter() - began)

    def press(self, key: str) -> None:
        self.wait(lambda: self.page.keyboard.press(key))

    def select(self, start: int, end: int) -> None:
        """Select words with the mouse."""
        self.page.locator(f"#w{start}").click()
        if end - start > 1:
            self.page.locator(f"#w{end - 1}").click(modifiers=["Shift"])

    def label(self, start: int, end: int, label: str) -> None:
        self.select(start, end)
        self.page.keyboard.press("l")
        self.page.locator("#label").fill(label)
        self.press("Enter")

    def correct(self, gold: dict[tuple[int, int], str]) -> int:
        """Make the tree on the page the gold tree; return how many corrections that took."""
        edits = 0
        for span, label in sorted(gold.items(), key=lambda one: one[0][0] - one[0][1]):
            if self.shown().get(span) != label:
                self.label(*span, label)
                edits += 1
        while extra := set(self.shown()) - set(gold):
            start, end = min(extra, key=lambda span: (span[1] - span[0], span))
            self.page.locator(f"#n{start}-{end}").click()
            self.press("d")
            edits += 1
        assert self.shown() == gold
        return edits
