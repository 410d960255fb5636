"""``attree search`` against NLTK's own search of every tree, and against loops over spans."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from nltk import tgrep
from nltk.tree import ParentedTree

from attree.apps import search as module
from attree.apps.reading import Reading
from attree.apps.search import Pattern, search
from attree.bulk.folder import MANIFEST
from attree.bulk.manifest import Manifest, cut
from attree.bulk.options import RowSettings
from attree.bulk.output import Rows, Statistics, make_folders, remove_shard, write_shard
from attree.raw_text.inputs import find_inputs
from attree.trees.trees import Trees
from tests.command_line import attree
from tests.evaluation.reference import labelled_trees
from tests.refusals import refused

ROOT = Path(__file__).parents[2]
TREEBANK = ROOT / "workflow/resources/treebanks/english/test.mrg"
PATTERNS = [
    "NP", "NP < PP", "NP !< PP", "S << (VP . b)", "b", '"b" ', "NP|VP", "NP < a | < b", "/^N/",
    'NP <1 i@"A"', "@ N /NP/; @N=n < a : =n << b", "@ X (NP|PP); @X < @X",
    "NP $ VP", "VP >> S & < c",
    "VP [< a | !< b]", "* < a", "NP < (PP !<< a) < a", "X", "S < X", "A", "NP <: (PP < b)",
    "'NP < b",
    "N(0,)", "NP; PP",
]  # fmt: skip


def _random(n_trees: int, seed: int) -> Rows:
    """Trees of few labels, tags and words, so that most patterns match somewhere."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, n_trees)
    lengths[::7] = 0
    spans, labels = labelled_trees(rng, lengths.tolist(), ["NP", "VP", "PP", "S", "X"])
    tags = list(map(str, rng.choice(["A", "B", "b"], int(lengths.sum()))))
    words = [[str(word) for word in rng.choice(["a", "b", "c", "NP"], n)] for n in lengths]
    trees = Trees.from_spans(lengths.tolist(), spans, labels).tagged(tags)
    where = list(range(n_trees))
    return Rows(["t.mrg"] * n_trees, where, where, ["ok"] * n_trees, words, trees)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_is_found_is_what_nltk_finds_in_every_tree(pattern: str) -> None:
    some = _random(60, seed=3)
    found = Pattern(pattern).search(some)
    expected = []
    for row, tree in enumerate(some.trees.each(some.words)):
        if not tree.words:
            continue
        whole = ParentedTree.convert(tree.to_nltk())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            (positions,) = tgrep.tgrep_positions(pattern, [whole])
        for position in positions:
            node = whole[position]
            inside = [p for p in range(len(tree.words)) if _below(whole, p, position)]
            name = node if isinstance(node, str) else node.label()
            expected.append((row, name, inside[0], inside[-1] + 1))
    assert [(m.line, m.label, m.start, m.end) for m in found.matches] == expected
    assert len(found.files) == int((some.trees.n_words > 0).sum())


def _below(tree: ParentedTree, word: int, position: tuple[int, ...]) -> bool:
    return tree.leaf_treeposition(word)[: len(position)] == position


def test_a_parent_and_its_child_are_found_by_their_spans() -> None:
    (some,) = Reading().all([TREEBANK])
    expected = set()
    for row, tree in enumerate(some.trees.each(some.words)):
        nodes = list(zip(tree.spans, tree.labels or (), strict=True))
        for at, (span, label) in enumerate(nodes):
            above = [
                other for other, _ in nodes[:at] if other[0] <= span[0] and span[1] <= other[1]
            ]
            if label == "PP" and above:
                parent = max(k for k, (other, _) in enumerate(nodes[:at]) if other == above[-1])
                if nodes[parent][1] == "NP":
                    expected.add((row, *nodes[parent][0]))
    found = Pattern("NP < PP").search(some).matches
    assert {(match.sentence, match.start, match.end) for match in found} == expected
    assert len(expected) > 20


def test_processes_find_what_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [_random(20, seed) for seed in range(6)]
    pattern = Pattern("NP < b")
    alone = list(map(pattern.search, batches))
    monkeypatch.setattr(module, "_HERE", 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert list(search(pattern, batches)) == alone
    assert sum(len(one.matches) for one in alone) > 20


def test_a_line_an_object_a_count(tmp_path: Path) -> None:
    file = tmp_path / "t.mrg"
    file.write_text(
        "(S (NP (DT the) (NN cat)) (VP (VBD sat)))\n"
        "(S (NP-SBJ (NP (DT a) (NN dog)) (PP (IN of) (NP (NNS ours)))) (VP (VBD ran)))\n"
    )
    done = attree("search", "NP << dog", file, "--context", 1)
    assert done.out == f"{file}:2: [NP a dog of ours] ran\n{file}:2: [NP a dog] of\n"
    assert done.err == "2 matches in 1 of 2 trees\n"
    kept = attree("search", "NP-SBJ", file, "--functions", "keep", "--json")
    assert [json.loads(line) for line in kept.out.splitlines()] == [
        {
            "file": str(file), "line": 2, "sentence": 1, "status": "ok", "label": "NP-SBJ",
            "start": 0, "end": 4, "text": "a dog of ours",
            "words": ["a", "dog", "of", "ours", "ran"],
        }
    ]  # fmt: skip
    assert attree("search", "NP", file, "--count").out.splitlines()[1:] == [f"4\t2\t2\t{file}"]
    assert attree("search", "QP", file, "--count").out.splitlines()[1:] == [f"0\t0\t2\t{file}"]


def test_bulk_output_is_searched_without_its_empty_lines(tmp_path: Path) -> None:
    words = [["a", "cat"], [], ["dogs"]]
    trees = Trees.from_spans([2, 0, 1], [[(0, 2)], [], [(0, 1)]], [["NP"], [], ["NP"]])
    make_folders(tmp_path, RowSettings())
    for number in range(3):
        rows = Rows(["in.txt"] * 3, [1, 2, 3], [0] * 3, ["ok", "empty", "ok"], words, trees)
        write_shard(tmp_path, number, rows, Statistics(), RowSettings())
    done = attree("search", "NP < (X < dogs)", tmp_path)
    assert done.out == "in.txt:3: [NP dogs]\n" * 3
    assert done.err == "3 matches in 3 of 6 trees\n"


def test_lines_that_a_bulk_output_lacks_are_told(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a cat\n" * 6)
    files, _ = find_inputs([tmp_path / "in.txt"])
    shards = tuple(cut(files, shard_lines=2, column="text"))
    out = tmp_path / "out"
    make_folders(out, RowSettings())
    Manifest({}, tuple(files), shards).write(out / MANIFEST)
    trees = Trees.from_spans([2, 2], [[(0, 2)]] * 2, [["NP"]] * 2)
    for shard in shards:
        rows = Rows(["in.txt"] * 2, [1, 2], [0] * 2, ["ok"] * 2, [["a", "cat"]] * 2, trees)
        write_shard(out, shard.number, rows, Statistics(), RowSettings())
    whole = attree("search", "NP", out)
    assert whole.err == "6 matches in 6 of 6 trees\n"
    remove_shard(out, 1)
    part = attree("search", "NP", out)
    told, found = part.err.splitlines()
    assert re.findall(r"\d+", told.partition(str(out))[2]) == ["2", "6"]
    assert found == "4 matches in 4 of 4 trees"
    assert (part.status, part.out) == (0, "".join(whole.out.splitlines(keepends=True)[:4]))
    assert len(attree("search", "NP", out / "trees").err.splitlines()) == 2


def test_a_tree_too_deep_for_a_pattern_costs_no_other(tmp_path: Path) -> None:
    file = tmp_path / "t.mrg"
    deep = "(S " + "(NP (A b) " * 3000 + "(NP (A c))" + ")" * 3001
    file.write_text(f"{deep}\n(S (NP (A c)) (VP (A b)))\n")
    assert attree("search", "NP < (A < c)", file).err == "2 matches in 2 of 2 trees\n"
    done = attree("search", "S << c", file)
    assert done.out == f"{file}:2: [S c b]\n"
    assert done.err.splitlines() == [
        f"{file}:1: this tree is too deep for the pattern",
        "1 matches in 1 of 2 trees, 1 not read",
    ]


@pytest.mark.parametrize(
    ("pattern", "column"),
    [
        ("NP < (", 4), ("NP [", 4), ("", None), ("VP <<< A", 4), ("NP < PP VP", 9), ("/a(/", 2),
        ("A < @NP", 6), ("A < =n", 5), ("A=n", None), ("(" * 60 + "A" + ")" * 60, None), (")", 1),
        ('"NP', None), ('/NP', None),
    ],
)  # fmt: skip
def test_a_pattern_that_tgrep_cannot_read_says_where(pattern: str, column: int | None) -> None:
    (some,) = Reading().all([TREEBANK])
    words = [["A"], *some.words]
    trees = Trees.concatenate(
        [Trees.from_spans([1], [[(0, 1)]], [["A"]]).tagged(["A"]), some.trees]
    )
    many = Rows(["t"] * 51, list(range(51)), list(range(51)), ["ok"] * 51, words, trees)
    with refused("bad-pattern", *([] if column is None else ["column", str(column)])):
        Pattern(pattern).search(many)


def test_a_folder_without_trees_says_so(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("(S (NP (A b)))")
    done = attree("search", "NP", tmp_path)
    assert (done.status, done.out) == (1, "")
    assert f"{tmp_path}: no treebank is in this folder" in done.err
