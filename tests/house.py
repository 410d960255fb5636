"""The size of the house: ``python -m tests.house`` prints lines, files, rooms, arrows and circles.

A line of code is one that is neither blank, a comment alone, nor of a docstring. A room is a file
or a package right under ``src/attree``; an arrow is an import of one room by another, be it made at
once, in a function, or for types only. Two rooms that reach each other stand in a circle.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "attree"
_WITH_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

#: Module → the modules that it imports, or room → rooms.
Uses = dict[str, set[str]]


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Return a file's syntax tree, which many questions are about."""
    return ast.parse(path.read_text(encoding="utf-8"))


def lines_of_code(path: Path) -> int:
    """Count the lines of code of a file."""
    docstrings = {
        line
        for node in ast.walk(parsed(path))
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in docstrings
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    )


def files() -> dict[str, Path]:
    """Return the file of each module: ``attree.decoding`` for ``decoding/__init__.py``."""
    paths = {
        ".".join(("attree", *path.relative_to(SOURCE).with_suffix("").parts)): path
        for path in sorted(SOURCE.rglob("*.py"))
    }
    return {name.removesuffix(".__init__"): path for name, path in paths.items()}


@functools.cache
def imports(path: Path, *, types: bool = True, in_functions: bool = True) -> set[str]:
    """Return the modules, or names in modules, that a file imports, of any library.

    Args:
        path: the file.
        types: with what stands under ``if TYPE_CHECKING``.
        in_functions: with what is imported when a function is called.
    """
    names: set[str] = set()
    todo: list[ast.AST] = [parsed(path)]
    while todo:
        node = todo.pop()
        for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if (for_types and not types) or (isinstance(node, ast.FunctionDef) and not in_functions):
            continue
        todo += ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
    return names


def modules(*, types: bool = True, in_functions: bool = True) -> Uses:
    """Return module → modules of attree that it imports; the package itself is none."""
    paths = files()
    return {
        name: imports(path, types=types, in_functions=in_functions)
        & paths.keys() - {"attree", name}
        for name, path in paths.items()
    }


def rooms(uses: Uses) -> Uses:
    """Return room → the rooms that it imports."""
    arrows: Uses = {}
    for name, used in uses.items():
        room = "__init__" if name == "attree" else name.split(".")[1]
        arrows.setdefault(room, set()).update({other.split(".")[1] for other in used} - {room})
    return arrows


def packages(uses: Uses) -> Uses:
    """Return package → the packages that it imports; one within another is no part of it."""
    names = {name for name, path in files().items() if path.name == "__init__.py"} - {"attree"}

    def around(*modules: str) -> set[str]:
        return {name for name in names for part in modules if f"{part}.".startswith(f"{name}.")}

    arrows: Uses = {name: set() for name in names}
    for name, used in uses.items():
        for package in around(name):
            arrows[package] |= around(*used) - around(name)
    return arrows


def reached(start: str, uses: Mapping[str, set[str]]) -> set[str]:
    """Return what a module or room imports, at once or through others."""
    seen: set[str] = set()
    todo = [start]
    while todo:
        more = uses[todo.pop()] - seen
        seen |= more
        todo += more
    return seen


def circles(uses: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules or rooms that reach each other."""
    ways = {name: reached(name, uses) for name in uses}
    groups = {
        tuple(sorted(other for other in ways[name] if name in ways[other]))
        for name in uses
        if name in ways[name]
    }
    return sorted(map(list, groups))


def main() -> None:
    """Print the figures."""
    for name in ("src", "tests"):
        paths = sorted((ROOT / name).rglob("*.py"))
        print(f"{name}: {sum(map(lines_of_code, paths)):,} lines of code in {len(paths)} files")
    every = modules()
    between = rooms(every)
    print(f"{len(between)} rooms, {sum(map(len, between.values()))} arrows between them")
    for kind, uses in (("files", every), ("rooms", between)):
        print(f"circles of {kind}, types counted: {len(circles(uses))}")
        for circle in circles(uses):
            print(f"  {', '.join(circle)}")


if __name__ == "__main__":
    main()
