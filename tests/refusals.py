"""What a test asks of an error that a user can mend: its code and its place, not its English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from attree.base.errors import AttreeError


@contextmanager
def refused(
    code: str, *words: str, file: str | Path | None = None, line: int | None = None
) -> Iterator[pytest.ExceptionInfo[AttreeError]]:
    """Expect an error with ``code`` at a place.

    Args:
        code: the error's code, whole.
        words: names, numbers and options that its line has, whole: no English.
        file: the name of the file at fault, or its path.
        line: the line at fault.
    """
    with pytest.raises(AttreeError) as caught:
        yield caught
    error = caught.value
    shown = f"[{error.code}] {error}"
    assert error.code == code, shown
    for word in words:
        assert re.search(rf"(?<!\w){re.escape(word)}(?!\w)", str(error)), f"{word!r}: {shown}"
    if file is not None:
        place = Path(error.file or "")
        assert file in (error.file, place, place.name), shown
    if line is not None:
        assert error.line == line, shown
