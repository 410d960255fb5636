# Trees for raw text, one folder a corpus: `snakemake corpus`. No other target waits for it.
# The trees lie beside the declared summary, where Snakemake does not delete them: a run that was
# killed continues with the shards that are missing.
rule corpus:
    input:
        target_of(
            expand("<results>/corpus/{corpus}/summary.json", corpus=config["corpora"]),
            "corpora: none",
            "config.yaml has an example",
        ),
    localrule: True


rule parse_corpus:
    input:
        inputs=corpus_inputs,
        encoder=corpus_encoder,
        parser=corpus_parser,
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
        code=code_of("attree.cli.parse:parse_command", not_run=corpus_not_run),
        folder=subpath(output[0], parent=True),
        parser=corpus_parser_option,
        options=corpus_options,
    shell:
        "attree parse --parser {params.parser:q} --encoder {input.encoder:q}"
        " --workers {threads} --threads 1 {params.options} --output {params.folder:q}"
        " --restart -- {input.inputs:q} > {log:q} 2>&1"
