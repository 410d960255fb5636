# Five ways to a table of parses: heads' attention, a few-shot parser, another parser's trees, an
# average of tables; a grammar's are in grammars.smk.
rule parse:
    input:
        attention="<results>/attention/{encoder}/selected/{language}/{split}.json",
        selection=HEADS.selection,
    output:
        PARSES_PATH,
    log:
        "<logs>/parses/{encoder}/{parser}/{language}/{split}.log",
    wildcard_constraints:
        encoder=rf"(?!({IMPORTED}|{GRAMMAR})/)[^/]+",
        parser="|".join(map(re.escape, CONFIG.parsers)),
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.decode:decode_command"),
        recipe=HEADS.recipe_options,
    shell:
        "attree decode {input.attention:q} --selection {input.selection:q} {params.recipe}"
        " --output {output:q} 2> {log:q}"


rule trained_parses:
    # Sentences that it was trained on too are counted in the parses' provenance.
    input:
        parser=TRAINED.file,
        weights=TRAINED.weights,
        encoder=ENCODER,
        sentences=SENTENCES_PATH,
    output:
        parses=PARSES_PATH,
        associations=ASSOCIATIONS_PATH,
    log:
        "<logs>/parses/{encoder}/{parser}/{language}/{split}.log",
    wildcard_constraints:
        encoder=rf"(?!({IMPORTED}|{GRAMMAR})/)[^/]+",
        parser="|".join(map(re.escape, CONFIG.few_shot)),
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.decode:apply_command"),
        content=content_of(TRAINED.file, TRAINED.weights),
        folder=subpath(input.parser, parent=True),
        options=TRAINED.applying_options,
    shell:
        "attree apply {input.sentences:q} --parser {params.folder:q} --encoder {input.encoder:q}"
        " --allow-overlap {params.options} --associations {output.associations:q}"
        " --output {output.parses:q} 2> {log:q}"


rule imported_parses:
    input:
        trees=SYSTEMS.trees,
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
        content=content_of(SYSTEMS.trees),
        options=SYSTEMS.options,
    shell:
        "attree import {input.trees:q} --sentences {input.sentences:q} --output {output:q}"
        " {params.options} 2> {log:q}"


rule averaged_parses:
    input:
        AVERAGES.parses,
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
        options=AVERAGES.options,
    shell:
        "attree average {input:q} {params.options} --output {output:q} 2> {log:q}"
