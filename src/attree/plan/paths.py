"""Paths of the workflow's results, shared by the rules and the experiments.

``<results>`` stands for the results folder of the configuration; Snakemake fills it in.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

#: Takes the place of the encoder in paths of imported trees.
IMPORTED = "imported"
#: Takes the place of the encoder in paths of trees that a grammar made.
GRAMMAR = "grammar"

SENTENCES_PATH = "<results>/treebanks/{language}/{split}.parquet"
ENCODER = "<results>/encoders/{encoder}.json"
ALL_HEADS = "<results>/attention/{encoder}/all/{language}/{split}.json"
PARSES_PATH = "<results>/parses/{encoder}/{parser}/{language}/{split}.parquet"
SCORES_PATH = "<results>/scores/{encoder}/{parser}/{language}/{split}.json"
SENTENCE_SCORES = SCORES_PATH.replace(".json", ".parquet")
BASELINES_PATH = "<results>/scores/baselines/{language}/{split}.json"
LABELS_FIGURE = "<results>/figures/labels/{encoder}/{parser}/{language}/{split}.png"

#: Marks a grammar as learnt; the grammar lies in the folder of the same name.
LEARNT = "<results>/grammars/{language}/{parser}.done"

#: A parser trained by `attree train`; the speeds of a comparison's parsers.
FEWSHOT = "<results>/fewshot/{encoder}/{parser}/parser.json"
SPEEDS = "<results>/comparisons/{comparison}/{encoder}/{language}/{split}.json"
#: Association matrices and span probabilities of a few-shot parser.
ASSOCIATIONS_PATH = "<results>/attention/{encoder}/trained/{parser}/{language}/{split}.parquet"

#: The plan of all experiments, the records of their rows, each job's list of them, each table.
PLAN = "<results>/experiments/plan.json"
RECORDS = "<results>/experiments/records"
JOB = "<results>/experiments/jobs/{job}.json"
EXPERIMENT = "<results>/experiments/tables/{experiment}.csv"

#: The report, its part of the configuration, and the report of an unfinished run.
PAGE = "<results>/report/index.html"
RUN = "<results>/report/run.json"
UNFINISHED = "<results>/report/unfinished.html"


class TableRow(NamedTuple):
    """One parser (a name of the configuration) of one encoder on one split of one language.

    It is what ``results/parses`` and ``results/scores`` hold a file for.
    """

    encoder: str
    parser: str
    language: str
    split: str


def path_of(template: str, language_split: str = "", **wildcards: Any) -> str:
    """Fill in one of the paths above.

    Args:
        template: one of the constants; ``<results>`` stays unless ``results`` is given.
        language_split: ``english/test`` for ``{language}/{split}``.
        wildcards: values of the other wildcards, and ``results``.
    """
    if language_split:
        wildcards["language"], _, wildcards["split"] = language_split.partition("/")
    if results := wildcards.pop("results", None):
        template = template.replace("<results>", str(results))
    return template.format(**wildcards)


def files_of_rows(template: str, rows: Iterable[TableRow], **wildcards: Any) -> list[str]:
    """Return the files of rows, each once, though several rows may share one."""
    return list(dict.fromkeys(path_of(template, **wildcards, **row._asdict()) for row in rows))
