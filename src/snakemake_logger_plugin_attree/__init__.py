"""``snakemake --logger attree``: progress on one line, and one line for a job that fails.

Snakemake finds a logger by the name of its module, so this one lies beside the package.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from logging import ERROR, LogRecord
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from attree.base.terminal import progress, safe

#: What Snakemake says besides of a job that failed; the job's own line says it better.
_ECHOES = ("RuleException", "CalledProcessError", "Exiting because", "At least one job", "Shutting")


class LogHandler(LogHandlerBase):
    """Shows how many jobs are done, and why one failed; everything else goes to Snakemake's log."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        """Begin without a bar: how many jobs there are is known later."""
        self._bar = ExitStack()
        self._advance: Any = None
        self._done = 0
        self._jobs: dict[Any, dict[str, Any]] = {}
        self._failures: list[str] = []
        self._done_since = False

    def emit(self, record: LogRecord) -> None:
        """Show one record, if it is one that people want to see."""
        try:
            self._show(record)
        except Exception:
            self.handleError(record)

    def _show(self, record: LogRecord) -> None:
        event = getattr(record, "event", None)
        if event == LogEvent.PROGRESS:
            self._progress(record.__dict__["done"], record.__dict__["total"])
        elif event == LogEvent.JOB_INFO:
            self._jobs[record.__dict__["jobid"]] = record.__dict__
        elif event in (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR):
            job = self._jobs.get(record.__dict__.get("jobid"), {}) | record.__dict__
            self._failures.append(_failure(job))
            self._done_since = False
            print(self._failures[-1], file=sys.stderr, flush=True)
        elif record.levelno >= ERROR and event in (None, LogEvent.ERROR):
            text = " ".join(record.getMessage().split())
            if text and text != "None" and not any(echo in text for echo in _ECHOES):
                print(f"snakemake: {safe(text)}", file=sys.stderr, flush=True)

    def _progress(self, done: int, total: int) -> None:
        if self._advance is None:
            self._advance = self._bar.enter_context(progress("workflow", total=total, unit="jobs"))
        self._advance(done - self._done)
        self._done = done
        self._done_since = True

    def close(self) -> None:
        """End the bar; say again what failed if other jobs went on after it (``--keep-going``)."""
        self._bar.close()
        if self._done_since:
            for line in self._failures:
                print(line, file=sys.stderr, flush=True)
        self._failures.clear()
        super().close()


def _failure(job: dict[str, Any]) -> str:
    """Return one line: which job failed, why, and where its log lies."""
    name = job.get("rule_name") or job.get("name") or "job"
    wildcards = ", ".join(f"{key}={value}" for key, value in (job.get("wildcards") or {}).items())
    logs = [Path(path) for path in job.get("log") or ()]
    reason = next(filter(None, map(_reason, logs)), "it left no message")
    which = f"{name} ({wildcards})" if wildcards else str(name)
    where = f" [{logs[0]}]" if logs else ""
    return f"attree: {safe(which)} failed: {safe(reason)}{where}"


def _reason(log: Path) -> str:
    """Return the last error that a job's log names, else its last line."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    errors = [line for line in lines if line.startswith("attree: error: ")]
    return errors[-1].removeprefix("attree: error: ") if errors else "".join(lines[-1:])
