# Grammars that are learnt from raw words, and the comparisons that have some: a target of their own,
# because a seed takes up to half an hour. A run that was killed resumes after its last epoch: the
# checkpoints lie beside the folder, where Snakemake does not delete them.
use rule comparison as grammars with:
    input:
        target_of(
            collect(
                "<results>/comparisons/{comparison}.parquet",
                comparison=COMPARISONS.with_grammars(True),
            ),
            "comparisons: none with a grammar",
        ),
    log:
        "<logs>/grammars/shown.log",


rule grammar:
    input:
        GRAMMARS.text,
    output:
        LEARNT,
    log:
        "<logs>/grammars/{language}/{parser}.log",
    benchmark:
        "<benchmarks>/grammars/{language}/{parser}.tsv"
    conda:
        "../../envs/cpu.yaml"
    threads: 2
    params:
        code=code_of("attree.cli.train:train"),
        folder=subpath(output[0], strip_suffix=".done"),
        options=GRAMMARS.options,
    shell:
        "attree grammar train {input:q} {params.options} --threads {threads} --restart"
        " --output {params.folder:q} 2> {log:q} && cp {params.folder:q}/provenance.json {output:q}"


rule grammar_parses:
    input:
        learnt=LEARNT,
        sentences=SENTENCES_PATH,
    output:
        PARSES_PATH,
    log:
        "<logs>/parses/{encoder}/{parser}/{language}/{split}.log",
    wildcard_constraints:
        encoder=GRAMMAR,
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.train:parse"),
        folder=subpath(input.learnt, strip_suffix=".done"),
    shell:
        "attree grammar parse {input.sentences:q} --grammar {params.folder:q} --output {output:q}"
        " 2> {log:q}"
