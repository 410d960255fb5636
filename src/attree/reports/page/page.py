"""The page itself: content from a folder of results, in a template with scripts and styles."""

import base64
import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from attree.base.errors import AttreeError
from attree.base.files import write_text
from attree.base.provenance import versions
from attree.base.reading import read_json
from attree.base.schemas import WORDS_SHOWN, read_table
from attree.base.tables import COMPUTED, Table, number, saved_tables
from attree.base.terminal import safe
from attree.evaluation import HEADINGS
from attree.parsers.reading import BADLY
from attree.plan.paths import RUN, TableRow, path_of
from attree.reports.page import charts, reading, scores
from attree.reports.page.explorer import explorer
from attree.reports.page.run import ReportedRun
from attree.reports.tables.summaries import SHOWN, ScoreRow, by_test, confusion_table, language

_HERE = Path(__file__).parent
#: Trees shown of each test set, half of them the worst.
_TREES_SHOWN = 60
#: The page's scripts, in the order in which they run.
_SCRIPTS = ("page.js", "explorer.js")


def write_page(results: Path, output: Path, *, run: Path | None = None) -> None:
    """Write the page about a folder of results.

    Args:
        results: the workflow's folder of results.
        output: path of the page, written whole or not at all.
        run: path of the run's request; by default ``report/run.json`` of the results, if it
            exists.

    Raises:
        AttreeError: there are no scores.
    """
    from jinja2 import Environment, FileSystemLoader

    usual = Path(path_of(RUN, results=results))
    request = ReportedRun.read(run or (usual if usual.is_file() else None))
    shown = content(results, request, sentences=_TREES_SHOWN)
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


_PACKAGES = ("numpy", "pyarrow", "torch", "transformers")


def content(results: Path, run: ReportedRun, *, sentences: int) -> dict[str, Any]:
    """Gather the content of the page; results that are missing are left out.

    Args:
        results: the workflow's folder of results.
        run: the request of the run.
        sentences: most sentences shown of each test set.

    Raises:
        AttreeError: there are no scores.
    """
    rows, tables = scores.read_scores(results, run)
    scored, notes = {row.key for row in rows}, list(run.warnings)
    if not (parsers := [row for row in rows if not row.is_baseline]):
        fix = "run `snakemake` first"
        raise AttreeError("no-scores", "this folder has no scores yet", file=results, fix=fix)
    notes += [
        f"{row.heading} reads {row.language} badly: headed precision {figure:.0f} (English has 91)."
        for row in parsers
        if (figure := row.values.get("headed_precision") or BADLY) < BADLY
    ]
    headings = {row.parser: row.heading for row in rows}
    across = [x for x in tables if x.title.endswith(f": {HEADINGS['corpus_f1']}")]
    settings = yaml.safe_dump(run.configuration, sort_keys=False, allow_unicode=True, width=100)
    return {
        "sentences": scores.sentences(run, rows),
        "in_short": scores.in_short(rows),
        "across": [(table, scores.best_cells(table)) for table in across],
        "across_more": [table for table in tables if table not in across],
        "missing": [f"{x.parser} on {x.language} {x.split}" for x in run.rows if x not in scored],
        "failures": reading.failures(results, run),
        "bars": _bars(rows),
        "marks": [(sign, headings.get(name, name)) for name, (_, sign) in charts.MARKS.items()],
        "languages": language(rows, confusion=False),
        "labels": _labels(rows),
        "heads": [
            charts.heads(path, results)
            for folder in dict.fromkeys(f"{row.encoder}/{row.parser}" for row in parsers)
            for path in sorted((results / "heads" / folder).glob("*/*.parquet"))
            if run.ranks(TableRow(*path.relative_to(results / "heads").with_suffix("").parts))
        ],
        "trees": explorer(results, rows, sentences, notes),
        "longest": WORDS_SHOWN,
        "treebanks": reading.treebanks(results, run),
        "experiments": [
            _experiment(path)
            for path in sorted((results / "experiments/tables").glob("*.parquet"))
            if "." not in path.stem  # tables of an experiment's figures have a dot
        ],
        "speed": reading.speed(results),
        "configuration": run.configuration and settings.splitlines(),
        "encoders": _encoders(results, parsers),
        "versions": {"Python": platform.python_version(), **versions(*_PACKAGES)},
        "notes": list(dict.fromkeys(notes)),
    }


def _bars(rows: Sequence[ScoreRow]) -> list[dict[str, str]]:
    entries = []
    for test, test_rows in by_test(rows).items():
        derived, name = test_rows[0].derived, " ".join(test)
        kind = "" if derived == "constituency" else f"{derived}-derived brackets"
        count = f"{max(row.scored for row in test_rows):,}"
        chart = charts.bars(test_rows, rows, name)
        entries.append({"name": name, "kind": kind, "count": count, "chart": chart})
    return entries


def _labels(rows: Sequence[ScoreRow]) -> list[dict[str, Any]]:
    """Return a heat map and a table of the confusion of labels for each row that has one."""
    maps = []
    for row in rows:
        if row.confusion is not None:
            title = f"{row.language} {row.split}: labels of {scores.name_of(row, rows)}"
            f1 = f"labelled F1 {number(row.values['labelled_f1'])}"
            shown = charts.labels(row.confusion.most_frequent(SHOWN), f"{title}, {f1}")
            maps.append({"map": shown, "counts": confusion_table(row.confusion, f"{title}, spans")})
    return maps


def _experiment(path: Path) -> dict[str, Any]:
    table, metadata = read_table(path)
    layout: Mapping[str, Any] = metadata.get("settings", {})
    rows = table.to_pylist()
    lines = [x for x in rows if x.get("source") == COMPUTED and x.get("corpus_f1") is not None]
    drawn = layout.get("axis") not in (None, "test") and len({row["column"] for row in lines}) > 1
    title = str(layout.get("title", path.stem))
    files = {x: path.with_name(f"{path.stem}.{x}.parquet") for x in ("weights", "sentence")}
    return {
        "title": title,
        "tables": saved_tables(path),
        "chart": charts.lines(rows, title, str(layout["axis"])) if drawn else "",
        "maps": {kind: charts.maps(file) for kind, file in files.items() if file.is_file()},
    }


#: column of the table of encoders → key of an encoder's description
_ENCODER = {
    "from": "id",
    "revision": "revision",
    "fingerprint": "fingerprint",
    "family": "family",
    "layers": "n_layers",
    "heads": "n_heads",
    "numbers": "dtype",
}


def _encoders(results: Path, parsers: Sequence[ScoreRow]) -> Table | None:
    """Return a table of the encoders: source, revision, fingerprint and size."""
    lines = []
    for slug in dict.fromkeys(row.encoder for row in parsers):
        if (path := results / "encoders" / f"{slug}.json").is_file():
            encoder = read_json(path, what="encoder")
            lines.append([slug, *(str(encoder.get(key) or "–") for key in _ENCODER.values())])
    return Table("Encoders", ["encoder", *_ENCODER], lines) if lines else None
