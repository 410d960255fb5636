# Reads and checks the configuration and plans the rows; what happens when a run begins and ends, and
# patches of Snakemake. The functions of rules are in attree.plan: a class of each section.
import os
import re
import sys
import time
from dataclasses import asdict
from functools import cache, partial
from hashlib import sha256
from pathlib import Path

from attree.base.errors import AttreeError
from attree.base.process import FOLLOWED
from attree.base.provenance import code_hash, digest
from attree.base.schemas import read_metadata
from attree.plan import inputs
from attree.plan.configuration import configured
from attree.plan.inputs import as_options
from attree.plan.jobs import Experiments
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
from attree.plan.plan import Plan
from attree.reports.page.run import ReportedRun, looks
from attree.treebank.language import NAME, discover

BEGAN = time.time()
MOST_READ = 1 << 24  # bytes of files that are read to tell whether they have changed

try:
    CONFIG = configured(config)
    LANGUAGES = discover(**CONFIG.treebanks.given())
    PLAN = Plan(
        CONFIG,
        {name: language.splits for name, language in LANGUAGES.items()},
        LANGUAGES.problems,
        {
            name
            for name, language in LANGUAGES.items()
            for split in language.splits.values()
            if split.settings.dependencies != "whole"
        },
    )
    RUN = ReportedRun.of(PLAN, LANGUAGES)
    EXPERIMENTS = Experiments(PLAN)
except AttreeError as error:
    sys.exit(f"attree: error: {error}")
config.update(CONFIG.given())  # what captions read

TREEBANKS = inputs.Treebanks(LANGUAGES)
ENCODERS = inputs.Encoders(PLAN)
HEADS = inputs.Heads(PLAN)
TRAINED = inputs.Trained(PLAN)
GRAMMARS = inputs.Grammars(PLAN)
SYSTEMS = inputs.Systems(PLAN)
AVERAGES = inputs.Averages(PLAN)
TABLES = inputs.Tables(PLAN)
COMPARISONS = inputs.Comparisons(PLAN)
CORPORA = inputs.Corpora(PLAN)
READY = inputs.Ready(PLAN)

PLAN_PATH = path_of(PLAN_FILE, results=CONFIG.results)
RUN_PATH = path_of(RUN_FILE, results=CONFIG.results)
UNFINISHED = path_of(UNFINISHED_FILE, results=CONFIG.results)


def say_warnings():
    for line in LANGUAGES.warnings:
        print(f"attree: warning: {line}", file=sys.stderr)


def say_losses():
    for language, split in PLAN.sized:
        path = path_of(SENTENCES_PATH, f"{language}/{split}", results=CONFIG.results)
        note = read_metadata(path).get("note") if os.path.exists(path) else None
        if note:
            why = f"{CONFIG.results}/logs/treebanks/{language}/{split}.log says why"
            print(f"attree: {language} {split}: {note}; {why}", file=sys.stderr)


def say_tables(failed=False):
    # Of those in the configuration the ones that this run's targets ask for.
    asked = {str(file) for job in workflow.persistence.dag.jobs for file in job.output}
    tables = [("tables", name) for name in PLAN.tables]
    tables += [("comparisons", name) for name in PLAN.comparisons]
    for folder, name in tables:
        first = Path(CONFIG.results, folder, f"{name}.md")
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
    shell(
        "attree report {CONFIG.results:q} --output {UNFINISHED:q} 2> /dev/null"
        " && echo attree: report of what there is: {UNFINISHED:q} >&2 || true"
    )


def refresh_page():
    # Experiments are run by themselves; the page, where there is one, takes up their tables.
    page = Path(path_of(PAGE, results=CONFIG.results))
    tables = Path(CONFIG.results, "experiments/tables").glob("*.parquet")
    made = max((table.stat().st_mtime for table in tables), default=0)
    if page.is_file() and made > page.stat().st_mtime:
        shell("attree report {CONFIG.results:q} --output {page:q} || true")


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
    if EXPERIMENTS.jobs:
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
    results=CONFIG.results,
    logs=f"{CONFIG.results}/logs",
    benchmarks=f"{CONFIG.results}/benchmarks",


wildcard_constraints:
    encoder=NAME.pattern,
    parser=NAME.pattern,
    language=NAME.pattern,
    split=NAME.pattern,
    corpus="|".join(map(re.escape, CONFIG.corpora)) or "-",
    table="|".join(map(re.escape, PLAN.tables)) or "-",
    comparison="|".join(map(re.escape, PLAN.comparisons)) or "-",
    ready="|".join(map(re.escape, CONFIG.ready)) or "-",


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


class FilesOfJob(dict):
    # What options are made from in place of a job's input.
    __getattr__ = dict.__getitem__


@cache
def content_of_file(path, to_read):
    if to_read:
        return sha256(Path(path).read_bytes()).hexdigest()
    stat = os.stat(path)
    return [stat.st_size, stat.st_mtime_ns]


def hash_of_content(wildcards, functions):
    given = [files(wildcards) for files in functions]
    paths = [path for one in given for path in ([one] if isinstance(one, str) else one)]
    # Not of what the workflow makes itself, nor of what a job will refuse.
    readable = [
        path for path in paths if os.path.isfile(path) and os.access(path, os.R_OK)
    ]
    are_small = sum(map(os.path.getsize, readable)) <= MOST_READ
    return digest([content_of_file(path, are_small) for path in readable])


def content_of(*functions):
    # What people's files hold is an input, of many or large ones their sizes and times: Snakemake takes
    # a file for unchanged that an older one has replaced, such as a copy or one that was unpacked.
    return partial(hash_of_content, functions=functions)


def hash_of_options(wildcards, options, unpacked, files):
    given = FilesOfJob({name: of(wildcards) for name, of in files.items()})
    if unpacked:
        given.update(unpacked(wildcards))
    return digest(options(wildcards, given))


def asked_of(options, unpacked=None, **files):
    # Options are an input too. Snakemake compares no parameter with that of the last run whose
    # function reads the job's input; this one, of the same options and files, it compares.
    return partial(hash_of_options, options=options, unpacked=unpacked, files=files)


def made_experiments(wildcards):
    # The experiments' tables that there are, and when each was made. They are no inputs of the page:
    # it must not make experiments run again that nobody asked for.
    tables = Path(CONFIG.results, "experiments/tables").glob("*.parquet")
    return [f"{table.name} {table.stat().st_mtime_ns}" for table in sorted(tables)]
