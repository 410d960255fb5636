"""What the workflow's rules ask about comparisons and the few-shot parsers that stand in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attree.base.files import read_json
from attree.plan.paths import (
    BASELINES_PATH,
    FEWSHOT,
    HEADS_PATH,
    LABELS_FIGURE,
    SCORES_PATH,
    SENTENCE_SCORES,
    SENTENCES_PATH,
    SPEEDS,
    path_of,
)
from attree.plan.plan import (
    APPLIED,
    GRAMMAR,
    IMPORTED,
    Plan,
    TableRow,
    as_options,
    but,
    folders_of,
    seeds_of,
    split_keys,
)


class Comparisons:
    """All comparisons of a configuration; its methods are the input functions of the rules.

    Args:
        config: checked, with its defaults filled in.
        plan: of its rows.
        recipes: the few-shot parsers that there are without being declared.
    """

    def __init__(self, config: Mapping[str, Any], plan: Plan, recipes: Mapping[str, Any]) -> None:
        self.config, self.plan, self.recipes = config, plan, recipes
        self.folders = folders_of(config)
        self.appliable = list(dict.fromkeys([*config["trained"], *recipes, *self.folders]))
        self.trainable = [name for name in self.appliable if name not in self.folders]

    def with_grammars(self, wanted: bool) -> list[str]:
        """Return the comparisons that some grammar is to be learnt for, or the others."""
        found = []
        for name, rows in self.plan.comparisons.items():
            every = [*rows, *(member for row in rows for member in self.plan.members(row))]
            if any(row.encoder == GRAMMAR for row in every) is wanted:
                found.append(name)
        return found

    def parser_file(self, wildcards: Any) -> str:
        """Return the description of a few-shot parser, which its weights lie beside."""
        if folder := self.folders.get(wildcards.parser):
            return f"{folder}/parser.json"
        return path_of(FEWSHOT, encoder=wildcards.encoder, parser=wildcards.parser)

    def weights(self, wildcards: Any) -> list[str]:
        """Return the weights of a parser that no rule writes."""
        folder = self.folders.get(wildcards.parser)
        return [f"{folder}/weights.safetensors"] if folder else []

    def training_sets(self, wildcards: Any) -> list[str]:
        """Return the sentences that a few-shot parser is trained on."""
        if treebanks := self._treebanks(wildcards.parser):
            return [path_of(SENTENCES_PATH, one) for one in treebanks]
        return [path_of(SENTENCES_PATH, **but(self.config["training"], "trees", "seed"))]

    def evaluated(self, wildcards: Any) -> list[str]:
        """Return the sentences that a parser trained on treebanks of its own is scored on."""
        if not self._treebanks(wildcards.parser):
            return []
        rows = (*self.plan.rows, *self.plan.compared())
        own = [row for row in rows if row.parser == wildcards.parser]
        return [path_of(SENTENCES_PATH, "/".join(place)) for place in split_keys(own)]

    def _treebanks(self, parser: str) -> dict[str, tuple[str, str]]:
        """Return language/split → trees and share, of a parser with treebanks of its own."""
        own = self.config["trained"].get(parser, {})
        return {
            treebank: (str(group["trees"]), f"{group['share'] / len(group['treebanks']):.6g}")
            for group in own.get("sources", ())
            for treebank in group["treebanks"]
            if treebank not in own.get("without", ())
        }

    def training_options(self, wildcards: Any, input: Any) -> str:
        """Return the options of training; a parser that is declared changes another one's."""
        files = {"sentences": list(input.sentences), "evaluate_on": list(input.evaluated)}
        own = dict(self.config["trained"].get(wildcards.parser, {}))
        recipe = own.pop("recipe", wildcards.parser)
        drawn = but(self.config["training"], "language", "split")
        if treebanks := self._treebanks(wildcards.parser):
            trees, shares = (",".join(column) for column in zip(*treebanks.values(), strict=True))
            drawn |= {"trees": trees, "shares": shares}
        own = but(own, "sources", "without", *APPLIED)
        return as_options({**files, "parser": recipe, **drawn, **own})

    def applying_options(self, wildcards: Any) -> str:
        """Return the options of parsing by a few-shot parser."""
        own = self.config["trained"].get(wildcards.parser, {})
        return as_options({key: value for key, value in own.items() if key in APPLIED})

    def labelled(self, rows: Iterable[TableRow]) -> list[str]:
        """Return the pictures of labels taken for others, of rows whose trees have labels."""
        found = []
        for row in rows:
            own = self.config["trained"].get(row.parser, {})
            recipe = self.recipes.get(own.get("recipe", row.parser))
            usual = self._kept_decoder(row.parser) or getattr(recipe, "decoder", None)
            if own.get("decoder", usual) == "labelled_risk":
                found.append(path_of(LABELS_FIGURE, **asdict(row)))
        return found

    def _kept_decoder(self, parser: str) -> str | None:
        """Return the decoder of a parser that is trained already."""
        folder = self.folders.get(parser)
        file = Path(folder, "parser.json") if folder else None
        recipe = read_json(file, what="description of a trained parser")["recipe"] if file else {}
        return recipe.get("decoder")

    def grammar_text(self, wildcards: Any) -> str:
        """Return the sentences whose words a grammar is learnt from."""
        name, _ = self.plan.grammars[wildcards.parser]
        split = self.config["grammars"][name]["text"]
        return path_of(SENTENCES_PATH, language=wildcards.language, split=split)

    def grammar_options(self, wildcards: Any) -> str:
        """Return the options of learning a grammar."""
        name, seed = self.plan.grammars[wildcards.parser]
        settings = but(self.config["grammars"][name], "text", "seeds")
        return as_options({"seed": seed, **settings}, held_out="held-out-share")

    def scores(self, wildcards: Any) -> list[str]:
        """Return the summaries of every system and of the baselines."""
        rows = self.plan.compared(wildcards.comparison)
        baselines = [path_of(BASELINES_PATH, "/".join(place)) for place in split_keys(rows)]
        return [path_of(SCORES_PATH, **asdict(row)) for row in rows] + baselines

    def sentence_scores(self, wildcards: Any) -> list[str]:
        """Return the sentences' scores, which lie beside the summaries."""
        rows = self.plan.compared(wildcards.comparison)
        return [path_of(SENTENCE_SCORES, **asdict(row)) for row in rows]

    def sentences(self, wildcards: Any) -> list[str]:
        """Return the sentence table of each split."""
        places = split_keys(self.plan.compared(wildcards.comparison))
        return [path_of(SENTENCES_PATH, "/".join(place)) for place in places]

    def speeds(self, wildcards: Any) -> list[str]:
        """Return a file of speeds for each encoder and split."""
        places = {
            path_of(SPEEDS, comparison=wildcards.comparison, **but(asdict(row), "parser")): None
            for row in self.plan.compared(wildcards.comparison)
            if self._loaded_from(row)
        }
        return list(places)

    def published(self, wildcards: Any) -> list[str]:
        """Return the file of published figures, where some are named."""
        own = self.config["comparisons"][wildcards.comparison]["published"]
        return [self.config["published"]] if self.config["published"] and own else []

    def options(self, wildcards: Any, input: Any) -> str:
        """Return the options of a comparison's table."""
        one = self.config["comparisons"][wildcards.comparison]
        options = {key: list(input[key]) for key in ("sentences", "speeds")}
        options |= {key: one[key] for key in ("title", "lengths", "first")}
        options |= but(self.config["evaluation"], "labels")
        shown = dict.fromkeys(row.parser for row in self.plan.compared(wildcards.comparison))
        averages = {name: self.plan.averages[name] for name in shown if name in self.plan.averages}
        options["average"] = [f"{name}={','.join(of)}" for name, of in averages.items()]
        if input.published:
            places = one["published"].items()
            options["published"] = self.config["published"]
            options["row"] = [
                f"{each}={row}"
                for name, rows in places
                for each in self._rows_of(name, wildcards.comparison)
                for row in rows
            ]
        return as_options(options, first="timed")

    def timed(self, wildcards: Any) -> list[str]:
        """Return what the parsers of an encoder are loaded from, to time them on a split."""
        return list(self._timed(wildcards).values())

    def timing_options(self, wildcards: Any, input: Any) -> str:
        """Return the options of that; a folder of a few-shot parser is named by itself."""
        files = zip(self._timed(wildcards), input.parsers, strict=True)
        named = [f"{name}={path.removesuffix('/parser.json')}" for name, path in files]
        first = self.config["comparisons"][wildcards.comparison]["first"]
        return as_options({"parser": named, "first": first})

    def _rows_of(self, name: str, comparison: str) -> tuple[str, ...]:
        """Return the rows that a published system is set beside: a grammar's are its seeds."""
        there = {row.parser for row in self.plan.compared(comparison)}
        seeds = seeds_of(name, self.config)
        return seeds if there.issuperset(seeds) else (name,)

    def _timed(self, wildcards: Any) -> dict[str, str]:
        place = (wildcards.encoder, wildcards.language, wildcards.split)
        found = {
            row.parser: self._loaded_from(row)
            for row in self.plan.compared(wildcards.comparison)
            if (row.encoder, row.language, row.split) == place
        }
        return {name: path for name, path in found.items() if path}

    def _loaded_from(self, row: TableRow) -> str | None:
        """Return a parser's file; None for averages, imported trees and grammars."""
        if row.encoder in (IMPORTED, GRAMMAR):
            return None
        if one := self.plan.tunings.get((row.encoder, row.parser)):
            tuned = {"language": one.language, "split": one.split}
            return path_of(HEADS_PATH, encoder=row.encoder, parser=row.parser, **tuned)
        if row.parser in self.appliable:
            return self.parser_file(row)
        return None
