"""Every row of the suite, run by the real commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks import rows_encoders, rows_files, rows_parsers, rows_treebanks
from tests.attacks.harness import Row, Server, attack
from tests.encoder.checkpoints import save

MODULES = (rows_encoders, rows_files, rows_parsers, rows_treebanks)
#: One server is enough: it makes the good files that rows start from.
pytestmark = pytest.mark.xdist_group("attacks")

ROWS = [row for module in MODULES for row in module.rows()]
#: The rows of `make test`: one of each kind.
QUICK = Path(__file__).with_name("quick.txt").read_text(encoding="utf-8").splitlines()

TREES = "( (S (NP (DT the) (JJ old) (NN man)) (VP (VBD walked) (NP (NN home)))) )\n" * 3 + (
    "( (S (NP (DT a) (NN cat)) (VP (VBD chased) (NP (DT the) (NNS mice))) (. .)) )\n" * 20
)
#: What makes the other good files.
COMMANDS = """
encoder resolve --slug bert --path checkpoint --output bert.json
treebank dev.mrg --language english --split-name dev --output dev.parquet
attention dev.parquet --encoder bert.json --heads all --output all.json
heads all.json --sentences dev.parquet --score inside_outside --decoder chart --heads best:2 \
  --output heads.parquet --output-selection selection.json
attention dev.parquet --encoder bert.json --selection selection.json --output selected.json
decode selected.json --selection selection.json --output parses.parquet
score parses.parquet --sentences dev.parquet --output scores.parquet --summary summary.json
train --sentences dev.parquet --encoder bert.json --output parser --trees 8 --steps 2
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server, and the good files that attacks start from, made by the commands themselves."""
    base = tmp_path_factory.mktemp("attacks") / "base"
    base.mkdir()
    save("bert", base / "checkpoint")
    (base / "dev.mrg").write_text(TREES)
    (base / "lines.txt").write_text("the old man walked home\na cat\n" * 3)
    made = Server(base)
    for command in COMMANDS.strip().splitlines():
        ran = made.run(base, command)
        assert ran["status"] == 0, (command, ran)
    yield made
    made.close()


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
