"""Relabel trees: with a treebank's own labels, the universal ones of Han et al. (2014), or none.

``labels.yaml`` has a table for each treebank dialect. A format may fix the table, the user may name
it (``universal:tiger``), and else it is the table that fits the labels of the first sentences best,
which is reported. A label that its table lacks becomes X, and is reported.
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
from attree.base.terminal import say
from attree.base.text import listed
from attree.treebank.crossing import Graph
from attree.treebank.sentence import Rejected, Sentence, Span
from attree.trees.constraints import COMPLETE, LONGEST, MARKS, UNKNOWN

_Tree = TypeVar("_Tree", Sentence, Graph)

#: The label of phrases that no other label fits.
OTHER = "X"
#: The table whose labels are universal already.
UNIVERSAL = "universal"
KINDS = ("treebank", UNIVERSAL, "unknown")
SAMPLE = 1000  # sentences by which the table is chosen
_LEAST = 0.5  # share of the labels that the table must know
_SHOWN = 8  # labels in a message


class Labelling(NamedTuple):
    """The value of ``labels:``: one of `KINDS`, and the table if one is named."""

    kind: str
    table: str = ""

    @classmethod
    def parse(cls, text: str) -> Labelling:
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
        exact: label → universal label.
        strange: how often each label was looked up that the table lacks.
    """

    def __init__(self, name: str) -> None:
        rows = tables()[name].items()
        self.name = name
        self.exact = {label: to for label, to in rows if not set("*[?") & set(label)}
        self._patterns = {label: to for label, to in rows if label not in self.exact}
        self.strange = collections.Counter[str]()
        self._cache: dict[str, str | None] = {}

    def __getitem__(self, label: str) -> str:
        """Return the universal label; count the label if it has none."""
        if label not in self._cache:
            name = bare(label)
            fits = (to for glob, to in self._patterns.items() if fnmatch.fnmatchcase(name, glob))
            self._cache[label] = self.exact.get(name) or next(fits, None)
        if (universal := self._cache[label]) is None:
            self.strange[label] += 1
        return universal or OTHER


def bare(label: str) -> str:
    """Return a label without functions: ``NP-SBJ``, ``NP=2``, ``NP:x``, ``SUBJ+np``, ``NP*x``.

    The part before the last ``+`` is cut, then everything from the first other mark on, unless that
    is the first character.
    """
    label = label.rpartition("+")[2] or label
    positions = (label.find(mark, 1) for mark in "-=:#*")
    return label[: min((position for position in positions if position > 0), default=len(label))]


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
    """Return the table that fits labels best, and report it; of several, the first.

    What fits is (share of the nodes whose labels the table knows) × (share of the labels that it
    knows): a few labels such as NP and VP, which many tables have, are most of the nodes.

    Args:
        labels: label → how often it occurs.
        file: for the message.

    Raises:
        AttreeError: the table knows less than half of the nodes' labels.
    """
    labels = {label: count for label, count in labels.items() if label not in {"", *MARKS}}
    known = {name: _known(labels, LabelTable(name).exact) for name in tables()}
    best = max(known, key=lambda name: len(known[name]) * sum(known[name].values()))
    share = sum(known[best].values()) / max(sum(labels.values()), 1)
    if labels and share < _LEAST:
        common = ", ".join(sorted(labels, key=lambda label: -labels[label])[:_SHOWN])
        problem = f"no table of universal labels has most of this treebank's ({common})"
        fix = f"name one: universal:{{{','.join(tables())}}}"
        raise AttreeError("unknown-labels", problem, file=file or None, fix=fix)
    if labels and best != UNIVERSAL:
        where = f"{file}: " if file else ""
        say(f"{where}the table {best} of universal labels fits best ({share:.0%} of the phrases)")
    return LabelTable(best)


def _known(labels: Mapping[str, int], exact: Mapping[str, str]) -> dict[str, int]:
    """Return the labels that a table has, but for its patterns, which fit too much."""
    return {label: n for label, n in labels.items() if label in exact or bare(label) in exact}


def relabelled(items: Iterable[Any], labels: str, usual: str = "") -> Iterator[Any]:
    """Relabel trees; report at the end which labels the table lacks.

    Args:
        items: sentences or graphs, and rejected sentences, of a reader.
        labels: which labels, as `Labelling.parse` reads them.
        usual: the table of the treebank's format, if it has one; the identity table means that
            the reader makes labels universal.

    Raises:
        AttreeError: see `detect`.
    """
    labelling = Labelling.parse(labels)
    if labelling.kind == "treebank" or (labelling.kind == usual == UNIVERSAL):
        return iter(items)
    if labelling.kind == "unknown":
        return (_unlabel(item) if isinstance(item, Sentence) else item for item in items)
    return _relabel(iter(items), labelling.table or usual)


def _relabel(items: Iterator[Any], name: str) -> Iterator[Any]:
    """Yield trees with universal labels by the table ``name``, or the table that fits."""
    sample = list(itertools.islice(items, SAMPLE))
    trees = [item for item in sample if not isinstance(item, Rejected)]
    counts = collections.Counter(label for tree in trees for label in _labels(tree))
    chosen = LabelTable(name) if name else detect(counts, trees[0].file if trees else "")
    yield from _mapped(itertools.chain(sample, items), chosen)


def _mapped(items: Iterable[Any], chosen: LabelTable) -> Iterator[Any]:
    """Yield trees with labels of a table; say at the end which it lacks, and how often."""
    try:
        for item in items:
            yield item if isinstance(item, Rejected) else _map(item, chosen)
    finally:
        if strange := chosen.strange:
            lacks = [f"{label or '(none)'} ({count:,})" for label, count in strange.most_common()]
            says = f"the table {chosen.name} of universal labels lacks, and has X for:"
            say(f"{says} {listed(lacks, _SHOWN)}")


def _labels(tree: Sentence | Graph) -> list[str]:
    return tree.labels if isinstance(tree, Graph) else [label for *_, label in tree.spans]


def with_labels(trees: Sequence[Sentence], labelling: Labelling) -> list[Sentence]:
    """Return a parser's trees with universal labels, by the table that knows most of them.

    A table that ``labelling`` names is that of the gold trees, but the parser may have been trained
    on another treebank: so the named table is used only where no table fits.

    Raises:
        AttreeError: see `detect`.
    """
    try:
        chosen = detect(collections.Counter(label for tree in trees for label in _labels(tree)))
    except AttreeError:
        if not labelling.table:
            raise
        chosen = LabelTable(labelling.table)
    return list(_mapped(trees, chosen))


def _map(tree: _Tree, chosen: LabelTable) -> _Tree:
    """Return a tree with universal labels and no functions; equal nodes are merged."""
    if isinstance(tree, Graph):
        functions = [*tree.functions[: len(tree.words)], *[""] * len(tree.labels)]
        return replace(tree, labels=[chosen[label] for label in tree.labels], functions=functions)
    spans = (
        (start, end, label if label in MARKS and tree.partial else chosen[label])
        for start, end, label in tree.spans
    )
    return replace(tree, spans=tuple(dict.fromkeys(spans)))


def _unlabel(sentence: Sentence) -> Sentence:
    """Return a partly bracketed sentence whose phrases have unknown labels."""
    n = len(sentence.words)
    spans: dict[Span, None] = {}
    if not sentence.partial and n <= LONGEST:
        spans[0, n, COMPLETE] = None
    for start, end, label in sentence.spans:
        spans[start, end, label if sentence.partial and label in MARKS else UNKNOWN] = None
    return replace(sentence, spans=tuple(spans), partial=True)
