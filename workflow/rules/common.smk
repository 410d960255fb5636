# Reads and checks the configuration, plans the rows, and holds the few functions that rules share.
# What there is to decide is decided in attree.plan.plan and attree.treebank.language.
import os
import re
import sys
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

from attree.association.sources import not_run_by
from attree.plan.configuration import configured
from attree.base.errors import AttreeError
from attree.training.recipes import RECIPES
from attree.plan.plan import (
    ParserInputs,
    TableRow,
    as_options,
    folder_of,
    make_plan,
    omit,
    split_keys,
    without_null,
)
from attree.base.process import FOLLOWED
from attree.base.provenance import code_hash, digest
from attree.reports.page.run import ReportedRun, looks
from attree.plan.paths import (
    ASSOCIATIONS_PATH,
    BASELINES_PATH,
    ENCODER,
    EXPERIMENT,
    FEWSHOT,
    GRAMMAR,
    IMPORTED,
    JOB,
    LABELS_FIGURE,
    LEARNT,
    PAGE,
    PARSES_PATH,
    SCORES_PATH,
    SENTENCE_SCORES,
    SENTENCES_PATH,
    path_of,
)
from attree.plan.paths import PLAN as PLAN_FILE
from attree.plan.paths import RUN as RUN_FILE
from attree.plan.paths import UNFINISHED as UNFINISHED_FILE
from attree.base.schemas import read_metadata
from attree.treebank.language import NAME, discover
from attree.base.settings import expand_variables

BEGAN = time.time()

try:
    config |= configured(config)  # checks it, and fills in the defaults
    config |= without_null(config, "tables", "comparisons", "experiments")
    # discover() names a folder as it is written
    expand_variables(config["treebanks"], "treebanks")
    config["encoders"] = expand_variables(config["encoders"], "encoders")
    config["systems"] = expand_variables(config["systems"], "systems")
    config["published"] = expand_variables(config["published"], "published")
    if config["published"] and not Path(config["published"]).is_file():
        raise AttreeError(
            "missing-file",
            "published: this file does not exist",
            file=config["published"],
        )
    LANGUAGES = discover(**config["treebanks"])
    splits = {name: language.splits for name, language in LANGUAGES.items()}
    PLAN = make_plan(config, splits, LANGUAGES.problems, RECIPES)
    RUN = ReportedRun.of(config, PLAN, LANGUAGES)
except AttreeError as error:
    sys.exit(f"attree: error: {error}")


def say_warnings():
    for line in LANGUAGES.warnings:
        print(f"attree: warning: {line}", file=sys.stderr)


def say_losses():
    for language, split in PLAN.sized:
        path = path_of(SENTENCES_PATH, f"{language}/{split}", results=config["results"])
        note = read_metadata(path).get("note") if os.path.exists(path) else None
        if note:
            why = f"{config['results']}/logs/treebanks/{language}/{split}.log says why"
            print(f"attree: {language} {split}: {note}; {why}", file=sys.stderr)


def say_tables(failed=False):
    # Of those in the configuration the ones that this run's targets ask for.
    asked = {str(file) for job in workflow.persistence.dag.jobs for file in job.output}
    tables = [("tables", name) for name in PLAN.tables]
    tables += [("comparisons", name) for name in PLAN.comparisons]
    for folder, name in tables:
        first = Path(config["results"], folder, f"{name}.md")
        if str(first) not in asked:
            continue
        paths = sorted(first.parent.glob(f"{name}*.md"))
        for path in paths:
            earlier = failed and path.stat().st_mtime < BEGAN
            note = " (of an earlier run)" if earlier else ""
            print(f"attree: table: {path}{note}", file=sys.stderr)
        if not paths:
            print(f"attree: table not made: {name}", file=sys.stderr)


def leave_page():
    # Of a run that stops short: what failed, and all that there is.
    page = path_of(UNFINISHED_FILE, results=config["results"])
    shell(
        "attree report {config[results]:q} --output {page:q} 2> /dev/null"
        " && echo attree: report of what there is: {page:q} >&2 || true"
    )


def refresh_page():
    # Experiments are run by themselves; the page, where there is one, takes up their tables.
    page = Path(path_of(PAGE, results=config["results"]))
    tables = Path(config["results"], "experiments/tables").glob("*.parquet")
    made = max((table.stat().st_mtime for table in tables), default=0)
    if page.is_file() and made > page.stat().st_mtime:
        shell("attree report {config[results]:q} --output {page:q} || true")


def none_waits(dag, name):
    return 0


def lift_job_limit():
    # With its limit of 100 jobs a second Snakemake 9 looks at every waiting job again each second,
    # and once more a second for each job that has ended (its pull request 3744): after 70 jobs of
    # 300 that takes half a core. Without a limit it looks when a job ends. A user's limit stays.
    limit = workflow.scheduling_settings.max_jobs_per_timespan
    if limit and (limit.max_jobs, limit.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None


if workflow.is_main_process:
    say_warnings()
if "snakemake_executor_plugin_slurm" in sys.modules:
    # Version 2.8 forgets jobs of an array when more like them are ready than may be handed over at
    # once, and the run hangs (its issue 473). Told that none waits, it submits what it is given.
    slurm = sys.modules["snakemake_executor_plugin_slurm"]
    slurm.pending_jobs_for_rule = none_waits
if not workflow.subprocess_exec:
    # The stages' commands end when this process does, even when it is killed.
    os.environ[FOLLOWED] = str(os.getpid())


onstart:
    # A later onstart would replace this one.
    lift_job_limit()
    # Not rules: every job would have to run again after one, whose rows are still the same. What a
    # job reads of these files is in the hash among its parameters.
    RUN.write(RUN_PATH)
    if EXPERIMENTS.by_name:
        EXPERIMENTS.write(PLAN_PATH)


onsuccess:
    say_losses()
    say_tables()
    refresh_page()


onerror:
    say_losses()
    say_tables(failed=True)
    leave_page()


pathvars:
    results=config["results"],
    logs=f"{config['results']}/logs",
    benchmarks=f"{config['results']}/benchmarks",


wildcard_constraints:
    encoder=NAME.pattern,
    parser=NAME.pattern,
    language=NAME.pattern,
    split=NAME.pattern,
    corpus="|".join(map(re.escape, config["corpora"])) or "-",
    table="|".join(map(re.escape, PLAN.tables)) or "-",
    comparison="|".join(map(re.escape, PLAN.comparisons)) or "-",
    ready="|".join(map(re.escape, config["ready"])) or "-",


PARSER_INPUTS = ParserInputs(config, PLAN, RECIPES)


SIZED = {
    "language": [language for language, _ in PLAN.sized],
    "split": [split for _, split in PLAN.sized],
}


def target_of(
    files, missing, example="--configfile=workflow/configs/open.yaml has some"
):
    # The input of a target. Where the configuration has nothing for it, that is told at once.
    return partial(files_of_target, files=files, missing=missing, example=example)


def files_of_target(wildcards, files, missing, example):
    if not files:
        sys.exit(f"attree: error: {missing} is configured: nothing to make — {example}")
    return files


def hash_of(wildcards, entry, not_run):
    return code_hash(entry, not_run=not_run(wildcards) if not_run else ())


def code_of(entry, not_run=None):
    # Code is an input: what the entry imports, read when a job is planned that runs it.
    return partial(hash_of, entry=entry, not_run=not_run)


def treebank_files(wildcards):
    return [str(file) for file in LANGUAGES[wildcards.language].files(wildcards.split)]


def treebank_arguments(wildcards):
    return LANGUAGES[wildcards.language].arguments(wildcards.split)


def encoder_options(wildcards):
    return as_options(omit(config["encoders"][wildcards.encoder], "tuning"))


def attention_threads(wildcards):
    # A worker loads an encoder, which pays from about 2 MB of trees on.
    files = LANGUAGES[wildcards.language].splits[wildcards.split]
    return max(1, min(8, sum(file.stat().st_size for file in files) // 2_000_000))


def tuned(stage, extension, encoder, parser):
    # A file of a stage that looks at the trees that heads are ranked on.
    tuning = PLAN.tunings[encoder, parser]
    return f"<results>/{stage}/{encoder}/{parser}/{tuning.language}/{tuning.split}.{extension}"


def selection(wildcards):
    return tuned("heads", "json", wildcards.encoder, wildcards.parser)


def selections(wildcards):
    parsers = PLAN.parsers(wildcards.encoder, wildcards.language, wildcards.split)
    return [tuned("heads", "json", wildcards.encoder, parser) for parser in parsers]


def selections_options(wildcards, input):
    return as_options({"selection": list(input.selections)})


def all_options(wildcards):
    # Every unit of every source that is ranked on this set, in one file an encoder and split.
    split_key = (wildcards.language, wildcards.split)
    sources = EXPERIMENTS.sources(wildcards.encoder, "/".join(split_key))
    for (encoder, parser), tuning in PLAN.tunings.items():
        if (encoder, tuning.language, tuning.split) == (wildcards.encoder, *split_key):
            sources.append(config["parsers"][parser]["source"])
    return as_options({"heads": "all", "source": list(dict.fromkeys(sources))})


def recipe_options(wildcards):
    chosen = config["parsers"][wildcards.parser]
    return as_options(omit(chosen, "heads", "rank_by", "source", "tuning"))


def system_trees(wildcards):
    return config["systems"][wildcards.parser][
        f"{wildcards.language}/{wildcards.split}"
    ]


def system_options(wildcards):
    given = config["systems"][wildcards.parser]
    return as_options({k: v for k, v in given.items() if k == "accept_loss"})


def averaged(wildcards):
    members = PLAN.members(TableRow(**wildcards))
    return [path_of(PARSES_PATH, **asdict(row)) for row in members]


def average_options(wildcards):
    weights = PLAN.weights(wildcards.parser)
    given = omit(config["averages"][wildcards.parser], "of")
    weighted = {"weight": weights} if min(weights) < 1 else {}
    return as_options(given | weighted, threshold="majority")


def selection_options(wildcards):
    tuning = PLAN.tunings[wildcards.encoder, wildcards.parser]
    parser = config["parsers"][wildcards.parser]
    options = {key: parser[key] for key in ("source", "heads", "rank_by")}
    return as_options(options | {"trees": tuning.trees, "seed": tuning.seed})


def sentence_scores(rows):
    return [path_of(SENTENCE_SCORES, **asdict(row)) for row in rows]


def table_sentences(wildcards):
    return sentence_scores(PLAN.scores(table=wildcards.table))


def language_sentences(wildcards):
    return sentence_scores(PLAN.scores(language=wildcards.language))


def scores(rows):
    return [
        *[path_of(SCORES_PATH, **asdict(row)) for row in rows],
        *[path_of(BASELINES_PATH, "/".join(key)) for key in split_keys(rows)],
    ]


def table_scores(wildcards):
    return scores(PLAN.scores(table=wildcards.table))


def language_scores(wildcards):
    return scores(PLAN.scores(language=wildcards.language))


def published(wildcards):
    # The file of published figures, for the tables that show some of them.
    table = config["tables"].get(wildcards.get("table"), {"published": "dataset-size"})
    return [config["published"]] if config["published"] and table["published"] else []


def table_options(wildcards, input):
    table = config["tables"][wildcards.table]
    options = {"title": table["title"]}
    if input.published:
        options |= {
            "published": config["published"],
            "published-table": table["published"],
        }
    return as_options(options)


def made_experiments(wildcards):
    # The experiments' tables that there are, and when each was made. They are no inputs of the page:
    # it must not make experiments run again that nobody asked for.
    tables = Path(config["results"], "experiments/tables").glob("*.parquet")
    return [f"{table.name} {table.stat().st_mtime_ns}" for table in sorted(tables)]


def attention_not_run(wildcards):
    # A changed decoder runs the encoder again only where a parser averages the trees of heads.
    return not_run_by(parser["source"] for parser in config["parsers"].values())


def corpus_inputs(wildcards):
    return config["corpora"][wildcards.corpus]["inputs"]


def corpus_encoder(wildcards):
    return path_of(ENCODER, encoder=config["corpora"][wildcards.corpus]["encoder"])


def corpus_folder(wildcards):
    return folder_of(config["corpora"][wildcards.corpus]["parser"])


def corpus_not_run(wildcards):
    # Averaged heads run nothing of few-shot training, no encoder runs a grammar, and nothing is
    # scored.
    own = () if corpus_folder(wildcards) else ("attree.training",)
    return (*own, "attree.grammar", "attree.evaluation.side_by_side")


def corpus_parser(wildcards):
    corpus = config["corpora"][wildcards.corpus]
    if folder := corpus_folder(wildcards):
        return [f"{folder}/{name}" for name in ("parser.json", "weights.safetensors")]
    return tuned("heads", "json", corpus["encoder"], corpus["parser"])


def corpus_parser_option(wildcards, input):
    return corpus_folder(wildcards) or input.parser


def corpus_options(wildcards):
    corpus = config["corpora"][wildcards.corpus]
    without = ["--no-split-lines"] if corpus["sentences"] is False else []
    given = as_options(
        omit(corpus, "inputs", "encoder", "parser"),
        format="to",
        sentences="split-lines",
    )
    return " ".join([given, *not_run])


def published_parser(wildcards):
    return path_of(
        FEWSHOT,
        encoder=config["ready"][wildcards.ready]["encoder"],
        parser=wildcards.ready,
    )


def published_tables(wildcards):
    return collect(
        "<results>/tables/{table}.md", table=config["ready"][wildcards.ready]["tables"]
    )


def publishing_options(wildcards, input):
    own = omit(config["ready"][wildcards.ready], "encoder", "tables")
    return as_options({**own, "table": list(input.tables)})
