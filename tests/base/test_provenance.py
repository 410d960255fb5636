"""The code hash sees statements and nothing else, of all that an entry imports and no more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from attree.base import provenance

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
    found = provenance.closure("attree.stage.command", without=("attree.other", "attree.table"))
    assert {"attree.other", "attree.other.sums", "attree.table"}.isdisjoint(found)
    assert "attree.stage.ranking" in found


def test_neutral_modules_are_neither_counted_nor_followed(write: Write) -> None:
    write("files.py", "from attree.picture import plot\n")
    write("stage/ranking.py", "from attree.base.files import write_json\n")
    before = provenance.code_hash("attree.stage.ranking")
    assert provenance.closure("attree.stage.ranking") == ("attree.stage", "attree.stage.ranking")
    write("files.py", "x = 1\n")
    assert provenance.code_hash("attree.stage.ranking") == before


def test_neutral_modules_exist() -> None:
    assert all(provenance._file(name) for name in provenance.NEUTRAL)


def test_a_comment_or_docstring_changes_nothing(write: Write) -> None:
    before = provenance.code_hash(RANK)
    write("other/sums.py", '"""Other."""\n# why\ndef add(x):\n    """New."""\n    return x\n')
    assert provenance.code_hash(RANK) == before


def test_a_statement_changes_the_hash(write: Write) -> None:
    before = provenance.code_hash(RANK)
    write("other/sums.py", "def add(x):\n    return -x\n")
    assert provenance.code_hash(RANK) != before


def test_a_renamed_module_changes_the_hash(write: Write) -> None:
    before = provenance.code_hash(RANK)
    write("other/totals.py", "def add(x):\n    return x\n")
    write("stage/ranking.py", "from attree.other.totals import add\n")
    assert provenance.code_hash(RANK) != before


@pytest.mark.parametrize("name", ["attree.stage.gone", "attree.stage.command:gone", "numpy"])
def test_an_entry_that_is_gone_is_an_error(write: Write, name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=name.replace(":", ".")):
        provenance.code_hash(name)
