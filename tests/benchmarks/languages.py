"""Print the table of docs/languages.md: which rules split words, and what languages are taken for.

    ATTREE_TREEBANKS=… python -m tests.benchmarks.languages

It takes the first 50 sentences of each dev file of Universal Dependencies there, whole and their
first five words.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

from attree.base.languages import ANY, code_of, detect, rules_for
from attree.raw_text.words import _BY_ICU

SENTENCES, WORDS = 50, 5


def row(folder: Path) -> str:
    """Return the line of a language."""
    name = folder.name.removeprefix("UD_").split("-")[0].replace("_", " ")
    code = code_of(name)
    text = (folder / "dev.conllu").read_text(encoding="utf-8")
    sentences = re.findall(r"^# text = (.*)$", text, re.M)[:SENTENCES]
    whole = Counter(map(detect, ([sentence] for sentence in sentences)))
    # languages without spaces have no first words that everybody agrees on
    begun = Counter(detect([" ".join(sentence.split()[:WORDS])]) for sentence in sentences)
    errors = [
        f"{other or 'none'} {count}" for other, count in begun.most_common(4) if other != code
    ]
    rules = rules_for(code)
    by = "ICU" if rules == ANY or code in _BY_ICU else f"spaCy, {rules}"
    right = [round(100 * counts[code] / len(sentences)) for counts in (whole, begun)]
    return f"| {name} | `{code}` | {by} | {right[0]} | {right[1]} | {', '.join(errors)} |"


def main() -> None:
    """Print the table."""
    print("| language | code | words by | told, whole | told, five words | taken for |")
    print("| --- | --- | --- | --: | --: | --- |")
    for folder in sorted(Path(os.environ["ATTREE_TREEBANKS"], "ud").glob("UD_*")):
        print(row(folder))


if __name__ == "__main__":
    main()
