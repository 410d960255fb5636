"""What `src/attree/README.md` promises of the house: imports in one direction, one way."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict

import pytest

from tests import house

FILES = house.files().values()
README = (house.SOURCE / "README.md").read_text(encoding="utf-8")
#: Lines of a block that stands once.
_BLOCK = 10


def test_no_block_stands_twice() -> None:
    """Lines of code to the letter but for their indentation; imports may be alike."""
    places = defaultdict(list)
    for path in FILES:
        imports = {
            line
            for node in ast.walk(house.parsed(path))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        code = [
            (number, line.strip())
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
            if line.strip() and number not in imports
        ]
        for first in range(len(code) - _BLOCK + 1):
            numbers, lines = zip(*code[first : first + _BLOCK], strict=True)
            places[lines].append(f"{path.name}:{numbers[0]}")
    assert not [where for where in places.values() if len(where) > 1]


USES = house.modules(types=False)


@pytest.mark.parametrize("uses", [USES, house.packages(USES)], ids=["files", "packages"])
def test_imports_go_in_one_direction(uses: house.Uses) -> None:
    """What is imported inside a function counts, what only types need does not."""
    assert sum(map(len, uses.values())) > len(uses)
    assert house.circles(uses) == []


def test_rooms_use_only_rooms_above_them() -> None:
    """Above in the table of ``src/attree/README.md``, which has every room; types count."""
    rooms = re.findall(r"^\| `(\w+)/` \|", README, re.M)
    arrows = house.rooms(house.modules())
    assert set(rooms) == set(arrows) - {"__init__"}
    for number, room in enumerate(rooms):
        assert arrows[room] <= set(rooms[:number]), room


def test_the_readme_names_files_that_are_there() -> None:
    named = set(re.findall(r"`([\w/]+/[\w.]+\.(?:py|html|j2|yaml))`", README))
    assert len(named) > 50
    assert [name for name in sorted(named) if not (house.SOURCE / name).exists()] == []


def test_the_readme_names_registries_that_are_there() -> None:
    rows = re.findall(r"^\| `(\w+)/` \|.* \| (`.*`) \|$", README, re.M)
    named = [(room, name) for room, last in rows for name in re.findall(r"`([\w.]+)`", last)]
    assert len(named) > 12
    for room, name in named:
        module, _, registry = f"attree.{room}.{name}".rpartition(".")
        assert hasattr(importlib.import_module(module), registry), f"{room}/: {name}"


@pytest.mark.parametrize(
    ("library", "only"),
    [
        ("transformers", ("encoder/", "base/process.py")),
        ("dask", ("base/cluster.py", "stages/", "bulk/")),
        ("distributed", ("base/cluster.py", "stages/", "bulk/")),
        ("snakemake", ()),
    ],
)
def test_libraries_stay_in_their_rooms(library: str, only: tuple[str, ...]) -> None:
    users = [
        path.relative_to(house.SOURCE).as_posix()
        for path in FILES
        if any(name.split(".")[0] == library for name in house.imports(path, types=False))
    ]
    assert [path for path in users if not path.startswith(only)] == []


@pytest.mark.parametrize(
    ("room", "library"),
    [
        *((room, "transformers") for room in ("treebank", "scoring", "decoding", "evaluation")),
        ("parsers", "dask"),
        ("parsers", "distributed"),
        ("apps.spacy_pipe", "dask"),
    ],
)
def test_importing_a_room_does_not_load(room: str, library: str) -> None:
    """Neither directly nor through any file that it imports before a function is called."""
    uses = house.modules(types=False, in_functions=False)
    inside = [name for name in uses if f"{name}.".startswith(f"attree.{room}.")]
    loaded = {*inside, *(one for name in inside for one in house.reached(name, uses))}
    paths = [house.files()[name] for name in loaded]
    imported = {
        name for path in paths for name in house.imports(path, types=False, in_functions=False)
    }
    assert library not in {name.split(".")[0] for name in imported}
    assert len(imported) > 10
