"""What the shipped configurations plan, and mistakes in them told in one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from attree.ready import trained_folder
from tests.workflow.conftest import ROOT, Checkout, put

PAPER = "workflow/configs/paper.yaml"
#: Of heads, in the tables of BERT.
SELECTIONS = ("3-heads", "best3", "all-heads")
#: An experiment, trained on a split that there is not.
FEW = {"title": "Few", "columns": "trees", "runs": [
    {"encoders": ["tiny"], "parsers": ["fpio"], "trees": [2],
     "train": "english/no", "test": ["english/test"]},
]}  # fmt: skip
SPMRL = ("Korean", "German", "Polish", "Hungarian", "Basque", "French", "Hebrew", "Swedish")


def lay_out_ptb(home: Path) -> Path:
    """Make a folder shaped like LDC99T42: 25 sections, 2,312 files."""
    for section in range(25):
        for number in range(93 if section < 24 else 80):
            put(home / f"parsed/mrg/wsj/{section:02}/wsj_{section:02}{number:02}.mrg")
    return home


def lay_out_spmrl(home: Path) -> Path:
    """Make a folder shaped like the shared task's; Hebrew and Swedish have train5k only."""
    for language in SPMRL:
        train = "train5k" if language in ("Hebrew", "Swedish") else "train"
        name = "swedish" if language == "Swedish" else language
        for split in (train, "dev", "test"):
            put(home / f"{language.upper()}_SPMRL/gold/ptb/{split}/{split}.{name}.gold.ptb")
    return home


def test_demo(checkout: Checkout) -> None:
    jobs = checkout.plan().counts
    languages = [at for at in (ROOT / "workflow/resources/treebanks").iterdir() if at.is_dir()]
    assert len(languages) == 9
    assert jobs["treebank"] == len(languages) + 2
    assert jobs["attention_all"] == jobs["encoder"] == 1
    assert jobs["attention_selected"] == jobs["baselines"] == jobs["language_table"] == 9
    assert jobs["heads"] == jobs["heads_figure"] == 3
    assert jobs["parse"] == 27
    # three are trained for the table of few trees; universal comes ready, for every language
    assert jobs["train"] == 3
    assert jobs["trained_parses"] == 3 + 9
    assert jobs["score"] == 27 + 3 + 9
    assert jobs["crosslingual_table"] == 2
    assert jobs["sizes_table"] == 1


def test_paper_is_planned_whole(checkout: Checkout, tmp_path: Path) -> None:
    ptb, spmrl = lay_out_ptb(tmp_path / "ptb"), lay_out_spmrl(tmp_path / "spmrl")
    homes = {"PTB_HOME": str(ptb), "SPMRL_HOME": str(spmrl)}
    targets = ("all", "comparison", "experiments")
    ran = checkout.plan("--quiet", "host", "--configfile", PAPER, "--", *targets, **homes)
    jobs = ran.counts
    assert sum(jobs.values()) < 5000
    assert jobs["encoder"] == 2
    # Three splits of nine languages, sections 02-21, and WSJ10.
    assert jobs["treebank"] == 3 * 9 + 2
    # mBERT and BERT each rank their heads on section 22, and read what they are scored on.
    ranked = [w for rule, w in ran.jobs if rule == "attention_all" and w["split"] == "dev"]
    assert len([w for w in ranked if w["encoder"] in ("mbert", "bert")]) == 2
    assert jobs["attention_selected"] == 8 + 2
    # Those of the tables, and the rivals of the comparison, which read the same attention.
    assert jobs["heads"] == 2 + 9 + 8 + 9
    mbert = {w["language"] for _, w in ran.jobs if w.get("encoder") == "mbert" and "language" in w}
    assert mbert == {"english", *(language.lower() for language in SPMRL)}
    # The comparison's are scored on nine languages, among them mBERT's of the tables; beside them
    # stand BERT's with other selections of heads, on two sets.
    tables = {f"{parser}-{heads}" for parser in ("upoa", "upio") for heads in SELECTIONS}
    systems = ran.of("parser", "score") - tables
    assert systems >= {"marecek-rosa", "kim-2020-right", "kim-top-down", "kim-pair", "heads-up"}
    assert systems >= {"kim-centroid", "span-parser", "fss", "tree-crf-labelled", "average"}
    assert systems >= {"upoa", "upio"}
    assert jobs["score"] == (1 + 8) * len(systems) + 2 * len(tables)
    assert jobs["train"] == 2 * 6
    assert jobs["speeds"] == 1 + 8
    assert jobs["comparison_table"] == 1
    assert jobs["tune_encoder"] == 5
    paper = yaml.safe_load((ROOT / PAPER).read_text(encoding="utf-8"))
    assert jobs["experiment_table"] == len(paper["experiments"])
    assert jobs["experiment_sentence"] == jobs["experiment_weights"] == 1


def test_open_is_planned(checkout: Checkout, data: Path) -> None:
    overlay = ("--configfile", "workflow/configs/open.yaml")
    for target, expected in {
        "all": {"attention_selected": 4 + 9, "crosslingual_table": 2},
        "experiments": {"experiment_table": 13},
    }.items():
        jobs = checkout.plan(*overlay, "--", target, ATTREE_TREEBANKS=str(data)).counts
        assert sum(jobs.values()) < 500
        assert {rule: jobs[rule] for rule in expected} == expected


def test_languages_that_cannot_be_named_cost_no_other(small: Checkout) -> None:
    before = sorted(map(str, small.plan().jobs))
    names = ["bb_" + "x" * 24, "{x}", "<x>", "abc" * 20]
    for name in names:
        put(small.folder / "treebanks" / name / "test.mrg")
    ran = small.plan()
    assert sorted(map(str, ran.jobs)) == before
    for name in names:
        assert f"'{name}' cannot name a language" in ran.text


def test_a_target_of_which_nothing_is_configured_says_so(checkout: Checkout) -> None:
    for target, section in {"comparison": "comparisons", "corpus": "corpora"}.items():
        ran = checkout.snakemake("--cores", "1", target)
        assert ran.status == 1
        assert ran.text.splitlines()[-1].startswith(f"attree: error: {section}: none")
    assert not list(checkout.folder.glob(".snakemake/locks/*"))


def test_a_parser_that_is_trained_already_is_a_row_and_not_trained_again(small: Checkout) -> None:
    runs = [{"encoders": ["tiny"], "trained": ["mine"], "languages": ["other"]}]
    own = {"folder": "parsers/mine", "threshold": 0.1}
    small.configure(
        {"tables": {"t": {"runs": runs}}, "comparisons": {"c": {"runs": runs}}}
        | {"trained": {"mine": own}, "corpora": {}, "published": None}
    )
    assert "parsers/mine: trained.mine: folder holds no parser of" in small.refused()
    put(small.folder / "parsers/mine/parser.json", '{"recipe": {"decoder": "labelled_risk"}}')
    put(small.folder / "parsers/mine/weights.safetensors", "")
    ran = small.plan("all", "comparison", "-p")
    assert {"trained_parses", "speeds", "labels_figure"} <= ran.rules
    assert not {"train", "parse", "heads"} & ran.rules
    applied = re.findall(r"attree apply .*--parser parsers/mine ", ran.text)
    assert len(applied) == 1
    small.configure({"trained": {"mine": {**own, "steps": 5}}})
    assert "trained.mine: steps is of no effect" in small.refused()
    small.configure({"trained": {"mine": {}}})
    assert "trained.mine" in small.refused()


def test_a_ready_parser_is_a_row_and_a_corpus_s_parser_by_its_name(small: Checkout) -> None:
    runs = [{"encoders": ["tiny"], "trained": ["universal"], "languages": ["other"]}]
    corpus = {"inputs": ["news.txt"], "encoder": "tiny", "parser": "universal"}
    tables = {"t": {"runs": runs}}
    small.configure({"tables": tables, "comparisons": {}, "corpora": {"news": corpus}})
    ran = small.plan("all", "corpus", "-p")
    assert "trained_parses" in ran.rules
    assert not {"train", "parse", "heads"} & ran.rules
    folder = trained_folder("universal")
    assert ran.text.count(f"--parser {folder} ") == 2  # of the row and of the corpus
    # a parser of the configuration that has its name is trained, in its place
    small.configure({"corpora": {}, "trained": {"universal": {"recipe": "fpoa"}}})
    assert "train" in small.plan().rules


@pytest.mark.parametrize(("profile", "said"), [("local", "gpu=0"), ("slurm", "mem_mb=8000")])
def test_profiles_are_read(small: Checkout, profile: str, said: str) -> None:
    ran = small.plan("--workflow-profile", f"workflow/profiles/{profile}")
    resources = re.findall(
        r"^rule attention_all:(?:\n {4}.*)*resources: (.*)", ran.text, re.MULTILINE
    )
    assert len(resources) == 1
    assert said in resources[0]


def test_no_parser_is_scored_on_trees_that_language_yaml_has_in_part(small: Checkout) -> None:
    source = {"treebanks": ["english/dev"], "trees": 3, "share": 1}
    run = {"encoders": ["tiny"], "trained": ["many"], "languages": ["english", "other"]}
    trained = {"many": {"recipe": "fpoa", "sources": [source]}}
    small.configure({"trained": trained, "tables": {"t": {"runs": [run]}}, "comparisons": {}})
    settings = small.folder / "treebanks/other/language.yaml"
    settings.write_text("dependencies: inner\n", encoding="utf-8")
    scored = re.findall(r"--evaluate-on (\S+)", small.plan("-p").text)
    assert scored == ["results/treebanks/english/test.parquet"]


def test_a_tuned_encoder_is_planned_without_an_error(small: Checkout) -> None:
    row = {"encoders": ["mlm"], "parsers": ["upoa"], "train": "english/dev", "test": ["other/test"]}
    experiments = {"few": {"title": "Few", "columns": "test", "runs": [row]}}
    masked_lm = {"mlm": {"encoder": "tiny", "text": ["english/dev"], "seeds": 1}}
    small.configure({"masked_lm": masked_lm, "experiments": experiments})
    ran = small.plan("experiments")
    assert {"tune_encoder", "tuned_encoder"} <= ran.rules
    assert "Exception" not in ran.text


OVERLAYS = sorted((ROOT / "workflow/configs").glob("*.yaml"))


@pytest.mark.parametrize(
    "overlay",
    [OVERLAYS[0], *(pytest.param(one, marks=pytest.mark.full) for one in OVERLAYS[1:])],
    ids=lambda path: path.stem,
)
def test_an_overlay_without_its_variables_is_one_line(checkout: Checkout, overlay: Path) -> None:
    ran = checkout.snakemake(
        "--dry-run", "--configfile", str(overlay), PTB_HOME="", SPMRL_HOME="", ATTREE_TREEBANKS=""
    )
    assert ran.status == 1
    line = ran.text.strip().splitlines()[-1]
    assert line.startswith("attree: error: treebanks.languages.english.folder: ")
    assert "is not set" in line
    assert "export" in line


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"encodrs": {}}, "unknown key encodrs — did you mean encoders?"),
        (
            {"treebanks": {"folders": ["$NOT_SET/treebanks"]}},
            "treebanks.folders: the environment variable NOT_SET is not set",
        ),
        ({"tuning": {"language": "english", "split": "devel"}}, "english has no split devel"),
        ({"published": "none.csv"}, "published"),
        ({"experiments": {"few": FEW}}, "experiments.few: language english has no split no"),
        ("zzz: " + "9" * 5000, "{line}: this is not YAML (a number or a date that cannot be read"),
        (
            "zzz: [",
            "{line}: this is not YAML (expected the node content, but found '<stream end>'",
        ),
    ],
    ids=["schema", "variables", "plan", "files", "experiments", "digits", "syntax"],
)
def test_a_mistake_is_one_line(small: Checkout, change: dict[str, object] | str, said: str) -> None:
    """One of each place that checks, and what Snakemake itself cannot read."""
    path = small.folder / "config.yaml"
    if isinstance(change, str):
        path.write_text(path.read_text(encoding="utf-8") + change, encoding="utf-8")
    else:
        small.configure(change)
    line = f"config.yaml:{len(path.read_text(encoding='utf-8').splitlines())}"
    assert said.format(line=line) in small.refused()


def test_a_key_that_comes_twice_is_told_in_an_overlay_too(small: Checkout) -> None:
    """The last alone would count, and what the first one asks for would not be made."""
    (small.folder / "mine.yaml").write_text("training: {trees: 2}\n" * 2, encoding="utf-8")
    ran = small.snakemake("--dry-run", "--configfile", "mine.yaml")
    assert ran.status == 1
    assert "mine.yaml:2: this is not YAML (the key training comes twice)" in ran.text, ran.text


def test_a_bad_language_file_is_one_line_and_stops_no_other_language(small: Checkout) -> None:
    settings = small.folder / "treebanks/other/language.yaml"
    settings.write_text("formt: ptb\n", encoding="utf-8")
    assert "unknown key formt" in small.refused()  # a comparison asks for the language by name
    small.configure({"comparisons": {}})
    ran = small.plan()
    said = [line for line in ran.text.splitlines() if "language.yaml" in line and "formt" in line]
    assert len(said) == 1, ran.text
    assert "english" in ran.of("language", "score")


def test_paper_configuration_asks_for_revisions_that_are_recorded_not_invented() -> None:
    config = yaml.safe_load((ROOT / PAPER).read_text(encoding="utf-8"))
    assert [one["revision"] for one in config["encoders"].values()] == [None, None]


@pytest.mark.parametrize(
    ("snakefile", "config", "prefix"),
    [
        # with config.yaml in the place of the empty one that `snakedeploy deploy-workflow` writes
        pytest.param("workflow/Snakefile", "config/config.yaml", "", marks=pytest.mark.full),
        ("Snakefile", "config.yaml", "attree_"),
    ],
    ids=["as snakedeploy lays it out", "as a module"],
)
def test_another_workflow_takes_its_rules(
    small: Checkout, tmp_path: Path, snakefile: str, config: str, prefix: str
) -> None:
    other = Checkout(tmp_path / "other")
    other.folder.mkdir()
    for name in ("treebanks", "published.csv", "news.txt"):
        (small.folder / name).rename(other.folder / name)
    put(
        other.folder / snakefile,
        f'configfile: "{config}"\n\n'
        f"module attree:\n    snakefile: {str(small.folder / 'Snakefile')!r}\n"
        f"    config: config\n\nuse rule * from attree{f' as {prefix}*' if prefix else ''}\n",
    )
    put(other.folder / config, yaml.safe_dump(small.config))
    rules = {rule.removeprefix(prefix) for rule in other.plan(f"{prefix}all").rules}
    assert {"treebank", "encoder", "parse", "score", "crosslingual_table", "page"} <= rules
    mistaken = small.config | {"tuning": {"language": "english", "split": "devel"}}
    put(other.folder / config, yaml.safe_dump(mistaken))
    assert "english has no split devel" in other.refused()
