rule score:
    input:
        parses=PARSES,
        sentences=SENTENCES,
    output:
        sentences=SENTENCE_SCORES,
        summary=SCORES,
    log:
        "<logs>/scores/{encoder}/{parser}/{language}/{split}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.evaluation.command:score_command"),
        options=as_options(config["evaluation"]),
    shell:
        "attree score {input.parses} --sentences {input.sentences} --encoder {wildcards.encoder}"
        " --parser {wildcards.parser} {params.options} --output {output.sentences}"
        " --summary {output.summary} 2> {log}"


rule baselines:
    input:
        SENTENCES,
    output:
        BASELINES,
    log:
        "<logs>/scores/baselines/{language}/{split}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.evaluation.command:baselines_command"),
        options=as_options(config["evaluation"]),
    shell:
        "attree baselines {input} {params.options} --output {output} 2> {log}"
