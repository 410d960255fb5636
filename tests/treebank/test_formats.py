"""Formats by name, and the dialects of brackets that a file itself tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attree.base.schemas import read_table
from attree.treebank.as_table import Treebank
from attree.treebank.cleaning import CleaningCounts, prepare
from attree.treebank.formats import FORMATS, read_files, resolve, sniff
from attree.treebank.sentence import Rejected, Sentence, SplitSettings
from tests.refusals import refused
from tests.treebank.test_command import TREE

ICEPAHC = """( (IP-MAT (NP-SBJ (N-N Mót$-mót) (D-N $ið-hinn))
          (BEDI var-vera)
          (CP-REL (WNP-1 0)
                  (C sem-sem)
                  (IP-SUB (NP-SBJ *T*-1) (CODE {COM:a_remark}) (VBPI sér-sjá)))
          (NP-PRD (NPR-N Norður-Kórea-norður-kórea))
          (, <dash/>)
          (NP (NUM-N 18.-átjándi))
          (. .-.)))

( (IP-MAT (NP-SBJ *con*) (VBPI fer-fara) (C 0) (. .-.))
  (ID 2012.BOOK,.2))
"""
HISTORY = """( (IP-MAT (NP-SBJ (PRO He)) (VBD saide) (CP-THT (C 0)
   (IP-SUB (NP-SBJ *pro*) (VB go))) (. .))
  (ID CMX,1.1))

( (CODE <P_1>) (ID CMX,1.2))

( (IP-MAT (NP-SBJ (PRO We)) (VBD well-wente) (. .))
  (ID CMX,1.3))
"""
#: Remarks are trees of their own, as many as trees of words; words are split, brackets named.
LETTERS = """( (CODE <L_SMITH_001>))

( (CODE <P_1>))
( (CODE <HEADING>))

( (METADATA (AUTHOR JOHN:MALE:_:1600:30))
  (IP-MAT (NP-SBJ (PRO I)) (VBP wish) (TO to$) (VB $proffit) (PUNC <paren>) (NUM $) (PUNC </paren>)
    (NP (N-N orð$) (D-N $ið)) (NP *2s*) (NP *T*-1-2) (. ,-,) (. ---))
  (ID SMITH,1.001.1))
"""
#: Each leaf in layers; a word without a translation; a word of two words.
LAYERS = """( (S (NP {morphologicalAnalysis=kedi+NOUN}{turkish=Kedi}{english=cat}{namedEntity=NONE})
  (DT {turkish=*NONE*}{english=the}) (RB {morphologicalAnalysis=x}{english=not})
  (VP {semantics=1}{turkish=yok oldu}) (. {turkish=.}{english=.}))  )
"""
CESS = """(
  (S
    (sn.e-SUJ *0*)
    (grup.verb
      (vmis3s0 compró comprar))
    (sn-CD
      (espec.ms
        (da0ms0 el el))
      (grup.nom.ms
        (ncms000 grupo grupo)
        (Fpa -Fpa- -Fpa-)
        (np0000o EDF EDF)
        (Fpt -Fpt- -Fpt-)))
    (Fp . .)))
"""
FLORESTA = """#1 CP1-1 Um gato.
(UTT+np (>N+art Um)
        (H+n gat\u00e3o)
        (.))
"""
GREYNIR = """( (META (ID-CORPUS 1) (COMMENT ))
  (S0 (NP (no_et sj\u00f3\u00f0ir (lemma sj\u00f3\u00f0ur) (exp_seg sj\u00f3-\u00f0ir))
          (person Siggu Kling (lemma Sigga Kling)))))
"""


XML = (
    "<?xml version='1.0' encoding='{}'?><corpus><body><s id='1'><graph><terminals>"
    "<t id='a' word='Bär' pos='N'/></terminals><nonterminals/></graph></s></body></corpus>"
)


def load(*paths: Path, **settings: Any) -> tuple[SplitSettings, list[Sentence | Rejected]]:
    resolved = resolve(SplitSettings(**settings), paths)
    return resolved, list(read_files(paths, resolved))


@pytest.mark.parametrize(
    ("name", "text", "encoding", "format", "words"),
    [
        ("a.psd", ICEPAHC, "utf-8", "icepahc",
         ["Mót ið var sem sér Norður-Kórea – 18. .", "fer ."]),
        ("a.psd", HISTORY, "utf-8", "penn-history", ["He saide go .", "", "We well-wente ."]),
        ("a.psd", LETTERS, "utf-8", "penn-history",
         ["", "", "", "I wish to proffit ( $ ) orð ið , ---"]),
        ("a.mrg", LAYERS, "utf-8", "starlang", ["Kedi not yok oldu ."]),
        ("a.parse", "(TOP (S (NP (-NONE- *PRO*)) (VP (VB Go) (NN /-)) (. /.)))", "utf-8",
         "ontonotes", ["Go -"]),
        ("0001.train", LAYERS, "utf-8", "starlang", ["Kedi not yok oldu ."]),
        ("a.psd", "( (IP (NUM 0) (NUM-N $5) (C 0) (N $proffit)) (ID a,1))\n", "utf-8",
         "penn-history", ["0 $5 proffit"]),
        ("a.psd", f"( (IP {'(N-N hest$-hestur) ' * 18}(NUM 0-0) (C 0)) (ID a,1))\n", "utf-8",
         "icepahc", ["hest " * 18 + "0"]),
        ("a.mrg", "(S (NN user)\n  (NP (ID 7)) (VP (VBD paid)\n (CD 0) (CD $5)))\n" * 2, "utf-8",
         "ptb", ["user 7 paid 0 $5"] * 2),
        ("a.mrg", "(s (np the dog) (vp barked out))\n(s (np a cat) (advp so well))\n", "utf-8",
         "ptb", ["the dog barked out", "a cat so well"]),
        ("a.mrg", "( (CODE (SYM SpeakerB2) (. .) ))\n( (S (UH Yeah) (-DFL- E_S)))\n", "utf-8",
         "switchboard", ["", "Yeah"]),
        ("a.mrg", "(S (CODE print) (NN x))\n", "utf-8", "ptb", ["print x"]),
        ("a.tbf", CESS, "iso8859-15", "cess", ["compró el grupo ( EDF ) ."]),
        ("a.mrg", CESS, "utf-8", "cess", ["compró el grupo ( EDF ) ."]),
        ("a.ptb", FLORESTA, "latin-1", "floresta", ["Um gatão ."]),
        ("a.ptb", FLORESTA, "utf-8", "floresta", ["Um gatão ."]),
        ("a.gld", GREYNIR, "utf-8", "greynir", ["sjóðir Siggu Kling"]),
        ("a.mrg", TREE, "utf-8", "ptb", ["the dog barks"]),
        ("a.mrg", "(X (X the (X old man)) (X walked home))", "utf-8", "ptb",
         ["the old man walked home"]),
        ("a.ptb", TREE, "utf-8", "spmrl", ["the dog barks ."]),
    ],
)  # fmt: skip
def test_a_dialect_is_known_by_its_file(
    tmp_path: Path, name: str, text: str, encoding: str, format: str, words: list[str]
) -> None:
    (tmp_path / name).write_text(text, encoding=encoding)
    settings, found = load(tmp_path / name)
    assert (settings.format, settings.encoding) == (format, encoding)
    read = [
        " ".join(item.words) if isinstance(item, Sentence) else ""
        for item in prepare(found, settings, CleaningCounts())
    ]
    assert read == words


def test_a_leaf_of_layers_is_no_word(tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text(f"(S (A {{a=b}}{{c=d}}))\n(S (A {{a}}) (B {{=}}))\n{TREE * 9}")
    _, found = load(tmp_path / "a.mrg")
    assert [item.line for item in found if isinstance(item, Rejected)] == [1]
    assert found[0].setting == "format: starlang"
    assert found[1].words == ("{a}", "{=}")


def test_what_is_given_wins(tmp_path: Path) -> None:
    (tmp_path / "a.psd").write_text(ICEPAHC, encoding="utf-8")
    settings, found = load(tmp_path / "a.psd", format="spmrl", traces="x")
    assert (settings.format, settings.traces) == ("spmrl", "x")
    assert found[0].words[0] == "Mót$-mót"


def test_phrases_and_lines_of_a_dialect(tmp_path: Path) -> None:
    (tmp_path / "a.tbf").write_text(CESS, encoding="utf-8")
    (_, (found,)) = load(tmp_path / "a.tbf")
    assert found.line == 1
    assert found.tags[1:4] == ("vmis3s0", "da0ms0", "ncms000")


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("a.mrg", "#FORMAT 3\n#BOS 1\nx\tN\t--\t--\t0\n#EOS 1\n", "export"),
        ("a.ptb", "<?xml version='1.0'?>\n<corpus/>", "tigerxml"),
        ("a.ptb", "(S (A 1=a) (B 0=b))\n", "discbracket"),
        ("a.mrg", "# text\n1\tw\t_\tN\t_\t_\t0\troot\t_\t_\n", "conllu"),
        ("a.mrg", TREE, ""),
    ],
)
def test_a_file_under_the_wrong_extension(
    attree: Any, tmp_path: Path, name: str, text: str, format: str
) -> None:
    (tmp_path / name).write_text(text)
    settings = resolve(SplitSettings(), [tmp_path / name])
    assert sniff(tmp_path / name, settings) == format
    if format in ("export", "tigerxml", "conllu"):
        done = attree(name, "--output", "o.parquet")
        assert f"set format: {format}" in str(done.status)


def test_xml_says_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(XML.format("ISO-8859-1"), encoding="latin-1")
    settings, (found,) = load(tmp_path / "a.xml")
    assert settings.encoding == "iso-8859-1"
    assert found.words == ("Bär",)
    _, (bad,) = load(tmp_path / "a.xml", encoding="utf-8")
    assert bad.setting == "encoding: latin-1"


@pytest.mark.parametrize(
    ("name", "texts", "word"),
    [
        ("{}.xml", [XML.format("UTF-8"), XML.format("ISO-8859-1")], "Bär"),
        ("{}.ptb", [FLORESTA, FLORESTA], "gatão"),
    ],
)
@pytest.mark.parametrize("encodings", [("utf-8", "latin-1"), ("latin-1", "utf-8")])
def test_files_of_several_encodings_are_each_read_in_their_own(
    tmp_path: Path, name: str, texts: list[str], word: str, encodings: tuple[str, str]
) -> None:
    files = {encoding: tmp_path / name.format(encoding) for encoding in ("utf-8", "latin-1")}
    for (encoding, file), text in zip(files.items(), texts, strict=True):
        file.write_text(text, encoding=encoding)
    paths = [files[encoding] for encoding in encodings]
    _, found = load(*paths)
    assert all(isinstance(item, Sentence) and word in item.words for item in found)
    _, found = load(*paths, encoding="utf-8")  # what is given holds for all
    assert [isinstance(item, Sentence) for item in found] == [one == "utf-8" for one in encodings]
    _, found = load(*paths, encoding="latin-1")
    other = word.encode().decode("latin-1")
    wanted = [word if encoding == "latin-1" else other for encoding in encodings]
    assert [one in item.words for one, item in zip(wanted, found, strict=True)] == [True, True]


def test_formats_of_one_split_must_agree(tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text(TREE)
    (tmp_path / "b.export").write_text("#BOS 1\n")
    with refused("several-formats") as caught:
        resolve(SplitSettings(), [tmp_path / "a.mrg", tmp_path / "b.export"])
    assert f"ptb ({tmp_path}/a.mrg), export ({tmp_path}/b.export)" in str(caught.value)


def test_a_format_that_is_not_read_names_another(tmp_path: Path) -> None:
    (tmp_path / "a.ad").write_text("#1 CF1-1\nA1\nSTA:fcl\n=H:n\tx\n")
    with refused("format-not-read", "Bosque_CF_8.0.PennTreebank.ptb", file="a.ad"):
        resolve(SplitSettings(), [tmp_path / "a.ad"])


def test_two_formats_under_one_extension_are_both_read(attree: Any, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "a.psd").write_text(HISTORY)
    (folder / "b.psd").write_text("( (IP (NP (PRO er)) (VBF kumt)))\n" * 2)
    done = attree("mixed", "--check")
    assert [line for line in done.out.splitlines() if line[:1] != " "] == [
        "mixed/*.psd (penn-history)",
        "mixed/*.psd (spmrl)",
    ]
    assert "(penn-history): 2 read" in done.err and "(spmrl): 2 read" in done.err
    for named in (["mixed"], ["mixed/a.psd", "mixed/b.psd"]):
        assert not attree("convert", *named, "--output", "x.mrg", "--overwrite").status
        lines = (tmp_path / "x.mrg").read_text().splitlines()
        assert [line.rstrip(")").split()[-1] for line in lines] == [".", ".", "kumt", "kumt"]
        done = attree(*named, "--output", "x.parquet")
        assert "penn-history (mixed/a.psd), spmrl (mixed/b.psd)" in str(done.status)
    found = Treebank.read_all([folder], SplitSettings(punctuation="keep"))
    assert (
        found.table["file"].to_pylist() == [str(folder / "a.psd")] * 2 + [str(folder / "b.psd")] * 2
    )


def test_no_extension_stands_for_two_formats_but_within_a_family() -> None:
    owners: dict[str, str] = {}
    for name, one in FORMATS.items():
        for extension in one.extensions:
            assert owners.setdefault(extension, name) == name
        assert one.certain is None or one.family or one.extensions


@pytest.mark.parametrize("name", ["french.mrg", "latin1.ptb", "icelandic.psd", "spanish.tbf"])
def test_nothing_dropped_in_is_read_as_its_owner_would_not_expect(
    attree: Any, tmp_path: Path, name: str
) -> None:
    """The four treebanks that were once read wrongly without a word."""
    good = {
        "french.mrg": "( (SENT (NP (DET le) (NC été)) (VN (V va)) (PONCT .)))\n" * 20,
        "latin1.ptb": "( (SENT (NP (DET le) (NC été)) (VN (V va)) (PONCT .)))\n" * 20,
        "icelandic.psd": ICEPAHC,
        "spanish.tbf": CESS,
    }[name]
    (tmp_path / name).write_text(good, encoding="latin-1" if "latin1" in name else "utf-8")
    done = attree(name, "--output", "o.parquet")
    if name == "latin1.ptb":
        assert "no sentence could be read (0 read, 0 skipped, 20 failed" in str(done.status)
        assert "encoding: latin-1" in str(done.status)
        return
    table, _ = read_table(tmp_path / "o.parquet")
    words = table["words"].to_pylist()[0]
    assert words[-1] == "."
    assert not any("-" in word[1:-1] and word != "Norður-Kórea" for word in words)
    assert not set(words) & {"0", "*T*-1", "*0*", "ID"}


def test_a_dialect_is_told_in_utf_16_too(tmp_path: Path) -> None:
    file = tmp_path / "a.psd"
    read = []
    for encoding in ("utf-8", "utf-16"):
        file.write_text(ICEPAHC, encoding=encoding)
        settings = resolve(SplitSettings(encoding=encoding), [file])
        assert settings.format == "icepahc"
        read.append(list(read_files([file], settings)))
    assert read[0] == read[1]
