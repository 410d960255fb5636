rule train:
    # A few-shot parser of a table or a comparison; the weights lie beside its description.
    input:
        sentences=TRAINED.sentences,
        evaluated=TRAINED.evaluated,
        encoder=ENCODER,
        start=TRAINED.start,
    output:
        FEWSHOT,
    log:
        "<logs>/fewshot/{encoder}/{parser}.log",
    benchmark:
        "<benchmarks>/fewshot/{encoder}/{parser}.tsv"
    wildcard_constraints:
        parser="|".join(map(re.escape, TRAINED.trainable)),
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.train:train_command"),
        content=content_of(TRAINED.start),
        folder=subpath(output[0], parent=True),
        asked=asked_of(
            TRAINED.options, sentences=TRAINED.sentences, evaluated=TRAINED.evaluated
        ),
        options=TRAINED.options,
    shell:
        "attree train --encoder {input.encoder:q} {params.options}"
        " --overwrite --output {params.folder:q} > {log:q} 2>&1"
