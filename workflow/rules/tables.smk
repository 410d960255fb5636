# A table that was there stays when its job fails: `update` makes Snakemake put the old one back.
rule crosslingual_table:
    input:
        scores=TABLES.scores,
        sentences=TABLES.sentence_scores,
        published=TABLES.published,
    output:
        report(
            update("<results>/tables/{table}.csv"),
            caption="../report/crosslingual.rst",
            category="Tables",
            labels={"table": "{table}"},
        ),
        update("<results>/tables/{table}.parquet"),
        update("<results>/tables/{table}.md"),
    log:
        "<logs>/tables/{table}.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.tables:crosslingual"),
        content=content_of(TABLES.published),
        prefix=subpath(output[0], strip_suffix=".csv"),
        asked=asked_of(TABLES.options, published=TABLES.published),
        options=TABLES.options,
    shell:
        "attree table crosslingual {input.scores:q} {params.options}"
        " --output-prefix {params.prefix:q} 2> {log:q}"


rule language_table:
    input:
        scores=TABLES.scores,
        sentences=TABLES.sentence_scores,
    output:
        report(
            update("<results>/tables/languages/{language}.csv"),
            caption="../report/language.rst",
            category="Tables",
            subcategory="Languages",
            labels={"table": "{language}"},
        ),
        update("<results>/tables/languages/{language}.parquet"),
        update("<results>/tables/languages/{language}.md"),
    log:
        "<logs>/tables/languages/{language}.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.tables:language"),
        prefix=subpath(output[0], strip_suffix=".csv"),
    shell:
        "attree table language {input.scores:q} --output-prefix {params.prefix:q} 2> {log:q}"


rule sizes_table:
    input:
        treebanks=TABLES.treebanks,
        published=TABLES.published,
    output:
        report(
            update("<results>/tables/sizes.csv"),
            caption="../report/sizes.rst",
            category="Tables",
            labels={"table": "treebank sizes"},
        ),
        update("<results>/tables/sizes.parquet"),
        update("<results>/tables/sizes.md"),
    log:
        "<logs>/tables/sizes.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.tables:sizes"),
        content=content_of(TABLES.published),
        prefix=subpath(output[0], strip_suffix=".csv"),
        options=as_options({"published": CONFIG.published}),
    shell:
        "attree table sizes {input.treebanks:q} {params.options}"
        " --output-prefix {params.prefix:q} 2> {log:q}"


rule tables:
    input:
        collect("<results>/tables/{table}.csv", table=PLAN.tables),
        collect("<results>/tables/languages/{language}.csv", language=PLAN.languages),
        "<results>/tables/sizes.csv",
    localrule: True
