"""The folder of a treebank that is being made: its trees, the log of actions, its one writer.

What the log says of earlier sessions: which sentences are done, and what each took.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec

from attree.base.errors import AttreeError
from attree.base.files import lock, read_bytes, whole_file
from attree.base.text import say
from attree.treebank.formats import read_files, resolve
from attree.treebank.language import treebank_files
from attree.treebank.sentence import Rejected, Sentence, SplitSettings

TREES, LOG, LOCK = "train.ptb", "annotations.jsonl", ".annotate.lock"

#: How a log begins that attree wrote.
BEGIN = {"action": "begin", "program": "attree annotate"}

_CHANGED = "this file was changed by another program, and is left as it is"
_LARGEST = 1 << 30


class LogRecord(msgspec.Struct):
    """What later runs read of a line of the log; its other keys are for people."""

    action: str
    words: tuple[str, ...] = ()
    edits: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    names: tuple[str, ...] = ()


def accepted(records: Iterable[LogRecord]) -> list[LogRecord]:
    """Return the records of sentences that were accepted and not taken back."""
    found: list[LogRecord] = []
    for one in records:
        if one.action == "reopen":
            found = [other for other in found if other.words != one.words]
        elif one.action == "accept":
            found.append(one)
    return found


def order_of_labels(records: Iterable[LogRecord]) -> list[str]:
    """Return the labels in the order that their digits go by, as it was logged last."""
    return next((list(one.names) for one in reversed([*records]) if one.action == "labels"), [])


def finished(records: Iterable[LogRecord], saved: Iterable[Sentence]) -> set[tuple[str, ...]]:
    """Return the words of the sentences that have a tree in ``saved``, or were skipped.

    A tree that was taken out of ``train.ptb`` by hand is shown again.
    """
    last = {one.words: one.action for one in records if one.action in ("skip", "reopen")}
    skipped = {words for words, action in last.items() if action == "skip"}
    return skipped | {sentence.words for sentence in saved}


def now() -> str:
    """Return the time for the log, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(slots=True)
class Folder:
    """The two files of a treebank that is being made, as they stand on disk.

    The trees are kept as they stand, so that lines corrected by hand stay corrected.

    Attributes:
        path: of the folder.
        trees: the text of ``train.ptb``, a tree a line.
        log: the text of ``annotations.jsonl``, an action a line.
    """

    path: Path
    trees: str = ""
    log: str = ""
    _known: dict[str, bytes] = field(default_factory=dict)

    def read(self) -> None:
        """Read what an earlier run left.

        Raises:
            AttreeError: a file cannot be read, or the log is no log of attree.
        """
        for name in (TREES, LOG):
            if (self.path / name).exists():
                self._known[name] = read_bytes(self.path / name, what="file", largest=_LARGEST)
        try:
            self.trees = self._known.get(TREES, b"").decode()
        except UnicodeDecodeError:
            raise AttreeError(
                "encoding", "this file is not UTF-8", file=self.path / TREES, fix="convert it"
            ) from None
        self.log = self._known.get(LOG, b"").decode("utf-8", "replace")
        self.trees, self.log = (
            text + "\n" if text and not text.endswith("\n") else text
            for text in (self.trees, self.log)
        )

    def records(self) -> list[LogRecord]:
        """Return the actions logged so far; a line that is no record is told and left out."""
        found = []
        for number, line in enumerate(self.log.split("\n")[:-1], 1):
            try:
                found.append(msgspec.json.decode(line, type=LogRecord))
            except (msgspec.MsgspecError, RecursionError) as error:
                problem = str(error).replace("`", "")
                problem = f"this line is no record of `attree annotate` ({problem})"
                say(f"{self.path / LOG}:{number}: {problem} — it is left out")
        return found

    def sentences(self) -> list[Sentence]:
        """Return the trees saved so far; one that cannot be read is told and left out."""
        path = self.path / TREES
        if not self.trees.strip():
            return []
        read = list(read_files([path], resolve(SplitSettings(functions="keep"), [path])))
        for item in read:
            if isinstance(item, Rejected):
                say(str(item))
        return [item for item in read if isinstance(item, Sentence)]

    def save(self, trees: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Write trees and log: both are on the disk before either takes its name.

        What is in memory changes only once both are written, so that a save that failed can be
        made again.

        Args:
            trees: the new text of ``train.ptb``.
            records: what to add to the log.

        Raises:
            AttreeError: another program changed one of the files.
            OSError: the disk is full, or the folder cannot be written.
        """
        log = self.log + "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records)
        new = {LOG: log.encode(), TREES: trees.encode()}
        for name, known in self._known.items():
            path = self.path / name
            if path.exists() and read_bytes(path, what="file", largest=_LARGEST) not in (
                known,
                new[name],  # of a save that ended half way between the two
            ):
                fix = "end attree annotate and start it again"
                raise AttreeError("changed-meanwhile", _CHANGED, file=path, fix=fix)
        with contextlib.ExitStack() as stack:  # the last entered, the trees, are renamed first
            for name, content in new.items():
                part = stack.enter_context(whole_file(self.path / name))
                part.write_bytes(content)
        self.trees, self.log, self._known = trees, log, new


def check(folder: Path) -> None:
    """Refuse a folder that holds a treebank of someone else, or is none.

    Raises:
        AttreeError: it is a file, has links where attree writes, or trees that attree annotate did
            not make.
    """
    if (folder.exists() or folder.is_symlink()) and not folder.is_dir():
        raise AttreeError(
            "not-a-folder", "the output is not a folder", file=folder, fix="name a new --output"
        )
    for name in (TREES, LOG):
        if (folder / name).is_symlink():
            raise AttreeError(
                "link", f"{name} in this folder is a link", file=folder, fix="name another"
            )
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
    with log.open("rb") as handle:
        first = handle.readline(1 << 16)
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and BEGIN.items() <= record.items()


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Folder]:
    """Hold a folder for as long as a page writes to it, and read what is in it.

    Raises:
        AttreeError: another process holds it (it is named), or :func:`check` refuses it.
    """
    check(path)
    with lock(path / LOCK, what=f"the treebank in {path}"):
        check(path)  # another may have begun it meanwhile
        for name in (TREES, LOG):
            for left in path.glob(f".{name}.*.part"):  # of a process that was killed
                left.unlink(missing_ok=True)
        folder = Folder(path)
        folder.read()
        try:
            yield folder
        finally:
            if not folder.log:  # nothing was saved: leave no folder that looks like a treebank
                (path / LOCK).unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    path.rmdir()
