"""Write the model card of a trained parser, the ``README.md`` in its folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attree
from attree.base.errors import AttreeError
from attree.base.terminal import safe_lines
from attree.base.text import encodable, markdown
from attree.training.recipes import RECIPES, FewShotRecipe
from attree.trees.tree import parted

if TYPE_CHECKING:
    from attree.training.parser import TrainedParser

#: The text of a card; what stands in braces is filled in.
_CARD = Path(__file__).with_name("card.md").read_text(encoding="utf-8").removesuffix("\n")
_OPEN, _OPEN_LICENCE = (
    "# license: fill in, such as cc-by-4.0",
    """\
## Licence

Fill in. The encoder is not in this folder and has a licence of its own; the weights were made from
the trees above, whose licence may say what can be done with them.
""",
)
#: A licence in one line, which YAML reads as text.
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9 .+()-]{0,99}")
_LICENCE = """\
{tables}## Sources

{sources}

## Licence

{licence}. The encoder is not in this folder and has a licence of its own.
"""


def card(parser: TrainedParser, source: str) -> str:
    """Return the card's Markdown.

    Args:
        parser: with its full training record.
        source: the training treebank, as the user named it.
    """
    record, names = parser.about, parser.shape.get("labels", {}).get("names", [])
    labels = [" over ".join(parted(name)) for name in names if name]
    facts = {**_made_of(parser), "Trees": _trees(record, source), "F1": _f1(record)}
    facts["Language"] = record.get("language") or "several, or not known: each text tells its own"
    facts["Labels"] = ", ".join(labels) or "none: its trees are brackets without labels"
    versions = {"attree": attree.__version__, **record["versions"]}
    facts["Versions"] = ", ".join(f"{name} {version}" for name, version in versions.items())
    return _CARD.format(
        encoder=markdown(parser.encoder["slug"]),
        trees="a tree with labels" if labels else "a binary tree without labels",
        count=f"{record['trees']:,} trees",
        facts="\n".join(f"| {name} | {markdown(value)} |" for name, value in facts.items()),
        limits="\n".join(f"- {line}" for line in _limits(record)),
        licence=_OPEN_LICENCE,
    )


def fill_in(card: str, *, licence: str, sources: str, tables: Iterable[str] = ()) -> str:
    """Return a card with licence, sources and F1 tables filled in.

    Args:
        card: as :func:`card` made it.
        licence: of the weights, an identifier such as ``cc-by-4.0``.
        sources: the treebanks and their licences, in Markdown.
        tables: F1 tables in Markdown, each with its heading; they replace the card's F1 row.

    Raises:
        AttreeError: the card is filled in already, or :func:`card` did not make it; the licence is
            no identifier in one line or not that of first weights, or there are no sources.
    """
    if not _IDENTIFIER.fullmatch(licence):
        problem, fix = f"{licence[:40]!r} is no licence", "give its identifier, such as cc-by-4.0"
        raise AttreeError("bad-licence", problem, fix=fix)
    if "| First weights | of universal, " in card and licence.lower() != "cc-by-sa-4.0":
        problem = f"training began from universal, whose licence is cc-by-sa-4.0, not {licence}"
        raise AttreeError("other-licence", problem, fix="give cc-by-sa-4.0")
    if not sources.strip():
        raise AttreeError("no-sources", "the sources are empty", fix="name treebanks and licences")
    if not (_OPEN in card and card.endswith(_OPEN_LICENCE)):
        raise AttreeError("filled-in", "this card is filled in already", fix="train again")
    below = "".join(f"{_shown(table)}\n\n" for table in tables)
    if below:
        card = re.sub(r"^\| F1 \| .*$", "| F1 | in the tables below |", card, flags=re.M)
    filled = _LICENCE.format(tables=below, sources=_shown(sources), licence=licence)
    return card.removesuffix(_OPEN_LICENCE).replace(_OPEN, f"license: {licence}") + filled


def _shown(text: str) -> str:
    """Return Markdown of somebody else without control characters."""
    return safe_lines(encodable(text)).strip()


def _same(recipe: FewShotRecipe, named: FewShotRecipe) -> bool:
    """Tell whether a recipe is a named one but for what the start and the number of trees set."""
    rate, threshold, layers = named.learning_rate, named.threshold, named.label_layers
    return named == replace(recipe, learning_rate=rate, threshold=threshold, label_layers=layers)


def _made_of(parser: TrainedParser) -> dict[str, str]:
    encoder, recipe, plan = parser.encoder, parser.recipe, parser.about["plan"]
    names = [name for name, value in RECIPES.items() if _same(recipe, value)]
    where = " ".join(filter(None, (encoder.get("kind"), encoder.get("id"))))
    revision = f", revision {encoder['revision']}" if encoder.get("revision") else ""
    adapted = ", adapted to the trees by low-rank weights in this folder" if parser.adapter else ""
    return {
        "Parser": (names[0] if names else "a recipe of its own")
        + f": {' + '.join(recipe.parts)}, objective {recipe.objective}, decoder {recipe.decoder}",
        "Encoder": f"{encoder['slug']} ({where}{revision}){adapted}",
        "Encoder's fingerprint": encoder["fingerprint"],
        "First weights": _first_weights(parser.about),
        "Settings": f"layers {', '.join(map(str, parser.layers)) or 'none'}; dropout "
        f"{recipe.dropout}; {parser.about['steps']} steps of {plan['batch']} trees; learning rate "
        f"{recipe.learning_rate}; seed {parser.about['seed']}",
    }


def _first_weights(record: dict[str, Any]) -> str:
    start = record.get("start") or record["plan"]["start"]
    if record.get("first"):
        return f"of {start}, whose licence counts for these weights too"
    return "random" if start == "random" else "of the encoder"


def _trees(record: dict[str, Any], source: str) -> str:
    table, treebanks = record.get("table", {}), len(record["sources"])
    parts = () if treebanks > 1 else (table.get("language"), table.get("split"))
    named = f" ({', '.join(filter(None, parts))})" if any(parts) else ""
    policy = f"; punctuation: {table['punctuation']}" if table.get("punctuation") else ""
    source = f"{treebanks} treebanks" if treebanks > 1 else source or "a treebank"
    return f"{record['trees']:,} of {source}{named}{policy}"


def _f1(record: dict[str, Any]) -> str:
    if not record.get("scores"):
        return "not measured: attree train --held-out, or attree evaluate, measures it"
    scores = "; ".join(map(scored, record["scores"]))
    if record["dev_f1"] is None:
        return scores
    return (
        f"{scores}; right branching {record['dev_right_branching']:.1f} on the trees held out, "
        "which training was stopped by where F1 was highest: it is a little too high there"
    )


def scored(result: dict[str, Any]) -> str:
    """Describe a parser's F1 on some trees, with its 95 % interval."""

    def figure(name: str) -> str:
        low, high = result["intervals"].get(name, (None, None))
        return f"{result[name]:.1f}" + (f" ({low:.1f} to {high:.1f})" if low is not None else "")

    if result["corpus_f1"] is None:
        return f"none on the {result['sentences']:,} trees {result['name']}"
    labelled = "" if result["labelled_f1"] is None else f", labelled {figure('labelled_f1')}"
    where = f"on the {result['sentences']:,} trees {result['name']}"
    return f"{figure('corpus_f1')} unlabelled{labelled} {where}"


def _limits(record: dict[str, Any]) -> Iterator[str]:
    policy = record.get("table", {}).get("punctuation")
    if policy not in (None, "", "keep"):
        yield f"Its trees had no punctuation ({markdown(policy)}): leave it out of sentences too."
    if record["trees"] < 200:
        yield f"Trained on another {record['trees']:,} trees it would differ by some points of F1."
