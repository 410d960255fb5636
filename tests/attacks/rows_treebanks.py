"""Treebanks, the names of files and languages, and what language.yaml may say."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.attacks.harness import Content, Row, fifo, folder, link
from tests.attacks.rows_encoders import PICKLE

GOOD = "( (S (NP (DT the) (NN cat)) (VP (VBD slept))) )\n"
_ROW = "{}\t{}\t_\tNOUN\t_\t_\t{}\tdep\t_\t_\n"
#: Enough good trees that one bad one is no reason to refuse the file.
MANY = GOOD * 60
CONLLU = _ROW.format(1, "the", 2) + _ROW.format(2, "cat", 0) + "\n"
_OUT = ("out.parquet",)


def _sentences(count: int) -> Any:
    def check(work: Path, stdout: str, stderr: str) -> None:
        import pyarrow.parquet as pq

        assert pq.read_metadata(work / "out.parquet").num_rows == count

    return check


def _crossing(count: int) -> str:
    """A sentence whose arcs nearly all cross, without a cycle."""
    numbers = random.Random(0)
    heads = [0] + [1 + numbers.randrange(number) for number in range(1, count)]
    return "".join(_ROW.format(place, "a", head) for place, head in enumerate(heads, start=1))


def _refused(
    name: str,
    content: Content,
    says: tuple[str, ...],
    *,
    file: str = "x.mrg",
    options: tuple[str, ...] = (),
    **more: Any,
) -> Row:
    argv = ("treebank", *options, "--output", "out.parquet", "--", file)
    return Row(f"treebank-{name}", argv, says, {file: content}, **more)


def _kept(
    name: str,
    content: Content,
    count: int,
    *,
    file: str = "x.mrg",
    options: tuple[str, ...] = (),
    **more: Any,
) -> Row:
    argv = ("treebank", *options, "--output", "out.parquet", "--", file)
    return Row(
        f"treebank-{name}",
        argv,
        (),
        {file: content},
        status=0,
        makes=_OUT,
        check=_sentences(count),
        **more,
    )


def _language(
    name: str,
    yaml: Content | None,
    says: tuple[str, ...],
    *,
    status: int = 1,
    slug: str = "xx",
    **more: Any,
) -> Row:
    argv = (
        "treebank",
        "--language",
        slug,
        "--split-name",
        "dev",
        "--folder",
        "banks",
        "--output",
        "out.parquet",
    )
    files: dict[str, Content] = {f"banks/{slug}/dev.mrg": GOOD}
    if yaml is not None:
        files[f"banks/{slug}/language.yaml"] = yaml
    return Row(f"language-{name}", argv, says, files, status=status, **more)


def _neighbour(
    name: str, files: dict[str, Content], says: tuple[str, ...] = (), **more: Any
) -> Row:
    """A damaged language beside a good one, which must be read all the same."""
    argv = (
        "treebank",
        "--language",
        "good",
        "--split-name",
        "dev",
        "--folder",
        "banks",
        "--output",
        "out.parquet",
    )
    return Row(
        f"neighbour-{name}",
        argv,
        says,
        {"banks/good/dev.mrg": GOOD, **files},
        status=0,
        makes=_OUT,
        check=_sentences(1),
        **more,
    )


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
    + "".join(
        f"{b}: &{b}\n  <<: [*{a}, *{a}, *{a}, *{a}]\n" for a, b in pairwise("abcdefghijklmnop")
    ),
    "deep": "x: " + "[" * 10_000,
}
_NAMES = (
    "{x}.mrg",
    "<x>.mrg",
    "a|b.mrg",
    "a b.mrg",
    "-y.mrg",
    "$(touch x).mrg",
    "`id`.mrg",
    "a;b.mrg",
    "a'b.mrg",
    'a"b.mrg',
    "é.mrg",
    "e\u0301.mrg",
    "हिन्दी.mrg",
    "a\\b.mrg",
    "#.mrg",
    "a\udcff.mrg",
    "%s.mrg",
    "x" * 200 + ".mrg",
)


def rows() -> list[Row]:
    """Return them all."""
    conllu = {"file": "x.conllu"}
    found = [
        _refused("empty", "", ("x.mrg",), full=False),
        _refused("pickle", PICKLE, ("x.mrg",), full=False),
        _refused("zeros", link("/dev/zero"), ("x.mrg",), seconds=10, full=False),
        _refused("fifo", fifo, ("x.mrg",), seconds=10, full=False),
        _refused("folder", folder, ("x.mrg",), full=False),
        _refused("dangling", link("nowhere"), ("x.mrg",), full=False),
        _refused("nul", "\0" * 1000, ("x.mrg",), full=False),
        _refused("open", "(" * 100_000, ("x.mrg",), full=False),
        _refused("closed", ")" * 100_000, ("x.mrg",), full=False),
        _kept("deep", _DEEP, 1, seconds=20),
        _refused("open-5mb", "(" * 5_000_000, ("x.mrg",), seconds=20),
        _refused("encoding", GOOD, ("evil",), options=("--encoding", "evil")),
        _refused("format", GOOD, ("evil",), options=("--format", "evil")),
        _refused("punctuation", GOOD, ("evil",), options=("--punctuation", "evil")),
        _refused("max-words", GOOD, ("max-words",), options=("--max-words", "-1"), status=2),
        _refused("first", GOOD, ("first",), options=("--first", "-1"), status=2),
        _refused("nothing-left", GOOD, ("excluded",), options=("--exclude", "x.mrg")),
        _refused("other-format", GOOD, ("x.mrg",), options=("--format", "conllu")),
        _refused("conllu-empty", "", ("x.conllu",), full=False, **conllu),
        _refused("conllu-columns", "1\ta\n\n", ("x.conllu",), full=False, **conllu),
        _kept("open-tree-between", MANY + "((S (X\n" + MANY, 120),
        _kept("junk-between", MANY + "junk\n" + MANY, 120, full=False),
        _kept(
            "undecodable",
            (MANY + "( (S (X \udcff)) )\n").encode("utf-8", "surrogateescape"),
            60,
        ),
        _kept(
            "conllu-head-5000-digits",
            CONLLU * 60 + _ROW.format(1, "a", "9" * 5000) + "\n",
            60,
            full=False,
            **conllu,
        ),
        _kept(
            "conllu-head-far",
            CONLLU * 60 + _ROW.format(1, "a", 999) + "\n",
            60,
            full=False,
            **conllu,
        ),
        _kept("conllu-head-negative", CONLLU * 60 + _ROW.format(1, "a", -1) + "\n", 60, **conllu),
        _kept(
            "conllu-cycle",
            CONLLU * 60 + _ROW.format(1, "a", 2) + _ROW.format(2, "b", 1) + "\n",
            60,
            **conllu,
        ),
        _kept(
            "conllu-crossing-3000",
            CONLLU * 60 + _crossing(3000) + "\n",
            60,
            options=("--nonprojective", "lift"),
            **conllu,
        ),
        _kept("conllu-id", CONLLU * 60 + _ROW.format("9" * 5000, "a", 0) + "\n", 60, **conllu),
        _kept("conllu-text-head", CONLLU * 60 + _ROW.format(1, "a", "x") + "\n", 60, **conllu),
        _kept("escapes-in-words", MANY + "( (S (NN \x1b[31mred) (VB b)) )\n", 61, full=False),
        _kept("escapes-in-tags", MANY + "( (S (\x1b]0;owned\x07 (NN a)) (VB b)) )\n", 61),
        _kept("escapes-refused", MANY + "( (S (\x1b[2J a) (Y b)\n", 60),
        Row(
            "treebank-check-escapes",
            ("treebank", "x.mrg", "--check"),
            (),
            {"x.mrg": GOOD + "( (S (\x1b]0;owned\x07 a) (\x9b31m b)) )\n"},
            status=0,
            full=False,
        ),
        Row("treebank-nothing", ("treebank",), ("nothing to do",)),
        Row(
            "treebank-itself",
            ("treebank", "x.mrg", "--output", "x.mrg"),
            ("x.mrg",),
            {"x.mrg": GOOD},
            full=False,
        ),
        Row(
            "treebank-itself-by-link",
            ("treebank", "x.mrg", "--output", "y.mrg"),
            ("mrg",),
            {"x.mrg": GOOD, "y.mrg": link("x.mrg")},
            full=False,
        ),
        Row(
            "treebank-rejected-itself",
            ("treebank", "x.mrg", "--rejected", "x.mrg"),
            ("x.mrg",),
            {"x.mrg": GOOD},
            full=False,
        ),
        Row(
            "treebank-both-one",
            ("treebank", "x.mrg", "--output", "o", "--rejected", "o"),
            ("o",),
            {"x.mrg": GOOD},
            full=False,
        ),
        Row("treebank-absent", ("treebank", "x.mrg", "--output", "o"), ("x.mrg",)),
        Row("language-unknown", ("treebank", "--language", "../x", "--output", "o"), ("../x",)),
        Row(
            "language-empty",
            ("treebank", "--language", "zz", "--folder", "b", "--output", "o"),
            ("zz",),
            {"b/readme": "x"},
        ),
    ]
    found += [
        _language(
            f"yaml-{name}",
            yaml,
            ("language.yaml",),
            seconds=10,
            full=name not in ("python-tag", "anchors", "encoding-null", "deep", "list", "merges"),
        )
        for name, yaml in _YAML.items()
    ]
    found += [
        _language(f"yaml-{name}", make, ("language.yaml",), seconds=10, full=False)
        for name, make in (("fifo", fifo), ("zeros", link("/dev/zero")), ("folder", folder))
    ]
    found += [
        _neighbour(f"yaml-{name}", {"banks/bad/dev.mrg": GOOD, "banks/bad/language.yaml": yaml})
        for name, yaml in _YAML.items()
    ]
    found += [
        _neighbour(f"name-{number}", {f"banks/{name}/dev.mrg": GOOD})
        for number, name in enumerate(
            (
                "bb_" + "x" * 24,
                "{x}",
                "<x>",
                "a|b",
                "-y",
                ".."[:1] + "x",
                "$(id)",
                "a b",
                "हिन्दी",
                "e\u0301",
                "a\udcff",
                "%s",
                "x" * 200,
            )
        )
    ]
    found += [
        _neighbour("empty-test", {"banks/bad/test.mrg": "", "banks/bad/dev.mrg": GOOD}, full=False),
        _neighbour("folder-as-file", {"banks/bad/dev.mrg": folder}),
        _neighbour("fifo", {"banks/bad/dev.mrg": fifo}),
        _neighbour("dangling", {"banks/bad/dev.mrg": link("nowhere")}, full=False),
        _neighbour("loop", {"banks/bad": link(".")}),
    ]
    found += [
        _kept(f"name-{number}", GOOD, 1, file=name, full=number not in (0, 5))
        for number, name in enumerate(_NAMES)
    ]
    return found
