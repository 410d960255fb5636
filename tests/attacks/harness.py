"""One row of the suite: what is prepared, what is run, and what must hold afterwards."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import attree
from attree.base.compiled import cache_folder

#: A row has a home of its own, yet kernels that are compiled already.
_FOLDER = cache_folder(Path(attree.__file__).parent)
_KERNELS = {"NUMBA_CACHE_DIR": _FOLDER} if _FOLDER else {}

#: path, the folder of good files → makes something at the path
Maker = Callable[[Path, Path], object]
#: What lies at a path of the row's folder: text, bytes, a JSON value, or what makes it.
Content = str | bytes | dict[str, Any] | Maker

#: Memory bound: torch and what the commands import take 700 MB.
MEGABYTES = 1500
#: A bad tree that is one of this and many good ones is no reason to refuse the file.
GOOD = "( (S (NP (DT the) (NN cat)) (VP (VBD slept))) )\n"


@dataclass(frozen=True, slots=True)
class Row:
    """One attack.

    Args:
        name: unique; also the test's id.
        command: what follows ``attree``, as a shell reads it; ``{base}`` is the folder of good
            files. The command runs in a fresh folder that holds ``files`` and nothing else.
        says: what the one line of the error must contain: the file at fault, the key, the value,
            each after a blank, and with them the error's code. Where no error with a code is
            told, texts as they stand.
        files: path → content.
        status: 1 for what a command refuses, 2 for what its options refuse, 0 for what it reports
            and goes on after.
        makes: patterns of the paths that may be new afterwards.
        environment: further variables.
        seconds: time bound.
        check: further conditions on the folder.
    """

    name: str
    command: str
    says: tuple[str, ...] = ()
    files: Mapping[str, Content] = field(default_factory=dict)
    status: int = 1
    makes: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 30.0
    check: Callable[[Path], None] | None = None


class Server:
    """Runs commands in forks of one process that has imported them."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.attacks.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "100"},
        )

    def run(self, folder: Path, command: str, **asked: Any) -> dict[str, Any]:
        """Run one command in ``folder``; return its status, output, time and memory."""
        assert self._process.stdin is not None and self._process.stdout is not None
        places = {name: str(folder.parent / name) for name in ("stdout", "stderr", "code")}
        Path(places["code"]).write_bytes(b"")
        request = {
            "argv": [word.replace("{base}", str(self.base)) for word in shlex.split(command)],
            "folder": str(folder),
            "environment": {},
            "seconds": 60.0,
            **places,
            **asked,
        }
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        for name, place in places.items():
            answer[name] = Path(place).read_bytes().decode("utf-8", "backslashreplace")
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def attack(row: Row, server: Server, folder: Path) -> None:
    """Run a row and check everything that holds for all rows, then what the row says.

    Every command: ends in time and memory; shows no traceback and no control character; executes
    no planted canary; changes, removes and adds no file but those of ``makes``. A refusal is one
    line ``attree: error: …``, the last one.
    """
    work, canary = folder / "work", folder / "canary"
    work.mkdir()
    for path, content in row.files.items():
        _make(work / os.fsdecode(path.encode("utf-8", "surrogateescape")), content, server.base)
    before, good = state(work), state(server.base)
    environment = {"ATTREE_CANARY": str(canary), "HOME": str(folder), **_KERNELS, **row.environment}
    ran = server.run(work, row.command, environment=environment, seconds=row.seconds)
    output = f"{ran['stdout']}\n{ran['stderr']}"
    shown = f"{row.name}: status {ran['status']}, {ran['seconds']:.1f} s\n{output[-3000:]}"
    assert ran["status"] != -signal.SIGALRM, f"it took longer than {row.seconds} s\n{shown}"
    for word in ("Traceback", "panicked", "bug of attree"):
        assert word not in output, shown
    assert ran["status"] == row.status, shown
    assert ran["megabytes"] < MEGABYTES, f"{ran['megabytes']} MB\n{shown}"
    assert not canary.exists(), f"the canary was executed\n{shown}"
    assert not _control_characters(output), f"control characters {output!r}"
    _check_said(row, ran["code"], ran["stderr"], shown)
    _check_files(row, before, state(work), shown)
    assert state(server.base) == good, f"the good files were changed\n{shown}"
    if row.check is not None:
        row.check(work)


def _check_said(row: Row, code: str, stderr: str, shown: str) -> None:
    lines = stderr.strip().splitlines()
    errors = [line for line in lines if line.startswith("attree: error: ")]
    assert "delete" not in stderr, f"advises deleting what may be the user's\n{shown}"
    if row.status and row.says:
        assert len(errors) == 1 and lines[-1] == errors[0], f"not one line at the end\n{shown}"
        assert len(errors[0]) < 1000, shown
    said = f"{code} {errors[0]}" if row.status and errors else " ".join(stderr.split())
    for text in " ".join(row.says).split() if code else row.says:
        assert text in said, f"does not say {text!r}, its code is {code!r}\n{shown}"


def _check_files(row: Row, before: dict[str, str], after: dict[str, str], shown: str) -> None:
    for name, was in before.items():
        assert after.get(name) == was, f"{name} was changed or removed\n{shown}"
    new = [name for name in after if name not in before]
    foreign = [name for name in new if not any(fnmatch(name, allowed) for allowed in row.makes)]
    assert not foreign, f"left behind: {foreign}\n{shown}"
    assert not [name for name in new if name.endswith(".part")], f"half-written: {new}\n{shown}"


def _control_characters(text: str) -> list[str]:
    return [c for c in text if (ord(c) < 32 and c not in "\n\t\r") or 127 <= ord(c) < 160]


def state(folder: Path) -> dict[str, str]:
    """Return path → kind, mode and content of everything in a folder; no link is followed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content = ""
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(folder))] = f"{about.st_mode:o} {content}"
    return found


def _make(path: Path, content: Content, base: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if callable(content):
        content(path, base)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        path.write_text(json.dumps(content), encoding="utf-8")


def link(target: str) -> Maker:
    """A symbolic link."""
    return lambda path, base: path.symlink_to(target.replace("{base}", str(base)))


def fifo(path: Path, _: Path) -> None:
    """A pipe that nobody writes to."""
    os.mkfifo(path)


def folder(path: Path, _: Path) -> None:
    """An empty folder."""
    path.mkdir()


def copied(name: str, **contents: Content | None) -> Maker:
    """A copy of a good file or folder; ``contents`` replaces files of it (``__`` for a dot)."""

    def make(path: Path, base: Path) -> None:
        source = base / name
        if not source.is_dir():
            shutil.copyfile(source, path)
            return
        shutil.copytree(source, path)
        for key, content in contents.items():
            inside = path / key.replace("__", ".")
            inside.unlink(missing_ok=True)
            if content is not None:
                _make(inside, content, base / name)

    return make


def edited(name: str, **changes: Any) -> Maker:
    """A copy of a good JSON file with other values; a change to ``...`` takes the key out."""

    def make(path: Path, base: Path) -> None:
        values = json.loads((base / name).read_text()) | changes
        path.write_text(json.dumps({k: v for k, v in values.items() if v is not ...}))

    return make


def cut(name: str, by: int = 100) -> Maker:
    """A copy of a good file that lacks its last bytes."""
    return lambda path, base: path.write_bytes((base / name).read_bytes()[:-by])
