"""What the report says of input and failures: sentences read and lost, jobs that failed, time."""

from __future__ import annotations

import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from attree.base.errors import AttreeError
from attree.base.schemas import REJECTED, SENTENCES_SCHEMA, read_table
from attree.base.tables import Table
from attree.plan.paths import SENTENCES_PATH, path_of
from attree.reports.page.run import ReportedRun

#: What a log says of the command that failed.
_ERROR = re.compile(r"^attree: error: (.*)", re.M)
_LONGEST_LOG = 100_000
_REASONS = 3
#: What becomes of a sentence.
_COUNTS = ("read", "skipped", "failed", "emptied")
#: The stages whose logs lie by language.
_BY_LANGUAGE = ("treebanks", "attention", "heads", "parses", "scores")


def treebanks(results: Path, run: ReportedRun) -> Table:
    """Return what became of every treebank: a line each, those that cannot be read too."""
    why = {one["of"]: one["why"] for one in failures(results, run) if one["stage"] == "treebanks"}
    wanted = dict.fromkeys(f"{language}/{split}" for _, _, language, split in run.rows)
    there = [
        f"{path.parent.name}/{path.name.removesuffix('.parquet')}"
        for path in sorted((results / "treebanks").glob("*/*.parquet"))
        if not path.name.endswith(".rejected.parquet") and run.has(path.parent.name)
    ]
    lines = []
    for name in dict.fromkeys([*wanted, *there, *why]):
        path = Path(path_of(SENTENCES_PATH, name, results=results))
        lost = f"refused: {why[name]}" if name in why else "not read yet"
        lines.append(_line(path) if path.is_file() else _lost(*name.partition("/")[::2], lost))
    lines += [_lost(name, "–", f"refused: {problem}") for name, problem in run.problems.items()]
    headings = ["language", "split", *_COUNTS, "words", "brackets", "remarks"]
    note = (
        "Skipped: left out on purpose, such as trees that are not projective. Failed: trees that "
        "cannot be read. Emptied: cleaning left no word."
    )
    return Table("Treebanks", headings, lines, note)


def _lost(language: str, split: str, why: str) -> list[str]:
    return [language, split, *["–"] * (len(_COUNTS) + 2), why]


def _line(path: Path) -> list[str]:
    table, about = read_table(path, schema=SENTENCES_SCHEMA)
    counts = [f"{about['counts'].get(name, 0):,}" for name in _COUNTS]
    words = pc.sum(pc.list_value_length(table["words"])).as_py() or 0
    remarks = [*_reasons(path.with_suffix(".rejected.parquet")), about.get("note", "")]
    shown = "; ".join(filter(None, remarks))
    return [about["language"], about["split"], *counts, f"{words:,}", about["derived"], shown]


def _reasons(path: Path) -> list[str]:
    """Return why sentences were not read, the most frequent reasons, each with its first place."""
    if not path.is_file():
        return []
    rows = read_table(path, schema=REJECTED)[0].to_pylist()
    counts = Counter(row["reason"] for row in rows)
    first = {row["reason"]: f"{row['file']}:{row['line']}" for row in reversed(rows)}
    common = counts.most_common(_REASONS)
    reasons = [f"{count:,} × {why} (first: {first[why]})" for why, count in common]
    more = len(counts) - _REASONS
    return [*reasons, f"{more} more reasons"] if more > 0 else reasons


def failures(results: Path, run: ReportedRun) -> list[dict[str, str]]:
    """Return the jobs whose log ends in an error: ``stage``, ``of`` and ``why``, by stage.

    A language that the run no longer asks for is left out.
    """
    found = []
    for log in sorted((results / "logs").rglob("*.log")):
        with log.open("rb") as handle:
            handle.seek(max(0, log.stat().st_size - _LONGEST_LOG))
            text = handle.read().decode("utf-8", "replace")
        stage, *of = log.relative_to(results / "logs").with_suffix("").parts
        gone = stage in _BY_LANGUAGE and not any(map(run.has, of))
        if (said := _ERROR.findall(text)) and not gone:
            found.append({"stage": stage, "of": "/".join(of), "why": said[-1]})
    return found


def speed(results: Path) -> Table | None:
    """Return time and memory of the stages, as Snakemake measured them; None without any."""
    # seconds, MB at most, and sentences worked on (0: unknown) of each job
    stages: dict[str, list[tuple[float, float, int]]] = {}
    for path in sorted((results / "benchmarks").rglob("*.tsv")):
        parts = path.relative_to(results / "benchmarks").with_suffix("").parts
        # attention/<encoder>/all and attention/<encoder>/selected are two kinds of job
        stage = " ".join((parts[0], parts[2])) if parts[0] == "attention" else parts[0]
        sentences = _n_sentences(results, parts)
        with path.open(encoding="utf-8", newline="") as handle:
            for row in csv.DictReader(handle, delimiter="\t"):
                # a job too short to be measured has NA
                with contextlib.suppress(KeyError, TypeError, ValueError):
                    job = float(row["s"]), float(row["max_rss"]), sentences
                    stages.setdefault(stage, []).append(job)
    lines = []
    for stage, jobs in stages.items():
        times, memory, counts = zip(*jobs, strict=True)
        seconds, longest, most = f"{sum(times):,.1f}", f"{max(times):,.1f}", f"{max(memory):,.0f}"
        rate = f"{sum(counts) / sum(times):,.1f}" if sum(counts) and sum(times) else "–"
        lines.append([stage, f"{len(jobs):,}", seconds, longest, rate, most])
    headings = ["stage", "jobs", "seconds", "longest job", "sentences a second", "most memory, MB"]
    note = "Each job's time includes its start, which for small treebanks is most of it."
    return Table("Time of the stages that compute", headings, lines, note) if lines else None


def _n_sentences(results: Path, parts: tuple[str, ...]) -> int:
    """Return the sentences of the treebank that a job's name ends in, 0 where it names none."""
    path = Path(path_of(SENTENCES_PATH, "/".join(parts[-2:]), results=results))
    return int(pq.read_metadata(path).num_rows) if len(parts) > 2 and path.is_file() else 0


@contextlib.contextmanager
def noted(notes: list[str]) -> Iterator[None]:
    """Note what is wrong with a damaged file of the run, and leave the rest of the block out."""
    try:
        yield
    except AttreeError as error:
        notes.append(str(error))
