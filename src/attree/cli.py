"""The command ``attree``: names each command, and says errors in one line.

A command lives in the package that it is about. It is imported when it is called, and what it needs
(torch, numba, pyarrow) when it runs.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import traceback
from typing import Any

import typer

import attree
from attree import process
from attree.errors import AttreeError
from attree.help import PlainGroup, plain
from attree.text import safe

#: title → command → ``module:function``, whose annotations declare the options, or ``module:app``,
#: a ``typer.Typer`` with subcommands. What people type comes first.
SECTIONS = {
    "What people type": {
        "try": "attree.try_command:try_command",
        "parse": "attree.corpus.command:parse_command",
        "annotate": "attree.annotate.command:annotate_command",
        "choose": "attree.choosing.command:choose_command",
        "train": "attree.fewshot.command:train_command",
        "grammar": "attree.grammar.command:app",
        "evaluate": "attree.own_files.command:evaluate_command",
        "evalb": "attree.evaluation.command:evalb_command",
        "measures": "attree.measures.command:measures_command",
        "treebank": "attree.treebank.command:app",
        "corpus": "attree.corpus.command:app",
    },
    "Stages, which the workflow calls": {
        "encoder": "attree.encoder.command:app",
        "attention": "attree.attention.command:attention_command",
        "heads": "attree.heads.command:heads_command",
        "decode": "attree.parsing.command:decode_command",
        "apply": "attree.parsing.command:apply_command",
        "import": "attree.parsing.command:import_command",
        "average": "attree.parsing.command:average_command",
        "speed": "attree.parsing.command:speed_command",
        "score": "attree.evaluation.command:score_command",
        "baselines": "attree.evaluation.command:baselines_command",
        "experiment": "attree.experiments.command:app",
        "table": "attree.tables.command:app",
        "figure": "attree.figures.command:app",
        "report": "attree.report.command:report_command",
    },
}
COMMANDS = {name: place for section in SECTIONS.values() for name, place in section.items()}

#: Set, an unexpected error prints its traceback, as ``--debug`` does: the workflow's logs have it.
DEBUG = "ATTREE_DEBUG"

_UsageError: Any = typer.BadParameter.__bases__[0]  # typer carries its own copy of click


class _LazyGroup(PlainGroup):
    """Imports a command's module only when that command is asked for."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.sections = {title: list(section) for title, section in SECTIONS.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        found = getattr(importlib.import_module(module), name)
        group = found
        if not isinstance(found, typer.Typer):
            group = typer.Typer(add_completion=False)
            group.command(cmd_name)(found)
        command = plain(typer.main.get_command(group))
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=_LazyGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="""Constituency trees for any language out of a pretrained language model's attention.

    Example:
      attree try "The old man who lived near the harbour walked home."
    """,
)


@app.callback(invoke_without_command=True)
def _main(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
    debug: bool = typer.Option(False, "--debug", help="Print the traceback of an error."),
) -> None:
    if debug:
        os.environ[DEBUG] = "1"
    if version:
        print(f"attree {attree.__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; an error is one line, with exit status 1, or 2 for wrong options."""
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if os.environ.get(DEBUG) and not isinstance(error, AttreeError | _UsageError):
            traceback.print_exc()
        print(f"attree: error: {safe(_said(error))}", file=sys.stderr)
        sys.exit(2 if isinstance(error, _UsageError) else 1)


def _said(error: Exception) -> str:
    """Return an error in one line: what is wrong and what to do."""
    if isinstance(error, _UsageError):
        command = error.ctx.command_path if error.ctx is not None else "attree"
        return f"{error.format_message().rstrip('.')} — see `{command} --help`"
    if isinstance(error, OSError) and error.errno in _SAID:
        reason, fix = _SAID[error.errno]
        return str(AttreeError(reason, file=error.filename, fix=fix))
    if isinstance(error, AttreeError):
        return str(error)
    first = str(error).strip().splitlines()[:1]
    what = ": ".join([type(error).__name__, *first])
    return f"unexpected {what} — this is a bug of attree: `attree --debug …` prints where"


_FULL = ("the disk is full", "free some space and run again; nothing half-written was left")
_DENIED = ("permission denied", "check who owns the folder")
_IN_THE_WAY = ("a file or a link is where a folder is needed", "choose another name")
_SAID = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: _DENIED,
    errno.EROFS: _DENIED,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EEXIST: _IN_THE_WAY,
    errno.EISDIR: ("this is a folder where a file is needed", "name a file"),
    errno.ENAMETOOLONG: ("this name is too long", "choose a shorter one"),
    errno.ELOOP: ("these links lead in a circle", "correct them"),
}


def console() -> None:
    """Run the command line as a program of its own, which may end without tidying up."""
    process.yield_cores()
    try:
        main()
    except SystemExit as done:
        if not done.code:
            process.leave()
        raise


if __name__ == "__main__":
    console()
