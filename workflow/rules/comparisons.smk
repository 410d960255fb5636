rule comparison:
    input:
        target_of(
            collect(
                "<results>/comparisons/{comparison}.parquet",
                comparison=COMPARISONS.with_grammars(False),
            ),
            "comparisons: none without a grammar",
        ),
    log:
        "<logs>/comparisons/shown.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    shell:
        '(for table in {input:q}; do attree table show "$table"; done) 2> {log:q}'


rule comparison_table:
    input:
        scores=COMPARISONS.scores,
        each=COMPARISONS.sentence_scores,
        sentences=COMPARISONS.sentences,
        speeds=COMPARISONS.speeds,
        published=COMPARISONS.published,
    output:
        report(
            update("<results>/comparisons/{comparison}.csv"),
            caption="../report/comparison.rst",
            category="Comparisons",
            labels={"table": "{comparison}"},
        ),
        update("<results>/comparisons/{comparison}.parquet"),
        update("<results>/comparisons/{comparison}.md"),
        update("<results>/comparisons/{comparison}.pairs.parquet"),
        update("<results>/comparisons/{comparison}.pairs.csv"),
    log:
        "<logs>/comparisons/{comparison}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.tables:comparison"),
        content=content_of(COMPARISONS.published),
        prefix=subpath(output[0], strip_suffix=".csv"),
        asked=asked_of(
            COMPARISONS.options,
            sentences=COMPARISONS.sentences,
            speeds=COMPARISONS.speeds,
            published=COMPARISONS.published,
        ),
        options=COMPARISONS.options,
    shell:
        "attree table comparison {input.scores:q} {params.options}"
        " --output-prefix {params.prefix:q} 2> {log:q}"


rule speeds:
    # Once all trees are scored, so that nothing else keeps the machine busy.
    input:
        sentences=SENTENCES_PATH,
        encoder=ENCODER,
        parsers=COMPARISONS.timed,
        before=COMPARISONS.scores,
    output:
        "<results>/comparisons/{comparison}/{encoder}/{language}/{split}.json",
    log:
        "<logs>/comparisons/{comparison}/{encoder}/{language}/{split}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.decode:speed_command"),
        content=content_of(COMPARISONS.timed),
        asked=asked_of(COMPARISONS.timing_options, parsers=COMPARISONS.timed),
        options=COMPARISONS.timing_options,
    shell:
        "attree speed {input.sentences:q} --encoder {input.encoder:q} {params.options}"
        " --output {output:q} 2> {log:q}"
