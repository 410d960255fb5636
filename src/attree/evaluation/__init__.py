"""F1 of predicted trees against gold ones, by the rules that the project's tables state.

Spans are half-open word intervals of two words and more, unlabelled and distinct. The whole
sentence is always a gold and a predicted span in corpus F1, and never one in sentence F1. Importing
this package imports nothing heavy.
"""

from __future__ import annotations

from typing import NamedTuple


class Metric(NamedTuple):
    """A score in percent, whose formula is the property of its name in `evaluation.counts.Counts`.

    Attributes:
        heading: what tables call it.
        meaning: what it is, as a summary's protocol says it.
        in_tables: whether tables of scores show it.
    """

    heading: str
    meaning: str
    in_tables: bool = True


#: score → what people read, in the order of tables
METRICS = {
    "corpus_f1": Metric("Corpus F1", "micro, the whole sentence a span of every tree"),
    "corpus_f1_no_root": Metric("Corpus F1, no root", "the same without it"),
    "sentence_f1": Metric("Sentence F1", "mean over sentences, without it"),
    "precision": Metric("Precision", "share of predicted spans that are gold", in_tables=False),
    "recall": Metric("Recall", "share of gold spans that are predicted", in_tables=False),
    "labelled_f1": Metric(
        "Labelled F1", "micro, labelled brackets by EVALB's rules", in_tables=False
    ),
    "labelled_exact_match": Metric(
        "Exact match", "share of trees with all labelled brackets right", in_tables=False
    ),
    "tag_accuracy": Metric("Tags", "share of words with the gold tag", in_tables=False),
    "headed_precision": Metric(
        "Headed precision",
        "share of phrases with exactly one word whose head lies outside",
        in_tables=False,
    ),
    "subtree_recall": Metric(
        "Recall of subtrees",
        "share of projective subtrees of dependency trees that are phrases",
        in_tables=False,
    ),
}

#: The scores that tables show, in order, with their headings.
HEADINGS = {name: metric.heading for name, metric in METRICS.items() if metric.in_tables}

#: Those of labels and tags, shown where a parser has some.
LABELLED = {
    name: METRICS[name].heading for name in ("labelled_f1", "labelled_exact_match", "tag_accuracy")
}

#: Those against dependency trees, in place of F1.
HEADED = {name: METRICS[name].heading for name in ("headed_precision", "subtree_recall")}

#: Labels whose recall is reported unless others are asked for.
DEFAULT_LABELS = ("NP", "VP", "PP", "ADJP", "SBAR", "ADVP")

#: way of taking sentence F1 → what it does with sentences of one word
PROFILES = {
    "default": "sentences of one word are skipped",
    "prpn": "sentences of one word score 1, and 1e-8 is added as in PRPN's program",
}
