"""Labels as they are asked for: a treebank's own, the universal ones of Han et al. (2014), or none.

``labels.yaml`` has a table a treebank dialect. The table is that of the format, where all treebanks
in a format share one, else that which knows most of the labels of the first sentences; whoever
reads can name it (``universal:tiger``). A label that its table lacks is told, and becomes X.
"""

from __future__ import annotations

import collections
import fnmatch
import functools
import itertools
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

from attree.base.errors import AttreeError
from attree.base.registry import check_name
from attree.treebank.crossing import Graph
from attree.treebank.sentence import Rejected, Sentence, Span
from attree.trees.constraints import COMPLETE, LONGEST, MARKS, UNKNOWN

_Tree = TypeVar("_Tree", Sentence, Graph)

#: The label of what no other label fits.
OTHER = "X"
#: The table whose labels are universal already.
UNIVERSAL = "universal"
KINDS = ("treebank", UNIVERSAL, "unknown")
SAMPLE = 1000  # sentences that the table is told by
_LEAST = 0.5  # share of the labels that it must know
_SHOWN = 8  # labels told


class Labelling(NamedTuple):
    """What ``labels:`` asks for: one of `KINDS`, and the table where one is named."""

    kind: str
    table: str = ""

    @classmethod
    def of(cls, text: str) -> Labelling:
        """Read ``treebank``, ``universal``, ``universal:TABLE`` or ``unknown``.

        Raises:
            AttreeError: it is none of these.
        """
        kind, colon, table = text.partition(":")
        if kind not in KINDS or (colon and kind != UNIVERSAL):
            fix = f"choose {', '.join(KINDS)}"
            raise AttreeError("unknown-labels", f"unknown labels {text!r}", fix=fix)
        if colon:
            check_name(table, tables(), f"no table of labels is called {table!r}")
        return cls(kind, table)


class LabelTable:
    """The universal labels of one dialect.

    Attributes:
        name: its name.
        exact, patterns: label → universal label, and the same for labels that a pattern stands for.
        strange: how often each label was asked for that it does not have.
    """

    def __init__(self, name: str) -> None:
        rows = tables()[name].items()
        self.name = name
        self.exact = {label: to for label, to in rows if not set("*[?") & set(label)}
        self.patterns = {label: to for label, to in rows if label not in self.exact}
        self.strange = collections.Counter[str]()
        self._known: dict[str, str | None] = {}

    def __contains__(self, label: str) -> bool:
        """Tell whether it has a label, without its functions."""
        return self._look_up(label) is not None

    def __getitem__(self, label: str) -> str:
        """Return the universal label, and count what has none."""
        universal = self._look_up(label)
        if universal is None:
            self.strange[label] += 1
        return universal or OTHER

    def _look_up(self, label: str) -> str | None:
        if label not in self._known:
            name = bare(label)
            fits = (to for one, to in self.patterns.items() if fnmatch.fnmatchcase(name, one))
            self._known[label] = self.exact.get(name) or next(fits, None)
        return self._known[label]


def bare(label: str) -> str:
    """Return a label without functions: ``NP-SBJ``, ``NP=2``, ``NP:x``, ``SUBJ+np``, ``NP#x``.

    What stands before the last ``+`` is cut, then all from the first of the other marks on that is
    not the first character.
    """
    label = label.rpartition("+")[2] or label
    places = (label.find(mark, 1) for mark in "-=:#")
    return label[: min((place for place in places if place > 0), default=len(label))]


@functools.cache
def tables() -> dict[str, dict[str, str]]:
    """Return the tables by name: label, or pattern, → universal label."""
    import yaml

    text = files("attree.treebank").joinpath("labels.yaml").read_text(encoding="utf-8")
    return {
        name: {label: to for to, labels in rows.items() for label in shlex.split(labels)}
        for name, rows in yaml.safe_load(text).items()
    }


def detect(labels: Mapping[str, int], file: str = "") -> LabelTable:
    """Return the table that knows most of the labels; of several, the first.

    Args:
        labels: label → how often it stands there.
        file: for the message.

    Raises:
        AttreeError: none knows half of them.
    """
    labels = {label: count for label, count in labels.items() if label not in {"", *MARKS}}
    every = [LabelTable(name) for name in tables()]
    best = max(every, key=lambda one: _count(labels, one.exact))  # patterns fit too much
    if _count(labels, best) < _LEAST * sum(labels.values()):
        shown = ", ".join(sorted(labels, key=lambda label: -labels[label])[:_SHOWN])
        problem = f"no table of universal labels has most of this treebank's ({shown})"
        fix = f"name one: universal:{{{','.join(tables())}}}"
        raise AttreeError("unknown-labels", problem, file=file or None, fix=fix)
    return best


def _count(labels: Mapping[str, int], known: Mapping[str, str] | LabelTable) -> int:
    return sum(count for label, count in labels.items() if label in known or bare(label) in known)


def relabelled(items: Iterable[Any], labels: str, usual: str = "") -> Iterator[Any]:
    """Return trees with the labels that are asked for; what the table lacks is said at the end.

    Args:
        items: sentences or graphs, and what is rejected, as a reader yields them.
        labels: what is asked for, as `Labelling.of` reads it.
        usual: the table of the treebank's format, where it has one; where that is the identity,
            the reader has made labels universal.

    Raises:
        AttreeError: see `detect`.
    """
    labelling = Labelling.of(labels)
    if labelling.kind == "treebank" or (labelling.kind == usual == UNIVERSAL):
        return iter(items)
    if labelling.kind == "unknown":
        return (_unknown(one) if isinstance(one, Sentence) else one for one in items)
    return _made_universal(iter(items), labelling.table or usual)


def _made_universal(items: Iterator[Any], name: str) -> Iterator[Any]:
    """Yield trees with universal labels by the table called ``name``, or the one that fits."""
    sample = list(itertools.islice(items, SAMPLE))
    trees = [one for one in sample if not isinstance(one, Rejected)]
    counts = collections.Counter(label for tree in trees for label in _labels(tree))
    chosen = LabelTable(name) if name else detect(counts, trees[0].file if trees else "")
    try:
        for one in itertools.chain(sample, items):
            yield one if isinstance(one, Rejected) else _universal(one, chosen)
    finally:
        tell(chosen)


def _labels(tree: Sentence | Graph) -> list[str]:
    return tree.labels if isinstance(tree, Graph) else [label for *_, label in tree.spans]


def with_labels(trees: Sequence[Sentence], labelling: Labelling) -> list[Sentence]:
    """Return a parser's trees with universal labels, by the table that knows most of its own.

    A table that ``labelling`` names is the gold trees', and the parser may have been trained on
    others: it is taken where no table knows most of its labels.

    Raises:
        AttreeError: see `detect`.
    """
    labels = collections.Counter(label for tree in trees for label in _labels(tree))
    try:
        chosen = detect(labels)
    except AttreeError:
        if not labelling.table:
            raise
        chosen = LabelTable(labelling.table)
    mapped = [_universal(one, chosen) for one in trees]
    tell(chosen)
    return mapped


def tell(chosen: LabelTable) -> None:
    """Say on stderr which labels a table lacks, and how often each occurred."""
    from attree.base.text import say

    if not chosen.strange:
        return
    common = chosen.strange.most_common(_SHOWN)
    shown = ", ".join(f"{label or '(none)'} ({count:,})" for label, count in common)
    more = f" and {len(chosen.strange) - _SHOWN:,} more" if len(chosen.strange) > _SHOWN else ""
    say(f"the table {chosen.name} of universal labels lacks, and has X for: {shown}{more}")


def _universal(tree: _Tree, chosen: LabelTable) -> _Tree:
    """Return a tree with universal labels and no functions; a span has each label once."""
    if isinstance(tree, Graph):
        functions = [*tree.functions[: len(tree.words)], *[""] * len(tree.labels)]
        labels = [chosen[label] for label in tree.labels]
        return replace(tree, labels=labels, functions=functions)
    spans = (
        (start, end, label if label in MARKS and tree.half else chosen[label])
        for start, end, label in tree.spans
    )
    return replace(tree, spans=tuple(dict.fromkeys(spans)))


def _unknown(one: Sentence) -> Sentence:
    """Return a sentence whose phrases' labels are not known; what is no phrase stays so."""
    n = len(one.words)
    spans: dict[Span, None] = {}
    if not one.half and n <= LONGEST:
        spans[0, n, COMPLETE] = None
    for start, end, label in one.spans:
        spans[start, end, label if one.half and label in MARKS else UNKNOWN] = None
    return replace(one, spans=tuple(spans), half=True)
