"""Report on input and failures: sentences read and lost, failed jobs, time and memory."""

import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from attree.base.errors import AttreeError
from attree.base.schemas import PARTLY_BRACKETED, REJECTED, read_table
from attree.base.tables import Table
from attree.plan.paths import SENTENCES_PATH, path_of
from attree.reports.page.run import ReportedRun

#: The line of a log with the error of a command.
_ERROR = re.compile(r"^attree: error: (.*)", re.M)
_LONGEST_LOG = 100_000
_REASONS = 3
#: Counts of sentences by what became of them.
_COUNTS = ("read", "skipped", "failed", "emptied")
#: The stages whose logs lie by language.
_BY_LANGUAGE = ("treebanks", "attention", "heads", "parses", "scores")


def treebanks(results: Path, run: ReportedRun) -> Table:
    """Return a table with a line for every treebank, including those that cannot be read."""
    why = {job["of"]: job["why"] for job in failures(results, run) if job["stage"] == "treebanks"}
    wanted = dict.fromkeys(f"{row.language}/{row.split}" for row in run.rows)
    present = [
        f"{path.parent.name}/{path.name.removesuffix('.parquet')}"
        for path in sorted((results / "treebanks").glob("*/*.parquet"))
        if not path.name.endswith(".rejected.parquet") and run.has(path.parent.name)
    ]
    lines = []
    for name in dict.fromkeys([*wanted, *present, *why]):
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
    table, facts = read_table(path, schema=PARTLY_BRACKETED)
    counts = [f"{facts['counts'].get(name, 0):,}" for name in _COUNTS]
    words = pc.sum(pc.list_value_length(table["words"])).as_py() or 0
    remarks = [*_reasons(path.with_suffix(".rejected.parquet")), facts.get("note", "")]
    shown = "; ".join(filter(None, remarks))
    return [facts["language"], facts["split"], *counts, f"{words:,}", facts["derived"], shown]


def _reasons(path: Path) -> list[str]:
    """Return the most frequent reasons for rejected sentences, each with its first occurrence."""
    if not path.is_file():
        return []
    rows = read_table(path, schema=REJECTED)[0].to_pylist()
    counts = Counter(row["reason"] for row in rows)
    first = {row["reason"]: f"{row['file']}:{row['line']}" for row in reversed(rows)}
    common = counts.most_common(_REASONS)
    reasons = [f"{count:,} × {reason} (first: {first[reason]})" for reason, count in common]
    more = len(counts) - _REASONS
    return [*reasons, f"{more} more reasons"] if more > 0 else reasons


def failures(results: Path, run: ReportedRun) -> list[dict[str, str]]:
    """Return ``stage``, ``of`` and ``why`` of the jobs whose log has an error, by stage.

    Languages that the run does not ask for are left out.
    """
    failed = []
    for log in sorted((results / "logs").rglob("*.log")):
        with log.open("rb") as handle:
            handle.seek(max(0, log.stat().st_size - _LONGEST_LOG))
            text = handle.read().decode("utf-8", "replace")
        stage, *of = log.relative_to(results / "logs").with_suffix("").parts
        unwanted = stage in _BY_LANGUAGE and not any(map(run.has, of))
        if (errors := _ERROR.findall(text)) and not unwanted:
            failed.append({"stage": stage, "of": "/".join(of), "why": errors[-1]})
    return failed


def speed(results: Path) -> Table | None:
    """Return a table of the stages' time and memory, as measured by Snakemake; None without any."""
    # stage → seconds, peak memory in MB, and number of sentences (0: unknown) of each job
    stages: dict[str, list[tuple[float, float, int]]] = {}
    for path in sorted((results / "benchmarks").rglob("*.tsv")):
        parts = path.relative_to(results / "benchmarks").with_suffix("").parts
        # attention/<encoder>/all and attention/<encoder>/selected are different jobs
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
    """Count the sentences of the treebank that a job's name ends in; 0 if it names none."""
    path = Path(path_of(SENTENCES_PATH, "/".join(parts[-2:]), results=results)).absolute()
    return int(pq.read_metadata(path).num_rows) if len(parts) > 2 and path.is_file() else 0


@contextlib.contextmanager
def note_errors(notes: list[str]) -> Iterator[None]:
    """Note an error about a file of the run, and skip the rest of the block."""
    try:
        yield
    except AttreeError as error:
        notes.append(str(error))
