rule treebank:
    input:
        TREEBANKS.files,
    output:
        sentences=SENTENCES_PATH,
        rejected="<results>/treebanks/{language}/{split}.rejected.parquet",
    log:
        "<logs>/treebanks/{language}/{split}.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.treebank:run"),
        content=content_of(TREEBANKS.files),
        # The files as patterns: thousands of names do not fit on a command line.
        arguments=TREEBANKS.arguments,
    shell:
        "attree treebank {params.arguments} --output {output.sentences:q} --rejected {output.rejected:q} --overwrite"
        " 2> {log:q}"
