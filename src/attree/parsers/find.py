"""Find parsers by name: return a description, and load nothing.

:data:`KINDS` has the kinds of parsers that lie in files. Those of an encoder are averaged attention
heads (selected by ``attree heads``, or given by a recipe), and folders of ``attree train``. Workers
get the description and load the parser themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from attree.association.columns import check_selected_with, mean_column, read_selection
from attree.association.selection import HeadSelection
from attree.association.sources import HEADS, check_heads, load_source
from attree.base.errors import AttreeError
from attree.base.provenance import digest
from attree.base.registry import check_name, load, nearest
from attree.decoding import DECODERS, UNSUPERVISED, Recipe
from attree.encoder.source import (
    DTYPES,
    EncoderSource,
    Head,
    ResolvedEncoder,
    find_encoder,
    resolve,
    with_adapter,
)
from attree.ready import ready_heads, ready_parsers, trained_folder
from attree.scoring import ASSOCIATIONS, SCORES

if TYPE_CHECKING:
    from attree.encoder.load import Encoder
    from attree.parsers.batches import Model
    from attree.training.recipes import Description

#: File in a parser's folder, or end of a file's name → what finds the parser, given its path and
#: :class:`Overrides`.
KINDS = {
    "parser.json": "attree.parsers.find:find_trained",
    "grammar.json": "attree.grammar.folder:find_grammar",
    ".json": "attree.parsers.find:find_selected",
}


class WithoutEncoder(Protocol):
    """A parser that has no encoder."""

    language: ClassVar[str]

    def load(self, *, threads: int | None) -> Model:
        """Load the parser, to run in so many threads of a CPU."""


@dataclass(frozen=True, slots=True)
class AveragedHeads:
    """A parser that averages attention heads.

    Attributes:
        encoder: the resolved encoder.
        heads: the heads to average.
        recipe: how their mean is parsed.
        source: the source of association whose units the heads are.
    """

    encoder: ResolvedEncoder
    heads: tuple[Head, ...]
    recipe: Recipe
    source: str = HEADS
    has_distribution: ClassVar[bool] = False
    language: ClassVar[str] = ""
    punctuation: ClassVar[str] = ""
    languages: ClassVar[Mapping[str, Any]] = {}

    def describe(self) -> dict[str, Any]:
        """Return what its trees depend on, as JSON."""
        heads, _ = mean_column(self.heads, source=self.source)
        return {"encoder": _identity(self.encoder), "heads": heads, **self.recipe.settings()}

    def on(self, encoder: Encoder) -> Model:
        """Return the parser with a loaded encoder."""
        from attree.parsers.heads import HeadsModel

        return HeadsModel(encoder, self.heads, self.recipe, self.source)


@dataclass(frozen=True, slots=True)
class TrainedFolder:
    """A parser that ``attree train`` wrote.

    Attributes:
        encoder: the resolved encoder.
        folder: path of the parser's folder.
        fingerprint: hash of its recipe, weights, and the sizes and names in its shape.
        language: language code of the trees it was trained on; empty if unknown.
        punctuation: punctuation policy of these trees; empty if unknown.
        has_distribution: whether its trees have marginals.
        languages: how well it reads some (see :mod:`attree.parsers.reading`).
    """

    encoder: ResolvedEncoder
    folder: str
    fingerprint: str
    language: str = ""
    punctuation: str = ""
    has_distribution: bool = False
    languages: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def describe(self) -> dict[str, Any]:
        """Return what its trees depend on, as JSON."""
        return {"encoder": _identity(self.encoder), "trained": self.fingerprint}

    def on(self, encoder: Encoder) -> Model:
        """Load the weights and return the parser with a loaded encoder."""
        from attree.training.parser import TrainedModel, load_parser

        parser = load_parser(self.folder, device=str(encoder.device))
        if _fingerprint(Path(self.folder)) != self.fingerprint:  # a worker may load it hours later
            problem, fix = "this parser has changed since the run began", "run again"
            raise AttreeError("parser-changed", problem, file=self.folder, fix=fix)
        return TrainedModel(parser, encoder)


ParserSource = AveragedHeads | TrainedFolder


@dataclass(frozen=True, slots=True)
class Overrides:
    """Choices given beside a parser's name; None leaves a choice to the parser.

    ``dtype`` is by default the description's of an encoder that has one, else :data:`DTYPE`.
    """

    encoder: str | None = None
    heads: str | None = None
    association: str | None = None
    score: str | None = None
    decoder: str | None = None
    dtype: str | None = None


#: The dtype of an encoder that is given by name.
DTYPE = "auto"

_NAME_IT = "name its encoder with --encoder"


def find_parser(parser: str, overrides: Overrides) -> ParserSource:
    """Find a parser.

    Args:
        parser: a selection of ``attree heads`` (``results/heads/….json``), a folder of
            ``attree train``, a name of ``UNSUPERVISED`` (by default with the encoder of
            ``ready/heads.json``), or another name of :func:`ready_parsers`.
        overrides: choices that replace the parser's own. The encoder is a description (``….json``),
            an installed package or a folder; a selection's own is in ``results/encoders``.

    Raises:
        AttreeError: the parser does not exist, needs another encoder, or lacks a choice.
    """
    source = find(parser, overrides)
    if not isinstance(source, ParserSource):
        problem = "this is a grammar, which has no encoder"
        fix = "parse with `attree grammar parse`, or `attree try --parser` without --encoder"
        raise AttreeError("grammar-without-encoder", problem, file=parser, fix=fix)
    if overrides.dtype is None:
        return source
    check_name(overrides.dtype, DTYPES, f"unknown dtype {overrides.dtype!r}")
    return replace(source, encoder=replace(source.encoder, dtype=overrides.dtype))


def find(parser: str, overrides: Overrides) -> ParserSource | WithoutEncoder:
    """Find a parser as :func:`find_parser` does, or one that has no encoder."""
    path, names = Path(parser), ready_parsers()
    if not path.exists():
        path = trained_folder(parser) or path
    if parser and path.is_dir():
        if (kind := next((name for name in KINDS if (path / name).is_file()), None)) is None:
            problem = "this folder holds no parser (there is no parser.json in it)"
            fix = "give a folder of `attree train`, a file of `attree heads`, or a ready parser: "
            raise AttreeError("no-parser", problem, file=path, fix=fix + ", ".join(names))
    elif parser and (path.suffix == ".json" or path.exists()):
        kind = ".json"
    elif parser in names:
        return _ready(parser, overrides)
    else:
        fix = f"{nearest(parser, names)} — or a folder of `attree train`, or a file of "
        fix += "`attree heads` (results/heads/….json)"
        raise AttreeError("unknown-parser", f"unknown parser {parser!r}", fix=fix)
    found: ParserSource | WithoutEncoder = load(KINDS[kind])(path, overrides)
    return found


def _ready(parser: str, overrides: Overrides) -> AveragedHeads:
    recipe, ready = UNSUPERVISED[parser].settings(), ready_heads()
    name = ready["default"] if overrides.encoder is None else overrides.encoder
    encoder = find_encoder(name, dtype=DTYPE)
    if overrides.heads is None:
        heads = {entry["fingerprint"]: entry["heads"] for entry in ready["encoders"].values()}
        if encoder.fingerprint not in heads:
            problem = f"{parser} does not say which heads of {encoder.slug}"
            fix = "give --heads list:LAYER.HEAD,… or --parser results/heads/….json"
            raise AttreeError("no-heads-known", problem, fix=fix)
        recipe["heads"] = heads[encoder.fingerprint][parser]
    return _from_recipe(recipe, overrides, encoder)


def find_selected(path: Path, overrides: Overrides) -> AveragedHeads:
    """Find the parser of a selection of ``attree heads``, see :func:`find_parser`."""
    selection = read_selection(path)
    # results/heads/{encoder}/… belongs to results/encoders/{encoder}.json
    paths = (
        folder.parents[1] / "encoders" / f"{folder.name}.json"
        for folder in path.absolute().parents
        if folder.parent.name == "heads"
    )
    encoder = _encoder(overrides, next(paths, None))
    parser = _from_recipe(selection, overrides, encoder)
    check_selected_with(selection, encoder.slug, encoder.fingerprint, file=path, fix=_NAME_IT)
    return parser


def _from_recipe(
    base: Mapping[str, Any], overrides: Overrides, encoder: ResolvedEncoder
) -> AveragedHeads:
    chosen = {key: value for key, value in asdict(overrides).items() if value is not None}
    merged = {**base, **chosen}
    for key, names in (("association", ASSOCIATIONS), ("score", SCORES), ("decoder", DECODERS)):
        check_name(merged.get(key), names, f"unknown {key} {merged.get(key)!r}")
    heads, source = merged["heads"], merged.get("source", HEADS)
    size = encoder.n_layers, encoder.n_heads
    if isinstance(heads, str):
        selection = HeadSelection.parse(heads)
        if selection.kind not in ("all", "list"):
            fix = "give --parser a selection of attree heads, or --heads list:LAYER.HEAD,…"
            raise AttreeError("heads-by-f1", f"heads cannot be chosen by F1 here: {heads}", fix=fix)
        heads = selection.apply(np.zeros(load_source(source).shape(*size)))
    heads = tuple(check_heads(source, heads, *size))
    recipe = Recipe(merged["association"], merged["score"], merged["decoder"])
    return AveragedHeads(encoder, heads, recipe, source)


def _encoder(overrides: Overrides, beside: Path | None) -> ResolvedEncoder:
    """Return the encoder named in ``overrides``; by default the one described in ``beside``."""
    if overrides.encoder is not None:
        return find_encoder(overrides.encoder, dtype=DTYPE)
    if beside is None or not beside.is_file():
        fix = "give --encoder results/encoders/….json"
        raise AttreeError("no-encoder", "no encoder is given", fix=fix)
    return ResolvedEncoder.read(beside)


def find_trained(folder: Path, overrides: Overrides) -> TrainedFolder:
    """Find the parser in a folder of ``attree train``, see :func:`find_parser`."""
    from attree.training.recipes import WEIGHTS, read_description

    for name in ("heads", "association", "score", "decoder"):
        if getattr(overrides, name) is not None:
            problem = f"--{name} has no effect on a trained parser"
            fix = "leave it out, or name upoa, upio, upio-log"
            raise AttreeError("option-without-effect", problem, file=folder, fix=fix)
    description = read_description(folder)
    weights, raw = folder / WEIGHTS, description.raw
    encoder = with_adapter(_encoder_of(description, folder, overrides), weights)
    if description.encoder.fingerprint != encoder.fingerprint:
        problem = f"this parser was not trained with the encoder {encoder.slug}"
        raise AttreeError("other-encoder", problem, file=folder, fix=_NAME_IT)
    return TrainedFolder(
        encoder,
        str(folder.absolute()),
        _fingerprint(folder),
        language=description.about.language,
        punctuation=description.about.table.punctuation or "",
        languages=raw["about"].get("languages", {}),
        has_distribution=description.recipe.has_distribution,
    )


def _fingerprint(folder: Path) -> str:
    from attree.training.recipes import WEIGHTS, read_description

    raw, weights = read_description(folder).raw, (folder / WEIGHTS).read_bytes()
    return digest([raw["recipe"], raw["shape"], hashlib.sha256(weights).hexdigest()])


def language_of(parser: str) -> str:
    """Return the code of the language of the trees that a parser was trained on.

    Args:
        parser: as for :func:`find_parser`.

    Returns:
        the code; empty if the parser was not trained on trees of one language.

    Raises:
        AttreeError: the parser is a folder of ``attree train`` with a damaged description.
    """
    from attree.training.recipes import ABOUT, read_description

    folder = trained_folder(parser) or Path(parser)
    return read_description(folder).about.language if parser and (folder / ABOUT).is_file() else ""


def _encoder_of(description: Description, folder: Path, overrides: Overrides) -> ResolvedEncoder:
    """Return the encoder named in ``overrides``, else described near the folder, else its own."""
    source = description.encoder
    paths = (above / "encoders" / f"{source.slug}.json" for above in folder.absolute().parents)
    path = next((candidate for candidate in paths if candidate.is_file()), None)
    if overrides.encoder is None and path is None and source.kind is not None:
        fields = {key: getattr(source, key) for key in ("slug", "kind", "id", "revision")}
        return resolve(EncoderSource(**fields, dtype=DTYPE))
    return _encoder(overrides, path)


def _identity(encoder: ResolvedEncoder) -> dict[str, str]:
    return {"slug": encoder.slug, "fingerprint": encoder.fingerprint, "dtype": encoder.dtype}
