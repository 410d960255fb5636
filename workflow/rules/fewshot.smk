rule train:
    # A few-shot parser of a table or a comparison; the weights lie beside its description.
    input:
        sentences=PARSER_INPUTS.training_sets,
        evaluated=PARSER_INPUTS.evaluated,
        encoder=ENCODER,
        start=PARSER_INPUTS.start,
    output:
        FEWSHOT,
    log:
        "<logs>/fewshot/{encoder}/{parser}.log",
    benchmark:
        "<benchmarks>/fewshot/{encoder}/{parser}.tsv"
    wildcard_constraints:
        parser="|".join(map(re.escape, PARSER_INPUTS.trainable)),
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.train:train_command"),
        folder=subpath(output[0], parent=True),
        options=PARSER_INPUTS.training_options,
    shell:
        "attree train --encoder {input.encoder:q} {params.options}"
        " --overwrite --output {params.folder:q} > {log:q} 2>&1"
