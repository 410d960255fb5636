"""What is no file to read or to write, numbers and encodings that are none, by any command."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from attree.grammar.vocabulary import UNKNOWN
from tests.attacks.harness import Content, Row, fifo, folder, link

_DIGITS = "9" * 5000
_GOOD = "( (S (NP (DT the) (NN cat)) (VP (VBD slept))) )\n"
_SIZES = {"nonterminals": 3, "preterminals": 4, "state": 8, "latent": 4, "embedding": 8}
_NO_FILE = "is a device or pipe — give a regular file"

#: Commands that read the file IN.
_READERS: dict[str, tuple[str, ...]] = {
    "evalb-gold": ("evalb", "IN.mrg", "{base}/dev.mrg"),
    "evalb-test": ("evalb", "{base}/dev.mrg", "IN.mrg"),
    "evalb-prm": ("evalb", "{base}/dev.mrg", "{base}/dev.mrg", "--prm", "IN.prm"),
    "measures": ("measures", "IN.mrg", "--output", "out"),
    "measures-tiger": ("measures", "IN.xml", "--format", "tigerxml", "--output", "out"),
    "measures-table": ("measures", "IN.parquet", "--output", "out"),
    "evaluate": ("evaluate", "--test", "{base}/dev.mrg", "--parser", "IN.mrg"),
    "evaluate-test": ("evaluate", "--test", "IN.mrg", "--parser", "{base}/dev.mrg"),
    "train": ("train", "--sentences", "IN.mrg", "--output", "out"),
    "grammar-text": ("grammar", "train", "IN.txt", "--output", "out"),
    "grammar-trees": ("grammar", "train", "IN.mrg", "--output", "out"),
    "parse": ("parse", "IN.txt", "--output", "out"),
    "parse-packed": ("parse", "IN.txt.gz", "--output", "out"),
    "choose": ("choose", "IN.txt", "--output", "out.txt"),
    "tune": (
        "encoder",
        "tune",
        "--encoder",
        "{base}/bert.json",
        "--text",
        "IN.txt",
        "--output",
        "out",
    ),
}
_QUICK = ("evalb-gold", "evalb-prm", "measures", "measures-table", "grammar-text")


def _device(path: Path, _: Path) -> None:
    """A copy of /dev/null."""
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))


def _rows_of_inputs() -> list[Row]:
    found = []
    for name, argv in _READERS.items():
        file = next(part for part in argv if part.startswith("IN."))
        for kind, content in (("fifo", fifo), ("zeros", link("/dev/zero"))):
            full = name not in _QUICK or (kind == "zeros" and name != "evalb-prm")
            says = (file, _NO_FILE)
            found.append(
                Row(
                    f"read-{name}-{kind}",
                    argv,
                    says,
                    {file: content},
                    makes=("out", ".out.checkpoints*"),
                    full=full,
                )
            )
    return found


def _rows_of_outputs() -> list[Row]:
    tables: dict[str, tuple[str, Content | None]] = {
        "/proc/attree/x.parquet": ("no folder can be made here", None),
        "/proc/attree.parquet": ("no file can be made here — name another", None),
        "x" * 300: ("too long", None),
        f"{'x' * 300}/x.parquet": ("too long", None),
        "fifo": ("this is a device or pipe — name a file to write", fifo),
        "file/x.parquet": ("file", "precious"),
        "folder": ("this is a folder — name a file to write", folder),
    }
    if os.geteuid() == 0:
        tables["null"] = ("this is a device or pipe — name a file to write", _device)
    found = []
    for number, (output, (says, content)) in enumerate(tables.items()):
        files = {output.partition("/")[0]: content} if content is not None else {}
        named = ("treebank", "{base}/dev.mrg", "--output", output)
        name = f"write-{number}-{output[:30].replace('/', '-')}"
        found.append(Row(name, named, (says,), files, full=False))
    grammar = ("grammar", "train", "{base}/dev.mrg", "--output")
    measures = ("measures", "{base}/dev.mrg", "--output")
    for place, says in (("/proc/attree/x", "no folder can be"), (f"{'x' * 300}/x", "too long")):
        short = place[:8].replace("/", "-")
        found.append(Row(f"write-folder-{short}", (*grammar, place), (says,)))
        found.append(Row(f"write-tables-{short}", (*measures, place), (says,)))
    return found


def _grammar(name: str, provenance: object, says: str) -> Row:
    about: dict[str, Content] = {
        "g/grammar.json": {"sizes": _SIZES, "words": [UNKNOWN, "a"], "provenance": provenance}
    }
    argv = ("grammar", "parse", "{base}/dev.mrg", "--grammar", "g", "--output", "p.parquet")
    return Row(f"grammar-{name}", argv, ("grammar.json", says), about, full=name != "text")


def rows() -> list[Row]:
    """Return them all."""
    prm = ("evalb", "{base}/dev.mrg", "{base}/dev.mrg", "--prm", "x.prm")
    heads = ("heads", "{base}/all.json", "--sentences", "{base}/dev.parquet", "--score", "inside")
    heads = (*heads, "--decoder", "chart", "--output", "h.parquet", "--output-selection", "s.json")
    treebank = ("treebank", "x.mrg", "--output", "x.parquet", "--encoding")
    return [
        *_rows_of_inputs(),
        *_rows_of_outputs(),
        Row("prm-digits", prm, ("x.prm:1", "CUTOFF_LEN 9"), {"x.prm": f"CUTOFF_LEN {_DIGITS}\n"},
            full=False),
        Row("heads-best-digits", (*heads, "--heads", f"best:{_DIGITS}"),
            ("not a selection of heads",), full=False),
        Row("heads-list-digits", (*heads, "--heads", f"list:{_DIGITS}.1"),
            ("not a selection of heads",)),
        Row("heads-trees-digits", (*heads, "--heads", "best", "--trees", _DIGITS),
            ("not a number of trees",)),
        *(
            Row(f"encoding-{number}", (*treebank, encoding), (says,), {"x.mrg": _GOOD},
                full=number > 0)
            for number, (encoding, says) in enumerate({
                "idna": "'idna' is no encoding of text",
                "undefined": "'undefined' is no encoding of text",
                "hex": "unknown encoding 'hex'",
                "x" * 5000: "must be the name of an encoding",
            }.items())
        ),
        _grammar("text", {"text": 5}, "text: expected array"),
        _grammar("texts", {"text": [5]}, "text[0]: expected str"),
        _grammar("settings", {"settings": "x"}, "settings: expected object"),
        _grammar("seed", {"settings": {"seed": []}}, "settings.seed: expected int"),
    ]  # fmt: skip
