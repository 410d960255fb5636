"""The page itself: a template filled with the content, scripts and styles inlined."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from attree.errors import AttreeError
from attree.files import write_text
from attree.report.content import content

#: The charting library that lies in Snakemake's package, in the order in which it is loaded.
_CHARTS = ("vega/vega.js", "vega-lite/vega-lite.js", "vega-embed/vega-embed.js")


def write_page(results: Path, output: Path, *, sentences: int = 60) -> None:
    """Write the page about a folder of results.

    Args:
        results: the workflow's folder.
        output: the page, whole or not at all.
        sentences: as for :func:`attree.report.content.content`.

    Raises:
        AttreeError: there is no table yet, or Snakemake (whose charting library the page uses) is
            not installed.
    """
    from jinja2 import Environment, FileSystemLoader

    found = content(results, sentences=sentences)
    if not found["tables"]:
        raise AttreeError("no tables here yet", file=results, fix="run `snakemake tables` first")
    here = Path(__file__).parent
    templates = Environment(loader=FileSystemLoader(here), autoescape=True)
    page = templates.get_template("page.html.j2").render(
        **found,
        run=_sentences(found),
        data=embedded(found),
        charts=[_script(path.read_text(encoding="utf-8")) for path in _charts()],
        script=(here / "page.js").read_text(encoding="utf-8"),
        style=(here / "page.css").read_text(encoding="utf-8"),
    )
    write_text(output, page)


def embedded(value: Any) -> str:
    """Return JSON that may stand inside ``<script>``: no text in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _script(text: str) -> str:
    return text.replace("</script", "<\\/script")


def _charts() -> list[Path]:
    found = importlib.util.find_spec("snakemake")  # found, not imported
    if found is None or found.origin is None:
        raise AttreeError(
            "the report needs the charting library that comes with Snakemake",
            fix="pip install 'attree[workflow]'",
        )
    folder = Path(found.origin).parent / "assets/data"
    return [folder / name for name in _CHARTS]


def _sentences(found: dict[str, Any]) -> str:
    """Say in three sentences what was run."""
    parsers = sorted({row["parser"] for row in found["scores"] if row["encoder"] != "none"})
    encoders = sorted({row["encoder"] for row in found["scores"] if row["encoder"] != "none"})
    languages = sorted({row["language"] for row in found["scores"]})
    return (
        f"attree drew constituency trees out of the attention of {', '.join(encoders)} for "
        f"{len(languages)} {'language' if len(languages) == 1 else 'languages'}: "
        f"{', '.join(languages)}. "
        f"The parsers were {', '.join(parsers)}; beside them stand trees that need no parser "
        "(right and left branching, balanced, random) and the best that a binary tree can reach. "
        "Every figure is F1 in percent: how many of the spans of the gold trees were found, and "
        "how many of those found are right."
    )
