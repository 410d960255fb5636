# Five ways to a table of parses: heads' attention, a few-shot parser, another parser's trees, an
# average of tables; a grammar's are in grammars.smk.
rule parse:
    input:
        attention="<results>/attention/{encoder}/selected/{language}/{split}.json",
        selection=selection,
    output:
        PARSES_PATH,
    log:
        "<logs>/parses/{encoder}/{parser}/{language}/{split}.log",
    wildcard_constraints:
        encoder=rf"(?!({IMPORTED}|{GRAMMAR})/)[^/]+",
        parser="|".join(map(re.escape, config["parsers"])),
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.decode:decode_command"),
        recipe=recipe_options,
    shell:
        "attree decode {input.attention:q} --selection {input.selection:q} {params.recipe}"
        " --output {output:q} 2> {log:q}"


rule trained_parses:
    # Sentences that it was trained on too are counted in the parses' provenance.
    input:
        parser=PARSER_INPUTS.parser_file,
        weights=PARSER_INPUTS.weights,
        encoder=ENCODER,
        sentences=SENTENCES_PATH,
    output:
        parses=PARSES_PATH,
        associations=ASSOCIATIONS_PATH,
    log:
        "<logs>/parses/{encoder}/{parser}/{language}/{split}.log",
    wildcard_constraints:
        encoder=rf"(?!({IMPORTED}|{GRAMMAR})/)[^/]+",
        parser="|".join(map(re.escape, PARSER_INPUTS.appliable)),
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.decode:apply_command"),
        folder=subpath(input.parser, parent=True),
        options=PARSER_INPUTS.applying_options,
    shell:
        "attree apply {input.sentences:q} --parser {params.folder:q} --encoder {input.encoder:q}"
        " --allow-overlap {params.options} --associations {output.associations:q}"
        " --output {output.parses:q} 2> {log:q}"


rule imported_parses:
    input:
        trees=system_trees,
        sentences=SENTENCES_PATH,
    output:
        PARSES_PATH,
    log:
        "<logs>/parses/{encoder}/{parser}/{language}/{split}.log",
    wildcard_constraints:
        encoder=IMPORTED,
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.decode:import_command"),
        options=system_options,
    shell:
        "attree import {input.trees:q} --sentences {input.sentences:q} --output {output:q}"
        " {params.options} 2> {log:q}"


rule averaged_parses:
    input:
        averaged,
    output:
        PARSES_PATH,
    log:
        "<logs>/parses/{encoder}/{parser}/{language}/{split}.log",
    wildcard_constraints:
        parser="|".join(map(re.escape, PLAN.averages)) or "-",
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.decode:average_command"),
        options=average_options,
    shell:
        "attree average {input:q} {params.options} --output {output:q} 2> {log:q}"
