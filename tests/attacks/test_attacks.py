"""Every row of the suite, run by the real commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks import rows_encoders, rows_files, rows_parsers, rows_treebanks
from tests.attacks.harness import Row, Server, attack

MODULES = (rows_encoders, rows_files, rows_parsers, rows_treebanks)
pytestmark = pytest.mark.xdist_group("attacks")

ROWS = [row for module in MODULES for row in module.rows()]
#: The rows of `make test`: one of each kind.
QUICK = Path(__file__).with_name("quick.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.name, marks=[] if row.name in QUICK else pytest.mark.full)
        for row in ROWS
    ],
)
def test_attack(row: Row, server: Server, tmp_path: Path) -> None:
    attack(row, server, tmp_path)


def test_names_are_unique() -> None:
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
    assert set(QUICK) <= set(names)
