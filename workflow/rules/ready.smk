# Parsers trained on several treebanks, each published with its tables of F1 in its model card:
# workflow/configs/ready.yaml makes those that attree ships.
rule ready:
    input:
        target_of(
            collect("<results>/published/{ready}/parser.json", ready=CONFIG.ready),
            "ready: no parser",
            "--configfile=workflow/configs/ready.yaml has some",
        ),
    log:
        "<logs>/published/shown.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    shell:
        "ls -l {input:q} > {log:q}"


rule publish:
    input:
        parser=READY.parser,
        tables=READY.tables,
    output:
        multiext(
            "<results>/published/{ready}/",
            "parser.json",
            "weights.safetensors",
            "README.md",
        ),
    log:
        "<logs>/published/{ready}.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.train:publish_command"),
        folder=subpath(output[0], parent=True),
        trained=subpath(input.parser, parent=True),
        asked=asked_of(READY.options, tables=READY.tables),
        options=READY.options,
    shell:
        "attree publish {params.trained:q} {params.options} --overwrite --output {params.folder:q}"
        " > {log:q} 2>&1"
