"""Declare and read the keys of ``language.yaml``.

The workflow's configuration has the same keys under ``treebanks.languages.<name>``, and allows
``folder`` as well. `LAYOUTS` has the usual settings of two well-known treebanks, where ``{LANG}``,
``{Lang}`` and ``{lang}`` stand for the language's name in capitals, with one capital, and in lower
case; the language's own settings override them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn

import msgspec
import yaml
from msgspec import Meta

from attree.base.errors import AttreeError
from attree.base.reading import read_bytes
from attree.base.settings import OPTIONAL, Keys, accepted_by, convert, hints_of, one_of
from attree.treebank import sentence
from attree.treebank.cleaning import PARTS, POLICIES, parts, policies, policy
from attree.treebank.labels import KINDS, UNIVERSAL, Labelling


def _wsj(section: str) -> str:
    """Return the pattern of WSJ sections, under the LDC's folder or any of its subfolders."""
    folders = ("parsed/mrg/wsj/", "*/parsed/mrg/wsj/", "mrg/wsj/", "wsj/", "")
    return " | ".join(f"{folder}{section}/*.{{mrg,MRG}}" for folder in folders)


def _spmrl(*kinds: str) -> str:
    """Return the pattern of an SPMRL split: the first of ``kinds`` with files."""
    base = "{LANG}_SPMRL/gold/ptb"
    return " | ".join(
        f"{folder}{kind}/{kind}.{name}.gold.ptb"
        for kind in kinds
        for folder in (f"{base}/", f"*/{base}/", "gold/ptb/", "")
        for name in ("{Lang}", "{lang}")
    )


LAYOUTS: dict[str, dict[str, Any]] = {
    # the article's 45,089 training sentences fit sections 00-21 and 24
    "ptb": {
        "format": "ptb",
        "punctuation": "ptb",
        "splits": {
            "train": [_wsj("{00..21}"), _wsj("24")],
            "train_standard": [_wsj("{02..21}")],
            "dev": [_wsj("22")],
            "test": [_wsj("23")],
            "wsj10": {"from": ["train", "dev", "test"], "max_words": 10},
        },
    },
    # Hebrew and Swedish ship train5k only
    "spmrl": {
        "format": "spmrl",
        "splits": {
            "train": _spmrl("train", "train5k"),
            "dev": _spmrl("dev"),
            "test": _spmrl("test"),
        },
    },
}


#: The most bytes and levels of nesting: real settings are far smaller.
_LARGEST, _DEEPEST = 2**20, 20


class _Loader(yaml.SafeLoader):
    """Read plain values within bounds; refuse aliases, which could multiply their value."""

    def __init__(self, text: str, *, aliases: bool) -> None:
        super().__init__(text)
        self._aliases, self._depth = aliases, 0

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """Make a value of a node; report the line of a number or date that Python cannot make."""
        try:
            return super().construct_object(node, deep)
        except ValueError:  # such as 5,000 digits, or the date 2024-99-99
            self._refuse("a number or a date that cannot be read", node)

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node, and count its depth."""
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) and not self._aliases:
            self._refuse("aliases are not read", event)
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse("nested too deeply", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        """Compose a mapping; refuse a key that comes twice, of which the last alone would count."""
        node, keys = super().compose_mapping_node(anchor), set[str]()
        for key, _ in node.value:
            if (name := str(key.value)) in keys:
                self._refuse(f"the key {name} comes twice", key)
            keys.add(name)
        return node

    def _refuse(self, problem: str, where: Any) -> NoReturn:
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=where.start_mark)


_POLICY = "|".join(rf"{name}:.*\S.*" if takes else name for name, takes in POLICIES.items())

# no pattern: msgspec 0.22 crashes where a text with a pattern may also be a list or a mapping
Text = Annotated[str, Meta(min_length=1)]
Texts = list[str]
Patterns = Annotated[Text | Texts, Meta(title="a text or a list of texts")]
Count = Annotated[int, Meta(ge=1)]
_LIST = 'a list of texts (write "…" round each)'
_COUNT = "a whole number above 0"


class Filters(Keys):
    """Which sentences are kept.

    Attributes:
        max_words: longer sentences are skipped and counted
        part: which of the parts is taken that sentences are dealt to in turn
        first: sentences after this many are skipped and counted
        short: true if sentences with a dependency tree come again, cut down to their main clause
    """

    max_words: Annotated[Count, Meta(title=_COUNT)] = OPTIONAL
    part: Annotated[
        str,
        Meta(pattern=rf"\A{PARTS}\Z", title="a part such as 1/5, or parts such as 2-5/5"),
        accepted_by(parts),
    ] = OPTIONAL
    first: Annotated[Count, Meta(title=_COUNT)] = OPTIONAL
    short: bool = OPTIONAL


class SplitKeys(Filters):
    """One split of a language.

    Attributes:
        files: the split's files, as patterns in the language's folder
        from: other splits, whose files it has
        exclude: files that are left out, as patterns
    """

    EXACTLY_ONE: ClassVar[tuple[str, ...]] = ("files", "from")

    files: Patterns = OPTIONAL
    from_: Patterns = msgspec.field(name="from", default=OPTIONAL)
    exclude: Patterns = OPTIONAL


class LanguageKeys(Filters):
    """The settings that a language.yaml can hold.

    Attributes:
        folder: where its files lie, for a language in none of treebanks.folders
        layout: where files lie as that treebank is distributed
        format: default: told by the file's extension
        encoding: default: utf-8
        punctuation: which words stay; default: what is usual in the format
        dummy_roots: labels above a sentence that are no phrases
        drop_labels: labels whose subtrees are left out, words and all
        traces: words that are traces, and are left out; numerals (CD, NUM) never are
        functions: function tags of labels, such as NP-SBJ
        escapes: the Penn Treebank's escapes, such as -LRB-
        nonprojective: dependency trees that cross
        dependencies: what a dependency tree says of a phrase tree: all of it, or some
        labels: phrase labels: the treebank's, of Han et al. 2014, or left open
        final_punctuation: whether the sentence's phrase takes in punctuation at its end
        derived: what the brackets were made from
        accept_loss: how much may be lost where a tenth of the trees is too little
        splits: split → its files: a pattern, a list of patterns, or a mapping with files or from
    """

    folder: Annotated[Text, Meta(title="a text")] = OPTIONAL
    layout: Annotated[str, one_of("attree.treebank.language_file:LAYOUTS")] = OPTIONAL
    format: Annotated[str, one_of("attree.treebank.formats:FORMATS")] = OPTIONAL
    encoding: Annotated[
        str,
        Meta(title="the name of an encoding, such as utf-8 or latin-1"),
        accepted_by(codecs.lookup, LookupError, ValueError),
    ] = OPTIONAL
    punctuation: Annotated[
        str, Meta(pattern=rf"\A({_POLICY})\Z", title=policies()), accepted_by(policy)
    ] = OPTIONAL
    dummy_roots: Annotated[Texts, Meta(title=_LIST)] = OPTIONAL
    drop_labels: Annotated[Texts, Meta(title=_LIST)] = OPTIONAL
    traces: Annotated[
        str,
        Meta(title="a regular expression"),
        accepted_by(re.compile, re.error, RecursionError, OverflowError),
    ] = OPTIONAL
    functions: sentence.Functions = OPTIONAL
    escapes: sentence.Escapes = OPTIONAL
    nonprojective: sentence.Nonprojective = OPTIONAL
    dependencies: sentence.Dependencies = OPTIONAL
    labels: Annotated[
        str,
        Meta(
            pattern=rf"\A({'|'.join(KINDS)}|{UNIVERSAL}:[a-z]+)\Z",
            title=f"{', '.join(KINDS)} or {UNIVERSAL}:TABLE",
        ),
        accepted_by(Labelling.parse),
    ] = OPTIONAL
    final_punctuation: sentence.Final = OPTIONAL
    derived: sentence.Derived = OPTIONAL
    accept_loss: Annotated[
        bool | Annotated[float, Meta(ge=0, le=1)],
        Meta(title="true or a share from 0 to 1"),
        lambda value: value is not False,
    ] = OPTIONAL
    splits: dict[str, Text | Texts | SplitKeys] = OPTIONAL


def read_yaml(path: Path, *, what: str, aliases: bool = False) -> Any:
    """Read a file of settings.

    Args:
        path: of the file.
        what: what the file is, for errors.
        aliases: whether aliases (``*name``) are allowed.

    Raises:
        AttreeError: it is absent, too large or too deep, or not YAML; the message has the line.
    """
    try:
        text = read_bytes(path, what=what, largest=_LARGEST).decode("utf-8")
        return _Loader(text, aliases=aliases).get_single_data()
    except UnicodeDecodeError:
        problem, fix = "this is not UTF-8", "save it as UTF-8"
        raise AttreeError("encoding", problem, file=path, fix=fix) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or "characters not allowed"
        line = mark.line + 1 if mark else None
        problem = f"this is not YAML ({why})"
        raise AttreeError("not-yaml", problem, file=path, line=line, fix="correct it") from None


def check_settings(values: Any, file: str | Path) -> dict[str, Any]:
    """Check a language's settings and return them; null means none.

    Args:
        values: as read from YAML.
        file: the file or key that holds them, for messages.

    Raises:
        AttreeError: a key is unknown (the message has the nearest key), or a value is wrong.
    """
    values = {} if values is None else values
    if not isinstance(values, Mapping):
        fix = f"the keys are {', '.join(hints_of(LanguageKeys))}"
        raise AttreeError("not-a-mapping", "expected keys and values", file=file, fix=fix)
    keys: LanguageKeys = convert(values, LanguageKeys, file=file)
    return keys.given()


def settings_of(**options: Any) -> sentence.SplitSettings:
    """Return settings from keys of ``language.yaml``; None leaves a key out.

    Raises:
        AttreeError: a value is wrong.
    """
    values = {key: value for key, value in options.items() if value is not None}
    return as_settings(check_settings(values, "command line"))


def as_settings(values: Mapping[str, Any]) -> sentence.SplitSettings:
    """Return settings of checked values; keys of other things, such as ``files``, are left out."""
    share = float(values.get("accept_loss", 0))  # true allows any
    return msgspec.convert({**values, "accept_loss": share}, sentence.SplitSettings)
