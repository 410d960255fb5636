"""What the shell offers at TAB: names out of registries, read without importing what takes time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Offer = Callable[[str], list[str]]


def names(*registries: str, folders: str = "") -> Offer:
    """Return what offers the names in registries, also after a comma.

    Args:
        registries: as :func:`attree.configuration.choices` takes them.
        folders: a pattern of files whose folders are offered too.
    """

    def offer(incomplete: str) -> list[str]:
        from attree.configuration import choices

        before, comma, last = incomplete.rpartition(",")
        found = [name for registry in registries for name in choices(registry)]
        found += sorted(str(path.parent) for path in Path().glob(folders)) if folders else []
        return [before + comma + name for name in found if name.startswith(last)]

    return offer


def encoders(incomplete: str) -> list[str]:
    """Offer the encoder of the ready parsers, and those that a workflow has described here."""
    from attree.encoder.source import DESCRIPTIONS
    from attree.files import read_json
    from attree.parser_source import READY

    ready = read_json(READY, what="list of ready heads")["encoder"]
    found = [ready, *sorted(path.stem for path in DESCRIPTIONS.glob("*.json"))]
    return [name for name in found if name.startswith(incomplete)]


def written_formats(incomplete: str) -> list[str]:
    """Offer the treebank formats that can be written."""
    from attree.treebank.convert import writable

    return [name for name in writable() if name.startswith(incomplete)]


_UNSUPERVISED, _RECIPES = "attree.decoding:UNSUPERVISED", "attree.fewshot.recipes:RECIPES"

#: Parsers that parse: ready ones, and folders of ``attree train``.
parsers = names(_UNSUPERVISED, folders="parsers/*/parser.json")
#: Parsers that can be trained, and with those that choose heads on trees.
recipes = names(_RECIPES)
methods = names(_RECIPES, _UNSUPERVISED)
associations = names("attree.scoring:ASSOCIATIONS")
scores = names("attree.scoring:SCORES")
decoders = names("attree.decoding:DECODERS")
trained_decoders = names("attree.fewshot.recipes:CHOICES.decoder")
objectives = names("attree.fewshot.recipes:CHOICES.objective")
sources = names("attree.attention.sources:SOURCES")
treebank_formats = names("attree.treebank.formats:FORMATS")
bulk_formats = names("attree.corpus.output:FORMATS")
ways = names("attree.choosing:WAYS")
