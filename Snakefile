# attree: treebanks + pretrained encoders → constituency trees → tables of F1.
#
# results/<stage>/{encoder}/{parser}/{language}/{split}: each stage has its folder, its file of rules
# under workflow/rules, and leaves out the wildcards that it does not depend on.
from attree.plan.configuration import check_files
from snakemake.utils import min_version

min_version("9.19")
check_files("config.yaml", *workflow.configfiles)


configfile: "config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/treebanks.smk"
include: "workflow/rules/encoders.smk"
include: "workflow/rules/attention.smk"
include: "workflow/rules/heads.smk"
include: "workflow/rules/fewshot.smk"
include: "workflow/rules/parses.smk"
include: "workflow/rules/scores.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/comparisons.smk"
include: "workflow/rules/grammars.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/experiments.smk"
include: "workflow/rules/ready.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        rules.tables.input,
        rules.figures.input,
        rules.page.output,
    localrule: True
