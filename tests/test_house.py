"""What `src/attree/README.md` promises of the house: imports in one direction, one way."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import attree

SOURCE = Path(attree.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}

#: Lines of a block that stands once.
_BLOCK = 10


def test_no_block_stands_twice() -> None:
    """Lines of code to the letter but for their indentation; imports may be alike."""
    places = defaultdict(list)
    for path, tree in TREES.items():
        lines = path.read_text(encoding="utf-8").splitlines()
        imports = {
            line
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        code = [
            (number, line.strip())
            for number, line in enumerate(lines, start=1)
            if line.strip() and number not in imports
        ]
        for first in range(len(code) - _BLOCK + 1):
            block = code[first : first + _BLOCK]
            places["\n".join(line for _, line in block)].append(f"{path.name}:{block[0][0]}")
    assert not [here for here in places.values() if len(here) > 1]


def _imported(tree: ast.Module, *, at_once: bool = False) -> Iterator[str]:
    """Yield the modules that a file imports, at once or ever, but not those of its types only."""
    left_out = {
        id(one)
        for node in ast.walk(tree)
        if (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        or (at_once and isinstance(node, ast.FunctionDef))
        for one in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def _name(path: Path) -> str:
    """Return the module in a file: attree.decoding for decoding/__init__.py."""
    return ".".join(("attree", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )


NAMES = {_name(path): path for path in FILES}


def _files(*, at_once: bool = False) -> dict[str, set[str]]:
    """Return module → modules of attree that it imports."""
    return {
        name: {one for one in _imported(TREES[path], at_once=at_once) if one in NAMES} - {"attree"}
        for name, path in NAMES.items()
    }


def _packages() -> dict[str, set[str]]:
    """Return package → packages that it imports."""
    names = {name for name, path in NAMES.items() if path.name == "__init__.py"} - {"attree"}
    found: dict[str, set[str]] = defaultdict(set)
    for name, used in _files().items():
        around = {one for one in names if f"{name}.".startswith(f"{one}.")}
        for package in around:
            inside = {one for one in names for other in used if f"{other}.".startswith(f"{one}.")}
            found[package] |= inside - around
    return found


@pytest.mark.parametrize("uses", [_files(), _packages()], ids=["files", "packages"])
def test_imports_go_in_one_direction(uses: dict[str, set[str]]) -> None:
    """What is imported inside a function counts, what only types need does not."""
    assert sum(map(len, uses.values())) > len(uses)

    def search(way: list[str]) -> None:
        for used in sorted(uses.get(way[-1], ())):
            assert used not in way, " imports ".join([*way[way.index(used) :], used])
            if used not in done:
                search([*way, used])
        done.add(way[-1])

    done: set[str] = set()
    for name in sorted(uses):
        search([name])


@pytest.mark.parametrize(
    ("library", "only"),
    [
        ("transformers", {"encoder", "process.py"}),
        ("dask", {"cluster.py", "attention", "corpus"}),
        ("distributed", {"cluster.py", "attention", "corpus"}),
        ("snakemake", set()),
    ],
)
def test_libraries_stay_in_their_rooms(library: str, only: set[str]) -> None:
    users = {
        path.relative_to(SOURCE).parts[0]
        for path, tree in TREES.items()
        if any(module.split(".")[0] == library for module in _imported(tree))
    }
    assert users <= only


@pytest.mark.parametrize(
    ("room", "library"),
    [
        *((room, "transformers") for room in ("treebank", "scoring", "decoding", "evaluation")),
        ("parser", "dask"),
        ("parser", "distributed"),
        ("spacy_pipe", "dask"),
    ],
)
def test_importing_a_room_does_not_load(room: str, library: str) -> None:
    """Neither directly nor through any file that it imports before a function is called."""
    uses = _files(at_once=True)
    todo = [name for name in uses if f"{name}.".startswith(f"attree.{room}.")]
    reached = set(todo)
    while todo:
        more = uses[todo.pop()] - reached
        reached |= more
        todo += more
    imported = {name for one in reached for name in _imported(TREES[NAMES[one]], at_once=True)}
    assert library not in {name.split(".")[0] for name in imported}
    assert len(imported) > 10
