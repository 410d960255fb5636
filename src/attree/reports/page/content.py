"""What the report shows, gathered from a folder of results as plain data."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attree.base.errors import AttreeError
from attree.base.files import read_json
from attree.base.provenance import versions
from attree.base.schemas import WORDS_SHOWN, read_table
from attree.base.tables import Table, number, saved_tables
from attree.plan.paths import SENTENCE_SCORES, path_of
from attree.reports.figures import COMPUTED, axis_of
from attree.reports.page import charts, reading, scores
from attree.reports.page.explorer import explorer
from attree.reports.page.run import ReportedRun
from attree.reports.tables.build import SHOWN, ScoreRow, SentenceCounts, confusion_table, language

_PACKAGES = ("numpy", "pyarrow", "torch", "transformers")
#: Sentence lengths that are shown together: up to so many words.
_LENGTHS = (10, 20, 30, 40)


def content(results: Path, run: ReportedRun, *, sentences: int) -> dict[str, Any]:
    """Gather everything that the page shows; what a run did not make is left out.

    Args:
        results: the workflow's folder.
        run: what was asked for.
        sentences: trees of each test set at most.

    Raises:
        AttreeError: there is no score yet.
    """
    found = scores.read_scores(results, run)
    rows, notes = found.rows, list(run.warnings)
    if not any(map(scores.is_parser, rows)):
        raise AttreeError(
            "no-scores", "no scores here yet", file=results, fix="run `snakemake` first"
        )
    return {
        "sentences": scores.sentences(run, rows),
        "in_short": scores.in_short(rows),
        "across": [(table, scores.best_cells(table)) for table in found.corpus_f1],
        "across_more": [table for table in found.tables if table not in found.corpus_f1],
        "missing": [f"{key[1]} on {key[2]} {key[3]}" for key in found.missing],
        "failures": reading.failures(results, run),
        "bars": _bars(rows),
        "marks": [(sign, _heading(rows, name)) for name, (_, sign) in charts.MARKS.items()],
        "lengths": _lengths(results, rows),
        "languages": [
            table
            for own in scores.by_set(rows).values()
            for table in language(own, confusion=False)
        ],
        "labels": _labels(rows),
        "heads": [charts.heads(path, results) for path in _rankings(results, rows)],
        "trees": explorer(results, rows, sentences, notes),
        "longest": WORDS_SHOWN,
        "treebanks": reading.treebanks(results, run),
        "experiments": _experiments(results),
        "speed": reading.speed(results),
        "configuration": _yaml(run.configuration).splitlines(),
        "encoders": _encoders(results, rows),
        "versions": {"Python": platform.python_version(), **versions(*_PACKAGES)},
        "notes": list(dict.fromkeys(notes)),
    }


def _heading(rows: Sequence[ScoreRow], name: str) -> str:
    return next((row.heading for row in rows if row.parser == name), name)


def _bars(rows: Sequence[ScoreRow]) -> list[dict[str, str]]:
    return [
        {
            "name": f"{name} {split}",
            "kind": ""
            if own[0].derived == "constituency"
            else f"{own[0].derived}-derived brackets",
            "count": f"{max(row.scored for row in own):,}",
            "chart": charts.bars(own, rows, f"{name} {split}"),
        }
        for (name, split), own in scores.by_set(rows).items()
    ]


def _lengths(results: Path, rows: Sequence[ScoreRow]) -> list[dict[str, Any]]:
    """Return a chart a test set: corpus F1 of its sentences by their length."""
    found = []
    for (name, split), own in scores.by_set([r for r in rows if scores.is_parser(r)]).items():
        points = [
            point for row in own for point in _by_length(results, row, scores.name_of(row, rows))
        ]
        if len({point["column"] for point in points}) > 1:
            title = f"{name} {split}"
            chart = charts.lines(points, f"F1 by sentence length on {title}", "length")
            found.append({"name": title, "chart": chart})
    return found


def _by_length(results: Path, row: ScoreRow, label: str) -> list[dict[str, Any]]:
    place = {"encoder": row.encoder, "parser": row.parser}
    path = Path(path_of(SENTENCE_SCORES, f"{row.language}/{row.split}", results=results, **place))
    if not path.is_file():
        return []
    each = SentenceCounts.read(path)
    table, _ = read_table(path)
    n_words = table.sort_by("sentence")["n_words"].to_numpy()
    bins = np.digitize(n_words, _LENGTHS, right=True)
    names = [f"{low + 1}–{high}" for low, high in zip((1, *_LENGTHS), _LENGTHS, strict=False)]
    found = []
    for index, words in enumerate([*names, f">{_LENGTHS[-1]}"]):
        inside = (bins == index) & (n_words > 1)
        f1 = each.f1(inside[None].astype(np.int64))["corpus_f1"][0]
        if np.isfinite(f1):
            column = f"{words}\n({inside.sum():,})"
            found.append({"label": label, "column": column, "source": COMPUTED,
                          "corpus_f1": float(f1), "corpus_f1_std": None})  # fmt: skip
    return found


def _labels(rows: Sequence[ScoreRow]) -> list[dict[str, Any]]:
    """Return which labels are taken for which, as a heat map and a table for each labelled row."""
    found = []
    for row in rows:
        if row.confusion is not None:
            title = f"{row.language} {row.split}: labels of {scores.name_of(row, rows)}"
            f1 = f"labelled F1 {number(row.values['labelled_f1'])}"
            shown = charts.labels(row.confusion.most_frequent(SHOWN), f"{title}, {f1}")
            counts = confusion_table(row.confusion, f"{title}, spans")
            found.append({"map": shown, "counts": counts})
    return found


def _rankings(results: Path, rows: Sequence[ScoreRow]) -> list[Path]:
    parsers = dict.fromkeys((row.encoder, row.parser) for row in rows)
    return [
        path
        for encoder, parser in parsers
        for path in sorted((results / "heads" / encoder / parser).glob("*/*.parquet"))
    ]


def _experiments(results: Path) -> list[dict[str, Any]]:
    """Return the experiments' tables, with charts of those that have an axis."""
    paths = sorted((results / "experiments/tables").glob("*.parquet"))
    # the numbers of an experiment's heat maps lie beside it
    return [_experiment(path) for path in paths if "." not in path.stem]


def _experiment(path: Path) -> dict[str, Any]:
    table, about = read_table(path)
    layout: Mapping[str, Any] = about.get("settings", {})
    rows = table.to_pylist()
    lines = [
        row for row in rows if row.get("source") == COMPUTED and row.get("corpus_f1") is not None
    ]
    drawn = layout.get("axis") not in (None, "test") and len({row["column"] for row in lines}) > 1
    title = str(layout.get("title", path.stem))
    beside = {
        kind: path.with_name(f"{path.stem}.{kind}.parquet") for kind in ("weights", "sentence")
    }
    return {
        "title": title,
        "tables": saved_tables(path),
        "chart": charts.lines(rows, title, axis_of(layout)) if drawn else "",
        **_reliability(path.with_name(f"{path.stem}.reliability.parquet"), title),
        "maps": {kind: charts.maps(file) for kind, file in beside.items() if file.is_file()},
    }


def _reliability(path: Path, title: str) -> dict[str, Any]:
    """Return how far an experiment's probabilities of spans can be believed: a chart, a table."""
    if not path.is_file():
        return {}
    rows = read_table(path)[0].to_pylist()
    lines = [
        [
            *(row["line"], row["kind"], f"{row['likely']:.3f}", f"{row['right']:.3f}"),
            f"{row['spans']:,}",
        ]
        for row in rows
    ]
    headings = ["parser", "probabilities", "mean probability", "share right", "spans"]
    note = "Spans of like probability together; well calibrated, the two columns are equal."
    table = Table("Probability of spans, and the share that is right", headings, lines, note)
    return {"reliability": charts.reliability(rows, title), "bins": table}


def _encoders(results: Path, rows: Sequence[ScoreRow]) -> Table | None:
    """Return what each encoder was: where it came from, its revision or fingerprint, its size."""
    lines = []
    for slug in dict.fromkeys(row.encoder for row in rows if scores.is_parser(row)):
        path = results / "encoders" / f"{slug}.json"
        if path.is_file():
            found = read_json(path, what="encoder")
            keys = ("id", "revision", "fingerprint", "family", "n_layers", "n_heads", "dtype")
            lines.append([slug, *(str(found.get(key) or "–") for key in keys)])
    headings = [
        "encoder",
        "from",
        "revision",
        "fingerprint",
        "family",
        "layers",
        "heads",
        "numbers",
    ]
    return Table("Encoders", headings, lines) if lines else None


def _yaml(configuration: Mapping[str, Any]) -> str:
    import yaml

    if not configuration:
        return ""
    plain = json.loads(json.dumps(configuration, default=str))
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)
