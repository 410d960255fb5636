"""What is wrong with the names in a configuration."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from attree.errors import AttreeError

#: Keys of a few-shot parser of the configuration that count when it is applied, not trained.
APPLIED = ("decoder", "threshold")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "did you mean …?", or else the list of what is known."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"there are {', '.join(known)}" if known else "there are none"


def check_names(config: Mapping[str, Any], taken: Iterable[str]) -> None:
    """Raise where an encoder has a name that is taken, or a grammar that of another parser."""
    for name in taken:
        if name in config["encoders"]:
            problem = f"encoders: the name {name} is taken"
            raise AttreeError(problem, fix="give the encoder another name")
    others = {name for key in ("parsers", "systems", "averages") for name in config.get(key, {})}
    for name in config.get("grammars", {}):
        if name in others:
            problem = f"grammars: another parser has the name {name}"
            raise AttreeError(problem, fix="give one of them another name")


def check_compared(grammar: str, where: str) -> None:
    """Raise unless a grammar is asked for where its rows are marked as undertrained if they are."""
    if not where.startswith("comparisons."):
        raise AttreeError(
            f"{where}: the grammar {grammar} stands in a table",
            fix="name it in a run of `comparisons`, which `snakemake grammars` makes",
        )


def check_members(
    parser: str,
    language: str,
    split: str,
    config: Mapping[str, Any],
    check: Callable[[str, str, str], None],
    where: str,
) -> None:
    """Raise unless an average's members are parsers, grammars, or systems with trees of a split.

    ``check`` raises unless a language has a split.
    """
    grammars = config.get("grammars", {})
    for name in config.get("averages", {}).get(parser, {}).get("of", ()):
        if name in grammars:
            check(language, grammars[name]["text"], f"grammars.{name}")
        elif name not in config["parsers"]:
            of = f"averages.{parser}: parser"
            known(name, [*config["parsers"], *config.get("systems", {}), *grammars], of)
            has_trees(name, language, split, config, where)


def check_trained(parser: str, is_other: bool, config: Mapping[str, Any], where: str) -> None:
    """Raise unless a few-shot parser's name is its own and its settings are of such rows."""
    if is_other:
        problem = f"{where}: two parsers have the name {parser}"
        raise AttreeError(problem, fix="give one of them another name")
    own = config.get("trained", {}).get(parser, {})
    for key in own.keys() - {"folder", *APPLIED} if "folder" in own else ():
        problem = f"trained.{parser}: {key} is of no effect on a parser that is trained already"
        raise AttreeError(problem, fix="leave it out")
    for key in ("heads", "label_layers", "weight_decay"):
        if key in own:
            problem = f"trained.{parser}: {key} is for experiments alone"
            raise AttreeError(problem, fix=f"leave it out, or do not name it in {where}")


def has_trees(
    system: str, language: str, split: str, config: Mapping[str, Any], where: str
) -> None:
    """Raise unless a system has trees of a split."""
    if f"{language}/{split}" not in config["systems"][system]:
        raise AttreeError(
            f"{where}: system {system} has no trees of {language}/{split}",
            fix=f"add `{language}/{split}: FILE` to systems.{system}",
        )


def known(name: str, names: Collection[str], what: str) -> None:
    """Raise unless a name is one of those that there are."""
    if name not in names:
        raise AttreeError(f"{what} {name} does not exist", fix=nearest(name, names))
