"""The command ``attree``: a table of commands, and errors in one line.

A command's file is imported when the command is called, and its libraries (torch, numba, pyarrow)
when it runs.
"""

import ast
import contextlib
import errno
import inspect
import os
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from cyclopts import App, Argument, ArgumentCollection, Group, Parameter, Token, exceptions
from cyclopts.exceptions import CycloptsError

import attree
from attree.base import process
from attree.base.errors import DEBUG, AttreeError, errno_of
from attree.base.options import EXCLUDES, NEEDS, separated
from attree.base.registry import definition, nearest
from attree.base.terminal import safe

#: Columns of help.
_WIDTH = 80


def _default(value: Any) -> str | None:
    """Return what help says of a default: nothing of one that says nothing itself."""
    items = value if isinstance(value, list | tuple) else [value]
    return None if value in (False, None, "") else ",".join(map(str, items))


def _examples(purpose: str) -> Iterator[str]:
    """Yield the examples of a docstring, which are paragraphs of their own."""
    for paragraph in inspect.cleandoc(purpose).split("\n\n"):
        if paragraph.startswith("Example"):
            yield paragraph


def kind(argument: Argument) -> str:
    """Return the name of an option's type; of a list, of its items: ``bool``, ``int``, ``Path``."""
    hint: Any = argument.hint
    while inner := [part for part in get_args(hint) if part not in (type(None), ...)]:
        hint = inner[0]
    return str(getattr(hint, "__name__", hint))


def _purpose_of(reference: str) -> str:
    """Return the docstring of ``module:function``, or the ``help=`` of ``module:app``.

    It is read from the source, since importing all commands would take long.
    """
    command = definition(reference)
    if isinstance(command, ast.FunctionDef):
        return ast.get_docstring(command) or ""
    assert isinstance(command, ast.Call), reference
    return next(ast.literal_eval(word.value) for word in command.keywords if word.arg == "help")


def commands_of(group: App) -> list[str]:
    """Return the names of a group's commands, in the order of their declaration."""
    return [name for name in group if not name.startswith("-")]


#: title → command → ``module:function``, whose annotations declare the options, or ``module:app``,
#: an ``App`` with subcommands. Commands for users come first.
SECTIONS = {
    "What people type": {
        "try": "attree.cli.try_:try_command",
        "parse": "attree.cli.parse:parse_command",
        "annotate": "attree.cli.annotate:annotate_command",
        "choose": "attree.cli.annotate:choose_command",
        "train": "attree.cli.train:train_command",
        "publish": "attree.cli.train:publish_command",
        "grammar": "attree.cli.train:grammar",
        "evaluate": "attree.cli.evaluate:evaluate_command",
        "evalb": "attree.cli.score:evalb_command",
        "measures": "attree.cli.evaluate:measures_command",
        "search": "attree.cli.evaluate:search_command",
        "treebank": "attree.cli.treebank:app",
        "corpus": "attree.cli.parse:app",
    },
    "Stages, which the workflow calls": {
        "encoder": "attree.cli.encoder:app",
        "attention": "attree.cli.attention:attention_command",
        "heads": "attree.cli.heads:heads_command",
        "decode": "attree.cli.decode:decode_command",
        "apply": "attree.cli.decode:apply_command",
        "import": "attree.cli.decode:import_command",
        "average": "attree.cli.decode:average_command",
        "speed": "attree.cli.decode:speed_command",
        "score": "attree.cli.score:score_command",
        "baselines": "attree.cli.score:baselines_command",
        "experiment": "attree.cli.experiments:app",
        "table": "attree.cli.tables:app",
        "figure": "attree.cli.tables:figures",
        "report": "attree.cli.tables:report_command",
    },
}
COMMANDS = {name: place for section in SECTIONS.values() for name, place in section.items()}

#: Names of arguments for files or folders to write.
_WRITTEN = ("output", "output_selection", "associations", "rejected", "summary", "svg")


def _check(_: App, path: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse unknown options, options without effect, and outputs that are inputs."""
    from attree.base.files import check_apart
    from attree.base.patterns import matching

    named = arguments.filter_by(has_tokens=True)
    for option in named:
        for token in option.tokens:
            lists_names = option.parameter.allow_leading_hyphen  # one of them may be empty
            empty = not token.value and kind(option) != "bool" and not lists_names
            if token.keyword is not None and (token.value.startswith("--") or empty):
                raise exceptions.MissingArgumentError(argument=option, keyword=token.keyword)
            if token.value.startswith("--") and token.value not in _after_dashes():
                unknown = Token(keyword=token.value, source="cli")
                raise exceptions.UnknownOptionError(token=unknown, argument_collection=arguments)
            if kind(option) == "int" and re.fullmatch(r"[+-]?\d*\.\d*", token.value):
                raise CycloptsError(msg=f"{token.value} for {option.name} is no whole number")
    _check_effect(called(path).default_command, {option.name for option in named})
    paths: dict[bool, list[Path]] = {True: [], False: []}
    for option in named:
        if "Path" in kind(option):
            items = (item for token in option.tokens for item in separated(token.value))
            is_written = option.field_info.name in _WRITTEN
            paths[is_written] += [file for item in items for file in matching(item)]
    check_apart(outputs=paths[True], inputs=paths[False])


def _after_dashes() -> list[str]:
    """Return the words after ``--``, which are no options whatever they begin with."""
    return sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []


def called(path: tuple[str, ...]) -> App:
    """Return the command or group of commands at ``path``."""
    command: App = app
    for name in path:
        command = command[name]
    return command


def _check_effect(command: Any, names_given: set[str]) -> None:
    """Refuse options that have no effect with the others, by the rules of the command."""
    for follower, leaders in getattr(command, NEEDS, {}).items():
        names = [_option(name) for name in leaders.split()]
        if _option(follower) in names_given and names_given.isdisjoint(names):
            effect = f"{_option(follower)} has no effect without {' or '.join(names)}"
            raise CycloptsError(msg=effect)
    for together in getattr(command, EXCLUDES, ()):
        names = [name for name in map(_option, together.split()) if name in names_given]
        if len(names) > 1:
            raise CycloptsError(msg=f"{' and '.join(names)} exclude each other")


def _option(name: str) -> str:
    return name if name.isupper() else f"--{name.replace('_', '-')}"


class _Attree(App):
    """The command line; its help has examples, and imports no command for an overview."""

    def help_print(self, tokens: Any = None, *, console: Any = None) -> None:
        """Print the help of the command that ``tokens`` name."""
        from rich.console import Console

        chain, (*_, command), _ = self.parse_commands(tokens)
        console = console or Console(width=_WIDTH)
        # printed as other output is: rich ends with an error where a reader has had enough
        with console.capture() as page:
            if chain:
                super().help_print(tokens, console=console)
            else:
                _overview().help_print([], console=console)
        print(page.get(), end="")
        print("\n".join(_examples(command.help)))


def _overview() -> App:
    """Return a program that knows what each command is for, and imports none."""
    sections = list(map(Group.create_ordered, (*SECTIONS, "Options")))
    overview = App(
        name="attree",
        usage="Usage: attree COMMAND [OPTIONS]",
        help=app.help,
        help_format="plaintext",
        help_flags="--help",
        group_commands=sections[-1],
    )
    for group, places in zip(sections, SECTIONS.values(), strict=False):
        for number, (name, place) in enumerate(places.items()):
            overview.command(App(name=name, help=_purpose_of(place), group=group, sort_key=number))
    overview.command(App(name="--debug", help="Print the traceback of an error."))
    completing = "Let bash, zsh or fish complete commands and names at TAB."
    overview.command(App(name="--install-completion", help=completing))
    return overview


app = _Attree(
    name="attree",
    help="""Constituency trees for any language out of a pretrained language model's attention.

    Example:
      attree try "The old man who lived near the harbour walked home."
    """,
    version=f"attree {attree.__version__}\n",
    version_format="plaintext",
    help_flags=["--help"],
    default_parameter=Parameter(negative=(), show_default=_default),
    config=_check,
    result_action="return_value",
    print_error=False,
    exit_on_error=False,
    suppress_keyboard_interrupt=False,
)
for _name, _place in COMMANDS.items():
    app.command(_place, name=_name)
app.register_install_completion_command(show=False)


def main() -> None:
    """Run the command line; an error is one line, with exit status 1, or 2 for wrong options."""
    if "--debug" in sys.argv:
        os.environ[DEBUG] = "1"
    try:
        app([word for word in sys.argv[1:] if word != "--debug"])
        sys.stdout.flush()
        sys.exit(0)
    except BrokenPipeError:  # whoever reads has enough, such as head; nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(0)
    except Exception as error:
        if os.environ.get(DEBUG) and not isinstance(error, AttreeError | CycloptsError):
            traceback.print_exc()
        line = safe(_in_one_line(error))
        line = line if len(line) <= 900 else f"{line[:600]} … {line[-250:]}"  # too long to read
        print(f"attree: error: {line}", file=sys.stderr)
        sys.exit(2 if isinstance(error, CycloptsError) else 1)


def _in_one_line(error: Exception) -> str:
    """Return an error in one line: the problem and its fix."""
    if isinstance(error, CycloptsError):
        command = " ".join(("attree", *(error.command_chain or ())))
        return f"{_misused(error)} — see `{command} --help`"
    if isinstance(error, AttreeError):
        return str(error)
    library = (getattr(error, "name", None) or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and library in _EXTRAS:
        fix = "pip install 'attree[{0}]', or in a checkout '.[{0}]'".format(_EXTRAS[library])
        return f"{library} is not installed — {fix}"
    if (number := errno_of(error)) in _FIXES:
        reason = "the disk is full" if number in _FULL else os.strerror(number or 0).lower()
        where = getattr(error, "filename", None)
        return str(AttreeError("system", reason, file=where, fix=_FIXES[number]))
    if isinstance(error, UnicodeEncodeError):
        signs = ascii(error.object[error.start : error.end])[:40]
        fix = "set PYTHONIOENCODING=utf-8, or rename a file whose name is not in UTF-8"
        return f"{signs} cannot be written in {error.encoding} — {fix}"
    message = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
    return f"unexpected {message} — this is a bug of attree: `attree --debug …` prints where"


def _misused(error: CycloptsError) -> str:
    """Return the problem of a wrong command line."""
    match error:
        case exceptions.UnknownCommandError(unused_tokens=[str(word), *_], app=App() as group):
            return f"there is no command {word}; {nearest(word, commands_of(group))}"
        case exceptions.UnknownOptionError(token=Token(keyword=word)) if word in _after_dashes():
            return f"too many arguments: {word}"
        case exceptions.UnusedCliTokensError(unused_tokens=list(words)):
            return f"too many arguments: {' '.join(words)}; commas separate values of an option"
    return " ".join(str(error).split()).rstrip(".")


_FULL = (errno.ENOSPC, errno.EDQUOT)
#: What the system says of a path that a user names.
_PATHS = (errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG)
#: number of an error of the system → what the user can do about it
_FIXES: dict[int | None, str] = {
    **dict.fromkeys(_FULL, "free some space and run again; nothing half-written was left"),
    **dict.fromkeys((*_PATHS, errno.ELOOP), "check this path and who owns it"),
    **dict.fromkeys((errno.EFBIG, errno.EMFILE), "raise this limit, which `ulimit -a` shows"),
    errno.ENOENT: "check this path, and that the folder that you are in is still there",
}


#: Library that the core does not need → the extra that brings it.
_EXTRAS = {
    **dict.fromkeys(("cryptography", "dask", "dask_jobqueue", "distributed"), "workflow"),
    **dict.fromkeys(("matplotlib", "pygments", "snakemake"), "workflow"),
    **dict.fromkeys(("starlette", "uvicorn"), "annotate"),
    "accelerate": "tune",
}


def console() -> None:
    """Run the command line as a program, which may end without cleaning up."""
    process.open_streams()
    process.yield_cores()
    process.heed_termination()
    process.follow()
    with contextlib.suppress(KeyboardInterrupt):  # the first, or another while a command ends
        try:
            main()
        except SystemExit as done:
            if not done.code:
                process.leave()
            elif done.code in (129, 130, 143):  # SIGHUP, Ctrl-C, SIGTERM
                process.end(done.code)  # Dask's exit handlers fail on a half-open cluster
            raise
    process.end(130)


if __name__ == "__main__":
    console()
