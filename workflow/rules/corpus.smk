# Trees for raw text, one folder a corpus: `snakemake corpus`. No other target waits for it.
# The trees lie beside the declared summary, where Snakemake does not delete them: a run that was
# killed continues with the shards that are missing.
rule corpus:
    input:
        target_of(
            expand("<results>/corpus/{corpus}/summary.json", corpus=CONFIG.corpora),
            "corpora: none",
            "config.yaml has an example",
        ),
    localrule: True


rule parse_corpus:
    input:
        inputs=CORPORA.text,
        encoder=CORPORA.encoder,
        parser=CORPORA.parser,
    output:
        "<results>/corpus/{corpus}/summary.json",
    log:
        "<logs>/corpus/{corpus}.log",
    benchmark:
        "<benchmarks>/corpus/{corpus}.tsv"
    conda:
        "../../envs/cpu.yaml"
    threads: 8
    params:
        code=code_of("attree.cli.parse:parse_command"),
        content=content_of(CORPORA.text, CORPORA.parser),
        folder=subpath(output[0], parent=True),
        parser=CORPORA.parser_option,
        inputs=CORPORA.inputs,
        options=CORPORA.options,
    shell:
        "attree parse --parser {params.parser:q} --encoder {input.encoder:q}"
        " --workers {threads} --threads 1 {params.options} --output {params.folder:q}"
        " --restart -- {params.inputs:q} > {log:q} 2>&1"
