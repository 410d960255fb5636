"""Crossing branches: formats that have them, both ways, and how they are made continuous."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import nltk
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.base.schemas import SENTENCES_SCHEMA, read_table
from attree.treebank import brackets, conllu, discbracket, export, tigerxml
from attree.treebank.crossing import Graph, attach_to_neighbours, continuous, graph_of, spans
from attree.treebank.formats import FORMATS, read_files, resolve
from attree.treebank.sentence import Rejected, Sentence, SplitSettings
from tests.treebank.test_roundtrip import sentences

HOSTILE = ("(", ")", "-LRB-", r"\/", "a b", "#", "##x##", "#500x", "<&\"'>", "0", "*T*-1", "%%",
           "#BOS", "#EOS")  # fmt: skip
#: Was wir tun, ist gut: a clause whose noun phrase is torn in two, and commas at the root.
TORN = """#FORMAT 3
#BOS 1 0 0 0 %% first
Was	PWS	--	HD	500
hat	VAFIN	--	HD	502
,	$,	--	--	0
er	PPER	--	HD	501
getan	VVPP	--	HD	500
?	$.	--	--	0
#500	VP	--	OC	502
#501	NP	--	SB	502
#502	S	--	--	0
#EOS 1
"""


@st.composite
def graphs(
    draw: st.DrawFn, words: tuple[str, ...] = ("a", "b", "(", "-x", "€", "a\u00a0b")
) -> Graph:
    """Draw words, and nodes over any of the words and nodes before them."""
    n = draw(st.integers(1, 7))
    parents, tops = [-1] * n, list(range(n))
    labels: list[str] = []
    for _ in range(draw(st.integers(0, 5))):
        chosen = [top for top in tops if draw(st.booleans())] or tops[:1]
        place = n + len(labels)
        for child in chosen:
            parents[child] = place
        parents.append(-1)
        labels.append(draw(st.sampled_from(["S", "NP", "VP"])))
        tops = [top for top in tops if top not in chosen] + [place]
    edges = [draw(st.sampled_from(["HD", "NK", "OC", ""])) for _ in parents]
    tokens = [draw(st.sampled_from(words)) for _ in range(n)]
    return Graph(tokens, ["T"] * n, labels, parents, edges)


def shape(graph: Graph) -> tuple[Any, ...]:
    """Return what a graph says, whatever its nodes' numbers."""
    n, yields = len(graph.words), graph.yields()
    rows = []
    for place, parent in enumerate(graph.parents):
        chain = []
        while parent >= 0:
            chain.append((graph.labels[parent - n], tuple(yields[parent])))
            parent = graph.parents[parent]
        name = graph.tags[place] if place < n else graph.labels[place - n]
        rows.append((tuple(yields[place]), name, graph.functions[place], tuple(chain)))
    return tuple(graph.words), sorted(rows)


def back(graph: Graph, module: Any, **settings: Any) -> Graph:
    text = "".join(module.write(iter([graph])))
    (found,) = module.graphs(text, "f", SplitSettings(**settings))
    return found


@pytest.mark.parametrize("module", [export, discbracket, tigerxml])
@given(graph=graphs())
def test_written_and_read_again(module: Any, graph: Graph) -> None:
    assert shape(back(graph, module)) == shape(graph)


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_words(word: str) -> None:
    graph = Graph([word, "x"], ["T", "$("], ["S"], [2, -1, -1], ["HD", "", ""])
    assert shape(back(graph, tigerxml)) == shape(graph)
    assert shape(back(graph, export)) == shape(graph)
    if word != "a b":
        assert shape(back(graph, discbracket, escapes="keep")) == shape(graph)
    sentence = continuous(graph, SplitSettings(functions="keep"))
    text = "".join(conllu.write_stanza(iter([sentence])))
    for escapes in ("undo", "keep"):
        (found,) = conllu.read_stanza(text, "f", SplitSettings(escapes=escapes))
        assert found.words == (word, "x")
    (line,) = brackets.write(iter([sentence]))
    assert [leaf.replace("_", " ") for leaf in nltk.Tree.fromstring(line).leaves()][1] == "x"


@given(sentences(words=st.text("abcäß·'", min_size=1)))
def test_a_sentence_is_a_graph_and_nltk_reads_its_brackets(sentence: Sentence) -> None:
    graph = graph_of(sentence)
    assert graph.checked() is graph
    assert spans(graph) == (sentence.spans, False)
    (line,) = brackets.write(iter([sentence]))
    assert nltk.Tree.fromstring(line).leaves() == list(sentence.words)


def raised_by_hand(graph: Graph) -> list[tuple[int, int, str]]:
    """Raise non-head blocks one after the other until every node is one block (Boyd 2007)."""
    n = len(graph.words)
    parents = list(graph.parents)
    heads = {}
    first = Graph(graph.words, graph.tags, graph.labels, parents, graph.functions)
    for place, below in enumerate(first.children()[:-1]):
        if below:
            kernel = next((one for one in below[::-1] if graph.functions[one] == "NK"), below[0])
            heads[place] = next((one for one in below if graph.functions[one] == "HD"), kernel)

    def words(place: int) -> list[int]:
        below = [child for child, parent in enumerate(parents) if parent == place]
        return [place] if place < n else sorted(itertools.chain(*map(words, below)))

    def blocks(place: int) -> list[list[int]]:
        found: list[list[int]] = []
        for word in words(place):
            if found and found[-1][-1] == word - 1:
                found[-1].append(word)
            else:
                found.append([word])
        return found

    def depth(place: int) -> int:
        return 0 if parents[place] < 0 else 1 + depth(parents[place])

    while True:
        torn = [place for place in range(n, len(parents)) if len(blocks(place)) > 1]
        if not torn:
            break
        place = max(torn, key=depth)
        head = words(heads[place])
        keep = next(block for block in blocks(place) if set(head) <= set(block))
        for child, parent in enumerate(list(parents)):
            if parent == place and not set(words(child)) <= set(keep):
                parents[child] = parents[place]
    return sorted(
        (words(place)[0], words(place)[-1] + 1, graph.labels[place - n])
        for place in range(n, len(parents))
    )


@given(graphs())
def test_raising_against_a_naive_one(graph: Graph) -> None:
    found, raised = spans(graph)
    assert sorted(found) == raised_by_hand(graph)
    assert list(found) == sorted(found, key=lambda span: (span[0], -span[1]))
    assert raised == any(len(one) != one[-1] - one[0] + 1 for one in graph.yields() if one)
    for (a, b, _), (c, d, _) in itertools.combinations(found, 2):
        assert b <= c or d <= a or (a <= c and d <= b) or (c <= a and b <= d)


def test_punctuation_is_attached_and_the_rest_raised() -> None:
    (graph,) = export.graphs(TORN, "f", SplitSettings())
    assert graph.functions[:2] == ["HD", "HD"]
    sentence = continuous(graph, SplitSettings())
    assert sentence.words == ("Was", "hat", ",", "er", "getan", "?")
    assert sentence.spans == ((0, 5, "S"), (0, 1, "VP"), (3, 4, "NP"))
    assert sentence.crossing
    (graph,) = export.graphs(TORN, "f", SplitSettings())
    attach_to_neighbours(graph)
    assert graph.parents[2] == 8  # the comma, under S
    assert graph.parents[5] == -1  # the last mark stays


def test_version_4_has_a_lemma() -> None:
    lines = [
        line.replace("\t", "\tlemma\t", 1) if "\t" in line else line for line in TORN.splitlines()
    ]
    (three,) = export.graphs(TORN, "f", SplitSettings())
    (four,) = export.graphs("\n".join(lines), "f", SplitSettings())
    (spaced,) = export.graphs(TORN.replace("\t", "  "), "f", SplitSettings())
    assert three == four == spaced


def test_a_function_may_be_a_number() -> None:
    (three,) = export.graphs(TORN.replace("SB\t502", "1\t502"), "f", SplitSettings())
    assert three.functions[7] == "1"
    (four,) = export.graphs("".join(export.write(iter([three]))), "f", SplitSettings())
    assert shape(four) == shape(three)


def test_words_after_a_tab() -> None:
    (zero,) = discbracket.graphs("(S (VP (VB 1)) (NP 0))\twe go", "f", SplitSettings())
    (one,) = discbracket.graphs("(S (VP (VB 2)) (NP 1))\twe go", "f", SplitSettings())
    text = "(S (VP (VB 1=go)) (NP 0=we))\tsentence 5"  # a comment
    (noted,) = discbracket.graphs(text, "f", SplitSettings())
    assert zero == one == noted
    assert zero.words == ["we", "go"]


TIGER = """<?xml version="1.0"?>
<corpus><body>
<s id="s1"><graph root="s1_500"><terminals><t id="s1_1" word="&lt;a b" pos="N"/></terminals>
<nonterminals><nt id="s1_500" cat="NP"><edge label="HD" idref="s1_1"/></nt></nonterminals>
</graph></s><s id="s2"><graph root="s2_500"><terminals><t id="s2_1" word="b" pos="N"/></terminals>
<nonterminals><nt id="s2_500" cat="NP"><edge label="HD" idref="s2_1"/></nt></nonterminals>
</graph></s></body></corpus>
"""


@pytest.mark.parametrize("start", ['<s id="s1">', '<s id="">', "<s>"])
@pytest.mark.parametrize("doctype", ["", '<!DOCTYPE corpus SYSTEM "tiger.dtd">'])
@pytest.mark.parametrize(
    "declared", ["?xml version='1.0'?", "?xml\nversion='1.0' standalone='no'?"]
)
def test_tiger_xml(start: str, doctype: str, declared: str) -> None:
    text = TIGER.replace('?xml version="1.0"?', declared).replace('<s id="s1">', start)
    first, second = tigerxml.graphs(
        "\ufeff" + text.replace("<corpus>", f"{doctype}<corpus>"), "f", SplitSettings()
    )
    more = declared.count("\n")
    assert (first.words, first.line, second.line) == (["<a b"], 3 + more, 5 + more)


def test_a_sentence_in_another_costs_that_one() -> None:
    text = TIGER.replace("<body>", '<body><s id="o">').replace("</body>", "</s></body>")
    outer, first, second = tigerxml.graphs(text, "f", SplitSettings())
    assert outer == Rejected(
        "f", 2, "sentence o: another <s> begins in it — end it before", "failed"
    )
    assert (first.words, second.words) == (["<a b"], ["b"])


#: A phrase that is torn in two, one that stands twice, and a mark at the root.
ALPINO = """<?xml version="1.0" encoding="UTF-8"?>
<alpino_ds><node begin="0" cat="top" end="6" rel="top"><node cat="smain" rel="--">
<node begin="0" end="1" index="1" pt="vnw" rel="su" word="Wat"/>
<node begin="1" end="2" pt="ww" rel="hd" word="heeft"/><node cat="ppart" rel="vc">
<node index="1" rel="obj1"/><node cat="np" rel="obj1">
<node begin="2" pos="det" rel="det" word="de"/>
<node begin="4" pt="n" rel="hd" word="man"/></node><node begin="3" pt="ww" rel="hd" word="gezien"/>
</node></node><node begin="5" pt="let" rel="--" word="?"/></node>
<sentence sentid="x.1"/></alpino_ds>
"""
#: Alpino: what is replaced, and the problem.
BAD_ALPINO = [
    ('begin="4"', "", "the word 'man' has no number as begin"),
    ('begin="4"', 'begin="3"', "'man' and 'gezien' stand in one place"),
    ('word="man"', 'word=""', "a node has no word"),
    ('<node begin="0" cat="top"', '<node begin="0" pt="n" word="x" cat="top"', "in one place"),
]


def test_alpino() -> None:
    (graph,) = tigerxml.alpino_graphs(ALPINO, "f", SplitSettings())
    assert (graph.line, graph.name) == (2, "x.1")
    assert graph.words == ["Wat", "heeft", "de", "gezien", "man", "?"]
    assert graph.tags == ["vnw", "ww", "det", "ww", "n", "let"]
    assert graph.functions == ["su", "hd", "det", "hd", "hd", "", "", "", "vc", "obj1"]
    places = [tuple(words) for words in graph.yields()[6:]]
    assert dict(zip(graph.labels, places, strict=True)) == {
        "top": (0, 1, 2, 3, 4, 5), "smain": (0, 1, 2, 3, 4), "ppart": (2, 3, 4), "np": (2, 4),
    }  # fmt: skip
    for start in ('<alpino_ds id="">', '<alpino_ds><sentence sentid=""/>'):
        text = ALPINO.replace("<alpino_ds>", start).replace("x.1", "")
        assert list(tigerxml.alpino_graphs(text, "f", SplitSettings())) == [graph]
    sentence = continuous(graph, SplitSettings())
    assert sentence.spans == ((0, 6, "top"), (0, 5, "smain"), (2, 5, "ppart"), (4, 5, "np"))


@pytest.mark.parametrize(("old", "new", "problem"), BAD_ALPINO)
def test_a_bad_sentence_of_alpino_costs_no_other(old: str, new: str, problem: str) -> None:
    one = ALPINO.partition("\n")[2]
    text = f"<treebank>{one.replace(old, new)}{one}</treebank>"
    bad, fine = tigerxml.alpino_graphs(text, "f", SplitSettings())
    assert bad.reason.startswith("sentence x.1: ") and problem in bad.reason
    assert (bad.line, fine.line, fine.checked()) == (1, 9, fine)


def test_xml_without_sentences_says_what_is_read(attree: Any, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(ALPINO)
    assert resolve(SplitSettings(), [tmp_path / "a.xml"]).format == "alpino"
    (tmp_path / "b.xml").write_text("<?xml version='1.0'?>\n<html><p>x</p></html>\n")
    done = attree("b.xml", "--check")
    assert "whose root is <html>" in done.err and "Alpino" in done.out


#: Export: what is replaced in a sentence, the line that is told, and the problem.
BAD_EXPORT = [
    ("#502\tS\t--\t--\t0", "#502\tS\t--\t--\t500", 2, "is above itself"),
    ("SB\t502", "SB\t777", 10, "#777 is no node"),
    ("er\tPPER\t--\tHD\t501", "er\tPPER\t--\tHD\t500", 2, "node 2 (NP) has no child"),
    ("#501\tNP", "#500\tNP", 10, "node #500 stands twice"),
    ("getan\tVVPP\t--\tHD\t500", "getan\tVVPP", 7, "expected 5 columns"),
    ("getan", "get\udce4n", 2, "0xE4"),
    ("#EOS 1\n", "", 2, "has no #EOS line"),
]
BAD_DISCBRACKET = [
    ("(S (A 0=a) (B 2=b))", "not those of a sentence"),
    ("(S (A 0=a) (B 0=b))", "not those of a sentence"),
    ("(S (A 0=a)", "not closed"),
    ("(S (A 0=a)))", "closes nothing"),
    ("(S (A a))", "expected a leaf"),
    ("(S (A 0=))", "without a word"),
    ("(S (A 0) (B 1))\tone", "2 leaves, but 1 words"),
    ("(S (A 0=a) (B 1))\ta b", "without a word"),
    ("(S (A 0=))\ta", "without a word"),
    ("(S (A 0) (B 0=b))", "not those of a sentence"),
    ("(S)", "without words"),
    ("(S 0=a 1=b)", "two words under one tag"),
    ("(A 0=a) (B 1=b)", "more than one tree"),
]
#: TIGER-XML: what is replaced in the first sentence, and the problem.
BAD_TIGER = [
    ('idref="s1_1"', 'idref="s1_9"', "an edge leads to 's1_9'"),
    ('idref="s1_1"/>', 'idref="s1_1"/><edge label="X" idref="s1_1"/>', "attached twice"),
    ('idref="s1_1"', 'idref="s1_500"', "above itself"),
    ('id="s1_500"', 'id="s1_1"', "stands twice"),
    ('word="&lt;a b"', 'word=""', "has no word"),
    ('<edge label="HD" idref="s1_1"/>', "", "has no children"),
]


@pytest.mark.parametrize(
    ("module", "text", "line", "problem"),
    [
        *((export, TORN.replace(old, new) + TORN, line, why) for old, new, line, why in BAD_EXPORT),
        *((discbracket, f"{bad}\n(S (VP (VB 1=go)) (NP 0=we))\n", 1, why)
          for bad, why in BAD_DISCBRACKET),
        *((tigerxml, TIGER.replace(old, new, 1), 3, why) for old, new, why in BAD_TIGER),
    ],
)  # fmt: skip
def test_a_bad_sentence_costs_no_other(module: Any, text: str, line: int, problem: str) -> None:
    bad, fine = module.graphs(text, "f", SplitSettings())
    assert (bad.line, problem in bad.reason) == (line, True), bad
    assert fine.checked() is fine


def test_tiger_xml_cut_short() -> None:
    fine, bad = tigerxml.graphs(TIGER[: TIGER.index("s2_500")], "f", SplitSettings())
    assert fine.words == ["<a b"]
    assert "in sentence s2; nothing after it is read" in bad.reason


@pytest.mark.parametrize(
    "entities",
    [
        '<!ENTITY x SYSTEM "file:///etc/hostname">',
        '<!ENTITY a "ha"><!ENTITY x "&a;&a;&a;&a;&a;&a;&a;&a;">',
        '<!ENTITY % p SYSTEM "http://localhost:9/x.dtd"> %p;',
    ],
)
def test_entities_are_refused(entities: str) -> None:
    text = TIGER.replace("<corpus>", f"<!DOCTYPE corpus [{entities}]><corpus>")
    (refused,) = tigerxml.graphs(text.replace("&lt;a b", "&x;"), "f", SplitSettings())
    assert "declares an entity, which is refused" in refused.reason


@pytest.mark.parametrize("standalone", ["", ' standalone="no"'])
@pytest.mark.parametrize("doctype", ['SYSTEM "x.dtd"', 'PUBLIC "-//X" "x.dtd" []'])
def test_no_entity_of_an_external_dtd_is_cut_out_of_a_word(doctype: str, standalone: str) -> None:
    tiger = TIGER.replace('word="b"', 'word="caf&eacute;"').replace('"1.0"', f'"1.0"{standalone}')
    text = tiger.replace("<corpus>", f"<!DOCTYPE corpus {doctype}><corpus>")
    fine, refused = tigerxml.graphs(text, "f", SplitSettings())
    assert (fine.words, refused.line) == (["<a b"], 5)
    assert "undefined entity, in sentence s2" in refused.reason
    alpino = ALPINO.replace("<alpino_ds>", f"<!DOCTYPE alpino_ds {doctype}><alpino_ds>")
    (refused,) = tigerxml.alpino_graphs(alpino.replace("man", "m&n;"), "f", SplitSettings())
    assert "undefined entity" in refused.reason


def test_stanza_comments() -> None:
    row = "\t_" * 8
    text = (
        f"# text = a (\n# constituency = (ROOT (NP (DT a) (-LRB- -LRB-)))\n1\ta{row}\n2\t({row}\n"
        f"\n# text = b\n1\tb{row}\n\n# constituency = (ROOT (X x) (Y y))\n1\tx{row}\n"
        f"\n# constituency =\n1\tx{row}\n"
        f"\n# constituency = (ROOT (X x))(ROOT (X y))\n1\tx{row}\n"
        f"\n# constituency = (ROOT (X x))\n# constituency = (ROOT (X y))\n1\tx{row}\n"
        f"\n# constituency = (ROOT (X zz))\n1\tx{row}\n"
    )
    first, second, third, fourth, *more = conllu.read_stanza(text, "f", SplitSettings())
    assert (first.words, first.spans, first.line) == (("a", "("), ((0, 2, "NP"),), 2)
    assert second == Rejected("f", 6, second.reason, "failed")
    assert third.reason == "the tree has 2 words, the rows 1"
    assert str(fourth) == "f:12: a tree without words"
    assert list(map(str, more)) == [
        "f:15: 2 pieces in place of one tree — correct its brackets",
        "f:18: a sentence has one line # constituency = (…), but this one 2",
        "f:22: the tree has the word 'zz', its row 'x' — correct one",
    ]


class TestRealFiles:
    @pytest.fixture(scope="class")
    def folder(self, data: Path) -> Path:
        return data / "constituency/de_squoia"

    def load(self, *files: Path) -> list[Sentence]:
        settings = resolve(SplitSettings(), files)
        found = list(read_files(files, settings))
        assert all(isinstance(item, Sentence) for item in found)
        return found  # type: ignore[return-value]

    def test_the_same_treebank_in_every_format(self, folder: Path) -> None:
        exported = self.load(folder / "de_squoia.export")
        assert (len(exported), sum(one.crossing for one in exported)) == (2695, 475)
        spmrl = self.load(folder / "de_squoia.spmrl_style.ptb")
        assert [one.words for one in exported] == [one.words for one in spmrl]
        same = sum(one.spans == other.spans for one, other in zip(exported, spmrl, strict=True))
        assert same >= 2569  # the rest has other heads
        keys = sorted((one.words, one.tags, one.spans) for one in exported)
        disc = self.load(folder / "de_squoia.discbracket")
        assert sorted((one.words, one.tags, one.spans) for one in disc) == keys
        tiger = self.load(*sorted(folder.glob("*.xml")))
        assert sorted((one.words, one.tags, one.spans) for one in tiger) == keys

    def test_treetools_makes_the_same_trees_and_reads_what_is_written(
        self, folder: Path, tmp_path: Path
    ) -> None:
        from treetools import transform, treeinput, trees

        file = tmp_path / "some.export"
        whole = (folder / "de_squoia.export").read_text(encoding="utf-8")
        file.write_text("#BOS".join(whole.split("#BOS")[:600]), encoding="utf-8")
        settings = resolve(SplitSettings(dummy_roots=()), [file])
        ours = [one for one in read_files([file], settings) if isinstance(one, Sentence)]
        for tree, sentence in zip(treeinput.export(str(file), "utf-8"), ours, strict=True):
            for step in ("root_attach", "negra_mark_heads", "boyd_split", "raising"):
                tree = getattr(transform, step)(tree)
            places = [
                ([leaf.data["num"] for leaf in trees.terminals(node)], node.data["label"])
                for node in trees.preorder(tree)
                if trees.has_children(node) and node is not tree
            ]
            assert sorted((n[0] - 1, n[-1], x) for n, x in places) == sorted(sentence.spans)
        for name in ("export", "tigerxml"):
            graphs = export.graphs(file.read_text(encoding="utf-8"), "f", settings)
            (tmp_path / name).write_text("".join(FORMATS[name].write(graphs)), encoding="utf-8")
            theirs = getattr(treeinput, name)(str(tmp_path / name), "utf-8", quiet=True)
            for tree, sentence in zip(theirs, ours, strict=True):
                leaves = [leaf.data["word"] for leaf in trees.terminals(tree)]
                assert leaves == list(sentence.words)


class TestConvert:
    @pytest.mark.parametrize("to", ["xml", "export", "discbracket", "mrg", "ptb", "conllu"])
    def test_there_and_back(self, attree: Any, tmp_path: Path, to: str) -> None:
        (tmp_path / "a.export").write_text(TORN)
        done = attree("convert", "a.export", "--output", f"b.{to}")
        assert done.status == 0
        assert f"b.{to}: 1 sentences written, 0 rejected" in done.err
        assert attree("convert", f"b.{to}", "--output", "c.export").status == 0
        (before,) = export.graphs(TORN, "f", SplitSettings())
        (after,) = export.graphs((tmp_path / "c.export").read_text(), "f", SplitSettings())
        if to in ("xml", "export", "discbracket"):
            assert shape(after) == shape(before)
            assert "crossing" not in done.err
        else:
            assert "1 sentences had crossing branches, which were made continuous" in done.err
            assert spans(after)[0] == ((0, 5, "S"), (0, 1, "VP"), (3, 4, "NP"))
            assert after.functions[6:] == ["", "OC", "SB"]

    def test_to_a_table_and_back(self, attree: Any, tmp_path: Path) -> None:
        (tmp_path / "a.mrg").write_text("(S (NP-SBJ (DT a)) (VP (VB b)))\n")
        assert attree("convert", "a.mrg", "--output", "b.parquet").status == 0
        table, metadata = read_table(tmp_path / "b.parquet", schema=SENTENCES_SCHEMA)
        assert metadata["derived"] == "constituency"
        assert table["labels"].to_pylist() == [["S", "NP-SBJ", "VP"]]
        assert attree("convert", "b.parquet", "--output", "c.mrg").status == 0
        assert (tmp_path / "c.mrg").read_text() == (tmp_path / "a.mrg").read_text()

    @pytest.mark.parametrize("to", ["xml", "export", "discbracket", "mrg", "ptb", "conllu"])
    def test_a_function_keeps_its_mark_and_a_tag_its_parts(
        self, attree: Any, tmp_path: Path, to: str
    ) -> None:
        tree = "(S (WHNP-1 (v-fin a)) (NP=2 ($-LRB- b)) (NP-SBJ=1 (-LRB- c)) (NP- (T d)))\n"
        (tmp_path / "a.mrg").write_text(tree)
        assert attree("convert", "a.mrg", "--output", f"b.{to}").status == 0
        assert attree("convert", f"b.{to}", "--output", "c.mrg").status == 0
        assert (tmp_path / "c.mrg").read_text() == tree
        cut = attree("convert", f"b.{to}", "--output", "d.mrg", "--functions", "cut")
        assert cut.status == 0
        tag = "v-fin" if to in ("xml", "export") else "v"  # which has a column of its own there
        assert (tmp_path / "d.mrg").read_text() == (
            f"(S (WHNP ({tag} a)) (NP ($-LRB- b)) (NP (-LRB- c)) (NP (T d)))\n"
        )

    @pytest.mark.parametrize("to", ["mrg", "export"])
    def test_traces_are_taken_out(self, attree: Any, tmp_path: Path, to: str) -> None:
        (tmp_path / "a.psd").write_text(
            "( (IP (NP *2s*) (VB kumt) (CP (C 0) (IP (NP *T*-1-2) (VB geyt)))) (ID X,1))\n"
            "( (IP (NP *con*)) (ID X,2))\n"
        )
        done = attree("convert", "a.psd", "--output", f"b.{to}")
        assert "a.psd:2: no word is left: every word is a trace" in done.err
        assert attree("convert", f"b.{to}", "--output", "c.mrg", "--overwrite").status == 0
        assert (tmp_path / "c.mrg").read_text() == "(IP (VB kumt) (CP (IP (VB geyt))))\n"
        # what the user calls a trace goes, too, also where branches cross
        done = attree("convert", f"b.{to}", "--output", "d.export", "--traces", "geyt")
        assert attree("convert", "d.export", "--output", "d.mrg").status == 0
        assert (tmp_path / "d.mrg").read_text() == "(IP (VB kumt))\n"

    @pytest.mark.parametrize("to", ["export", "discbracket", "tigerxml"])
    def test_words_tagged_as_traces_and_what_the_user_drops_are_taken_out(
        self, attree: Any, tmp_path: Path, to: str
    ) -> None:
        parents, rows = [4, 4, 5, 4, -1, 4], [("*", "-NONE-"), ("a", "T"), ("ha", "X"), ("b", "T")]
        words, tags = map(list, zip(*rows, strict=True))
        graph = Graph(words, tags, ["S", "LAUGH"], parents, [""] * 6)
        write = FORMATS[to].write
        assert write is not None
        file = tmp_path / f"a{FORMATS[to].extensions[0]}"
        file.write_text("".join(write(iter([graph]))))
        for dropped, left in ((None, "a ha b"), (("LAUGH",), "a b"), (("T", "X"), "")):
            settings = resolve(SplitSettings(drop_labels=dropped), [file])
            (tree,) = read_files([file], settings)
            assert " ".join(getattr(tree, "words", ())) == left
            assert getattr(tree, "status", "skipped") == "skipped"
        done = attree("convert", file.name, "--output", "b.mrg", "--drop-label", "LAUGH")
        assert done.status == 0
        assert (tmp_path / "b.mrg").read_text() == "(S (T a) (T b))\n"

    def test_words_that_brackets_cannot_hold_are_told(self, attree: Any, tmp_path: Path) -> None:
        (tmp_path / "a.export").write_text(TORN.replace("getan", "-LRB-").replace("Was", "a b"))
        done = attree("convert", "a.export", "--output", "b.mrg")
        assert "warning: 2 words cannot stand in ptb as they are: 'a b', '-LRB-'" in done.err

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            (["a.export", "--output", "b.foo"], "the format is not known from this file's"),
            (["a.export", "--output", "b.parse"], "ontonotes cannot be written — end its name in"),
            (["a.export", "--output", "b.tbf"], "cess cannot be written — end its name in .mrg"),
            (["a.export", "--output", "b.gold_conll"], "conll2012 cannot be written"),
            (["a.export", "--output", "b.x", "--to", "icepahc"], "icepahc cannot be written"),
            (["none.export", "--output", "b.mrg"], "no such file"),
            (["bad.export", "--output", "b.mrg"], "no sentence could be read"),
        ],
    )
    def test_one_line_and_a_failure(
        self, attree: Any, tmp_path: Path, arguments: list[str], problem: str
    ) -> None:
        (tmp_path / "a.export").write_text(TORN)
        (tmp_path / "bad.export").write_text("#BOS 1\nx\n#EOS 1\n")
        done = attree("convert", *arguments)
        assert problem in str(done.status)
        assert "\n" not in str(done.status)
        assert sorted(one.name for one in tmp_path.iterdir()) == ["a.export", "bad.export"]

    def test_a_word_that_export_cannot_hold(self, attree: Any, tmp_path: Path) -> None:
        (tmp_path / "a.mrg").write_text("(S (NN #500))\n")
        done = attree("convert", "a.mrg", "--output", "b.export")
        assert "a.mrg:1: NEGRA export cannot hold the word '#500'" in str(done.status)
        assert not (tmp_path / "b.export").exists()
