"""F1 of predicted trees against gold ones, by the rules that the project's tables state.

Spans are half-open word intervals of two words and more, unlabelled and distinct. The whole
sentence is always a gold and a predicted span in corpus F1, and never one in sentence F1. Importing
this package imports nothing heavy.
"""

from collections.abc import Callable
from typing import Any, NamedTuple


class Metric(NamedTuple):
    """A score in percent: the ratio of two sums over sentences.

    Attributes:
        heading: what tables call it.
        parts: counts (:class:`attree.evaluation.metrics.Counts`) → numerator and denominator.
        kind: where tables show it: ``f1`` always, ``labels`` where a parser has labels or tags,
            ``heads`` in place of F1 against dependency trees; nowhere if empty.
        meaning: what a summary's protocol says of F1, or a note below a table of another.
        across: whether there is a table over languages of it; of every score of ``heads`` there is.
        tested: whether `attree evaluate` shows intervals and p values, of parsers that have it.
    """

    heading: str
    parts: Callable[[Any], tuple[Any, Any]]
    kind: str = ""
    meaning: str = ""
    across: bool = False
    tested: bool = False


#: score → what people read and its formula, in the order of tables
METRICS = {
    "corpus_f1": Metric(
        "Corpus F1",
        lambda n: (2 * n.matched, n.gold + n.predicted),
        "f1",
        "micro, the whole sentence a span of every tree",
        across=True,
        tested=True,
    ),
    "corpus_f1_no_root": Metric(
        "Corpus F1, no root",
        lambda n: (2 * (n.matched - n.scored), n.gold + n.predicted - 2 * n.scored),
        "f1",
        "the same without it",
    ),
    "sentence_f1": Metric(
        "Sentence F1",
        lambda n: (n.sentence_f1_sum, n.sentence_f1_count),
        "f1",
        "mean over sentences, without it",
        across=True,
    ),
    # shares of spans: of the predicted ones that are gold, of the gold ones that are predicted
    "precision": Metric("Precision", lambda n: (n.matched, n.predicted)),
    "recall": Metric("Recall", lambda n: (n.matched, n.gold)),
    # micro, labelled brackets by EVALB's rules
    "labelled_f1": Metric(
        "Labelled F1",
        lambda n: (2 * n.labelled_matched, n.labelled_gold + n.labelled_predicted),
        "labels",
        tested=True,
    ),
    # share of trees with all labelled brackets right
    "labelled_exact_match": Metric(
        "Exact match", lambda n: (n.labelled_exact, n.labelled_trees), "labels"
    ),
    # share of words with the gold tag
    "tag_accuracy": Metric("Tags", lambda n: (n.tagged_right, n.tagged_words), "labels"),
    "headed_precision": Metric(
        "Headed precision",
        lambda n: (n.headed, n.phrases),
        "heads",
        "Share of the phrases with exactly one word whose head lies outside. "
        "Trained on: how many of these sentences; none: a treebank that was never seen.",
        tested=True,
    ),
    # projective subtrees of dependency trees
    "subtree_recall": Metric(
        "Recall of subtrees",
        lambda n: (n.found, n.subtrees),
        "heads",
        "Share of the words with all their dependents, if these are a span, that are phrases.",
        tested=True,
    ),
}


def _headings(kind: str) -> dict[str, str]:
    return {name: metric.heading for name, metric in METRICS.items() if metric.kind == kind}


#: The scores that tables always show, in order, with their headings; those of labels and tags; and
#: those against dependency trees.
HEADINGS, LABELLED, HEADED = map(_headings, ("f1", "labels", "heads"))

#: Labels whose recall is reported unless others are asked for.
DEFAULT_LABELS = ("NP", "VP", "PP", "ADJP", "SBAR", "ADVP")
