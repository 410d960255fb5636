"""Universal labels: each table by hand, how a table is told, what none has."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from attree.annotate.text import trees_to_correct
from attree.base.errors import AttreeError
from attree.base.schemas import PARTLY_BRACKETED, read_table
from attree.treebank.as_table import as_tables
from attree.treebank.convert import convert
from attree.treebank.formats import FORMATS, read_files, resolve, together
from attree.treebank.labels import Labelling, LabelTable, bare, detect, tables
from attree.treebank.language_file import settings_of
from attree.treebank.sentence import Sentence, SplitSettings
from tests.refusals import refused

NINE = {"NP", "VP", "AJP", "AVP", "PP", "S", "CONJP", "COP", "X"}

#: Table → labels as they stand in its treebanks, with functions, and what they become.
GOLDEN = {
    "universal": "NP:NP AJP:AJP COP:COP X:X",
    "ptb": "NP-SBJ:NP WHNP-1:NP QP:NP VP:VP ADJP-PRD:AJP ADVP|PRT:AVP PP-LOC=2:PP SBAR:S FRAG:S"
    " CONJP:CONJP UCP:COP INTJ:X",
    "ftb": "NP-SUJ:NP NP-OBJ::OBJ##OBJ/OBJ:NP VN:VP VPinf-OBJ:VP AP:AJP AdP-MOD:AVP PP:PP SENT:S"
    " Srel:S COORD:COP",
    "tiger": "CNP:NP PN-SB:NP VZ:VP AA:AJP CAVP:AVP CAC:PP CS:S DL:S CO:COP ISU:X",
    "hebrew": "NP-SBJ:NP NNPP:NP PREDP:VP ADJP:AJP ADVP:AVP PP:PP SQBAR:S ZVLP:X",
    "greynir": "NP-SUBJ:NP VP-SEQ:VP ADJP:AJP ADVP-DATE:AVP PP:PP S0:S IP-INF:S P:X fs_þf:X",
    "icepahc": "NP-OB1:NP QP:NP VP:VP ADJP:AJP RP:AVP WPP-2:PP IP-MAT-SPE:S CP-REL:S CONJP:CONJP",
    "floresta": "SUBJ+np:NP P<+np:NP P+vp:VP N<+ap:AJP ADVL+advp:AVP N<+pp:PP STA+fcl:S cu:S ?:X",
    "cess": "sn-SUJ:NP sn.e-CD:NP grup.nom.ms:NP grup.verb:VP s.a.fp:AJP sadv-CC:AVP sp-CREG:PP"
    " S.F.R:S S*:S coord:CONJP espec.ms:X",
    "sinica": "NP:NP DM:NP VP:VP V‧地:AVP GP:PP S:S XP:COP",
    "alpino": "np:NP ppart:VP ap:AJP advp:AVP pp:PP smain:S whrel:S conj:COP mwu:NP du:S _:X",
    "icon": "NP:NP WHNP:NP VP:VP ADJP:AJP ADVP:AVP PP:PP SINV:S CP:S RPN:S"
    " CONJP:CONJP UCP:COP INTJ:X",
    "jacy": "NP:NP N:NP NUMCLP:NP VP:VP V:VP ADJ:AJP ADV:AVP PP:PP UTT:S FRG:S CONJ:CONJP CASE:X",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_tables_by_hand(name: str) -> None:
    found = LabelTable(name)
    for pair in GOLDEN[name].split():
        label, _, universal = pair.rpartition(":")
        assert (label, found[label]) == (label, universal)
    assert not found.strange
    assert set(tables()[name].values()) <= NINE


def test_every_table_is_tested() -> None:
    assert set(GOLDEN) == set(tables())


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("-X", "-X"),
        ("SUBJ+np", "np"),
        ("NP*SUBJ", "NP"),
        ("*", "*"),
        ("a+", "a+"),
        ("", ""),
    ],
)
def test_functions_are_cut(label: str, name: str) -> None:
    assert bare(label) == name


def test_a_table_is_told_by_labels() -> None:
    assert detect({"NP": 9, "SBAR": 1, "WHNP": 1}).name == "ptb"
    assert detect({"NP": 9, "AP": 1, "CNP": 1, "?": 50}).name == "tiger"
    assert detect({"NP": 9, "AJP": 1}).name == "universal"
    assert detect({"smain": 1, "np": 2}).name == "alpino"
    # what many tables have are most of the nodes; the others tell
    assert detect({"NP": 90, "CP": 9, "SINV": 2, "QP": 1, "WHNP": 1, "RPN": 8}).name == "icon"
    with refused("unknown-labels"):
        detect({"nsubj": 2, "obj": 1})


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("de_squoia", "tiger"),
        ("en_gum", "ptb"),
        ("en_wsj_sample", "ptb"),
        ("fr_sequoia", "ftb"),
        ("he_htb", "hebrew"),
        ("id_icon", "icon"),
        ("ja_jacy", "jacy"),
        ("nl_alpino", "alpino"),
    ],
)
def test_the_table_of_a_treebank_has_all_its_labels(
    data: Path, capsys: pytest.CaptureFixture[str], folder: str, name: str
) -> None:
    for files in together(data / "constituency" / folder):
        how = resolve(SplitSettings(labels="universal", first=2000), files)
        for _ in itertools.islice(read_files(files, how), 2000):
            pass
        said = capsys.readouterr().err.splitlines()
        assert said == [
            f"{files[0]}: the table {name} of universal labels fits best (100% of the phrases)"
        ]


def test_labels_that_two_tables_share_tell_them_apart_or_mean_the_same() -> None:
    """Where a few trees' labels fit several tables, it is no matter which is taken."""
    by_format = {one.labels for one in FORMATS.values()} - {"universal"}
    by_labels = {name: rows for name, rows in tables().items() if name not in by_format}
    for one, other in itertools.combinations(by_labels.values(), 2):
        for label in one.keys() & other.keys():
            assert one[label] == other[label], label


@pytest.mark.parametrize("text", ["universal:nosuch", "unknown:ptb", "universal:", "own"])
def test_what_cannot_be_asked_for(text: str) -> None:
    with pytest.raises(AttreeError):
        Labelling.parse(text)
    with refused("bad-setting", file="command line"):
        settings_of(labels=text)


def spans_of(file: Path, **settings: str) -> list[tuple[tuple[int, int, str], ...]]:
    how = resolve(settings_of(**settings), [file])
    return [one.spans for one in read_files([file], how) if isinstance(one, Sentence)]


def test_what_the_table_lacks_is_said_once_and_is_x(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.mrg"
    file.write_text("(S (NP (DT a) (NN b)) (ODD (VB c)))\n" * 3 + "(S (EVEN (NN a)) (VB b))\n")
    assert spans_of(file, labels="universal")[0] == ((0, 3, "S"), (0, 2, "NP"), (2, 3, "X"))
    said = capsys.readouterr().err
    assert said.count("table ptb of universal labels fits best (64%") == 1
    assert said.count("lacks, and has X for: ODD (3), EVEN (1)\n") == 1
    assert spans_of(file, labels="universal:alpino")[0] == ((0, 3, "X"), (0, 2, "X"), (2, 3, "X"))


def test_labels_can_be_left_open(tmp_path: Path) -> None:
    file = tmp_path / "x.mrg"
    file.write_text("(S (NP (NP (DT a) (NN b))) (VP (VB c)))\n")
    assert spans_of(file, labels="unknown") == [
        ((0, 3, "="), (0, 3, "?"), (0, 2, "?"), (2, 3, "?"))
    ]
    partial = tmp_path / "x.half"
    partial.write_text("( (NP a b) (! c d) (? e f) g)\n")
    assert spans_of(partial, labels="universal") == [((0, 2, "NP"), (2, 4, "!"), (4, 6, "?"))]
    assert spans_of(partial, labels="unknown") == [((0, 2, "?"), (2, 4, "!"), (4, 6, "?"))]


def test_tables_of_commands_have_the_labels_asked_for(tmp_path: Path) -> None:
    trees, words = tmp_path / "x.mrg", tmp_path / "y.conllu"
    trees.write_text("(S (NP-SBJ (DT a) (NN b)) (ADJP (VB c) (NN d)))\n")
    rows = [("der", "DET", 2, "det"), ("Hund", "NOUN", 3, "nsubj"), ("bellt", "VERB", 0, "root")]
    words.write_text(
        "\n".join(
            f"{n}\t{w}\t_\t{t}\t_\t_\t{h}\t{r}\t_\t_" for n, (w, t, h, r) in enumerate(rows, 1)
        )
        + "\n\n"
    )
    how = settings_of(labels="universal", dependencies="half")
    with as_tables([trees, words, words], partial=[], settings=how) as found:
        labels = [
            read_table(one, schema=PARTLY_BRACKETED)[0]["labels"].to_pylist()[0] for one in found
        ]
    assert labels == [["S", "NP", "AJP"], ["S", "NP"], ["S", "NP"]]
    with as_tables([words], partial=[words], settings=how) as (found_half,):
        assert read_table(found_half, schema=PARTLY_BRACKETED)[0]["half"].to_pylist() == [True]


def test_written_trees_have_universal_labels_without_functions(tmp_path: Path) -> None:
    file, made = tmp_path / "x.mrg", tmp_path / "y.mrg"
    file.write_text("(S (NP-SBJ (DT a) (NN b)) (ADJP-PRD (VB c) (NN d)))\n")
    settings = resolve(settings_of(labels="universal", functions="keep"), [file])
    convert([([file], settings)], made, "ptb")
    assert made.read_text() == "(S (NP (DT a) (NN b)) (AJP (VB c) (NN d)))\n"
    convert([([file], settings)], tmp_path / "y.half", "half")
    assert (tmp_path / "y.half").read_text() == "(= (S (NP (DT a) (NN b)) (AJP (VB c) (NN d))))\n"
    assert spans_of(tmp_path / "y.half") == [((0, 4, "S"), (0, 2, "NP"), (2, 4, "AJP"))]


def test_trees_to_be_corrected_have_the_labels_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "x.mrg"
    file.write_text("(S (NP-SBJ (DT a) (NN b)) (ADJP-PRD (VB c) (NN d)))\n")
    own, universal = (
        next(trees_to_correct([file], (), Counter(), one)).given for one in (None, "universal")
    )
    assert own is not None and universal is not None
    assert [label for _, _, label in own.spans] == ["S", "NP-SBJ", "ADJP-PRD"]
    assert [label for _, _, label in universal.spans] == ["S", "NP", "AJP"]


def test_functions_in_front_are_cut(tmp_path: Path) -> None:
    file = tmp_path / "x.ptb"
    file.write_text(
        "#1 CP1-1 Um gato\n(UTT+np (>N+art Um) (H+n gato) (?+cu (CJT+? (H+v-fin a) (H+n b))))\n"
    )
    (one,) = read_files([file], resolve(SplitSettings(format="floresta"), []))
    assert one.tags == ("art", "n", "v", "n")
    assert one.spans == ((0, 4, "np"), (2, 4, "cu"), (2, 4, "CJT+?"))
    kept = resolve(SplitSettings(format="floresta", functions="keep"), [])
    (one,) = read_files([file], kept)
    assert one.spans[0] == (0, 4, "UTT+np")


REAL = {
    "en_wsj_sample/wsj_00[01]*.mrg": "ptb",
    "en_gum/dev/*.ptb": "ptb",
    "fr_sequoia/sequoia.mrg": "ftb",
    "he_htb/hebrew_script.ptb": "hebrew",
    "de_squoia/de_squoia.spmrl_style.ptb": "tiger",
    "de_squoia/AHK_SQUOIA_DE.xml": "tiger",
    "is_greynir/devset/psd/*.gld": "greynir",
    "pt_floresta/Floresta_7.4.ptb": "floresta",
}


@pytest.mark.parametrize("pattern", REAL)
def test_every_label_of_real_treebanks_is_mapped_or_said(
    data: Path, pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted((data / "constituency").glob(pattern))[:20]
    own, universal = (
        list(itertools.islice(read_files(files, resolve(settings_of(labels=one), files)), 150))
        for one in ("treebank", "universal")
    )
    known, said = LabelTable(REAL[pattern]), capsys.readouterr().err
    labels: set[str] = set()
    for before, after in zip(own, universal, strict=True):
        if isinstance(before, Sentence) and isinstance(after, Sentence):
            assert {(i, j, known[label]) for i, j, label in before.spans} == set(after.spans)
            labels |= {label for _, _, label in before.spans}
    assert labels
    strange = set(known.strange)
    assert all(f"{label} (" in said for label in strange)
    assert len(strange) <= (3 if REAL[pattern] == "floresta" else 0), strange
