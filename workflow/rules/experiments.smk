# The article's experiments: rows of the configuration's `experiments`, many of them in one job. What a
# job reads and runs is planned in attree.plan.jobs, and written to one file that the commands
# read: their lines stay short. Finished rows lie as records beside the declared list of a job, where
# Snakemake does not delete them: only rows without one are run.
wildcard_constraints:
    job="|".join(map(re.escape, EXPERIMENTS.jobs)) or "-",
    experiment="|".join(map(re.escape, EXPERIMENTS.rows)) or "-",
    tuned="|".join(map(re.escape, EXPERIMENTS.tuned)) or "-",


ruleorder: tuned_encoder > encoder


rule experiments:
    input:
        target_of(
            [*EXPERIMENTS.tables(), *EXPERIMENTS.pictures()],
            "experiments: none",
        ),
    log:
        "<logs>/experiments/shown.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        tables=EXPERIMENTS.tables("parquet"),
    shell:
        '(for table in {params.tables:q}; do attree table show "$table"; done) 2> {log:q}'


rule experiment_rows:
    input:
        EXPERIMENTS.inputs,
        encoder=EXPERIMENTS.encoder,
    output:
        JOB,
    log:
        "<logs>/experiments/{job}.log",
    benchmark:
        "<benchmarks>/experiments/{job}.tsv"
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.experiments:rows", not_run=EXPERIMENTS.not_run),
        content=content_of(EXPERIMENTS.inputs),
        rows=EXPERIMENTS.job_rows,
        plan=PLAN_PATH,
    shell:
        "attree experiment rows {wildcards.job:q} --plan {params.plan:q} --encoder {input.encoder:q}"
        " --output {output:q} 2> {log:q}"


rule experiment_table:
    input:
        EXPERIMENTS.results,
    output:
        report(
            update(EXPERIMENT),
            caption="../report/experiment.rst",
            category="Experiments",
            labels={"table": "{experiment}"},
        ),
        update("<results>/experiments/tables/{experiment}.parquet"),
        update("<results>/experiments/tables/{experiment}.md"),
    log:
        "<logs>/experiments/tables/{experiment}.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.experiments:table"),
        content=content_of(EXPERIMENTS.results),
        prefix=subpath(output[0], strip_suffix=".csv"),
        layout=EXPERIMENTS.layout,
        plan=PLAN_PATH,
        options=as_options({"published": CONFIG.published}),
    shell:
        "attree experiment table {input:q} --experiment {wildcards.experiment:q}"
        " --plan {params.plan:q} {params.options} --output-prefix {params.prefix:q} 2> {log:q}"


rule experiment_picture:
    input:
        "<results>/experiments/tables/{experiment}.parquet",
    output:
        report(
            "<results>/experiments/tables/{experiment}.png",
            caption="../report/experiment.rst",
            category="Experiments",
            labels={"table": "{experiment}"},
        ),
    log:
        "<logs>/experiments/pictures/{experiment}.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.experiments:picture"),
    shell:
        "attree experiment picture {input:q} --output {output:q} 2> {log:q}"


rule experiment_weights:
    input:
        EXPERIMENTS.results,
    output:
        report(
            "<results>/experiments/tables/{experiment}.weights.png",
            caption="../report/experiment.rst",
            category="Experiments",
            labels={"table": "{experiment}"},
        ),
        multiext(
            "<results>/experiments/tables/{experiment}.weights", ".csv", ".parquet"
        ),
    log:
        "<logs>/experiments/weights/{experiment}.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.experiments:weights"),
        prefix=subpath(output[0], strip_suffix=".png"),
        layout=EXPERIMENTS.layout,
        plan=PLAN_PATH,
    shell:
        "attree experiment weights {input:q} --experiment {wildcards.experiment:q}"
        " --plan {params.plan:q} --output-prefix {params.prefix:q} 2> {log:q}"


rule experiment_sentence:
    input:
        EXPERIMENTS.map_inputs,
        encoder=EXPERIMENTS.map_encoder,
    output:
        report(
            "<results>/experiments/tables/{experiment}.sentence.png",
            caption="../report/experiment.rst",
            category="Experiments",
            labels={"table": "{experiment}"},
        ),
        multiext(
            "<results>/experiments/tables/{experiment}.sentence", ".csv", ".parquet"
        ),
    log:
        "<logs>/experiments/sentences/{experiment}.log",
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.experiments:sentence"),
        prefix=subpath(output[0], strip_suffix=".png"),
        layout=EXPERIMENTS.layout,
        plan=PLAN_PATH,
    shell:
        "attree experiment sentence --experiment {wildcards.experiment:q} --plan {params.plan:q}"
        " --encoder {input.encoder:q} --output-prefix {params.prefix:q} 2> {log:q}"


rule tune_encoder:
    # Masked-LM tuning; a run that was killed resumes at its last checkpoint beside the folder.
    input:
        unpack(EXPERIMENTS.tuning_inputs),
    output:
        "<results>/experiments/encoders/{tuned}.done",
    log:
        "<logs>/experiments/encoders/{tuned}.log",
    benchmark:
        "<benchmarks>/experiments/encoders/{tuned}.tsv"
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.encoder"),
        folder=subpath(output[0], strip_suffix=".done"),
        asked=asked_of(EXPERIMENTS.tuning_options, unpacked=EXPERIMENTS.tuning_inputs),
        options=EXPERIMENTS.tuning_options,
    shell:
        "attree encoder tune --encoder {input.encoder:q} {params.options} --restart"
        " --output {params.folder:q} 2> {log:q} && cp {params.folder:q}/provenance.json {output:q}"


rule tuned_encoder:
    input:
        "<results>/experiments/encoders/{tuned}.done",
    output:
        "<results>/encoders/{tuned}.json",
    log:
        "<logs>/encoders/{tuned}.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.encoder:resolve_command"),
        folder=subpath(input[0], strip_suffix=".done"),
    shell:
        "attree encoder resolve --slug {wildcards.tuned:q} --path {params.folder:q} --output {output:q}"
        " 2> {log:q}"
