"""What is no file to read or to write, numbers and encodings that are none, by any command."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from attree.rivals.grammar.model import UNKNOWN
from tests.attacks.harness import Content, Row, fifo, folder, link

_DIGITS = "9" * 5000
_GOOD = "( (S (NP (DT the) (NN cat)) (VP (VBD slept))) )\n"
_SIZES = {"nonterminals": 3, "preterminals": 4, "state": 8, "latent": 4, "embedding": 8}
_NO_FILE = "not-regular"

#: Commands that read the file IN.
_READERS = {
    "evalb-gold": "evalb IN.mrg {base}/dev.mrg",
    "evalb-test": "evalb {base}/dev.mrg IN.mrg",
    "evalb-prm": "evalb {base}/dev.mrg {base}/dev.mrg --prm IN.prm",
    "measures": "measures IN.mrg --output out",
    "measures-tiger": "measures IN.xml --format tigerxml --output out",
    "measures-table": "measures IN.parquet --output out",
    "evaluate": "evaluate --test {base}/dev.mrg --parser IN.mrg",
    "evaluate-test": "evaluate --test IN.mrg --parser {base}/dev.mrg",
    "train": "train --sentences IN.mrg --output out",
    "grammar-text": "grammar train IN.txt --output out",
    "grammar-trees": "grammar train IN.mrg --output out",
    "parse": "parse IN.txt --output out",
    "parse-packed": "parse IN.txt.gz --output out",
    "choose": "choose IN.txt --output out.txt",
    "tune": "encoder tune --encoder {base}/bert.json --text IN.txt --output out",
}


def _device(path: Path, _: Path) -> None:
    """A copy of /dev/null."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can make a device")


def _rows_of_inputs() -> Iterator[Row]:
    makes = ("out", ".out.checkpoints*")
    for name, command in _READERS.items():
        file = next(word for word in command.split() if word.startswith("IN."))
        for kind, content in (("fifo", fifo), ("zeros", link("/dev/zero"))):
            yield Row(
                f"read-{name}-{kind}", command, (file, _NO_FILE), {file: content}, makes=makes
            )


def _rows_of_outputs() -> Iterator[Row]:
    tables: dict[str, tuple[str, Content | None]] = {
        "/proc/attree/x.parquet": ("cannot-make", None),
        "/proc/attree.parquet": ("cannot-make", None),
        "x" * 300: ("too long", None),
        f"{'x' * 300}/x.parquet": ("too long", None),
        "fifo": ("not-regular", fifo),
        "file/x.parquet": ("file", "precious"),
        "folder": ("not-regular", folder),
        "null": ("not-regular", _device),
    }
    for number, (output, (says, content)) in enumerate(tables.items()):
        files = {output.partition("/")[0]: content} if content is not None else {}
        name = f"write-{number}-{output[:30].replace('/', '-')}"
        yield Row(name, f"treebank {{base}}/dev.mrg --output {output}", (says,), files)
    for place, says in (("/proc/attree/x", "cannot-make"), (f"{'x' * 300}/x", "too long")):
        short = place[:8].replace("/", "-")
        for kind, command in (("folder", "grammar train"), ("tables", "measures")):
            command = f"{command} {{base}}/dev.mrg --output {place}"
            yield Row(f"write-{kind}-{short}", command, (says,))


def _rows_of_numbers() -> Iterator[Row]:
    heads = "heads {base}/all.json --sentences {base}/dev.parquet --score inside --decoder chart"
    heads += " --output h.parquet --output-selection s.json --heads"
    for name, option, says in (
        ("best", f"best:{_DIGITS}", "bad-selection"),
        ("list", f"list:{_DIGITS}.1", "bad-selection"),
        ("trees", f"best --trees {_DIGITS}", "not-a-number"),
    ):
        yield Row(f"heads-{name}-digits", f"{heads} {option}", (says,))
    prm = {"x.prm": f"CUTOFF_LEN {_DIGITS}\n"}
    command = "evalb {base}/dev.mrg {base}/dev.mrg --prm x.prm"
    yield Row("prm-digits", command, ("x.prm:1", "bad-parameter CUTOFF_LEN"), prm)


def _rows_of_encodings() -> Iterator[Row]:
    encodings = {
        "idna": "unknown-encoding 'idna'",
        "undefined": "unknown-encoding 'undefined'",
        "hex": "unknown-encoding 'hex'",
        "x" * 5000: "bad-setting encoding",
    }
    for number, (encoding, says) in enumerate(encodings.items()):
        command = f"treebank x.mrg --output x.parquet --encoding {encoding}"
        yield Row(f"encoding-{number}", command, (says,), {"x.mrg": _GOOD})


def _rows_of_grammars() -> Iterator[Row]:
    for name, provenance, says in (
        ("text", {"text": 5}, "bad-form text"),
        ("texts", {"text": [5]}, "bad-form text[0]"),
        ("settings", {"settings": "x"}, "bad-form settings"),
        ("seed", {"settings": {"seed": []}}, "bad-form settings.seed"),
    ):
        about = {"sizes": _SIZES, "words": [UNKNOWN, "a"], "provenance": provenance}
        command = "grammar parse {base}/dev.mrg --grammar g --output p.parquet"
        yield Row(f"grammar-{name}", command, ("grammar.json", says), {"g/grammar.json": about})


def rows() -> list[Row]:
    """Return them all."""
    return [
        *_rows_of_inputs(),
        *_rows_of_outputs(),
        *_rows_of_numbers(),
        *_rows_of_encodings(),
        *_rows_of_grammars(),
    ]
