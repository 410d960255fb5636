"""Errors that a user can mend, each in one line: where, what is wrong, what to do."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

#: Environment variable that prints tracebacks, as ``--debug`` does; the workflow sets it.
DEBUG = "ATTREE_DEBUG"


class AttreeError(Exception):
    """A problem in the input or the configuration, in one line.

    The command line prints ``str(error)`` without a traceback and exits with status 1.

    Args:
        code: the kind of problem, such as ``missing-file``: programs and tests check it, and it
            stays when the words change. Several places may share a code.
        problem: what is wrong, in plain words.
        file: the file at fault, if one is.
        line: its 1-based line, if one is known.
        fix: what the user can do about it.
    """

    def __init__(
        self,
        code: str,
        problem: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        fix: str | None = None,
    ) -> None:
        self.code, self.problem = code, problem
        self.file, self.line, self.fix = file, line, fix
        where = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(f"{where}{problem}" + (f" — {fix}" if fix else ""))

    def replace(self, **other: Any) -> AttreeError:
        """Return the same error with another ``problem``, ``file``, ``line`` or ``fix``."""
        parts: dict[str, Any] = vars(self) | other
        return AttreeError(**parts)

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the parts when the error is pickled (for a Dask worker)."""
        return partial(type(self), **vars(self)), ()


def errno_of(error: BaseException) -> int | None:
    """Return the number of an error of the system; Rust's libraries write it into a message."""
    number: int | None = getattr(error, "errno", None)
    told = re.search(r"\(os error (\d+)\)", str(error)) if number is None else None
    return int(told[1]) if told else number


class NotFiniteError(AttreeError):
    """An association or a score that is NaN or infinite."""
