"""The code hash sees statements and nothing else, of all that an entry imports and no more."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from attree.base import provenance
from attree.cli.main import COMMANDS
from attree.plan.rows import CODE, NOT_RUN

Write = Callable[..., None]

_COMMAND = """
from typing import TYPE_CHECKING

import cyclopts

if TYPE_CHECKING:
    from attree.typed import T

LIMIT = 3


def rank(path):
    from attree.stage import ranking
    return ranking.run(_read(path))


def draw(path):
    from attree.picture import plot
    plot(path, LIMIT)


def _read(path):
    from attree.table import read
    return read(path)
"""


def forget() -> None:
    """Read every file anew."""
    for cached in (provenance._file, provenance._parts, provenance._packages_of):
        cached.cache_clear()
    provenance.code_hash.cache_clear()


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a module of a package ``attree`` of its own."""
    monkeypatch.setattr(provenance, "_ROOT", tmp_path)

    def write(name: str, text: str = "") -> None:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        forget()

    for name in ("stage", "other"):
        write(f"{name}/__init__.py")
    write("stage/command.py", _COMMAND)
    write("stage/ranking.py", '"""Doc."""\nfrom attree.other.sums import add\n')
    write("other/sums.py", "def add(x):\n    return x\n")
    for name in ("typed", "picture", "table"):
        write(f"{name}.py")
    yield write
    forget()


RANK, DRAW = "attree.stage.command:rank", "attree.stage.command:draw"


def test_a_closure_is_what_is_imported_at_the_top_and_inside_functions(write: Write) -> None:
    assert provenance.closure("attree.stage.command") == (
        *("attree.other", "attree.other.sums", "attree.picture"),
        *("attree.stage", "attree.stage.command", "attree.stage.ranking", "attree.table"),
    )


def test_a_function_s_closure_leaves_out_what_only_others_import(write: Write) -> None:
    drawn = ("attree.picture", "attree.stage", "attree.stage.command")
    assert provenance.closure(DRAW) == drawn
    assert "attree.picture" not in provenance.closure(RANK)
    assert "attree.table" in provenance.closure(RANK)  # through _read


def test_another_command_of_the_file_changes_nothing(write: Write) -> None:
    before = provenance.code_hash(RANK), provenance.code_hash(DRAW)
    write("stage/command.py", _COMMAND.replace("plot(path, LIMIT)", "plot(path)"))
    after = provenance.code_hash(RANK), provenance.code_hash(DRAW)
    assert after[0] == before[0] and after[1] != before[1]


def test_what_a_function_uses_of_its_file_counts(write: Write) -> None:
    before = provenance.code_hash(RANK)
    write("stage/command.py", _COMMAND.replace("return read(path)", "return read(path)[1:]"))
    helper = provenance.code_hash(RANK)
    write("stage/command.py", _COMMAND.replace("LIMIT = 3", "LIMIT = 4"))
    assert len({before, helper, provenance.code_hash(RANK)}) == 3


def test_a_registry_s_names_count_and_other_strings_do_not(write: Write) -> None:
    write("stage/ranking.py", 'MODULES = {"a": "attree.table"}\nENTRIES = ("attree.picture",)\n')
    found = provenance.closure("attree.stage.ranking")
    assert "attree.table" in found and "attree.picture" not in found


def test_relative_imports_count(write: Write) -> None:
    write("stage/ranking.py", "from ..other.sums import add\nfrom . import more\n")
    write("stage/more.py")
    assert {"attree.other.sums", "attree.stage.more"} <= set(
        provenance.closure("attree.stage.ranking")
    )


def test_what_an_entry_does_not_run_can_be_left_out(write: Write) -> None:
    found = provenance.closure("attree.stage.command", not_run=("attree.other", "attree.table"))
    assert {"attree.other", "attree.other.sums", "attree.table"}.isdisjoint(found)
    assert "attree.stage.ranking" in found


def test_the_neutral_module_is_neither_counted_nor_followed(write: Write) -> None:
    write("treebank/__init__.py")
    write("treebank/as_table.py", "from attree.picture import plot\n")
    write("stage/ranking.py", f"from {provenance.NEUTRAL} import as_table\n")
    before = provenance.code_hash("attree.stage.ranking")
    assert set(provenance.closure("attree.stage.ranking")) == {
        *("attree.stage", "attree.stage.ranking", "attree.treebank")
    }
    write("treebank/as_table.py", "x = 1\n")
    assert provenance.code_hash("attree.stage.ranking") == before


def test_hashed_modules_use_of_the_neutral_one_what_hands_on_a_table() -> None:
    """A name here must not change what a result is made of, where it is given a table."""
    commands = (place.partition(":")[0] for place in COMMANDS.values())
    modules = provenance.closure(*commands, *(entry for code in CODE.values() for entry in code))
    names = {name for module in modules for p in provenance._parts(module) for name in p.imports}
    used = {name for name in names if name.startswith(provenance.NEUTRAL)}
    assert {name.rpartition(".")[2] for name in used} == {
        *("Treebank", "as_table", "as_tables", "check_files", "check_once", "is_table")
    }


@pytest.mark.parametrize("kind", CODE)
def test_what_rows_of_a_kind_do_not_run_would_count(kind: str) -> None:
    """Each module of the list leaves something out."""
    for module in NOT_RUN[kind]:
        others = tuple(one for one in NOT_RUN[kind] if one != module)
        assert module in provenance.closure("attree.cli.experiments:rows", not_run=others)


@pytest.mark.parametrize("name", ["unescape", "encodable", "name_of", "markdown"])
def test_a_function_that_decides_words_changes_the_hash(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made a function that changes nothing, in a copy of the code."""
    copy = tmp_path / "attree"
    shutil.copytree(provenance._ROOT, copy, ignore=shutil.ignore_patterns("__pycache__", "ready"))
    shutil.copytree(
        provenance._ROOT / "ready",
        copy / "ready",
        ignore=lambda _, names: {name for name in names if not name.endswith(".py")},
    )
    before = provenance.code_hash("attree.cli.treebank:run", "attree.cli.tables:language")
    monkeypatch.setattr(provenance, "_ROOT", copy)
    text = (copy / "base/text.py").read_text(encoding="utf-8")
    module = ast.parse(text)
    (function,) = [part for part in module.body if getattr(part, "name", "") == name]
    assert isinstance(function, ast.FunctionDef)
    function.body = [ast.parse(f"return {function.args.args[0].arg}").body[0]]
    forget()
    assert provenance.code_hash("attree.cli.treebank:run", "attree.cli.tables:language") == before
    (copy / "base/text.py").write_text(ast.unparse(module), encoding="utf-8")
    forget()
    after = provenance.code_hash("attree.cli.treebank:run", "attree.cli.tables:language")
    monkeypatch.undo()
    forget()
    assert after != before


def test_a_comment_or_docstring_changes_nothing(write: Write) -> None:
    before = provenance.code_hash(RANK)
    write("other/sums.py", '"""Other."""\n# why\ndef add(x):\n    """New."""\n    return x\n')
    assert provenance.code_hash(RANK) == before


def test_a_statement_changes_the_hash(write: Write) -> None:
    before = provenance.code_hash(RANK)
    write("other/sums.py", "def add(x):\n    return -x\n")
    assert provenance.code_hash(RANK) != before


def test_a_table_of_a_module_s_name_changes_its_hash(write: Write) -> None:
    found = [[provenance.code_hash(entry) for entry in (RANK, DRAW)]]
    for name, text in (("ranking", "a: 1"), ("ranking", "a: 2"), ("more", "a: 1")):
        write(f"stage/{name}.yaml", text)
        found.append([provenance.code_hash(entry) for entry in (RANK, DRAW)])
    rank, draw = zip(*found, strict=True)
    assert len({*rank[:3]}) == 3 and rank[3] == rank[2]
    assert len({*draw}) == 1
    write("stage/command.yaml", "a: 1")
    assert provenance.code_hash(RANK) != rank[3] and provenance.code_hash(DRAW) != draw[3]


def test_a_renamed_module_changes_the_hash(write: Write) -> None:
    before = provenance.code_hash(RANK)
    write("other/totals.py", "def add(x):\n    return x\n")
    write("stage/ranking.py", "from attree.other.totals import add\n")
    assert provenance.code_hash(RANK) != before


@pytest.mark.parametrize("name", ["attree.stage.gone", "attree.stage.command:gone", "numpy"])
def test_an_entry_that_is_gone_is_an_error(write: Write, name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=name.replace(":", ".")):
        provenance.code_hash(name)
