# One page about all of it: results/report/index.html.
RUN_PATH = path_of(RUN_FILE, results=config["results"])
UNFINISHED = path_of(UNFINISHED_FILE, results=config["results"])


rule page:
    input:
        scores(PLAN.rows),
        sentence_scores(PLAN.rows),
        [tuned("heads", "parquet", *pair) for pair in PLAN.tunings],
        collect(SENTENCES_PATH, zip, **SIZED),
        config["published"] or [],
    output:
        update(PAGE),
    log:
        "<logs>/report/page.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.figures:report_command"),
        looks=looks(),
        asked=digest(asdict(RUN)),
        experiments=made_experiments,
        folder=subpath(output[0], ancestor=2),
        run=RUN_PATH,
        unfinished=UNFINISHED,
    shell:
        "attree report {params.folder:q} --run {params.run:q} --output {output:q} 2> {log:q}"
        " && rm -f {params.unfinished:q}"
