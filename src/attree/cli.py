"""The command ``attree``: names each stage's command and says errors in one line.

A stage's command lives in its own package, so that editing one stage re-runs only that stage; it
is imported when it is called, and what it needs (torch, numba, pyarrow) when it runs.
"""

from __future__ import annotations

import errno
import importlib
import sys
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

import attree
from attree import process
from attree.errors import AttreeError

#: command → ``module:function``, whose annotations declare the options, or ``module:app``, a
#: ``typer.Typer`` with subcommands.
COMMANDS = {
    "treebank": "attree.treebank.command:app",
    "encoder": "attree.encoder.command:app",
    "attention": "attree.attention.command:attention_command",
    "heads": "attree.heads.command:heads_command",
    "train": "attree.fewshot.command:train_command",
    "apply": "attree.fewshot.command:apply_command",
    "parse": "attree.corpus.command:parse_command",
    "corpus": "attree.corpus.command:app",
    "decode": "attree.heads.command:decode_command",
    "score": "attree.evaluation.command:score_command",
    "baselines": "attree.evaluation.command:baselines_command",
    "experiment": "attree.experiments.command:app",
    "table": "attree.tables.command:app",
    "figure": "attree.figures.command:app",
}


class _LazyGroup(TyperGroup):
    """Imports a command's module only when that command is asked for."""

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
        command = typer.main.get_command(group)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=_LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Constituency trees out of a pretrained language model's attention.",
)


@app.callback(invoke_without_command=True)
def _main(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    if version:
        print(f"attree {attree.__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; a problem that the user can mend is one line and exit status 1."""
    try:
        app()
    except AttreeError as error:
        sys.exit(f"attree: error: {error}")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = "the disk is full"
            fix = "free some space and run again; nothing half-written was left"
        else:
            reason, fix = "permission denied", "check who owns the folder"
        if "--debug" in sys.argv:
            traceback.print_exc()
        sys.exit(f"attree: error: {AttreeError(reason, file=error.filename, fix=fix)}")
    except KeyboardInterrupt:
        sys.exit(130)


def console() -> None:
    """Run the command line as a program of its own, which may end without tidying up."""
    try:
        main()
    except SystemExit as done:
        if not done.code:
            process.leave()
        raise


if __name__ == "__main__":
    console()
