"""Offer names at TAB in the shell: from registries, without slow imports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attree.base.registry import choices, load

if TYPE_CHECKING:
    from cyclopts.completion._engine import CompletionContext


#: A function from the word that the shell completes to the names it offers.
Offer = Callable[["CompletionContext"], list[str]]


def names(*registries: str, folders: str = "") -> Offer:
    """Return a function that offers the names in registries, also after a comma.

    Args:
        registries: as :func:`attree.base.registry.choices` takes them.
        folders: a pattern of files whose folders are offered too.
    """

    def offer(word: CompletionContext) -> list[str]:
        before, comma, last = word.incomplete.rpartition(",")
        offered = [name for registry in registries for name in choices(registry)]
        offered += sorted(str(path.parent) for path in Path().glob(folders)) if folders else []
        return [before + comma + name for name in offered if name.startswith(last)]

    return offer


def encoders(word: CompletionContext) -> list[str]:
    """Offer the encoder of the ready parsers, and those described in this folder."""
    described: Path = load("attree.encoder.source:DESCRIPTIONS")
    usual = load("attree.ready:default_encoder")()
    offered = [usual, *sorted(path.stem for path in described.glob("*.json"))]
    return [name for name in offered if name.startswith(word.incomplete)]


def written_formats(word: CompletionContext) -> list[str]:
    """Offer the treebank formats that can be written."""
    formats = load("attree.treebank.convert:writable")()
    return [name for name in formats if name.startswith(word.incomplete)]


_UNSUPERVISED, _RECIPES = "attree.decoding:UNSUPERVISED", "attree.training.recipes:RECIPES"

#: Parsers that can parse: ready ones, and folders that ``attree train`` wrote.
parsers = names("attree.ready:TRAINED", _UNSUPERVISED, folders="parsers/*/parser.json")
#: Parsers that can be trained, and these together with the unsupervised ones.
recipes = names(_RECIPES)
methods = names(_RECIPES, _UNSUPERVISED)
associations = names("attree.scoring:ASSOCIATIONS")
scores = names("attree.scoring:SCORES")
decoders = names("attree.decoding:DECODERS")
trained_decoders = names("attree.training.recipes:CHOICES.decoder")
objectives = names("attree.training.recipes:CHOICES.objective")
sources = names("attree.association.sources:SOURCES")
treebank_formats = names("attree.treebank.formats:FORMATS")
bulk_formats = names("attree.bulk.output:FORMATS")
ways = names("attree.annotate.choosing:WAYS")
