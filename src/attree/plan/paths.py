"""Where the workflow's results lie: the paths that the rules and the experiments share.

``<results>`` is the folder that the configuration names; Snakemake puts it in by itself.
"""

from __future__ import annotations

from typing import Any

#: What stands for the encoder of trees that are imported.
IMPORTED = "imported"
#: What stands for the encoder of trees that a grammar gives.
GRAMMAR = "grammar"

SENTENCES_PATH = "<results>/treebanks/{language}/{split}.parquet"
ENCODER = "<results>/encoders/{encoder}.json"
HEADS_PATH = "<results>/heads/{encoder}/{parser}/{language}/{split}.json"
ALL_HEADS = "<results>/attention/{encoder}/all/{language}/{split}.json"
PARSES_PATH = "<results>/parses/{encoder}/{parser}/{language}/{split}.parquet"
SCORES_PATH = "<results>/scores/{encoder}/{parser}/{language}/{split}.json"
SENTENCE_SCORES = SCORES_PATH.replace(".json", ".parquet")
BASELINES_PATH = "<results>/scores/baselines/{language}/{split}.json"
LABELS_FIGURE = "<results>/figures/labels/{encoder}/{parser}/{language}/{split}.png"

#: Of a grammar, which lies in the folder of the same name: that it is learnt.
LEARNT = "<results>/grammars/{language}/{parser}.done"

#: A parser of `attree train`, and the speeds of a comparison's parsers.
FEWSHOT = "<results>/fewshot/{encoder}/{parser}/parser.json"
SPEEDS = "<results>/comparisons/{comparison}/{encoder}/{language}/{split}.json"
#: What a few-shot parser says of each sentence beside its tree.
ASSOCIATIONS_PATH = "<results>/attention/{encoder}/trained/{parser}/{language}/{split}.parquet"

#: What the experiments ask for, the records of their rows, and the list that each job leaves.
PLAN = "<results>/experiments/plan.json"
RECORDS = "<results>/experiments/records"
JOB = "<results>/experiments/jobs/{job}.json"
EXPERIMENT = "<results>/experiments/tables/{experiment}.csv"

#: The report, what it reads of the configuration, and the report of a run that stopped short.
PAGE = "<results>/report/index.html"
RUN = "<results>/report/run.json"
UNFINISHED = "<results>/report/unfinished.html"


def path_of(template: str, language_split: str = "", **wildcards: Any) -> str:
    """Fill in one of the paths above.

    Args:
        template: one of the constants; ``<results>`` stays unless ``results`` is given.
        language_split: ``english/test`` for ``{language}/{split}``.
        wildcards: the others, and ``results``.
    """
    if language_split:
        wildcards["language"], _, wildcards["split"] = language_split.partition("/")
    if results := wildcards.pop("results", None):
        template = template.replace("<results>", str(results))
    return template.format(**wildcards)
