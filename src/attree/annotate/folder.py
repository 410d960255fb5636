"""Read and write the folder of a treebank under annotation: its trees and the log of actions.

The log tells which sentences earlier sessions have done, and with how many corrections.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec

from attree.base.errors import AttreeError
from attree.base.files import lock, whole_file
from attree.base.reading import read_bytes
from attree.base.terminal import say
from attree.treebank.language import treebank_files
from attree.treebank.pairing import read_whole
from attree.treebank.sentence import Sentence, SplitSettings

TREES, LOG, LOCK = "train.ptb", "annotations.jsonl", ".annotate.lock"

#: The first record of a log that attree wrote.
BEGIN = {"action": "begin", "program": "attree annotate"}

_CHANGED = "another program changed this file, so nothing was written"
_LARGEST = 1 << 30


class LogRecord(msgspec.Struct):
    """The keys of a log record that later runs read; its other keys are for people."""

    action: str
    program: str = ""
    words: tuple[str, ...] = ()
    edits: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    names: tuple[str, ...] = ()


def accepted(records: Iterable[LogRecord]) -> list[LogRecord]:
    """Return the records of sentences that were accepted and not taken back."""
    kept: list[LogRecord] = []
    for record in records:
        if record.action == "reopen":
            kept = [earlier for earlier in kept if earlier.words != record.words]
        elif record.action == "accept":
            kept.append(record)
    return kept


def order_of_labels(records: Iterable[LogRecord]) -> list[str]:
    """Return the labels in the order of their digits, as logged last."""
    return next((list(line.names) for line in reversed([*records]) if line.action == "labels"), [])


def finished(records: Iterable[LogRecord], saved: Iterable[Sentence]) -> set[tuple[str, ...]]:
    """Return the words of the sentences that have a tree in ``saved``, or were skipped.

    A sentence whose tree was removed from ``train.ptb`` by hand is shown again.
    """
    last = {line.words: line.action for line in records if line.action in ("skip", "reopen")}
    skipped = {words for words, action in last.items() if action == "skip"}
    return skipped | {sentence.words for sentence in saved}


def now() -> str:
    """Return the time in UTC, for the log."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Folder:
    """The two files of a treebank under annotation, as they are on disk.

    The text of the trees is kept, so that lines corrected by hand stay corrected.

    Args:
        path: path of the folder.

    Attributes:
        trees: text of ``train.ptb``, a tree on each line.
        log: text of ``annotations.jsonl``, an action on each line.

    Raises:
        AttreeError: a file of earlier runs cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._on_disk = {
            name: read_bytes(path / name, what="file", largest=_LARGEST)
            for name in (TREES, LOG)
            if (path / name).exists()
        }
        log = self._on_disk.get(LOG, b"").decode("utf-8", "replace")
        try:
            trees = self._on_disk.get(TREES, b"").decode()
        except UnicodeDecodeError:
            problem = "this file is not UTF-8"
            raise AttreeError("encoding", problem, file=path / TREES, fix="convert it") from None
        self.trees, self.log = (
            text + "\n" if text and not text.endswith("\n") else text for text in (trees, log)
        )

    @cached_property
    def records(self) -> list[LogRecord]:
        """The actions of earlier runs; a line that is no record is reported and left out."""
        records = []
        for number, line in enumerate(self.log.split("\n")[:-1], 1):
            try:
                records.append(msgspec.json.decode(line, type=LogRecord))
            except (msgspec.MsgspecError, RecursionError) as error:
                problem = str(error).replace("`", "")
                problem = f"this line is no record of `attree annotate` ({problem})"
                say(f"{self.path / LOG}:{number}: {problem} — it is left out")
        return records

    @cached_property
    def sentences(self) -> list[Sentence]:
        """The trees of earlier runs; one that cannot be read is reported and left out."""
        if not self.trees.strip():
            return []
        return list(read_whole([self.path / TREES], SplitSettings(functions="keep"), say))

    def save(self, trees: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Write trees and log; both are on disk before either is renamed.

        The attributes change only after both are written, so that a failed save can be repeated.

        Args:
            trees: the new text of ``train.ptb``.
            records: records to add to the log.

        Raises:
            AttreeError: another program changed one of the files.
            OSError: the disk is full, or the folder cannot be written.
        """
        log = self.log + "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in records)
        new = {LOG: log.encode(), TREES: trees.encode()}
        for name, content in self._on_disk.items():
            path = self.path / name
            if path.exists() and read_bytes(path, what="file", largest=_LARGEST) not in (
                content,
                new[name],  # of a save that ended between the two renames
            ):
                fix = "end attree annotate and start it again"
                raise AttreeError("changed-meanwhile", _CHANGED, file=path, fix=fix)
        with contextlib.ExitStack() as stack:  # the last entered, the trees, are renamed first
            for name, content in new.items():
                stack.enter_context(whole_file(self.path / name)).write_bytes(content)
        self.trees, self.log, self._on_disk = trees, log, new


def check(folder: Path) -> None:
    """Refuse a path that is no folder, or a folder with a treebank of other origin.

    Raises:
        AttreeError: it is a file, has links where attree writes, or holds trees that attree
            annotate did not make.
    """
    if (folder.exists() or folder.is_symlink()) and not folder.is_dir():
        problem = "the output is not a folder"
        raise AttreeError("not-a-folder", problem, file=folder, fix="name a new --output")
    for name in (TREES, LOG):
        if (folder / name).is_symlink():
            problem = f"{name} in this folder is a link"
            raise AttreeError("link", problem, file=folder, fix="name a new one")
    if _is_ours(folder / LOG):
        return
    others = [path.name for path in treebank_files(folder)]
    others += [name for name in (TREES, LOG) if (folder / name).exists() and name not in others]
    if others:
        problem = f"this folder holds a treebank that attree annotate did not make ({others[0]})"
        fix = "name a new folder with --output"
        raise AttreeError("foreign-folder", problem, file=folder, fix=fix)


def _is_ours(log: Path) -> bool:
    if not log.is_file():
        return False
    with log.open("rb") as handle, contextlib.suppress(ValueError, RecursionError):
        first = msgspec.json.decode(handle.readline(1 << 16), type=LogRecord)
        return first.action == BEGIN["action"] and first.program == BEGIN["program"]
    return False


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Folder]:
    """Lock a folder while a page writes to it, and read its files.

    Raises:
        AttreeError: another process, which is named, holds it, or :func:`check` refuses it.
    """
    check(path)
    with lock(path / LOCK, what=f"the treebank in {path}"):
        check(path)  # another process may have written to it in between
        for name in (TREES, LOG):
            for left in path.glob(f".{name}.*.part"):  # of a process that was killed
                left.unlink(missing_ok=True)
        folder = Folder(path)
        try:
            yield folder
        finally:
            if not folder.log:  # nothing was saved: leave no empty folder of a treebank
                (path / LOCK).unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    path.rmdir()
