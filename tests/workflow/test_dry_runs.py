"""What the shipped configurations plan, and mistakes in them told in one line."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from attree.ready import trained_folder
from tests.workflow.conftest import ROOT, TREES, Checkout, make_tiny

SPMRL = ("Korean", "German", "Polish", "Hungarian", "Basque", "French", "Hebrew", "Swedish")


def put(path: Path, text: str = TREES) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


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


@pytest.fixture
def small(tmp_path: Path) -> Checkout:
    """Two languages of six trees, and an encoder that a dry run does not look for."""
    return make_tiny(tmp_path / "small", tmp_path / "encoder")


def test_demo(checkout: Checkout) -> None:
    ran = checkout.plan()
    jobs = Counter(rule for rule, _ in ran.jobs)
    languages = sorted(
        path.name for path in (ROOT / "workflow/resources/treebanks").iterdir() if path.is_dir()
    )
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


def test_paper_is_planned(checkout: Checkout, tmp_path: Path) -> None:
    ptb, spmrl = lay_out_ptb(tmp_path / "ptb"), lay_out_spmrl(tmp_path / "spmrl")
    ran = checkout.plan(
        "--configfile", "workflow/configs/paper.yaml", PTB_HOME=str(ptb), SPMRL_HOME=str(spmrl)
    )
    jobs = Counter(rule for rule, _ in ran.jobs)
    assert jobs["encoder"] == 2
    # Three splits of nine languages, sections 02-21, and WSJ10.
    assert jobs["treebank"] == 3 * 9 + 2
    # mBERT and BERT each rank their heads on section 22, and read what they are scored on.
    assert jobs["attention_all"] == 2
    assert jobs["attention_selected"] == 8 + 2
    # Those of the tables, and the rivals of the comparison, which read the same attention.
    assert jobs["heads"] == 2 + 9 + 8 + 9
    assert jobs["score"] == 2 * 8 + 6 * 2
    mbert = [wildcards for _, wildcards in ran.jobs if wildcards.get("encoder") == "mbert"]
    assert {wildcards["language"] for wildcards in mbert if "language" in wildcards} == {
        "english",
        *(language.lower() for language in SPMRL),
    }


def test_the_rivals_of_the_paper_are_planned(checkout: Checkout, tmp_path: Path) -> None:
    ptb, spmrl = lay_out_ptb(tmp_path / "ptb"), lay_out_spmrl(tmp_path / "spmrl")
    paper = ("--configfile", "workflow/configs/paper.yaml")
    ran = checkout.plan("comparison", *paper, PTB_HOME=str(ptb), SPMRL_HOME=str(spmrl))
    systems = {w["parser"] for rule, w in ran.jobs if rule == "score"}
    assert systems >= {"marecek-rosa", "kim-2020-right", "kim-top-down", "kim-pair", "heads-up"}
    assert systems >= {"kim-centroid", "span-parser", "fss", "tree-crf-labelled", "average"}
    jobs = Counter(rule for rule, _ in ran.jobs)
    assert jobs["train"] == 2 * 6
    assert jobs["score"] == (1 + 8) * len(systems)
    assert jobs["speeds"] == 1 + 8
    assert jobs["comparison_table"] == 1


def test_open_is_planned(checkout: Checkout, data: Path) -> None:
    ran = checkout.plan("--configfile", "workflow/configs/open.yaml", ATTREE_TREEBANKS=str(data))
    jobs = Counter(rule for rule, _ in ran.jobs)
    assert jobs["attention_selected"] == 4 + 9
    assert jobs["crosslingual_table"] == 2


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
    assert "parsers/mine: trained.mine: folder: no parser of" in small.refused()
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
    ],
)
def test_a_mistake_is_one_line(small: Checkout, change: dict[str, object], said: str) -> None:
    """One of each place that checks: the schema, variables, the plan, files."""
    small.configure(change)
    assert said in small.refused()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zzz: " + "9" * 5000, "a number or a date that cannot be read"),
        ("zzz: [", "expected the node content, but found '<stream end>'"),
    ],
    ids=["digits", "syntax"],
)
def test_a_file_that_snakemake_cannot_read_is_one_line(
    small: Checkout, text: str, said: str
) -> None:
    path = small.folder / "config.yaml"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines, text]), encoding="utf-8")
    assert f"config.yaml:{len(lines) + 1}: this is not YAML ({said}" in small.refused()


def test_a_bad_language_file_is_one_line_and_stops_no_other_language(small: Checkout) -> None:
    settings = small.folder / "treebanks/other/language.yaml"
    settings.write_text("formt: ptb\n", encoding="utf-8")
    assert "unknown key formt" in small.refused()  # a comparison asks for the language by name
    small.configure({"comparisons": {}})
    ran = small.plan()
    said = [line for line in ran.text.splitlines() if "language.yaml" in line and "formt" in line]
    assert len(said) == 1, ran.text
    scored = {w["language"] for rule, w in ran.jobs if rule == "score"}
    assert "english" in scored


def test_paper_configuration_asks_for_revisions_that_are_recorded_not_invented() -> None:
    config = yaml.safe_load((ROOT / "workflow/configs/paper.yaml").read_text(encoding="utf-8"))
    assert [one["revision"] for one in config["encoders"].values()] == [None, None]


def modular(small: Checkout, folder: Path, snakefile: str, config: str, names: str) -> Checkout:
    """Lay out a workflow of somebody else that takes the rules of a checkout as a module."""
    other = Checkout(folder)
    for name in ("treebanks", "published.csv", "news.txt"):
        other.folder.mkdir(exist_ok=True)
        (small.folder / name).rename(other.folder / name)
    put(other.folder / config, (small.folder / "config.yaml").read_text(encoding="utf-8"))
    put(
        other.folder / snakefile,
        f'configfile: "{config}"\n\n'
        f"module attree:\n    snakefile: {str(small.folder / 'Snakefile')!r}\n"
        f"    config: config\n\nuse rule * from attree{names}\n",
    )
    return other


def test_it_runs_as_snakedeploy_lays_it_out(small: Checkout, tmp_path: Path) -> None:
    # `snakedeploy deploy-workflow`, and config.yaml in the place of the empty one that it writes
    other = modular(small, tmp_path / "other", "workflow/Snakefile", "config/config.yaml", "")
    assert {"treebank", "encoder", "parse", "crosslingual_table", "page"} <= other.plan().rules


def test_another_workflow_takes_it_as_a_module(small: Checkout, tmp_path: Path) -> None:
    other = modular(small, tmp_path / "other", "Snakefile", "config.yaml", " as attree_*")
    whole = {rule.removeprefix("attree_") for rule in other.plan("attree_all").rules}
    assert {"treebank", "encoder", "parse", "score", "crosslingual_table", "page"} <= whole
    other.configure({"tuning": {"language": "english", "split": "devel"}})
    assert "english has no split devel" in other.refused()
