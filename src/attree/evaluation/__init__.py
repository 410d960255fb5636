"""F1 of predicted trees against gold ones, by the rules that the project's tables state.

Spans are half-open word intervals of two words and more, unlabelled and distinct. The whole
sentence is always a gold and a predicted span in corpus F1, and never one in sentence F1. Importing
this package imports nothing heavy.
"""

from __future__ import annotations

#: Labels whose recall is reported where nothing else is asked.
DEFAULT_LABELS = ("NP", "VP", "PP", "ADJP", "SBAR", "ADVP")

#: The scores that tables show, with their headings; each is a property of
#: :class:`attree.evaluation.counts.Counts`.
METRICS = {
    "corpus_f1": "Corpus F1",
    "corpus_f1_no_root": "Corpus F1, no root",
    "sentence_f1": "Sentence F1",
}

#: All that a summary holds: precision and recall beside them.
SUMMARISED = (*METRICS, "precision", "recall")

#: Ways of taking sentence F1 → what one does with sentences of one word
PROFILES = {
    "default": "sentences of one word are skipped",
    "prpn": "sentences of one word score 1, and 1e-8 is added as in PRPN's program",
}
