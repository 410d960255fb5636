"""Selections of heads, trained parsers, manifests, tables: damaged, foreign, out of range."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.attacks.harness import Maker, Row, copied, cut, edited, folder
from tests.attacks.rows_encoders import NOT_FILES, NOT_JSON, PICKLE

_RUN = ("out", "out/.lock", "out/manifest.json")
_PARSE = (
    "parse",
    "{base}/lines.txt",
    "--output",
    "out",
    "--encoder",
    "{base}/bert.json",
)


def _decode(name: str, selection: Any, says: tuple[str, ...], **more: Any) -> Row:
    argv = ("decode", "{base}/selected.json", "--selection", "x.json", "--output", "out.parquet")
    return Row(f"selection-{name}", argv, says, {"x.json": selection}, **more)


def _bulk(name: str, selection: Any, says: tuple[str, ...], **more: Any) -> Row:
    argv = (*_PARSE, "--parser", "x.json")
    return Row(f"bulk-selection-{name}", argv, says, {"x.json": selection}, makes=_RUN, **more)


def _apply(name: str, parser: Maker, says: tuple[str, ...], **more: Any) -> Row:
    argv = (
        "apply",
        "{base}/dev.parquet",
        "--parser",
        "x",
        "--encoder",
        "{base}/bert.json",
        "--output",
        "out.parquet",
        "--allow-overlap",
    )
    return Row(f"parser-{name}", argv, says, {"x": parser}, **more)


def _bulk_trained(name: str, parser: Maker, says: tuple[str, ...], **more: Any) -> Row:
    argv = (*_PARSE, "--parser", "x")
    return Row(f"bulk-parser-{name}", argv, says, {"x": parser}, makes=_RUN, **more)


def _manifest(name: str, manifest: Any, says: tuple[str, ...], **more: Any) -> Row:
    argv = ("decode", "x.json", "--selection", "{base}/selection.json", "--output", "out.parquet")
    return Row(f"manifest-{name}", argv, says, {"x.json": manifest}, **more)


def _score(name: str, parses: Any, says: tuple[str, ...], **more: Any) -> Row:
    argv = (
        "score",
        "x.parquet",
        "--sentences",
        "{base}/dev.parquet",
        "--output",
        "out.parquet",
        "--summary",
        "out.json",
    )
    return Row(f"parses-{name}", argv, says, {"x.parquet": parses}, **more)


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
    """A trained parser with other values in ``recipe`` or ``shape``."""

    def make(path: Path, base: Path) -> None:
        import json

        about = json.loads((base / "parser.json").read_text())
        about[key] |= changes
        path.write_text(json.dumps(about))

    return copied("parser", parser__json=make)


def _part(**changes: Any) -> Maker:
    """A trained parser whose first part has other settings."""

    def make(path: Path, base: Path) -> None:
        import json

        about = json.loads((base / "parser.json").read_text())
        next(iter(about["shape"].values())).update(changes)
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
    "layers-text": (_part(layers="2"), "layers"),
    "layers-huge": (_part(layers=[10**9]), "layers"),
    "layers-negative": (_part(layers=[-1]), "layers"),
    "layers-beyond": (_part(layers=[50]), "layers: 50"),
    "layers-none": (_part(layers=[]), "layers"),
    "layers-number": (_part(layers=2), "layers"),
    "heads-none": (_part(heads=0), "heads: 0"),
    "names-number": (_inside("shape", labels={"names": 3}), "names"),
    "size-huge": (_part(size=10**12), "size"),
    "size-negative": (_part(size=-1), "size"),
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
    "nan": (_weights(lambda one: one * float("nan")), "finite"),
    "infinite": (_weights(lambda one: one + float("inf")), "finite"),
}


def rows() -> list[Row]:
    """Return them all."""
    found = [
        _decode(f"is-{name}", text, ("x.json",), full=name != "nested-objects")
        for name, text in NOT_JSON.items()
    ]
    found += [
        _decode(f"is-{name}", make, ("x.json",), full=name != "fifo")
        for name, make in NOT_FILES.items()
    ]
    for name, (changes, says) in _SELECTION.items():
        selection = edited("selection.json", **changes)
        found.append(_decode(name, selection, (says,), full=name != "score-path"))
        found.append(_bulk(name, selection, (says,), full=name != "association-evil"))
    for name, (parser, says) in _PARSERS.items():
        found.append(_apply(name, parser, ("parser.json", says), full=name != "dropout-five"))
        found.append(_bulk_trained(name, parser, ("parser.json", says)))
    for name, (parser, says) in _WEIGHTS.items():
        told = ("weights.safetensors", says)
        found.append(_apply(f"weights-{name}", parser, told, full=name != "integers"))
        found.append(_bulk_trained(f"weights-{name}", parser, told, full=name != "booleans"))
    for name, text in NOT_JSON.items():
        found.append(_apply(f"is-{name}", copied("parser", parser__json=text), ("parser.json",)))
        found.append(_manifest(f"is-{name}", text, ("x.json",), full=name != "null"))
    for name, make in NOT_FILES.items():
        weights = copied("parser", weights__safetensors=make)
        found.append(_apply(f"weights-{name}", weights, ("weights.safetensors",)))
        found.append(_bulk_trained(f"weights-{name}", weights, ("weights.safetensors",)))
        found.append(_manifest(f"is-{name}", make, ("x.json",)))
        found.append(_score(f"is-{name}", make, ("x.parquet",), full=name != "zeros"))
    found += [
        _apply(
            "weights-pickle",
            copied("parser", weights__safetensors=PICKLE),
            ("weights.safetensors",),
            full=False,
        ),
        _apply(
            "weights-cut",
            copied("parser", weights__safetensors=cut("weights.safetensors")),
            ("weights.safetensors",),
        ),
        _apply("unfinished", copied("parser", parser__json=None), ("parser.json",)),
        _bulk_trained("unfinished", copied("parser", parser__json=None), ("x",)),
        _bulk_trained("empty", folder, ("x",)),
        _manifest("shards-null", edited("selected.json", shards=None), ("x.json",), full=False),
        _manifest("empty", {}, ("x.json",)),
        _score("pickle", PICKLE, ("x.parquet",)),
        _score("cut", cut("parses.parquet"), ("x.parquet",)),
        _score("other-table", copied("heads.parquet"), ("x.parquet",)),
        _score("text", "lots", ("x.parquet",)),
    ]
    return found + _options()


def _options() -> list[Row]:
    train = (
        "train",
        "--sentences",
        "{base}/dev.parquet",
        "--encoder",
        "{base}/bert.json",
        "--output",
        "out",
        "--steps",
        "1",
    )
    made: dict[str, tuple[tuple[str, ...], str, int]] = {
        "size": (("--size", "-1"), "size", 1),
        "seed": (("--seed", "-1"), "seed", 2),
        "rate": (("--learning-rate", "-1"), "learning", 2),
        "rate-nan": (("--learning-rate", "nan"), "learning", 2),
        "dropout": (("--dropout", "5"), "dropout", 2),
        "trees": (("--trees", "0"), "0 trees are asked for", 1),
        "trees-text": (("--trees", "lots"), "lots", 1),
        "ids": (("--ids", "1,x"), "x", 2),
        "ids-far": (("--ids", "99999"), "99999", 1),
        "ids-trees": (("--ids", "1", "--trees", "2"), "--ids and --trees exclude each other", 2),
        "layers-text": (("--tune-on", "2", "--tune-layers", "evil"), "evil", 1),
        "no-effect": (("--tune-layers", "1"), "--tune-on", 2),
        "parser": (("--parser", "../x"), "../x", 1),
        "layer": (("--layer", "99"), "99", 1),
        "layer-text": (("--layer", "evil"), "evil", 2),
        "start": (("--start", "evil"), "evil", 1),
        "objective": (("--objective", "evil"), "evil", 1),
        "factor": (("--factor", "evil"), "evil", 1),
        "device": (("--device", "evil"), "evil", 1),
        "held-out": (("--held-out", "-3"), "held", 2),
    }
    return [
        Row(f"train-{name}", (*train, *options), (says,), status=status, full=name != "rate")
        for name, (options, says, status) in made.items()
    ]
