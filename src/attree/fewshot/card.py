"""The model card of a trained parser: ``README.md`` in its folder, for whoever finds it there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attree
from attree.fewshot.gold import CHAIN, IN_LABEL
from attree.fewshot.recipes import RECIPES
from attree.text import markdown

if TYPE_CHECKING:
    from attree.fewshot.parser import TrainedParser

_CARD = """\
---
library_name: attree
tags:
- constituency-parsing
# license: fill in, such as cc-by-4.0
---

# A constituency parser of {encoder}

A few-shot parser of attree, trained on {count}: it reads the hidden states and the attention of
a pretrained encoder, and turns a sentence into {trees}.

## Use

```python
from attree import Parser
parser = Parser.load("THIS FOLDER")
print(parser.parse("A sentence."))
```

`Parser.load` finds the encoder by the name below; where it lies elsewhere, give `encoder=`. For
another language than English give `language="de"`, or sentences as lists of words.

## What it is

| | |
| --- | --- |
{facts}

## Limits

- It knows the trees above, and the kind of text they are of; others are parsed worse.
{limits}
- Sentences longer than the encoder takes are branched right, and their status says `too_long`.

## Licence

Fill in. The encoder is not in this folder and has a licence of its own; the weights were made from
the trees above, whose licence may say what can be done with them.
"""


def card(parser: TrainedParser, source: str) -> str:
    """Return the card.

    Args:
        parser: with all that its training wrote down.
        source: where its trees are from, as it was given.
    """
    labels = _labels(parser)
    about = parser.about
    facts = {**_made_of(parser), "Trees": _trees(about, source), "F1": _f1(about)}
    facts["Labels"] = ", ".join(labels) or "none: its trees are brackets without labels"
    facts["Versions"] = ", ".join(f"{n} {v}" for n, v in _versions(about).items())
    return _CARD.format(
        encoder=markdown(parser.encoder["slug"]),
        trees="a tree with labels" if labels else "a binary tree without labels",
        count=f"{about['trees']:,} trees",
        facts="\n".join(f"| {name} | {markdown(value)} |" for name, value in facts.items()),
        limits="\n".join(f"- {line}" for line in _limits(about)),
    )


def _made_of(parser: TrainedParser) -> dict[str, str]:
    encoder, recipe, plan = parser.encoder, parser.recipe, parser.about["plan"]
    known = [name for name, one in RECIPES.items() if one == recipe]
    where = " ".join(filter(None, (encoder.get("kind"), encoder.get("id"))))
    revision = f", revision {encoder['revision']}" if encoder.get("revision") else ""
    return {
        "Parser": (known[0] if known else "a recipe of its own")
        + f": {' + '.join(recipe.parts)}, objective {recipe.objective}, decoder {recipe.decoder}",
        "Encoder": f"{encoder['slug']} ({where}{revision})",
        "Encoder's fingerprint": encoder["fingerprint"],
        "Settings": f"layers {', '.join(map(str, parser.layers)) or 'none'}; dropout "
        f"{recipe.dropout}; {parser.about['steps']} steps of {plan['batch']} trees; learning rate "
        f"{recipe.learning_rate}; seed {parser.about['seed']}",
    }


def _trees(about: dict[str, Any], source: str) -> str:
    table = about.get("table", {})
    known = [table.get("language"), table.get("split")]
    named = f" ({', '.join(filter(None, known))})" if any(known) else ""
    policy = f"; punctuation: {table['punctuation']}" if table.get("punctuation") else ""
    return f"{about['trees']:,} of {source or 'a source that was not named'}{named}{policy}"


def _f1(about: dict[str, Any]) -> str:
    if about["dev_f1"] is None:
        return "not measured: `attree train --held-out`, or `attree evaluate`, does"
    return (
        f"{about['dev_f1']:.1f} on {about['dev_trees']:,} trees set apart, right branching "
        f"{about['dev_right_branching']:.1f} (unlabelled, in percent; training stopped where it "
        "was highest, so it is a little too high)"
    )


def _labels(parser: TrainedParser) -> list[str]:
    names = parser.shape.get("labels", {}).get("names", [])
    return [name.replace(CHAIN, " over ").replace(IN_LABEL, CHAIN) for name in names if name]


def _versions(about: dict[str, Any]) -> dict[str, str]:
    return {"attree": attree.__version__, **about["versions"]}


def _limits(about: dict[str, Any]) -> Iterator[str]:
    policy = about.get("table", {}).get("punctuation")
    if policy not in (None, "", "keep"):
        yield f"Its trees had no punctuation ({markdown(policy)}): leave it out of sentences too."
    if about["trees"] < 200:
        yield f"Trained on another {about['trees']:,} trees it would differ by some points of F1."
