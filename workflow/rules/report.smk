# One page about all of it: results/report/index.html.


rule page:
    input:
        TABLES.scores,
        TABLES.sentence_scores,
        HEADS.files("heads", "parquet"),
        TABLES.treebanks,
        TABLES.published,
    output:
        update(PAGE),
    log:
        "<logs>/report/page.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.tables:report_command"),
        content=content_of(TABLES.published),
        looks=looks(),
        asked=digest(asdict(RUN)),
        experiments=made_experiments,
        folder=subpath(output[0], ancestor=2),
        run=RUN_PATH,
        unfinished=UNFINISHED,
    shell:
        "attree report {params.folder:q} --run {params.run:q} --output {output:q} 2> {log:q}"
        " && rm -f {params.unfinished:q}"
