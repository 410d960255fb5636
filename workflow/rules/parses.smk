rule parse:
    input:
        attention="<results>/attention/{encoder}/selected/{language}/{split}.json",
        selection=selection,
    output:
        "<results>/parses/{encoder}/{parser}/{language}/{split}.parquet",
    log:
        "<logs>/parses/{encoder}/{parser}/{language}/{split}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.parsing.command:decode_command"),
        recipe=recipe_options,
    shell:
        "attree decode {input.attention:q} --selection {input.selection:q} {params.recipe}"
        " --output {output:q} 2> {log:q}"
