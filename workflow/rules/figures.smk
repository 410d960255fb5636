rule heads_figure:
    input:
        "<results>/heads/{encoder}/{parser}/{language}/{split}.parquet",
    output:
        report(
            "<results>/figures/heads/{encoder}/{parser}/{language}/{split}.png",
            caption="../report/heads.rst",
            category="Figures",
            subcategory="Heads",
            labels={"encoder": "{encoder}", "parser": "{parser}"},
        ),
    log:
        "<logs>/figures/heads/{encoder}/{parser}/{language}/{split}.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.tables:heads"),
        title="{parser} with {encoder}, ranked on {language} {split}",
    shell:
        "attree figure heads --ranking {input:q} --output {output:q} --title {params.title:q}"
        " 2> {log:q}"


rule labels_figure:
    input:
        SCORES_PATH,
    output:
        report(
            LABELS_FIGURE,
            caption="../report/labels.rst",
            category="Figures",
            subcategory="Labels",
            labels={
                "encoder": "{encoder}",
                "parser": "{parser}",
                "on": "{language} {split}",
            },
        ),
    log:
        "<logs>/figures/labels/{encoder}/{parser}/{language}/{split}.log",
    localrule: True
    conda:
        "../../envs/cpu.yaml"
    params:
        code=code_of("attree.cli.tables:labels"),
        title="{parser} with {encoder} on {language} {split}",
    shell:
        "attree figure labels --scores {input:q} --output {output:q} --title {params.title:q}"
        " 2> {log:q}"


rule figures:
    input:
        HEADS.files("figures/heads", "png"),
        TRAINED.labelled(PLAN.rows),
    localrule: True
