rule heads:
    input:
        attention="<results>/attention/{encoder}/all/{language}/{split}.json",
        sentences=SENTENCES_PATH,
    output:
        ranking="<results>/heads/{encoder}/{parser}/{language}/{split}.parquet",
        selection="<results>/heads/{encoder}/{parser}/{language}/{split}.json",
    log:
        "<logs>/heads/{encoder}/{parser}/{language}/{split}.log",
    benchmark:
        "<benchmarks>/heads/{encoder}/{parser}/{language}/{split}.tsv"
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.heads:heads_command"),
        recipe=HEADS.recipe_options,
        selection=HEADS.selection_options,
    shell:
        "attree heads {input.attention:q} --sentences {input.sentences:q} {params.recipe}"
        " {params.selection} --output {output.ranking:q} --output-selection {output.selection:q} 2> {log:q}"
