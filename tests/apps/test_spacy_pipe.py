"""The component of spaCy's pipelines: benepar's attributes, on many languages."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import spacy
from confection import ConfigValidationError
from nltk import Tree as NltkTree
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, Token

from attree import Parser, Tree, Trees
from attree.apps.spacy_pipe import TreePipe, install
from attree.base.errors import AttreeError
from tests.command_line import attree
from tests.refusals import refused
from tests.training import reference
from tests.training.conftest import resolved, treebank

__all__ = ["resolved", "treebank"]  # fixtures

TEXTS = {
    "en": "The old man didn't walk home. A cat chased the mice (twice)!",
    "de": "Die Übersetzung war schwieriger als gedacht. Es regnete z.B. nie.",
    "it": "L'arrivo degli ospiti ha sorpreso tutti. È la vita.",
    "he": "הילד הלך הביתה. הגשם ירד כל היום.",
    "ar": "ذهب الولد إلى البيت. المطر شديد؟",
    "ko": "나는 학교에 갔다. 비가 많이 왔다.",
    "zh": "我喜欢读书。今天下雨了。",
    "hi": "मैं घर गया। बारिश हुई।",
}


def trained(folder: Path, resolved: Path, treebank: Path, parser: str) -> str:
    words = ["train", "--sentences", treebank, "--encoder", resolved, "--parser", parser, "--trees",
             5, "--steps", 3, "--output", folder, "--device", "cpu"]  # fmt: skip
    assert attree(*words).status == 0
    return str(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, resolved: Path, treebank: Path) -> str:
    return trained(tmp_path_factory.mktemp("plain") / "p", resolved, treebank, "tree-crf-full")


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory, resolved: Path, treebank: Path) -> str:
    return trained(tmp_path_factory.mktemp("named") / "p", resolved, treebank, "tree-crf-labelled")


def pipeline(language: str, parser: str, **more: Any) -> Language:
    config = {}
    if language == "ko":  # its usual tokeniser wants a program beside it
        config = {"nlp": {"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}}}
    nlp = spacy.blank(language, config=config)
    nlp.add_pipe("attree", config={"parser": parser, "device": "cpu", "threads": 1, **more})
    return nlp


def strings(doc: Doc) -> list[str]:
    return [sent._.parse_string for sent in doc.sents]


@pytest.mark.parametrize("language", TEXTS)
def test_blank_pipelines(language: str, folder: str) -> None:
    doc = pipeline(language, folder)(TEXTS[language])
    parser = Parser.load(folder, device="cpu", threads=1)
    sentences = list(doc.sents)
    assert len(sentences) == 2
    for sent in sentences:
        words = [token.text for token in sent]
        tree = parser.parse([words])[0]
        assert tree.words == tuple(words)
        check_navigation(sent, tree)
        read = NltkTree.fromstring(sent._.parse_string)
        assert read.leaves() == escaped(sent)
        assert sent._.parse_status == "ok"


def escaped(span: Span) -> list[str]:
    return [token.text.replace("(", "-LRB-").replace(")", "-RRB-") for token in span]


def check_navigation(sent: Span, tree: Tree) -> None:
    """Compare with sets of spans: the parent is the smallest around, children those it is of."""
    n = len(tree.words)
    spans = {*tree.spans, (0, n), *((i, i + 1) for i in range(n))}
    order = sorted(spans, key=lambda span: (span[0], -span[1]))
    above = {
        span: min((o for o in spans - {span} if o[0] <= span[0] and span[1] <= o[1]),
                  key=lambda o: o[1] - o[0], default=None)
        for span in order
    }  # fmt: skip
    found = list(sent._.constituents)
    at = sent.start

    def here(span: Span) -> tuple[int, int]:
        return span.start - at, span.end - at

    assert [here(one) for one in found] == order
    for one in found:
        parent = one._.parent
        assert (parent and here(parent)) == above[here(one)]
        assert [here(c) for c in one._.children] == [s for s in order if above[s] == here(one)]
        inside = [s for s in order if here(one)[0] <= s[0] and s[1] <= here(one)[1]]
        assert [here(c) for c in one._.constituents] == inside
        labels = tree.labels or ("X",) * len(tree.spans)
        chain = [x for s, x in zip(tree.spans, labels, strict=True) if s == here(one)]
        assert one._.labels == tuple(chain)
        assert NltkTree.fromstring(one._.parse_string).leaves() == escaped(one)
        if len(one) == 1:
            token = one[0]
            assert token._.labels == one._.labels
            assert token._.parse_string == one._.parse_string
            assert token._.parent == parent or (token._.parent is parent is None)
    for start, end in itertools.combinations(range(n + 1), 2):
        if (start, end) not in spans:
            with refused("no-constituent"):
                _ = sent[start:end]._.labels


class Given:
    """A parser that gives trees made beforehand."""

    def __init__(self, trees: Trees) -> None:
        self.given = trees

    def trees(self, words: Any) -> tuple[Trees, Any]:
        assert [len(one) for one in words] == self.given.n_words.tolist()
        return self.given, np.full(len(self.given), "ok")


@pytest.mark.parametrize("seed", range(20))
def test_any_tree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees that are not binary, chains, phrases of a word, several sentences."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 9, 4).tolist()
    spans = [reference.random_tree(random, 0, n) or [(0, n)] for n in lengths]
    chained = [[s for s in one for _ in range(random.integers(1, 3))] for one in spans]
    names = [[f"L{random.integers(5)}" for _ in one] for one in chained]
    trees = Trees.from_spans(lengths, chained, names)
    monkeypatch.setattr(TreePipe, "_parser", lambda self: Given(trees))
    nlp = pipeline("xx", "upio")
    words = [f"w{i}" for i in range(sum(lengths))]
    starts = [i in np.cumsum([0, *lengths]) for i in range(len(words))]
    doc = nlp(Doc(nlp.vocab, words, sent_starts=starts))
    for place, sent in enumerate(doc.sents):
        check_navigation(sent, trees.of(place, [token.text for token in sent]))
        bracketed = trees.of(place, [token.text for token in sent]).brackets()
        assert sent._.parse_string == bracketed


#: Words, labels of spans, and the base noun phrases.
_NOUNS = [
    ("the man in the moon", [(0, 5, "NP"), (2, 5, "PP"), (3, 5, "NP")], ["the man", "the moon"]),
    ("cats and dogs ran", [(0, 4, "S"), (0, 3, "NP"), (0, 1, "NP"), (2, 3, "NP"), (3, 4, "VP")],
     ["cats", "dogs"]),
    ("she said it", [(0, 3, "S"), (0, 1, "NP"), (0, 1, "NP"), (1, 3, "VP"), (2, 3, "NP")],
     ["she", "it"]),
    ("( a b ) ran", [(0, 5, "S"), (0, 4, "NP"), (1, 3, "NP")], ["a b"]),
    ("ran", [(0, 1, "VP")], []),
]  # fmt: skip


def _given(monkeypatch: pytest.MonkeyPatch, language: str, labels: bool = True) -> Doc:
    texts = [text.split() for text, *_ in _NOUNS]
    spans = [[(start, end) for start, end, _ in nodes] for _, nodes, _ in _NOUNS]
    names = [[label for *_, label in nodes] for _, nodes, _ in _NOUNS]
    trees = Trees.from_spans(list(map(len, texts)), spans, names if labels else None)
    monkeypatch.setattr(TreePipe, "_parser", lambda self: Given(trees))
    nlp = pipeline(language, "upio")
    words = [word for text in texts for word in text]
    starts = [place == 0 for text in texts for place in range(len(text))]
    return nlp(Doc(nlp.vocab, words, sent_starts=starts))


@pytest.mark.parametrize("language", ["en", "nl", "is", "xx"])
def test_noun_chunks_and_phrases_of_any_language(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    doc = _given(monkeypatch, language)
    wanted = [chunk for *_, chunks in _NOUNS for chunk in chunks]
    assert [chunk.text for chunk in doc.noun_chunks] == wanted
    assert {chunk.label_ for chunk in doc.noun_chunks} == {"NP"}
    assert [span.text for span in doc._.phrases("VP", "PP")] == [
        "in the moon", "ran", "said it", "ran",
    ]  # fmt: skip
    assert [span.text for span in doc[1:5]._.phrases("NP")] == ["the moon"]
    assert [span.text for span in doc[0:5]._.phrases()] == [
        "the man in the moon", "in the moon", "the moon",
    ]  # fmt: skip
    saved = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    vocab = pickle.loads(pickle.dumps(doc.vocab))
    (again,) = DocBin(store_user_data=True).from_bytes(saved).get_docs(vocab)
    assert [chunk.text for chunk in again.noun_chunks] == wanted


def test_a_dependency_parse_has_its_own_noun_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    doc = _given(monkeypatch, "en")
    for token in doc:
        token.head, token.dep_, token.pos_ = token, "ROOT", "VERB"
    doc[4].dep_, doc[4].pos_ = "nsubj", "NOUN"
    assert [chunk.text for chunk in doc.noun_chunks] == ["moon"]


def test_phrases_and_noun_chunks_need_trees_with_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    doc = _given(monkeypatch, "nl", labels=False)
    assert len(doc._.phrases()) > 5
    for ask in (lambda: doc._.phrases("NP"), lambda: list(doc.noun_chunks)):
        with refused("no-labels"):
            ask()
    bare = Doc(doc.vocab, ["a", "b"])
    for ask in (lambda: bare._.phrases("NP"), lambda: list(bare.noun_chunks)):
        with refused("no-parse", "add_pipe"):
            ask()


def test_tags_stand_in_the_brackets(folder: str) -> None:
    nlp = pipeline("en", folder)
    doc = nlp(
        Doc(nlp.vocab, ["New York", "sleeps"], tags=["NNP", "VBZ"], sent_starts=[True, False])
    )
    assert strings(doc) == ["(X (NNP New_York) (VBZ sleeps))"]
    assert doc[1]._.parse_string == "(VBZ sleeps)"


def test_labels(labelled: str) -> None:
    doc = pipeline("en", labelled)("the old man lived near the harbour")
    (sent,) = doc.sents
    tree = Parser.load(labelled, device="cpu").parse([[token.text for token in doc]])[0]
    assert sent._.parse_string == tree.brackets()
    assert sent._.labels[0] == tree.labels[0]


def test_batches_documents_and_processes_change_nothing(folder: str) -> None:
    nlp = pipeline("en", folder)
    texts = [TEXTS["en"], "", "one", "A cat sat.\n\nThe man too.  ", "cat " * 80] * 6
    alone = [nlp(text) for text in texts]
    for more in ({}, {"batch_size": 4}, {"n_process": 2, "batch_size": 5}):
        found = list(nlp.pipe(texts, **more))
        assert [doc.user_data for doc in found] == [doc.user_data for doc in alone]
        assert [strings(doc) for doc in found] == [strings(doc) for doc in alone]


def test_white_space_is_in_no_tree(folder: str) -> None:
    nlp = pipeline("en", folder)
    doc = nlp("  The old \n man walked.\n\n  Yes. \t ")
    first, second = doc.sents
    assert strings(doc)[1] == strings(nlp("Yes."))[0]
    assert first._.parse_string == strings(nlp("The old man walked."))[0]
    assert first._.parent is None and second._.parent is None
    for one in [*first._.constituents, *second._.constituents]:
        assert not one[0].is_space and not one[-1].is_space
    blank = next(token for token in doc if token.is_space)
    assert (blank._.labels, blank._.parent, blank._.parse_string) == ((), None, "()")


def test_documents_without_a_tree_to_find(folder: str) -> None:
    nlp = pipeline("en", folder)
    assert list(nlp("").sents) == []
    (sent,) = nlp(" \n ").sents
    assert (list(sent._.constituents), list(sent._.children)) == ([], [])
    assert (sent._.labels, sent._.parent, sent._.parse_string) == ((), None, "()")
    (sent,) = nlp("Yes").sents
    assert (sent._.parse_string, sent._.labels, sent._.parent) == ("(X Yes)", (), None)
    assert [one.text for one in sent._.constituents] == ["Yes"]


def test_too_long_for_the_encoder_or_for_the_setting(folder: str) -> None:
    doc = pipeline("en", folder)("A cat sat. " + "Cat " * 80)
    assert [sent._.parse_status for sent in doc.sents] == ["ok", "too_long"]
    long = list(doc.sents)[1]
    assert [len(one) for one in long._.constituents if len(one) > 1] == list(range(80, 1, -1))
    doc = pipeline("en", folder, max_words=3)("A cat sat. A cat.")
    assert [doc[i]._.parse_status for i in (0, 3, 4, 6)] == ["too_long", "too_long", "ok", "ok"]


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("en", 'Dr. Lee left.  "Go!" he said. Why?', ["Dr. Lee left.  ", '"Go!" he said.', "Why?"]),
        ("zh", "老人回家了。他睡了。", ["老人回家了。", "他睡了。"]),
    ],
)
def test_sentences_are_those_of_bulk_parsing(
    language: str, text: str, sentences: list[str], folder: str
) -> None:
    nlp = spacy.blank(language)
    nlp.add_pipe("attree", config={"parser": folder})
    assert [one.text for one in nlp(text).sents] == sentences


def test_another_language_than_that_of_the_trees_is_said(
    folder: str, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    italian = shutil.copytree(folder, tmp_path / "italian")
    about = json.loads((italian / "parser.json").read_text())
    about["about"]["language"] = "it"
    (italian / "parser.json").write_text(json.dumps(about))
    spacy.blank("it").add_pipe("attree", config={"parser": str(italian)})
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"trees are in it, and .* for en — spacy.blank\('it'\)"):
        spacy.blank("en").add_pipe("attree", config={"parser": str(italian)})


def test_boundaries_that_are_there_are_kept(folder: str) -> None:
    nlp = pipeline("en", folder)
    words = ["A", "cat", ".", "the", "mice"]
    doc = nlp(Doc(nlp.vocab, words, sent_starts=[True, False, False, False, False]))
    assert [len(sent) for sent in doc.sents] == [5]


def test_what_is_not_parsed_says_so(folder: str) -> None:
    nlp = pipeline("en", folder)
    with refused("no-parse", "nlp.add_pipe"):
        _ = spacy.blank("en")("A cat sat.")[0:2]._.labels
    doc = nlp("A cat sat.")
    with doc.retokenize() as change:
        change.merge(doc[0:2])
    with refused("tokens-changed"):
        _ = doc[0]._.parse_string


def test_an_error_of_a_batch_goes_to_the_pipeline_s_handler(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nlp = pipeline("en", folder)
    seen: list[Any] = []
    nlp.set_error_handler(lambda name, proc, docs, error: seen.append((name, len(docs), error)))
    monkeypatch.setattr(TreePipe, "_parser", lambda self: 1 / 0)
    assert list(nlp.pipe(["A cat sat."] * 3)) == []
    assert [(name, count) for name, count, _ in seen] == [("attree", 3)]


def test_pickled_and_saved(folder: str, tmp_path: Path) -> None:
    def unset() -> Language:
        nlp = spacy.blank("en")
        nlp.add_pipe("attree")
        return nlp

    nlp = pipeline("en", folder, max_words=40)
    doc = nlp(TEXTS["en"])
    wanted = strings(doc)
    again = pickle.loads(pickle.dumps(nlp.get_pipe("attree")))
    saved = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert strings(saved) == strings(again(saved)) == wanted
    nlp.to_disk(tmp_path / "nlp")
    for other in (
        spacy.load(tmp_path / "nlp"),
        unset().from_disk(tmp_path / "nlp"),
        unset().from_bytes(nlp.to_bytes()),
    ):
        assert strings(other(TEXTS["en"])) == wanted
    kept = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (doc,) = DocBin().from_bytes(kept).get_docs(nlp.vocab)
    assert strings(doc) == wanted


def test_a_parser_that_is_gone_is_one_line(folder: str, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "parser")
    nlp = pipeline("en", str(tmp_path / "parser"))
    nlp.to_disk(tmp_path / "nlp")
    wanted = strings(nlp(TEXTS["en"]))
    (tmp_path / "parser").rename(tmp_path / "moved")
    with refused("unknown-parser"):
        spacy.load(tmp_path / "nlp")
    other = spacy.blank("en")
    other.add_pipe("attree")
    with refused("unknown-parser"):
        other.from_disk(tmp_path / "nlp")
    moved = {"components": {"attree": {"parser": str(tmp_path / "moved")}}}
    assert strings(spacy.load(tmp_path / "nlp", config=moved)(TEXTS["en"])) == wanted


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"threads": -1}, "bad-form threads"),
        ({"threads": 10**9}, "bad-form threads 1024"),
        ({"max_words": 0}, "bad-form max_words"),
        ({"max_words": "x"}, "bad-form max_words"),
        ({"parser": None}, "bad-form parser"),
        ({"parser": "x" * 5000}, "unknown-parser"),
        ({"encoder": 7}, "bad-form encoder"),
        ({"device": []}, "bad-form device"),
        ({"evil": 1}, "bad-form evil"),
    ],
)
def test_tampered_settings_are_one_line(
    settings: dict[str, Any], says: str, tmp_path: Path
) -> None:
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("attree")
    assert isinstance(pipe, TreePipe)
    saved = {"parser": "upio"} | settings
    (tmp_path / "settings.json").write_text(json.dumps(saved))
    for take in (
        lambda: pipe.from_disk(tmp_path),
        lambda: pipe.from_bytes(msgspec.msgpack.encode(saved)),
    ):
        with refused(*says.split()):
            take()
    with pytest.raises((AttreeError, ConfigValidationError), match=next(iter(settings))):
        spacy.blank("en").add_pipe("attree", config={"parser": "upio"} | settings)


@pytest.mark.parametrize("data", [b"", b"evil", b"\xc1", msgspec.msgpack.encode([1])])
def test_settings_that_are_no_settings_are_one_line(data: bytes) -> None:
    with refused("bad-form" if data == msgspec.msgpack.encode([1]) else "bad-settings"):
        spacy.blank("en").add_pipe("attree").from_bytes(data)  # type: ignore[attr-defined]


_WRONG = (None, 5, "x", ["x"], [5], [None] * 3, [[1]] * 14, [-1] * 14, [10**9] * 8)


@pytest.mark.parametrize(
    "key", ["length", "status", "firsts", "tokens", "starts", "ends", "labels", "tags"]
)
def test_tampered_data_of_a_document_is_one_line(key: str, folder: str) -> None:
    doc = pipeline("en", folder)("A cat sat. It slept well.")
    good = doc.user_data["attree"]
    assert (good["firsts"], len(good["tokens"])) == ([0, 4], 8)
    for wrong in (*_WRONG, ...):
        doc.user_data["attree"] = {**good, key: wrong}
        if wrong is ...:
            del doc.user_data["attree"][key]
        for attribute in ("constituents", "labels", "parse_string", "parse_status", "parent"):
            with refused("bad-form"):
                list(getattr(doc[0:4]._, attribute))


@pytest.mark.parametrize(
    "tampered",
    [
        {"starts": [0, 0, 1, 2], "ends": [3, 2, 2, 3], "labels": [["S"], ["X"], [], []]},  # no "A"
        {"starts": [0, 0, 1, 2], "ends": [3, 1, 3, 3], "labels": [["S"], [], ["X"], []]},
        {"firsts": [0, 2], "status": ["ok"] * 2},  # a phrase of two sentences
        {"tokens": [0, 2, 1]},
        {"starts": [0, 0, 0, 1, 1, 2], "ends": [3, 2, 1, 3, 2, 3], "labels": [["S"]] * 6},
    ],
)
def test_data_that_is_no_tree_is_one_line(tampered: dict[str, Any]) -> None:
    install()
    doc = Doc(spacy.blank("en").vocab, ["A", "cat", "sat"], sent_starts=[True, False, False])
    good = {"length": 3, "status": ["ok"], "firsts": [0], "tokens": [0, 1, 2], "tags": [""] * 3}
    good |= {"starts": [0, 0, 0, 1, 2], "ends": [3, 2, 1, 2, 3]}
    good["labels"] = [["S"], ["NP"], [], [], []]
    doc.user_data["attree"] = good
    assert doc[:]._.parse_string == "(S (NP (X A) (X cat)) (X sat))"
    doc.user_data["attree"] = good | tampered
    with refused("bad-form"):
        _ = doc[:]._.parse_string


def test_another_component_s_attribute_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    install()
    ours = Token.get_extension("labels")
    Token.set_extension("labels", getter=len, force=True)
    try:
        with refused("name-taken", "token._.labels"):
            spacy.blank("en").add_pipe("attree")
    finally:
        Token.set_extension("labels", getter=ours[2], force=True)


def test_the_entry_point_makes_an_import_needless(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    entries = tomllib.loads((root / "pyproject.toml").read_text())["project"]["entry-points"]
    about = tmp_path / "attree_entries-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: attree-entries\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in each.items())
            for group, each in entries.items()
        )
    )
    code = (
        "import spacy, sys; pipe = spacy.blank('en').add_pipe('attree');"
        "print(pipe.name, 'attree.parsers.parser' in sys.modules)"
    )
    path = os.pathsep.join([str(tmp_path), str(root / "src")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "attree False\n", done.stderr
