"""Selections of heads, trained parsers, manifests, tables: damaged, foreign, out of range."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.attacks.harness import Content, Maker, Row, copied, cut, edited, folder
from tests.attacks.rows_encoders import NOT_FILES, NOT_JSON, PICKLE

_RUN = ("out", "out/.lock", "out/manifest.json")
_PARSE = "parse {base}/lines.txt --output out --encoder {base}/bert.json"
_SELECTED = "--selection {base}/selection.json --output out.parquet"
_Files = Mapping[str, Content]


def _decode(name: str, selection: Content, says: str) -> Row:
    command = "decode {base}/selected.json --selection x.json --output out.parquet"
    return Row(f"selection-{name}", command, (says,), {"x.json": selection})


def _bulk(name: str, files: _Files, *says: str) -> Row:
    return Row(f"bulk-{name}", f"{_PARSE} --parser {next(iter(files))}", says, files, makes=_RUN)


def _apply(name: str, parser: Maker, *says: str) -> Row:
    command = "apply {base}/dev.parquet --parser x --encoder {base}/bert.json --output out.parquet"
    return Row(f"parser-{name}", f"{command} --allow-overlap", says, {"x": parser})


def _manifest(name: str, manifest: Content) -> Row:
    command = f"decode x.json {_SELECTED}"
    return Row(f"manifest-{name}", command, ("x.json",), {"x.json": manifest})


def _score(name: str, parses: Content) -> Row:
    command = "score x.parquet --sentences {base}/dev.parquet --output out.parquet"
    command += " --summary out.json"
    return Row(f"parses-{name}", command, ("x.parquet",), {"x.parquet": parses})


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
    """A trained parser with other values in ``recipe`` or ``shape``, or in its first part."""

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
    "objective-number": (_inside("recipe", objective=3), "objective"),
    "decoder-evil": (_inside("recipe", decoder="evil"), "decoder"),
    "dropout-five": (_inside("recipe", dropout=5), "dropout"),
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
    "heads-none": (_inside("part", heads=0), "bad-shape heads"),
    "names-number": (_inside("shape", labels={"names": 3}), "names"),
    "size-huge": (_inside("part", size=10**12), "size"),
    "size-negative": (_inside("part", size=-1), "size"),
}


def _weights(change: Callable[[Any], Any]) -> Maker:
    """A trained parser whose weights are changed."""

    def make(path: Path, base: Path) -> None:
        from safetensors.torch import load_file, save_file

        tensors = load_file(base / "weights.safetensors")
        changed = {
            name: one if name == "trained_on" else change(one) for name, one in tensors.items()
        }
        save_file(changed, path)

    return copied("parser", weights__safetensors=make)


_WEIGHTS: dict[str, tuple[Maker, str]] = {
    "integers": (_weights(lambda one: one.mul(100).int()), "int32"),
    "booleans": (_weights(lambda one: one > 0), "bool"),
    "bytes": (_weights(lambda one: one.mul(100).byte()), "uint8"),
    "complex": (_weights(lambda one: one.cfloat()), "complex64"),
    "doubles": (_weights(lambda one: one.double()), "float64"),
    "nan": (_weights(lambda one: one * float("nan")), "damaged-weights"),
    "infinite": (_weights(lambda one: one + float("inf")), "damaged-weights"),
}


def rows() -> list[Row]:
    """Return them all."""
    return [*_damaged(), *_no_files(), *_others(), *_options()]


def _damaged() -> Iterator[Row]:
    """One value is wrong."""
    for name, (changes, says) in _SELECTION.items():
        selection = edited("selection.json", **changes)
        yield _decode(name, selection, says)
        yield _bulk(f"selection-{name}", {"x.json": selection}, says)
    for name, (parser, says) in _PARSERS.items():
        yield _apply(name, parser, "parser.json", says)
        yield _bulk(f"parser-{name}", {"x": parser}, "parser.json", says)
    for name, (parser, says) in _WEIGHTS.items():
        yield _apply(f"weights-{name}", parser, "weights.safetensors", says)
        yield _bulk(f"parser-weights-{name}", {"x": parser}, "weights.safetensors", says)


def _no_files() -> Iterator[Row]:
    """What stands in a file's place is no JSON, no file."""
    for name, text in NOT_JSON.items():
        yield _decode(f"is-{name}", text, "x.json")
        yield _apply(f"is-{name}", copied("parser", parser__json=text), "parser.json")
        yield _manifest(f"is-{name}", text)
    for name, make in NOT_FILES.items():
        weights = copied("parser", weights__safetensors=make)
        yield _decode(f"is-{name}", make, "x.json")
        yield _apply(f"weights-{name}", weights, "weights.safetensors")
        yield _bulk(f"parser-weights-{name}", {"x": weights}, "weights.safetensors")
        yield _manifest(f"is-{name}", make)
        yield _score(f"is-{name}", make)


def _others() -> list[Row]:
    unfinished = copied("parser", parser__json=None)
    pickled = copied("parser", weights__safetensors=PICKLE)
    shortened = copied("parser", weights__safetensors=cut("weights.safetensors"))
    return [
        _apply("weights-pickle", pickled, "weights.safetensors"),
        _apply("weights-cut", shortened, "weights.safetensors"),
        _apply("unfinished", unfinished, "parser.json"),
        _bulk("parser-unfinished", {"x": unfinished}, "x"),
        _bulk("parser-empty", {"x": folder}, "x"),
        _manifest("shards-null", edited("selected.json", shards=None)),
        _manifest("empty", {}),
        _score("pickle", PICKLE),
        _score("cut", cut("parses.parquet")),
        _score("other-table", copied("heads.parquet")),
        _score("text", "lots"),
    ]


#: Options of `attree train`, what is said of them, the exit status.
_TRAIN = {
    "size": ("--size -1", "size", 1),
    "seed": ("--seed -1", "seed", 2),
    "rate": ("--learning-rate -1", "learning", 2),
    "rate-nan": ("--learning-rate nan", "learning", 2),
    "dropout": ("--dropout 5", "dropout", 2),
    "trees": ("--trees 0", "bad-count", 1),
    "trees-text": ("--trees lots", "lots", 1),
    "ids": ("--ids 1,x", "x", 2),
    "ids-far": ("--ids 99999", "99999", 1),
    "ids-trees": ("--ids 1 --trees 2", "--ids and --trees exclude each other", 2),
    "layers-text": ("--tune-on 2 --tune-layers evil", "evil", 1),
    "no-effect": ("--tune-layers 1", "--tune-on", 2),
    "parser": ("--parser ../x", "../x", 1),
    "layer": ("--layer 99", "99", 1),
    "layer-text": ("--layer evil", "evil", 2),
    "start": ("--start evil", "evil", 1),
    "objective": ("--objective evil", "evil", 1),
    "factor": ("--factor evil", "evil", 1),
    "device": ("--device evil", "evil", 1),
    "held-out": ("--held-out -3", "held", 2),
}


def _options() -> Iterator[Row]:
    train = "train --sentences {base}/dev.parquet --encoder {base}/bert.json --output out --steps 1"
    for name, (options, says, status) in _TRAIN.items():
        yield Row(f"train-{name}", f"{train} {options}", (says,), status=status)
