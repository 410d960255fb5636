"""What people read: tables of scores over languages, per language, and of treebank sizes."""

from __future__ import annotations

from attree import evaluation

#: The scores that tables show, in order, with their headings.
METRICS = {name: metric.heading for name, metric in evaluation.METRICS.items() if metric.in_tables}

#: Those of labels and tags, shown where a parser has some.
LABELLED = {
    name: evaluation.METRICS[name].heading
    for name in ("labelled_f1", "labelled_exact_match", "tag_accuracy")
}
