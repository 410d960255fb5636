"""Which languages a parser reads well: figures that ``attree publish`` puts into its folder.

``about.languages`` of ``parser.json`` has for the code of each language its headed precision and
recall of subtrees in percent (see :mod:`attree.evaluation.metrics`), and whether it was
trained on.
"""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attree.base.languages import ANY, code_of
from attree.evaluation import HEADED

#: Headed precision, in percent, below which a language is read badly. English has 91.
BADLY = 80.0
#: What treebanks of dependencies have before the language in their names.
_PREFIX = "ud-"


def figures(tables: Iterable[Path], parser: str) -> dict[str, dict[str, Any]]:
    """Return the figures of ``attree table crosslingual``, by the codes of languages.

    Args:
        tables: its tables in CSV; those that are absent or of F1 alone have none.
        parser: name of the parser in the tables.

    Raises:
        AttreeError: a treebank's name is none of a language.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in filter(Path.is_file, tables):
        with path.open(encoding="utf-8", newline="") as handle:
            rows = [row for row in csv.DictReader(handle) if row.get("headed_precision")]
        for row in (row for row in rows if row["parser"] == parser):
            # of two that share a code, such as Cantonese and Chinese, the later one counts
            code = code_of(row["language"].removeprefix(_PREFIX).replace("-", " "))
            values = {name: round(float(row[name]), 1) for name in HEADED if row[name]}
            found[code] = {**values, "seen": int(float(row["seen"] or 0)) > 0}
    return found


def doubt(languages: Mapping[str, Mapping[str, Any]], code: str) -> str:
    """Say in a line that a parser reads a language badly; empty if it does not.

    Args:
        languages: the figures; nothing is said without any.
        code: of the language; ``xx`` or empty where it is not known.
    """
    if not languages:
        return ""
    if code in ("", ANY):
        return "the language is not told from the text with any certainty: trees may be poor"
    figure = languages.get(code, {}).get("headed_precision", 100.0)
    if figure >= BADLY:
        return ""
    return (
        f"this parser reads {code} badly: of its phrases there, {figure:.0f} % have one head "
        "(English: 91 %); a few trees of your own help"
    )
