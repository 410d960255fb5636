"""Selections of heads, trained parsers, manifests, tables: damaged, foreign, out of range."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.attacks.harness import Content, Maker, Row, copied, cut, edited, folder
from tests.attacks.rows_encoders import NOT_FILES, NOT_JSON, PICKLE

_BULK = "parse {base}/lines.txt --output out --encoder {base}/bert.json --parser"
#: What is read → where it lies, and the command that reads it.
_READERS = {
    "selection": ("x.json", "decode {base}/selected.json --output out.parquet --selection x.json"),
    "manifest": ("x.json", "decode x.json --output out.parquet --selection {base}/selection.json"),
    "parses": ("x.parquet", "score x.parquet --sentences {base}/dev.parquet --output out.parquet"
               " --summary out.json"),
    "parser": ("x", "apply {base}/dev.parquet --parser x --encoder {base}/bert.json"
               " --output out.parquet --allow-overlap"),
    "bulk-selection": ("x.json", f"{_BULK} x.json"),
    "bulk-parser": ("x", f"{_BULK} x"),
}  # fmt: skip


def _row(reader: str, name: str, content: Content, *says: str) -> Row:
    file, command = _READERS[reader]
    makes = ("out", "out/.lock", "out/manifest.json") if reader.startswith("bulk") else ()
    return Row(f"{reader}-{name}", command, says or (file,), {file: content}, makes=makes)


_SELECTION: dict[str, tuple[dict[str, Any], str]] = {
    "heads-none": ({"heads": []}, "heads"),
    "heads-text": ({"heads": "0.1"}, "heads"),
    "heads-pair": ({"heads": [[0]]}, "heads"),
    "heads-float": ({"heads": [[0.5, 1]]}, "heads"),
    "heads-negative": ({"heads": [[-1, 0]]}, "heads"),
    "heads-huge": ({"heads": [[10**9, 0]]}, "heads"),
    "heads-missing": ({"heads": ...}, "heads"),
    "association-evil": ({"association": "evil"}, "association"),
    "score-path": ({"score": "../x"}, "score"),
    "decoder-list": ({"decoder": ["chart"]}, "decoder"),
    "decoder-null": ({"decoder": None}, "decoder"),
}


def _about(**changes: Any) -> Maker:
    return copied("parser", parser__json=edited("parser.json", **changes))


def _inside(key: str, **changes: Any) -> Maker:
    """A trained parser with other values under a key, or in its first part."""

    def make(path: Path, base: Path) -> None:
        about = json.loads((base / "parser.json").read_text())
        values = next(iter(about["shape"].values())) if key == "part" else about[key]
        values.update(changes)
        path.write_text(json.dumps(about))

    return copied("parser", parser__json=make)


_PARSERS: dict[str, tuple[Maker, str]] = {
    "recipe-null": (_about(recipe=None), "recipe"),
    "recipe-empty": (_about(recipe={}), "recipe"),
    "recipe-list": (_about(recipe=[]), "recipe"),
    "shape-text": (_about(shape="lots"), "shape"),
    "shape-missing": (_about(shape=...), "shape"),
    "encoder-null": (_about(encoder=None), "encoder"),
    "encoder-missing": (_about(encoder=...), "encoder"),
    "association-evil": (_inside("recipe", association="evil"), "association"),
    "score-path": (_inside("recipe", score="../x"), "score"),
    "score-untrained": (_inside("recipe", score="pair"), "score"),
    "objective-number": (_inside("recipe", objective=3), "objective"),
    "decoder-evil": (_inside("recipe", decoder="evil"), "decoder"),
    "dropout-five": (_inside("recipe", dropout=5), "dropout"),
    "threshold-negative": (_inside("recipe", threshold=-1), "threshold"),
    "threshold-huge": (_inside("recipe", threshold=1e308), "threshold"),
    "unlabelled-huge": (_inside("recipe", unlabelled=9e99), "unlabelled"),
    "rank-huge": (_inside("recipe", rank=10**12), "rank"),
    "rounds-huge": (_inside("recipe", rounds=10**9), "rounds"),
    "spread-negative": (_inside("recipe", spread=-3), "spread"),
    "recipe-heads-huge": (_inside("recipe", heads=10**15), "heads"),
    "rate-huge": (_inside("recipe", learning_rate=1e30), "learning_rate"),
    "label-layers-negative": (_inside("recipe", label_layers=[-1]), "label_layers"),
    "language-path": (_inside("about", language="../../x"), "language"),
    "chosen-huge": (_inside("about", threshold=7), "threshold"),
    "slug-path": (_inside("encoder", slug="../x"), "slug"),
    "parts-text": (_inside("recipe", parts="evil"), "parts"),
    "parts-none": (_inside("recipe", parts=[]), "parts"),
    "combination-evil": (_inside("recipe", combination="evil"), "combination"),
    "parts-evil": (_inside("recipe", parts=["evil"]), "parts"),
    "part-number": (_inside("shape", projection=3), "shape"),
    "layers-text": (_inside("part", layers="2"), "layers"),
    "layers-huge": (_inside("part", layers=[10**9]), "layers"),
    "layers-negative": (_inside("part", layers=[-1]), "layers"),
    "layers-beyond": (_inside("part", layers=[50]), "layers: 50"),
    "layers-none": (_inside("part", layers=[]), "layers"),
    "layers-number": (_inside("part", layers=2), "layers"),
    "heads-none": (_inside("part", heads=0), "bad-form heads"),
    "names-number": (_inside("shape", labels={"names": 3}), "names"),
    "size-huge": (_inside("part", size=10**12), "size"),
    "size-negative": (_inside("part", size=-1), "size"),
}


def _weights(change: Callable[[Any], Any], *, hashes: bool = False) -> Maker:
    """A trained parser whose weights, or the hashes of its sentences, are changed."""

    def make(path: Path, base: Path) -> None:
        from safetensors.torch import load_file, save_file

        tensors = load_file(base / "weights.safetensors")
        changed = {
            name: one if (name == "trained_on") is not hashes else change(one)
            for name, one in tensors.items()
        }
        save_file(changed, path)

    return copied("parser", weights__safetensors=make)


_WEIGHTS: dict[str, tuple[Maker, str]] = {
    "hashes-halves": (_weights(lambda one: one.half(), hashes=True), "trained_on"),
    "hashes-scalar": (_weights(lambda one: one.sum(), hashes=True), "trained_on"),
    "integers": (_weights(lambda one: one.mul(100).int()), "int32"),
    "booleans": (_weights(lambda one: one > 0), "bool"),
    "bytes": (_weights(lambda one: one.mul(100).byte()), "uint8"),
    "complex": (_weights(lambda one: one.cfloat()), "complex64"),
    "doubles": (_weights(lambda one: one.double()), "float64"),
    "nan": (_weights(lambda one: one * float("nan")), "damaged-weights"),
    "infinite": (_weights(lambda one: one + float("inf")), "damaged-weights"),
}


#: Names of packages that somebody else would like to see installed.
_EVIL_PACKAGES = {
    "command": "x; touch pwned",
    "address": "git+https://evil.example/x",
    "index": "--index-url=https://evil.example x",
}


def _offers_no_pip(work: Path) -> None:
    output = (work.parent / "stderr").read_text(encoding="utf-8")
    assert "pip" not in output and "not installed" in output, output


def _dictated() -> Iterator[Row]:
    """A parser's folder names a package: it is quoted, and no command is offered."""
    for name, package in _EVIL_PACKAGES.items():
        parser = _inside("encoder", kind="package", id=package)
        command = "try 'the old man' --tokenizer whitespace --parser x"
        says = ("not-installed", f"'{package}'", "--encoder")
        yield Row(f"package-{name}", command, says, {"x": parser}, check=_offers_no_pip)


def _published() -> Iterator[Row]:
    """What goes into a card is one line where it must be, and text."""
    publish = "publish {base}/parser --output out --licence"
    for name, licence in (("newline", "'x\ny: z'"), ("escape", "'a\x1b[31mb'"), ("blank", "' '")):
        yield Row(f"publish-licence-{name}", f"{publish} {licence} --sources s", ("bad-licence",))
    yield Row("publish-no-sources", f"{publish} x --sources ' '", ("no-sources",))
    table = {"t.md": b"\xff\xfe"}
    command = f"{publish} x --sources s --table t.md"
    yield Row("publish-table-bytes", command, ("not-utf-8", "t.md"), table)
    card = {"x": copied("parser", README__md=b"\xff")}
    command = "publish x --output out --licence x --sources s"
    yield Row("publish-card-bytes", command, ("not-utf-8", "README.md"), card)
    controls = f"{publish} x --sources 'a \x1b[3m'"

    def clean(work: Path) -> None:
        assert "\x1b" not in (work / "out/README.md").read_text(encoding="utf-8")

    yield Row("publish-sources-escape", controls, status=0, makes=("out", "out/*"), check=clean)


def _damaged() -> Iterator[Row]:
    """One value is wrong."""
    for name, (changes, says) in _SELECTION.items():
        for reader in ("selection", "bulk-selection"):
            yield _row(reader, name, edited("selection.json", **changes), says)
    for reader in ("parser", "bulk-parser"):
        for name, (parser, says) in _PARSERS.items():
            yield _row(reader, name, parser, "parser.json", says)
        for name, (parser, says) in _WEIGHTS.items():
            yield _row(reader, f"weights-{name}", parser, "weights.safetensors", says)


def _foreign() -> Iterator[Row]:
    """What stands in a file's place is no JSON, no file, another file, or a part of it."""
    for name, text in NOT_JSON.items():
        for reader in ("selection", "manifest"):
            yield _row(reader, f"is-{name}", text)
        yield _row("parser", f"is-{name}", copied("parser", parser__json=text), "parser.json")
    for name, make in NOT_FILES.items():
        for reader in ("selection", "manifest", "parses"):
            yield _row(reader, f"is-{name}", make)
    pieces = {"pickle": PICKLE, "cut": cut("weights.safetensors")}
    for name, content in {**NOT_FILES, **pieces}.items():
        parser = copied("parser", weights__safetensors=content)
        for reader in ("parser", "bulk-parser"):
            yield _row(reader, f"weights-{name}", parser, "weights.safetensors")
    unfinished = copied("parser", parser__json=None)
    yield _row("parser", "unfinished", unfinished, "parser.json")
    for reader, name, content in (
        ("bulk-parser", "unfinished", unfinished),
        ("bulk-parser", "empty", folder),
        ("manifest", "shards-null", edited("selected.json", shards=None)),
        ("manifest", "empty", {}),
        ("parses", "pickle", PICKLE),
        ("parses", "cut", cut("parses.parquet")),
        ("parses", "other-table", copied("heads.parquet")),
        ("parses", "text", "lots"),
    ):
        yield _row(reader, name, content)


#: Options of `attree train`, what is said of them, the exit status.
_TRAIN = {
    "size": ("--size -1", "size", 1),
    "seed": ("--seed -1", "seed", 2),
    "rate": ("--learning-rate -1", "learning", 2),
    "rate-nan": ("--learning-rate nan", "learning", 2),
    "dropout": ("--dropout 5", "dropout", 2),
    "trees": ("--trees 0", "not-a-number", 1),
    "trees-text": ("--trees lots", "lots", 1),
    "parser": ("--parser ../x", "../x", 1),
    "layer": ("--layer 99", "99", 1),
    "layer-text": ("--layer evil", "evil", 2),
    "start": ("--start evil", "evil", 1),
    "objective": ("--objective evil", "evil", 1),
    "device": ("--device evil", "evil", 1),
    "held-out": ("--held-out -3", "held", 2),
}


def _options() -> Iterator[Row]:
    train = "train --sentences {base}/dev.parquet --encoder {base}/bert.json --output out --steps 1"
    for name, (options, says, status) in _TRAIN.items():
        yield Row(f"train-{name}", f"{train} {options}", (says,), status=status)


def rows() -> list[Row]:
    """Return them all."""
    return [*_damaged(), *_dictated(), *_published(), *_foreign(), *_options()]
