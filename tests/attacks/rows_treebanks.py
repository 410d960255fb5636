"""Treebanks, the names of files and languages, and what language.yaml may say."""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyarrow import parquet

from tests.attacks.harness import GOOD, Content, Row, fifo, folder, link
from tests.attacks.rows_encoders import NOT_FILES, PICKLE

_ROW = "{}\t{}\t_\tNOUN\t_\t_\t{}\tdep\t_\t_\n"
#: Enough good trees that one bad one is no reason to refuse the file.
MANY = GOOD * 60
CONLLU = _ROW.format(1, "the", 2) + _ROW.format(2, "cat", 0) + "\n"


def _makes(count: int) -> dict[str, Any]:
    """So many sentences are read."""

    def check(work: Path) -> None:
        assert parquet.read_metadata(work / "out.parquet").num_rows == count

    return {"status": 0, "makes": ("out.parquet",), "check": check}


def _crossing(count: int) -> str:
    """A sentence whose arcs nearly all cross, without a cycle."""
    numbers = random.Random(0)
    heads = [0] + [1 + numbers.randrange(number) for number in range(1, count)]
    return "".join(_ROW.format(place, "a", head) for place, head in enumerate(heads, start=1))


def _refused(
    name: str, content: Content, *says: str, file: str = "x.mrg", options: str = "", **more: Any
) -> Row:
    command = f"treebank {options} --output out.parquet -- {shlex.quote(file)}"
    return Row(f"treebank-{name}", command, says, {file: content}, **more)


def _kept(name: str, content: Content, count: int, **more: Any) -> Row:
    return _refused(name, content, **_makes(count), **more)


def _language(name: str, yaml: Content) -> Row:
    command = "treebank --language xx --split-name dev --folder banks --output out.parquet"
    files = {"banks/xx/dev.mrg": GOOD, "banks/xx/language.yaml": yaml}
    return Row(f"language-{name}", command, ("language.yaml",), files, seconds=10)


def _neighbour(name: str, files: Mapping[str, Content]) -> Row:
    """A damaged language beside a good one, which must be read all the same."""
    command = "treebank --language good --split-name dev --folder banks --output out.parquet"
    files = {"banks/good/dev.mrg": GOOD, **files}
    return Row(f"neighbour-{name}", command, (), files, **_makes(1))


_DEEP = "(S " * 100_000 + "(X a)" + ")" * 100_000
_LETTERS = "abcdefghijklmnop"
_YAML = {
    "python-tag": "!!python/object/apply:os.system ['touch canary']",
    "list": "[]",
    "text": "lots",
    "number": "3",
    "tabs": "\t\tx: 1",
    "unknown-key": "evil: 1",
    "format": "format: ../x",
    "encoding": "encoding: evil",
    "encoding-null": 'encoding: "a\\0b"',
    "splits-list": "splits: [a]",
    "splits-number": "splits: {dev: 3}",
    "split-absolute": "splits: {dev: {files: 7}}",
    "max-words": "max_words: lots",
    "max-words-negative": "max_words: -1",
    "punctuation": "punctuation: evil",
    "binary": "\x00\x01",
    "anchors": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
    "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
    "format: [*d,*d,*d,*d,*d,*d,*d,*d,*d]",
    "merges": "a: &a {x: 1, y: 2}\n"
    + "".join(f"{b}: &{b}\n  <<: [*{a}, *{a}, *{a}, *{a}]\n" for a, b in pairwise(_LETTERS)),
    "deep": "x: " + "[" * 10_000,
}
_LANGUAGES = (
    "bb_" + "x" * 24, "{x}", "<x>", "a|b", "-y", ".x", "$(id)", "a b", "हिन्दी", "e\u0301",
    "a\udcff", "%s", "x" * 200,
)  # fmt: skip
_NAMES = (
    "{x}", "<x>", "a|b", "a b", "-y", "$(touch x)", "`id`", "a;b", "a'b", 'a"b', "é", "e\u0301",
    "हिन्दी", "a\\b", "#", "a\udcff", "%s", "x" * 200,
)  # fmt: skip


def _brackets() -> Iterator[Row]:
    for name, content in {
        **NOT_FILES,
        "empty": "",
        "pickle": PICKLE,
        "nul": "\0" * 1000,
        "open": "(" * 100_000,
        "open-5mb": "(" * 5_000_000,
        "closed": ")" * 100_000,
    }.items():
        yield _refused(name, content, "x.mrg", seconds=20)
    yield _kept("deep", _DEEP, 1, seconds=20)
    for name, content, count in (
        ("open-tree-between", MANY + "((S (X\n" + MANY, 120),
        ("junk-between", MANY + "junk\n" + MANY, 120),
        ("undecodable", (MANY + "( (S (X \udcff)) )\n").encode("utf-8", "surrogateescape"), 60),
        ("escapes-in-words", MANY + "( (S (NN \x1b[31mred) (VB b)) )\n", 61),
        ("escapes-in-tags", MANY + "( (S (\x1b]0;owned\x07 (NN a)) (VB b)) )\n", 61),
        ("escapes-refused", MANY + "( (S (\x1b[2J a) (Y b)\n", 60),
    ):
        yield _kept(name, content, count)
    escapes = {"x.mrg": GOOD + "( (S (\x1b]0;owned\x07 a) (\x9b31m b)) )\n"}
    yield Row("treebank-check-escapes", "treebank x.mrg --check", (), escapes, status=0)
    for number, name in enumerate(_NAMES):
        yield _kept(f"name-{number}", GOOD, 1, file=f"{name}.mrg")


def _options() -> Iterator[Row]:
    for option in ("encoding", "format", "punctuation"):
        yield _refused(option, GOOD, "evil", options=f"--{option} evil")
    for option in ("max-words", "first"):
        yield _refused(option, GOOD, option, options=f"--{option} -1", status=2)
    yield _refused("nothing-left", GOOD, "all-excluded", options="--exclude x.mrg")
    yield _refused("other-format", GOOD, "x.mrg", options="--format conllu")


def _conllu() -> Iterator[Row]:
    for name, content in (("empty", ""), ("columns", "1\ta\n\n")):
        yield _refused(f"conllu-{name}", content, "x.conllu", file="x.conllu")
    for name, rows, options in (
        ("head-5000-digits", _ROW.format(1, "a", "9" * 5000), ""),
        ("head-far", _ROW.format(1, "a", 999), ""),
        ("head-negative", _ROW.format(1, "a", -1), ""),
        ("cycle", _ROW.format(1, "a", 2) + _ROW.format(2, "b", 1), ""),
        ("crossing-3000", _crossing(3000), "--nonprojective lift"),
        ("id", _ROW.format("9" * 5000, "a", 0), ""),
        ("text-head", _ROW.format(1, "a", "x"), ""),
    ):
        content = CONLLU * 60 + rows + "\n"
        yield _kept(f"conllu-{name}", content, 60, file="x.conllu", options=options)


def _outputs() -> Iterator[Row]:
    both = {"x.mrg": GOOD, "y.mrg": link("x.mrg")}
    for name, options, says, files in (
        ("treebank-nothing", "", "nothing-to-do", {}),
        ("treebank-itself", "x.mrg --output x.mrg", "x.mrg", {"x.mrg": GOOD}),
        ("treebank-itself-by-link", "x.mrg --output y.mrg", "mrg", both),
        ("treebank-rejected-itself", "x.mrg --rejected x.mrg", "x.mrg", {"x.mrg": GOOD}),
        ("treebank-both-one", "x.mrg --output o --rejected o", "o", {"x.mrg": GOOD}),
        ("treebank-absent", "x.mrg --output o", "x.mrg", {}),
        ("language-unknown", "--language ../x --output o", "../x", {}),
        ("language-empty", "--language zz --folder b --output o", "zz", {"b/readme": "x"}),
    ):
        yield Row(name, f"treebank {options}", (says,), files)


def _languages() -> Iterator[Row]:
    for name, yaml in _YAML.items():
        yield _language(f"yaml-{name}", yaml)
        files = {"banks/bad/dev.mrg": GOOD, "banks/bad/language.yaml": yaml}
        yield _neighbour(f"yaml-{name}", files)
    for name, make in (("fifo", fifo), ("zeros", link("/dev/zero")), ("folder", folder)):
        yield _language(f"yaml-{name}", make)
    for number, name in enumerate(_LANGUAGES):
        yield _neighbour(f"name-{number}", {f"banks/{name}/dev.mrg": GOOD})
    yield _neighbour("empty-test", {"banks/bad/test.mrg": "", "banks/bad/dev.mrg": GOOD})
    yield _neighbour("folder-as-file", {"banks/bad/dev.mrg": folder})
    yield _neighbour("fifo", {"banks/bad/dev.mrg": fifo})
    yield _neighbour("dangling", {"banks/bad/dev.mrg": link("nowhere")})
    yield _neighbour("loop", {"banks/bad": link(".")})


def rows() -> list[Row]:
    """Return them all."""
    return [*_brackets(), *_options(), *_conllu(), *_outputs(), *_languages()]
