rule encoder:
    input:
        ENCODERS.files,
    output:
        "<results>/encoders/{encoder}.json",
    log:
        "<logs>/encoders/{encoder}.log",
    wildcard_constraints:
        encoder="|".join(map(re.escape, CONFIG.encoders)),
    # Local, because the nodes of many clusters cannot reach the hub that it may fetch from.
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.encoder:resolve_command"),
        content=content_of(ENCODERS.files),
        source=ENCODERS.options,
    shell:
        "attree encoder resolve --slug {wildcards.encoder:q} {params.source}"
        " --output {output:q} 2> {log:q}"
