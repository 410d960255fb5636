"""The baselines that stand beside every table: fixed trees, random trees, the binary ceiling."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attree.base.files import write_json
from attree.base.provenance import provenance
from attree.decoding import FIXED
from attree.decoding.fixed import fixed_trees
from attree.evaluation import METRICS
from attree.evaluation.counts import Counts
from attree.evaluation.metrics import score, upper_bound
from attree.evaluation.summary import percentages, protocol, read_gold
from attree.trees.parses import Parses


def fixed_parses(name: str, gold: Parses, *, seed: int = 0) -> Parses:
    """Return the trees that ``name`` of :data:`attree.decoding.FIXED` gives the gold sentences."""
    trees = fixed_trees(name, gold.n_words, seed=seed, sentences=gold.sentence)
    return Parses.all_ok(gold.sentence, trees)


def write_baselines(
    sentences: Path,
    output: Path,
    *,
    profile: str,
    labels: Sequence[str],
    max_words: int | None,
    seeds: int,
) -> None:
    """Score every baseline on a sentence table and write the summary.

    Random trees are scored with ``seeds`` seeds from 0 on: the scores are means, with the standard
    deviation (of a sample: divided by ``seeds - 1``) and the maximum beside them.
    """
    gold, about = read_gold(sentences)
    how: dict[str, Any] = {"profile": profile, "labels": list(labels), "max_words": max_words}
    ceiling = upper_bound(gold, **how)
    found = {}
    for name in FIXED:
        random = name.startswith("random_")
        runs = [
            score(gold, fixed_parses(name, gold, seed=seed), **how).counts
            for seed in range(seeds if random else 1)
        ]
        found[name] = _summarised(runs) if random else percentages(runs[0])
    found["upper_bound"] = percentages(ceiling)
    summary = {
        "language": about.get("language"),
        "split": about.get("split"),
        "baselines": found,
        "protocol": protocol(about, ceiling, len(gold), how),
        "provenance": provenance(
            code=["attree.evaluation.baselines"], settings={**how, "seeds": seeds}
        ),
    }
    write_json(output, summary)


def _summarised(runs: Sequence[Counts]) -> dict[str, Any]:
    """Return the scores of several seeds: means, standard deviations and maxima."""
    each = [percentages(counts) for counts in runs]
    columns = {metric: [scores[metric] for scores in each] for metric in METRICS}
    scored = {metric: values for metric, values in columns.items() if None not in values}
    recalls = {}
    for name, label in runs[0].labels.items():
        values = [scores["label_recall"][name]["recall"] for scores in each]
        recall = statistics.fmean(values) if label.count else None
        recalls[name] = {"recall": recall, "count": label.count}
    return {
        **dict.fromkeys(METRICS),
        **{metric: statistics.fmean(values) for metric, values in scored.items()},
        "label_recall": recalls,
        "seeds": len(runs),
        "std": {
            metric: statistics.stdev(values) if len(values) > 1 else 0.0
            for metric, values in scored.items()
        },
        "max": {metric: max(values) for metric, values in scored.items()},
    }
