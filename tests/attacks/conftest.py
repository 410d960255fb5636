"""The server that runs commands, and the good files that attacks start from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.harness import Server
from tests.encoder.checkpoints import save

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
score parses.parquet --sentences dev.parquet --output scores.parquet --summary summary.json \
  --encoder-name bert --parser-name upio
train --sentences dev.parquet --encoder bert.json --output parser --trees 8 --steps 2
parse lines.txt --parser parser --tokenizer whitespace --output bulk
baselines dev.parquet --output baselines.json
speed dev.parquet --parser upio=selection.json --encoder bert.json --first 2 --output speed.json
grammar train dev.parquet --output grammar --epochs 1 --nonterminals 2 --preterminals 2 \
  --symbol 4 --latent 2 --hidden 4
measures dev.mrg --output measures
table language summary.json baselines.json --output-prefix table
"""


@pytest.fixture(scope="session")
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
