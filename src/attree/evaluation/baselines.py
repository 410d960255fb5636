"""Score the baselines of every table: fixed trees, random trees, the binary ceiling."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attree.base.files import write_json
from attree.base.provenance import provenance
from attree.base.schemas import origin
from attree.decoding import FIXED
from attree.decoding.fixed import fixed_trees
from attree.evaluation import METRICS
from attree.evaluation.metrics import Scored, mean, score, upper_bound
from attree.evaluation.summary import percentages, protocol, read_gold
from attree.trees.parses import Parses

#: The baselines with one tree a sentence, which can stand beside every parser.
ONE_TREE = ("right_branching", "left_branching", "balanced")


def fixed_parses(name: str, gold: Parses, *, seed: int = 0) -> Parses:
    """Return the trees of a baseline of ``attree.decoding.FIXED`` for the gold sentences."""
    trees = fixed_trees(name, gold.n_words, seed=seed, sentences=gold.sentence)
    return Parses.all_ok(gold.sentence, trees)


def write_baselines(
    sentences: Path, output: Path, *, labels: Sequence[str], max_words: int | None, seeds: int
) -> None:
    """Score every baseline on a sentence table and write the summary.

    Random trees are scored with the seeds 0 to ``seeds - 1``: the summary has the mean, the sample
    standard deviation (divided by ``seeds - 1``) and the maximum of each score.
    """
    gold, metadata = read_gold(sentences)
    how: dict[str, Any] = {"labels": list(labels), "max_words": max_words}
    ceiling = upper_bound(gold, **how)
    scores = {}
    for name in FIXED:
        random = name.startswith("random_")
        runs = [
            score(gold, fixed_parses(name, gold, seed=seed), **how)
            for seed in range(seeds if random else 1)
        ]
        scores[name] = _summarise(runs) if random else percentages(runs[0])
    scores["upper_bound"] = percentages(ceiling)
    summary = {
        **origin(metadata),
        "baselines": scores,
        "protocol": protocol(metadata, ceiling.counts, len(gold), max_words),
        "provenance": provenance(
            code=["attree.evaluation.baselines"], settings={**how, "seeds": seeds}
        ),
    }
    write_json(output, summary)


def _summarise(runs: Sequence[Scored]) -> dict[str, Any]:
    """Return means, standard deviations and maxima of the scores of several seeds."""
    summary: dict[str, Any] = {"seeds": len(runs), "std": {}, "max": {}}
    counts = [run.counts for run in runs]
    for metric in METRICS:
        values = [getattr(count, metric) for count in counts]
        summary[metric] = mean(values)
        if None not in values:
            summary["max"][metric] = max(values)
            summary["std"][metric] = statistics.stdev(values) if len(values) > 1 else 0.0
    summary["label_recall"] = {
        name: {"recall": mean([run.labels[name].recall for run in runs]), "count": label.count}
        for name, label in runs[0].labels.items()
    }
    return summary
