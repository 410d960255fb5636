# Both rules write a manifest. The shards lie beside it, where Snakemake does not delete them before a
# re-run, and a whole shard of the right key is not computed again.


rule attention_all:
    # Every head of the encoder by itself, to rank heads by.
    input:
        sentences=SENTENCES_PATH,
        encoder="<results>/encoders/{encoder}.json",
    output:
        "<results>/attention/{encoder}/all/{language}/{split}.json",
    log:
        "<logs>/attention/{encoder}/all/{language}/{split}.log",
    benchmark:
        "<benchmarks>/attention/{encoder}/all/{language}/{split}.tsv"
    conda:
        "../../envs/cpu.yaml"
    threads: TREEBANKS.threads
    params:
        code=code_of("attree.cli.attention:attention_command", not_run=HEADS.not_run),
        heads=EXPERIMENTS.all_options,
        options=ENCODERS.running_options,
    shell:
        "attree attention {input.sentences:q} --encoder {input.encoder:q} {params.heads}"
        " --workers {threads} --threads 1 {params.options} --output {output:q} 2> {log:q}"


use rule attention_all as attention_selected with:
    # The means of the heads that the encoder's parsers selected, in one pass for all of them.
    input:
        sentences=SENTENCES_PATH,
        encoder="<results>/encoders/{encoder}.json",
        selections=HEADS.selections,
    output:
        "<results>/attention/{encoder}/selected/{language}/{split}.json",
    log:
        "<logs>/attention/{encoder}/selected/{language}/{split}.log",
    benchmark:
        "<benchmarks>/attention/{encoder}/selected/{language}/{split}.tsv"
    params:
        code=code_of("attree.cli.attention:attention_command", not_run=HEADS.not_run),
        heads=HEADS.selections_options,
        options=ENCODERS.running_options,
