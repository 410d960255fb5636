rule score:
    input:
        parses=PARSES_PATH,
        sentences=SENTENCES_PATH,
    output:
        sentences=SENTENCE_SCORES,
        summary=SCORES_PATH,
    log:
        "<logs>/scores/{encoder}/{parser}/{language}/{split}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.score:score_command"),
        options=as_options(CONFIG.evaluation.given(), labels="recall"),
    shell:
        "attree score {input.parses:q} --sentences {input.sentences:q} --encoder-name {wildcards.encoder:q}"
        " --parser-name {wildcards.parser:q} {params.options} --output {output.sentences:q}"
        " --summary {output.summary:q} > {log:q} 2>&1"


rule baselines:
    input:
        SENTENCES_PATH,
    output:
        BASELINES_PATH,
    log:
        "<logs>/scores/baselines/{language}/{split}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.score:baselines_command"),
        options=as_options(CONFIG.evaluation.given(), labels="recall"),
    shell:
        "attree baselines {input:q} {params.options} --output {output:q} 2> {log:q}"
