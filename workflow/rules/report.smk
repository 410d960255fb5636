rule page:
    # One page about all of it: results/report/index.html.
    input:
        rules.tables.input,
        collect(
            "<results>/scores/{row.encoder}/{row.parser}/{row.language}/{row.split}.parquet",
            row=PLAN.rows,
        ),
        [tuned("heads", "parquet", *pair) for pair in PLAN.tunings],
    output:
        update("<results>/report/index.html"),
    log:
        "<logs>/report/page.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.report.command:report_command"),
        folder=subpath(output[0], ancestor=2),
    shell:
        "attree report {params.folder:q} --output {output:q} 2> {log:q}"
