"""The size of the house: ``python -m tests.house`` prints lines, files, rooms and arrows.

A line of code is one that is neither blank, a comment alone, nor of a docstring. A room is a file
or a package right under ``src/attree``; an arrow is an import of one room by another, be it made at
once, in a function, or for types only. Two rooms that reach each other stand in a circle.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "attree"
_WITH_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


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


def room_of(module: str) -> str:
    """Return the room that a module of attree is of; empty for the package itself."""
    parts = module.split(".")
    there = len(parts) > 1 and any((SOURCE / f"{parts[1]}{end}").exists() for end in ("", ".py"))
    return parts[1] if there else ""


def imports(path: Path) -> Iterator[str]:
    """Yield the names of attree that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "attree":
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == "attree")


def arrows() -> dict[str, set[str]]:
    """Return room → the rooms that it imports."""
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).with_suffix("").parts[0]
        used = {room_of(name) for name in imports(path)}
        found.setdefault(room, set()).update(used - {room, ""})
    return found


def reached(room: str, uses: dict[str, set[str]]) -> set[str]:
    """Return the rooms that a room imports, at once or through others."""
    found: set[str] = set()
    todo = [room]
    while todo:
        more = uses.get(todo.pop(), set()) - found
        found |= more
        todo += more
    return found


def main() -> None:
    """Print the figures."""
    for name in ("src", "tests"):
        files = sorted((ROOT / name).rglob("*.py"))
        print(f"{name}: {sum(map(lines_of_code, files)):,} lines of code in {len(files)} files")
    uses = arrows()
    circles = sorted(room for room in uses if room in reached(room, uses))
    print(f"{len(uses)} rooms, {sum(map(len, uses.values()))} arrows between them")
    print(f"in a circle: {', '.join(circles) or 'none'}")


if __name__ == "__main__":
    main()
