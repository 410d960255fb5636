"""The command line, called in this process: what it printed, and how it ended."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from cyclopts import App, Argument, CycloptsError

from attree.cli import main as cli


@dataclass(frozen=True)
class Result:
    """What a command printed, its exit status, and the exception that ended it."""

    stdout: str
    stderr: str
    exit_code: int
    exception: BaseException | None

    @property
    def output(self) -> str:
        """Both streams, one after the other."""
        return self.stdout + self.stderr


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    status: int
    out: str
    err: str


def attree(*words: object) -> Ran:
    """Run a command in this process, errors told and all: importing torch takes seconds."""

    def main(words: list[str]) -> None:
        with patch.object(sys, "argv", ["attree", *words]):
            cli.main()

    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exception is None, done.exception
    return Ran(done.exit_code, done.stdout, done.stderr)


def python(
    code: str, *words: object, given: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own; ``given`` is its standard input."""
    command = [sys.executable, "-c", code, *map(str, words)]
    environment = {**os.environ, **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, input=given)


class CliRunner:
    """Calls commands in this process, which is quicker than starting Python."""

    def invoke(
        self,
        app: App | Callable[[list[str]], object],
        arguments: Sequence[str] = (),
        *,
        input: str = "",
        catch_exceptions: bool = True,
    ) -> Result:
        """Call a command; an exception is returned, or raised unless ``catch_exceptions``."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        given = io.TextIOWrapper(io.BytesIO(input.encode("utf-8", "surrogateescape")), "utf-8")
        code: int = 0
        exception: BaseException | None = None
        with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", given):
            try:
                app(list(arguments))
            except SystemExit as done:
                code = done.code if isinstance(done.code, int) else int(done.code is not None)
            except Exception as error:
                if not catch_exceptions:
                    raise
                code, exception = 2 if isinstance(error, CycloptsError) else 1, error
        return Result(_text(out), _text(err), code, exception)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def visible(app: App) -> list[Argument]:
    """Return the options and arguments of a command, in the order of their declaration."""
    arguments = app.assemble_argument_collection(parse_docstring=True)
    return [argument for argument in arguments if argument.show and argument.parse]


@dataclass(frozen=True, slots=True)
class Declared:
    """An option or argument of a command, with its name, meaning and type."""

    name: str
    meaning: str
    kind: str
    command: str


def declared(app: App, path: tuple[str, ...] = ()) -> Iterator[Declared]:
    """Yield every option and argument of a group's commands."""
    for name in cli.commands_of(app):
        command, words = app[name], (*path, name)
        for option in visible(command) if command.default_command is not None else ():
            # a colon or full stop at a word's end: "kept on: trees", not "host:port"
            meaning = re.split(r"[:.](?:\s|$)", " ".join((option.parameter.help or "").split()))[0]
            yield Declared(option.name, meaning, cli.kind(option), " ".join(words))
        yield from declared(command, words)
