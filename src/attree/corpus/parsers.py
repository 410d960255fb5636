"""Parsers for bulk work: which one is asked for (:mod:`attree.corpus.apply` loads and runs it).

Two kinds: heads whose attention is averaged (what ``attree heads`` selected, or a recipe written
out), and a folder that ``attree train`` wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attree.attention.columns import Head, checked, heads_key, read_selection
from attree.encoder.source import EncoderSource, ResolvedEncoder, resolve
from attree.errors import AttreeError
from attree.files import read_json
from attree.heads.selection import HeadSelection


@dataclass(frozen=True, slots=True)
class HeadsParser:
    """A parser that averages heads: what is told to workers.

    Attributes:
        encoder: where it lies.
        heads: averaged.
        association, score, decoder: as for :func:`attree.decoding.batch.decode`.
    """

    encoder: ResolvedEncoder
    heads: tuple[Head, ...]
    association: str
    score: str
    decoder: str

    def describe(self) -> dict[str, Any]:
        """What output depends on, as JSON."""
        return {
            "encoder": _identity(self.encoder),
            "heads": heads_key(self.heads),
            "association": self.association,
            "score": self.score,
            "decoder": self.decoder,
        }


@dataclass(frozen=True, slots=True)
class TrainedFolder:
    """A parser that ``attree train`` wrote: what is told to workers."""

    encoder: ResolvedEncoder
    folder: str
    fingerprint: str

    def describe(self) -> dict[str, Any]:
        """What output depends on, as JSON."""
        return {"encoder": _identity(self.encoder), "trained": self.fingerprint}


ParserSource = HeadsParser | TrainedFolder


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the command line says about a parser; ``None`` leaves a choice to ``parser``."""

    encoder: str | None = None
    heads: str | None = None
    association: str | None = None
    score: str | None = None
    decoder: str | None = None


#: name → recipe of the article's parsers; heads are those of :data:`READY` or given beside it
NAMED: Mapping[str, Mapping[str, str]] = {
    "upoa": {"association": "raw", "score": "outside", "decoder": "greedy"},
    "upio": {"association": "raw", "score": "inside_outside", "decoder": "chart"},
    "upio-log": {"association": "log", "score": "inside_outside", "decoder": "chart"},
}

#: An encoder and the heads of it that each parser of :data:`NAMED` averages.
READY = Path(__file__).with_name("ready.json")


def find_parser(parser: str, recipe: Recipe) -> ParserSource:
    """Find a parser.

    Args:
        parser: a selection of ``attree heads`` (``results/heads/….json``), a folder of
            ``attree train``, or a name of :data:`NAMED`, by itself on the encoder of
            :data:`READY`.
        recipe: what is said beside it. The encoder is a description (``….json``), an installed
            package or a folder; by default the one that ``results/encoders`` has for a selection.

    Raises:
        AttreeError: no such parser, another encoder's, or choices left open.
    """
    path = Path(parser)
    if (path / "parser.json").is_file():
        return _trained(path, recipe)
    if path.suffix == ".json" or path.exists():
        return _selected(path, recipe)
    if parser not in NAMED:
        raise AttreeError(
            f"no parser {parser!r}",
            fix=f"name a results/heads/….json, a folder of attree train, or {', '.join(NAMED)}",
        )
    if recipe.heads is None:
        return _ready(parser, recipe)
    return _from_recipe(NAMED[parser], recipe, find_encoder(recipe.encoder, None))


def _ready(parser: str, recipe: Recipe) -> HeadsParser:
    ready = read_json(READY, what="list of ready heads")
    encoder = find_encoder(recipe.encoder or ready["encoder"], None)
    if encoder.fingerprint != ready["fingerprint"]:
        raise AttreeError(
            f"{parser} does not say which heads of {encoder.slug}",
            fix="give --heads list:LAYER.HEAD,… or --parser results/heads/….json",
        )
    return _from_recipe({**NAMED[parser], "heads": ready["heads"][parser]}, recipe, encoder)


def _selected(path: Path, recipe: Recipe) -> HeadsParser:
    selection = read_selection(path)
    # results/heads/{encoder}/… and results/encoders/{encoder}.json are beside each other
    parents = path.absolute().parents
    beside = [
        above.parent / "encoders" / f"{below.name}.json"
        for below, above in zip(parents, list(parents)[1:], strict=False)
        if above.name == "heads"
    ]
    encoder = find_encoder(recipe.encoder, beside[0] if beside else None)
    found = _from_recipe(selection, recipe, encoder)
    if selection.get("encoder", encoder.fingerprint) != encoder.fingerprint:
        raise AttreeError(
            f"these heads were selected with another encoder than {encoder.slug}",
            file=path,
            fix="name its encoder with --encoder",
        )
    return found


def _from_recipe(given: Mapping[str, Any], recipe: Recipe, encoder: ResolvedEncoder) -> HeadsParser:
    from attree.decoding import DECODERS
    from attree.scoring import ASSOCIATIONS, SCORES

    chosen = {key: value for key, value in asdict(recipe).items() if value is not None}
    merged = {**given, **chosen}
    for key, known in (("association", ASSOCIATIONS), ("score", SCORES), ("decoder", DECODERS)):
        if merged.get(key) not in known:
            raise AttreeError(
                f"unknown {key} {merged.get(key)!r}", fix=f"choose one of {', '.join(known)}"
            )
    heads = merged["heads"]
    if isinstance(heads, str):
        heads = _listed(heads, encoder)
    return HeadsParser(
        encoder,
        tuple(checked(heads, encoder.n_layers, encoder.n_heads)),
        merged["association"],
        merged["score"],
        merged["decoder"],
    )


def _listed(text: str, encoder: ResolvedEncoder) -> list[Head]:
    selection = HeadSelection.parse(text)
    if selection.kind not in ("all", "list"):
        raise AttreeError(
            f"heads cannot be chosen by F1 here: {text}",
            fix="give --parser a selection of attree heads, or --heads list:LAYER.HEAD,…",
        )
    return selection.apply(np.zeros((encoder.n_layers, encoder.n_heads)))


def find_encoder(name: str | None, beside: Path | None) -> ResolvedEncoder:
    """Return the encoder of a description, folder or package; by default the one ``beside``."""
    if name is None:
        if beside is None or not beside.is_file():
            raise AttreeError(
                "which encoder is not said", fix="give --encoder results/encoders/….json"
            )
        return ResolvedEncoder.read(beside)
    path = Path(name)
    if path.suffix == ".json":
        return ResolvedEncoder.read(path)
    kind = "path" if path.is_dir() else "package"
    return resolve(EncoderSource(slug=path.name, kind=kind, id=name, dtype="auto"))


def _trained(folder: Path, recipe: Recipe) -> TrainedFolder:
    from attree.provenance import digest

    about = read_json(folder / "parser.json", what="parser")
    parents = folder.absolute().parents
    slug = about["encoder"]["slug"]
    beside = [above / "encoders" / f"{slug}.json" for above in parents]
    encoder = find_encoder(recipe.encoder, next((p for p in beside if p.is_file()), None))
    if about["encoder"]["fingerprint"] != encoder.fingerprint:
        raise AttreeError(
            f"this parser was trained with another encoder than {encoder.slug}",
            file=folder,
            fix="name its encoder with --encoder",
        )
    weights = folder / "weights.safetensors"
    if not weights.is_file():
        raise AttreeError("this parser has no weights", file=weights, fix="train it again")
    import hashlib

    hashed = hashlib.sha256(weights.read_bytes()).hexdigest()
    return TrainedFolder(encoder, str(folder.absolute()), digest([about["recipe"], hashed]))


def _identity(encoder: ResolvedEncoder) -> dict[str, str]:
    return {"slug": encoder.slug, "fingerprint": encoder.fingerprint, "dtype": encoder.dtype}
