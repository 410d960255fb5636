"""The page in a real browser: from raw text to a treebank, by keyboard and mouse."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attree.annotate.draft import proposed
from attree.annotate.folder import TREES
from attree.evaluation.metrics import count_each
from attree.evaluation.spans import distinct_spans
from attree.parsers.parser import Parser
from attree.treebank.formats import read_files, resolve
from attree.treebank.sentence import Sentence, SplitSettings
from attree.trees.trees import Trees
from tests.annotate.browser import Annotator, annotating

pytestmark = pytest.mark.full
#: Milliseconds: other tests may keep every core busy.
PATIENCE = 120_000
ODD = """\
<script>document.title = "gone"</script> is <b>text</b> & nothing else
הילד הלך הביתה עם הכלב שלו
나는 학교에 갔다 .
we sail tomorrow 😀 🚢 !
"""
LONG = " ".join(f"word{number}" for number in range(60))


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    found = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
    found.set_default_timeout(PATIENCE)
    wrong: list[str] = []
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("console", lambda said: wrong.append(said.text) if "Policy" in said.text else None)
    yield found
    found.context.close()
    assert not wrong


@pytest.fixture(scope="module")
def icelandic(data: Path) -> list[Sentence]:
    files = sorted(data.glob("constituency/is_greynir/devset/psd/*.gld"))[:60]
    read = read_files(files, resolve(SplitSettings(), files))
    short = [one for one in read if isinstance(one, Sentence) and 6 <= len(one.words) <= 14]
    assert len(short) > 60
    return short[::4][:50]


def gold(sentence: Sentence) -> dict[tuple[int, int], str]:
    return proposed(sentence.spans)


def f1(parser: str, sentences: list[Sentence]) -> float:
    """Unlabelled corpus F1."""
    trees, _ = Parser.load(parser, device="cpu").trees([list(one.words) for one in sentences])
    wide = [[span for span in gold(one) if span[1] - span[0] > 1] for one in sentences]
    right = Trees.from_spans([len(one.words) for one in sentences], wide)
    return float(count_each(distinct_spans(right, what="gold tree"), trees).corpus_f1[0])


def corrected(
    text: Path, output: Path, sentences: list[Sentence], page: Any, *, every: int
) -> tuple[list[int], str]:
    """Correct the proposals for some sentences; return the edits of each, and what was said."""
    edits = []
    how = ("--tokenizer", "whitespace", "--every", f"{every}")
    with annotating(text, output, *how) as running:
        page.goto(running.link)
        her = Annotator(page)
        for number, sentence in enumerate(sentences, start=1):
            assert her.words() == sentence.words
            edits.append(her.correct(gold(sentence)))
            her.press("a")
            if number % every == 0:  # a person is not as fast
                page.locator("#proposer", has_text=f"trained on {number} trees").wait_for()
        assert "All sentences are done" in page.inner_text("#where")
        print(f"edits {edits}; seconds a correction {sum(her.seconds) / len(her.seconds):.3f}")
        return edits, running.end()


def test_from_raw_text_to_a_parser_that_parses_better(
    icelandic: list[Sentence], page: Any, tmp_path: Path
) -> None:
    annotated, others = icelandic[:20], icelandic[20:]
    text, output = tmp_path / "text.txt", tmp_path / "treebanks/icelandic"
    text.write_text("".join(" ".join(one.words) + "\n" for one in annotated), encoding="utf-8")
    edits, said = corrected(text, output, annotated, page, every=5)
    assert f"20 trees saved, 20 in all: {output / TREES}" in said
    saved = list(read_files([output / TREES], resolve(SplitSettings(), [output / TREES])))
    assert [gold(one) for one in saved] == [gold(one) for one in annotated]  # type: ignore[arg-type]
    # the ready parser's proposals for the same sentences, of which it learns nothing
    as_before, _ = corrected(text, tmp_path / "untrained", annotated, page, every=100)
    assert edits[:5] == as_before[:5]
    assert sum(edits[5:]) < sum(as_before[5:])
    command = said.rpartition("next: ")[2].strip().replace("attree ", "-m attree.cli.main ", 1)
    subprocess.run([sys.executable, *command.split()], cwd=tmp_path, check=True)
    before, after = f1("upio-log", others), f1(str(tmp_path / "parsers/icelandic"), others)
    print(f"F1 {before:.1f} before, {after:.1f} after")
    assert after > before


def test_every_correction_by_keyboard_and_by_mouse(page: Any, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the old man lived near the harbour .\nthe cat ran home\n", encoding="utf-8")
    with annotating(text, tmp_path / "bank", "--tokenizer", "whitespace") as running:
        page.goto(running.link)
        her = Annotator(page)
        her.select(0, 3)
        her.press("j")
        assert (0, 3) in her.shown()
        her.press("Shift+ArrowRight")  # its end
        assert (0, 4) in her.shown() and page.evaluate("document.activeElement.id") == "n0-4"
        her.press("Alt+ArrowRight")  # its start
        assert (1, 4) in her.shown()
        her.press("x")
        assert (1, 4) not in her.shown()
        her.press("Control+z")
        assert (1, 4) in her.shown()
        page.locator("#w4").focus()
        for _ in range(2):
            page.keyboard.press("Shift+ArrowRight")
        her.press("Enter")
        assert (4, 7) in her.shown()
        page.locator("#w5").hover()
        page.mouse.down()
        page.locator("#w6").hover()
        page.mouse.up()
        page.locator("#label").fill("NP")
        her.wait(lambda: page.get_by_role("button", name="Set").click())
        assert her.shown()[5, 7] == "NP"
        box = page.locator("#w4").bounding_box()
        page.locator("[data-handle=start]").hover()
        page.mouse.down()
        page.mouse.move(box["x"] + 5, box["y"] + 5, steps=4)
        her.wait(page.mouse.up)
        assert her.shown()[4, 7] == "NP"
        page.locator("#n0-8").click()
        her.press("f")
        inside = {(1, 3), (2, 4), (5, 7)}  # of phrases that are settled
        assert {(0, 8), (1, 4), (4, 7)} <= set(her.shown()) <= {(0, 8), (1, 4), (4, 7), *inside}
        her.wait(lambda: page.get_by_role("button", name="Accept").click())
        assert her.words() == ("the", "cat", "ran", "home")
        page.reload()
        page.wait_for_selector("#tree .node")
        assert her.words() == ("the", "cat", "ran", "home")
        her.press("s")
        assert "All sentences are done" in page.inner_text("#where")
        assert "1 tree saved" in running.end()


def test_odd_text_is_shown_as_text(page: Any, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(ODD + LONG + "\n", encoding="utf-8")
    with annotating(text, tmp_path / "bank", "--tokenizer", "whitespace") as running:
        page.goto(running.link)
        her = Annotator(page)
        for line in [*ODD.splitlines(), LONG]:
            assert her.words() == tuple(line.split())
            first, last = (
                page.locator(f"#w{at}").bounding_box() for at in (0, len(line.split()) - 1)
            )
            leftwards = "א" <= line[0] <= "ת"
            assert (first["x"] > last["x"]) == leftwards
            wide = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert wide, "the page itself never scrolls sideways"
            if leftwards:
                page.locator("#w0").focus()
                page.keyboard.press("ArrowLeft")
                assert page.evaluate("document.activeElement.id") == "w1"
            her.press("a")
        assert page.title() == "attree annotate"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_axe_finds_nothing(browser: Any, tmp_path: Path, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-core")
    text = tmp_path / "text.txt"
    text.write_text("the old man lived near the harbour .\nthe cat ran\n" + ODD, encoding="utf-8")
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    with annotating(
        text, tmp_path / "bank", "--tokenizer", "whitespace", "--every", "1"
    ) as running:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(running.link)
        her = Annotator(page)
        her.label(0, 3, "NP")
        page.locator("summary").click()
        states = [axe.Axe().run(page)]
        page.locator("#n0-3").focus()
        her.press("a")
        page.locator("#proposer", has_text="trained on 1 tree").wait_for()
        states.append(axe.Axe().run(page))
        for found in states:
            assert not found.response["violations"], found.generate_report()
    context.close()
