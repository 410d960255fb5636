"""The page in a real browser: nothing leaves it, nothing is wrong, and it shows the tables."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attree.base.schemas import PARSES_SCHEMA, SENTENCES_SCHEMA, read_table
from attree.evaluation.rows import SCORES_SCHEMA
from tests.reports.conftest import EVIL, TREEBANKS


@pytest.fixture
def opened(browser: Any, page: Path) -> Iterator[Any]:
    """Open the page at a width; in the end nothing was fetched and nothing went wrong."""
    said: list[str] = []
    contexts = []

    def open_page(width: int = 1400, scheme: str = "light", **more: Any) -> Any:
        size = {"width": width, "height": 900}
        contexts.append(browser.new_context(viewport=size, color_scheme=scheme, **more))
        tab = contexts[-1].new_page()
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("dialog", lambda dialog: said.append(f"dialog {dialog.message}"))
        tab.on("request", lambda request: said.append(request.url))
        tab.goto(page.as_uri())
        return tab

    yield open_page
    for one in contexts:
        one.close()
    assert [line for line in said if line != page.as_uri() and not line.startswith("data:")] == []


def drawn(tab: Any, place: str) -> list[list[int]]:
    """Return the spans of the tree drawn in a place, in order."""
    nodes = tab.eval_on_selector_all(
        f"#{place} .node", "all => all.map(n => [+n.dataset.start, +n.dataset.end])"
    )
    return sorted(nodes)


def check_sentence(tab: Any, results: Path, language: str, parser: str) -> None:
    """Compare the sentence that is shown with the tables."""
    number = int(tab.inner_text("#about").split()[1].rstrip(":")) - 1
    place = f"tiny/{parser}/{language}/test.parquet"
    row, parse, scores = (
        read_table(results / path, schema=schema)[0].slice(number, 1).to_pylist()[0]
        for path, schema in (
            (f"treebanks/{language}/test.parquet", SENTENCES_SCHEMA),
            (f"parses/{place}", PARSES_SCHEMA),
            (f"scores/{place}", SCORES_SCHEMA),
        )
    )
    words = tab.eval_on_selector_all("#gold text[data-word]", "all => all.map(w => w.textContent)")
    assert words == row["words"]
    whole = [0, len(words)]
    expected = {
        "gold": [[s, e] for s, e in zip(row["starts"], row["ends"], strict=True) if e - s > 1],
        "predicted": [list(span) for span in zip(parse["starts"], parse["ends"], strict=True)],
    }
    for side, spans in expected.items():
        known = sorted({tuple(span) for span in [*spans, whole]})
        assert [tuple(span) for span in drawn(tab, side)] == known
    f1 = scores["sentence_f1"]
    assert f"F1 {'–' if f1 is None else format(f1, '.2f')};" in tab.inner_text("#about")
    only = {tuple(s) for s in expected["predicted"]} - {tuple(s) for s in expected["gold"]}
    assert tab.locator("#predicted .node.only").count() == len(only - {tuple(whole)})


def test_it_opens_and_shows_a_sentence(opened: Any, results: Path) -> None:
    tab = opened()
    check_sentence(tab, results, "english", "upoa")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 800, 1400])
def test_nothing_scrolls_sideways_and_axe_finds_nothing(
    opened: Any, width: int, scheme: str
) -> None:
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        pytest.skip("axe-playwright-python, which brings axe-core, is not installed")
    tab = opened(width, scheme, bypass_csp=True)
    tab.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.evaluate((Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8"))
    report = tab.evaluate("axe.run()")
    wrong = [(one["id"], one["nodes"][0]["html"]) for one in report["violations"]]
    assert wrong == []
    assert len(report["passes"]) > 20


@pytest.mark.full
@pytest.mark.parametrize("width", [400, 1400])
def test_every_sentence_of_every_parser_is_as_the_tables_have_it(
    opened: Any, results: Path, width: int
) -> None:
    tab = opened(width)
    seen = set()
    for language in TREEBANKS:
        tab.select_option("#set", label=f"{language} test")
        for parser in ("upoa", "upio"):
            tab.select_option("#parser", label=f"{parser}, tiny")
            for _ in range(tab.locator("#sentence option").count()):
                check_sentence(tab, results, language, parser)
                seen.add((language, parser, tab.inner_text("#about").split()[1]))
                tab.click("#after")
    assert len(seen) == 2 * sum(map(len, TREEBANKS.values()))


@pytest.mark.parametrize("wish", ["down", "across"])
def test_a_tree_crf_says_how_probable_its_phrases_are(
    opened: Any, results: Path, wish: str
) -> None:
    tab = opened()
    tab.select_option("#parser", label="tree-crf, tiny")
    tab.select_option("#draw", wish)
    check_sentence(tab, results, "english", "tree-crf")
    labels = tab.locator("#predicted .node .label").all_text_contents()
    assert set(labels) == {"25 %"}
    inner = tab.locator("#predicted .node:not([data-start='0'])").first
    assert inner.get_attribute("aria-label").endswith(", probability 0.25")
    words = tab.locator("#gold text[data-word]").count()
    assert tab.locator("#matrix .cell").count() == words**2
    boxes = tab.eval_on_selector_all(
        "#predicted .label", "all => all.map(one => one.getBoundingClientRect().toJSON())"
    )
    svg = tab.locator("#predicted svg").bounding_box()
    assert all(svg["x"] <= box["left"] and box["right"] <= svg["x"] + svg["width"] for box in boxes)


@pytest.mark.full
def test_filters_and_order(opened: Any) -> None:
    tab = opened()
    listed = "#sentence option"
    first = [float(text.split()[1]) for text in tab.locator(listed).all_inner_texts()[:4]]
    assert first == sorted(first)
    tab.fill("#search", "OLD town")
    assert tab.locator(listed).count() == 1 and "the old town" in tab.inner_text(listed)
    tab.fill("#search", "no such word")
    assert "No sentence" in tab.inner_text("#about")
    tab.fill("#search", "")
    tab.fill("#n-to", "4")
    assert all(" 3 words" in t or " 1 words" in t for t in tab.locator(listed).all_inner_texts())
    tab.fill("#n-to", "99")
    tab.select_option("#order", "treebank")
    assert EVIL in tab.locator(listed).first.inner_text()
    assert tab.inner_text("#about").startswith("Sentence 1: ")  # of the treebank
    assert tab.locator("#gold text", has_text=EVIL).count() == 1


@pytest.mark.full
def test_keys_walk_the_tree_and_light_its_cells(opened: Any) -> None:
    tab = opened()
    tab.select_option("#order", "treebank")
    tab.select_option("#draw", "down")
    tab.focus("#gold .node")
    for key, label in (("ArrowDown", "NP"), ("ArrowRight", "VP"), ("ArrowDown", "NP")):
        tab.keyboard.press(key)
        assert tab.evaluate("document.activeElement.getAttribute('aria-label')").startswith(label)
    start, end = tab.evaluate(
        "(({ start, end }) => [+start, +end])(document.activeElement.dataset)"
    )
    lit = tab.eval_on_selector_all("#matrix .cell.lit", "all => all.length")
    assert lit == (end - start) ** 2
    words = tab.eval_on_selector_all("#gold text.lit", "all => all.map(w => +w.dataset.word)")
    assert words == list(range(start, end))
    assert tab.inner_text("#span").startswith("NP: a")
    tab.set_viewport_size({"width": 700, "height": 900})  # drawn anew, and still in its place
    tab.wait_for_function("document.activeElement.dataset.start")
    assert int(tab.evaluate("document.activeElement.dataset.start")) == start
    tab.select_option("#draw", "across")
    tab.focus("#gold .node")
    tab.keyboard.press("ArrowRight")
    assert tab.inner_text("#span").startswith("NP: The")


@pytest.mark.full
def test_right_to_left_runs_from_right_to_left(opened: Any) -> None:
    tab = opened()
    tab.select_option("#set", label="hebrew test")
    for wish in ("down", "across"):
        tab.select_option("#draw", wish)
        boxes = tab.eval_on_selector_all(
            "#gold text[data-word]", "all => all.map(w => w.getBoundingClientRect().right)"
        )
        root = tab.eval_on_selector("#gold .dot", "dot => dot.getBoundingClientRect().right")
        assert boxes == sorted(boxes, reverse=True) if wish == "down" else root > max(boxes)
        edges = tab.eval_on_selector(
            "#gold svg",
            "svg => [svg.getBoundingClientRect().left, svg.getBoundingClientRect().right]",
        )
        assert all(edges[0] <= box <= edges[1] for box in boxes)


@pytest.mark.full
def test_a_heading_sorts(opened: Any) -> None:
    tab = opened()
    table = tab.locator("#across table").first
    column = 2
    for expected in (True, False):
        table.locator("thead button").nth(column).click()
        cells = table.locator(f"tbody td:nth-child({column + 1})")
        shown = [float(text) for text in cells.all_inner_texts()]
        assert shown == sorted(shown, reverse=expected)
    assert table.locator("thead th").nth(column).get_attribute("aria-sort") == "ascending"


@pytest.mark.full
def test_paper_has_what_is_open_and_nothing_to_press(opened: Any) -> None:
    tab = opened(720)
    tab.emulate_media(media="print")
    for hidden in ("nav", "#choose", "#after", "#span"):
        assert not tab.is_visible(hidden), hidden
    for shown in ("#across table", "#gold svg", "#matrix svg", "#about"):
        assert tab.locator(shown).first.is_visible(), shown
    assert tab.evaluate("document.documentElement.scrollWidth") <= 720
    assert len(tab.pdf()) > 10_000
