"""The size of the house: ``python -m tests.house`` prints lines, files, rooms, arrows and circles.

A line of code is one that is neither blank, a comment alone, nor of a docstring. A room is a file
or a package right under ``src/attree``; an arrow is an import of one room by another, be it made at
once, in a function, or for types only. Two rooms that reach each other stand in a circle.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "attree"
_WITH_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

#: Module → the modules that it imports, or room → rooms.
Uses = dict[str, set[str]]


def lines_of_code(path: Path) -> int:
    """Count the lines of code of a file."""
    text = path.read_text(encoding="utf-8")
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in docstrings
        for number, line in enumerate(text.splitlines(), start=1)
    )


def files() -> dict[str, Path]:
    """Return the file of each module: ``attree.decoding`` for ``decoding/__init__.py``."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(("attree", *path.relative_to(SOURCE).with_suffix("").parts))
        found[name.removesuffix(".__init__")] = path
    return found


def imports(path: Path, *, types: bool = True, in_functions: bool = True) -> Iterator[str]:
    """Yield the modules, or names in modules, that a file imports, of any library.

    Args:
        path: the file.
        types: with what stands under ``if TYPE_CHECKING``.
        in_functions: with what is imported when a function is called.
    """
    todo: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while todo:
        node = todo.pop()
        for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if (for_types and not types) or (isinstance(node, ast.FunctionDef) and not in_functions):
            continue
        todo += ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def modules(*, types: bool = True, in_functions: bool = True) -> Uses:
    """Return module → modules of attree that it imports; the package itself is none."""
    all_ = files()
    return {
        name: {
            one
            for one in imports(path, types=types, in_functions=in_functions)
            if one in all_ and one not in ("attree", name)
        }
        for name, path in all_.items()
    }


def rooms(uses: Uses) -> Uses:
    """Return room → the rooms that it imports."""
    found: Uses = {}
    for name, used in uses.items():
        room = "__init__" if name == "attree" else name.split(".")[1]
        found.setdefault(room, set()).update({one.split(".")[1] for one in used} - {room})
    return found


def packages(uses: Uses) -> Uses:
    """Return package → the packages that it imports; one within another is no part of it."""
    names = {name for name, path in files().items() if path.name == "__init__.py"} - {"attree"}
    found: Uses = {name: set() for name in names}
    for name, used in uses.items():
        around = {one for one in names if f"{name}.".startswith(f"{one}.")}
        inside = {one for one in names for other in used if f"{other}.".startswith(f"{one}.")}
        for package in around:
            found[package] |= inside - around
    return found


def reached(start: str, uses: Mapping[str, set[str]]) -> set[str]:
    """Return what a module or room imports, at once or through others."""
    found: set[str] = set()
    todo = [start]
    while todo:
        more = uses[todo.pop()] - found
        found |= more
        todo += more
    return found


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
        found = circles(uses)
        print(f"circles of {kind}, types counted: {len(found)}")
        for circle in found:
            print(f"  {', '.join(circle)}")


if __name__ == "__main__":
    main()
