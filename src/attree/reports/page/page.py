"""The page itself: a template filled with the content, scripts and styles inlined."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from attree.base.files import write_text
from attree.base.text import safe
from attree.plan.paths import RUN, path_of
from attree.reports.page.run import ReportedRun

_HERE = Path(__file__).parent
#: The page's scripts, in the order in which they run.
_SCRIPTS = ("page.js", "explorer.js")


def write_page(
    results: Path, output: Path, *, sentences: int = 60, run: Path | None = None
) -> None:
    """Write the page about a folder of results.

    Args:
        results: the workflow's folder of results.
        output: path of the page, written whole or not at all.
        sentences: as for :func:`attree.reports.page.content.content`.
        run: path of the run's request; by default ``report/run.json`` of the results, if it
            exists.

    Raises:
        AttreeError: there are no scores.
    """
    from jinja2 import Environment, FileSystemLoader

    from attree.reports.page.content import content

    usual = Path(path_of(RUN, results=results))
    request = ReportedRun.read(run or (usual if usual.is_file() else None))
    shown = content(results, request, sentences=sentences)
    templates = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    # make control characters visible; markup that is safe already is no plain str
    templates.finalize = lambda value: safe(value) if type(value) is str else value
    scripts = [(_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    digests = [hashlib.sha256(script.encode("utf-8")).digest() for script in scripts]
    page = templates.get_template("page.html.j2").render(
        **shown,
        data=embedded(shown["trees"]),
        scripts=scripts,
        # the content security policy allows only scripts with these hashes
        hashes=[f"sha256-{base64.b64encode(digest).decode()}" for digest in digests],
        style=(_HERE / "page.css").read_text(encoding="utf-8"),
    )
    write_text(output, page)


def embedded(value: Any) -> str:
    """Return JSON that is safe inside ``<script>``: no text in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
