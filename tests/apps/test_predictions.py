"""``attree evaluate``: anyone's trees against gold ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attree.apps.systems import How, evaluate
from attree.base.errors import AttreeError
from attree.decoding.fixed import fixed_trees
from attree.evaluation.evalb import read_parameters, results
from attree.evaluation.metrics import Counts
from attree.evaluation.side_by_side import Evaluation, Gold
from attree.parsers.parser import Parser
from attree.treebank.sentence import SplitSettings
from attree.trees.tree import Tree
from tests.apps.conftest import evaluate as run
from tests.apps.conftest import write
from tests.refusals import refused

GOLD = [
    "(S (NP (DT the) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT a) (NN mat)))) (. .))",
    "(S (NP (PRP it)) (VP (VBD was) (ADJP (RB very) (JJ warm))) (. .))",
    "(S (NP (NNS dogs)) (, ,) (VP (VBP bark)) (. .))",
]
PREDICTED = [
    "(S (NP (DT the) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT a) (NN mat)))) (. .))",
    "(S (NP (NP (PRP it)) (VBD was)) (ADJP (RB very) (JJ warm)) (. .))",
    "(S (NP (NNS dogs)) (, ,) (VP (VBP bark)) (. .))",
]


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return write(tmp_path / "gold.mrg", GOLD)


def scored(gold: Path, *predicted: Path, **settings: str) -> Evaluation:
    how = SplitSettings(**settings)  # type: ignore[arg-type]
    return evaluate(Gold.read([gold], how), list(map(str, predicted)), How(how))


def counts(found: Evaluation) -> dict[str, Counts]:
    return {row.name: row.runs[0].counts for row in (*found.rows, *found.baselines())}


def test_the_table_has_predictions_baselines_and_ceiling(tmp_path: Path, gold: Path) -> None:
    predicted = write(tmp_path / "mine.mrg", PREDICTED)
    rows = counts(scored(gold, predicted, punctuation="ptb"))
    fixed = ["right branching", "left branching", "balanced", "binary ceiling"]
    assert [*rows] == ["mine.mrg", *fixed]
    # 5, 3 and 1 gold spans, 5, 3 and 1 predicted ones, 5, 2 and 1 in both
    assert rows["mine.mrg"].corpus_f1 == pytest.approx(100 * 2 * 8 / 18)
    assert rows["mine.mrg"].corpus_f1_no_root == pytest.approx(100 * 2 * 5 / 12)
    assert rows["mine.mrg"].sentence_f1 == pytest.approx((100 + 50 + 100) / 3)
    shown = run(predicted, "--gold", gold, "--punctuation", "ptb").stdout
    assert "88.89" in shown
    assert "3 sentences; punctuation: ptb" in " ".join(shown.split())


@pytest.mark.parametrize(
    "changed",
    [
        {"(. .)": "(XX .)", "(DT": "(,"},  # other tags do not matter
        {" (. .)": "", " (, ,)": ""},  # nor does punctuation that is left out
    ],
)
def test_words_find_their_sentence(tmp_path: Path, gold: Path, changed: dict[str, str]) -> None:
    found = scored(gold, write(tmp_path / "p.mrg", replaced(GOLD, changed)), punctuation="ptb")
    assert found.corpus_f1 == 100
    assert found.systems[0].refused == []


def replaced(trees: list[str], changed: dict[str, str]) -> list[str]:
    for text, other in changed.items():
        trees = [tree.replace(text, other) for tree in trees]
    return trees


@pytest.mark.parametrize("policy", ["ptb", "keep", "unicode"])
@pytest.mark.parametrize("currency", ["US$", "$", "R$", "€"])
def test_a_currency_that_a_policy_removes_finds_its_sentence(
    tmp_path: Path, currency: str, policy: str
) -> None:
    trees = [tree.replace("(NN mat)", f"($ {currency}) (CD 5) (NN mat)") for tree in GOLD]
    gold = write(tmp_path / "gold.mrg", trees)
    own = write(tmp_path / "own.mrg", replaced(trees, {"($ ": "(SYM "}))
    bare = write(tmp_path / "bare.mrg", replaced(trees, {f" ($ {currency})": ""}))
    found = scored(gold, gold, own, *([bare] if policy == "ptb" else ()), punctuation=policy)
    assert [system.refused for system in found.systems] == [[]] * len(found.systems)
    assert all(row.runs[0].counts.corpus_f1 == 100 for row in found.rows)


@pytest.mark.parametrize("leaf", ["(NFP :D)", "($ USD)", "(HYPH to)"])
def test_a_word_with_letters_that_a_policy_removes_finds_its_sentence(
    tmp_path: Path, leaf: str
) -> None:
    trees = [tree.replace("(NN mat)", f"{leaf} (NN mat)") for tree in GOLD]
    gold = write(tmp_path / "gold.mrg", trees)
    found = scored(gold, gold, write(tmp_path / "own.mrg", trees), punctuation="ptb")
    assert [system.refused for system in found.systems] == [[], []]


def test_another_currency_or_number_is_another_word(tmp_path: Path) -> None:
    def trees(name: str, price: str) -> Path:
        changed = [tree.replace("(NN mat)", price) for tree in GOLD]
        return write(tmp_path / f"{name}.mrg", changed)

    gold = trees("gold", "($ US$) (CD 5)")
    for name, price in (("six", "($ US$) (CD 6)"), ("less", "($ US$)")):
        found = scored(gold, trees(name, price), punctuation="ptb")
        assert found.rows[0].missing == 1
    assert scored(gold, trees("other", "($ C$) (CD 5)"), punctuation="keep").rows[0].missing == 1


def test_brackets_of_our_own_are_read_as_they_were_written(tmp_path: Path, gold: Path) -> None:
    words = [("the", "cat", "sat", "on", "a", "mat", "."), ("it", "was", "very", "warm", "."),
             ("dogs", ",", "bark", ".")]  # fmt: skip
    trees = fixed_trees("right_branching", [len(one) for one in words])
    found = scored(gold, write(tmp_path / "p.mrg", trees.bracketed(words)))
    assert found.systems[0].refused == []
    assert found.corpus_f1 == counts(found)["right branching"].corpus_f1


@pytest.mark.parametrize("outer", ["", "gold", "predicted", "both"])
@pytest.mark.parametrize("policy", ["ptb", "keep", "unicode"])
def test_labelled_f1_is_that_of_evalb_with_the_settings_that_it_names(
    tmp_path: Path, outer: str, policy: str
) -> None:
    """Whichever side has outer brackets without a label."""

    def lines(name: str, trees: list[str]) -> Path:
        around = [f"( {tree})" if outer in (name, "both") else tree for tree in trees]
        return write(tmp_path / f"{name}.mrg", around)

    gold, predicted = lines("gold", GOLD), lines("predicted", PREDICTED)
    found = scored(gold, predicted, punctuation=policy)
    assert f"attree evalb --prm collins --punctuation {policy}" in found.tables()[0].note
    rows = list(results([gold], [predicted], read_parameters("collins"), punctuation=policy))
    both, right, guessed = (
        sum(getattr(row, name) for row in rows) for name in ("matched", "gold", "test")
    )
    assert found.labelled_f1 == pytest.approx(200 * both / (right + guessed))
    # gold 5 + 4 + 3 brackets, predicted 5 + 4 + 3, in both 5 + 3 + 3
    assert found.labelled_f1 == pytest.approx(100 * 22 / 24)


def test_other_labels_have_no_labelled_f1(tmp_path: Path, gold: Path) -> None:
    other = write(tmp_path / "q.mrg", replaced(GOLD, {"(": "(Q"}))
    assert scored(gold, other, punctuation="ptb").labelled_f1 is None


def test_labels_that_gold_trees_lack_are_told_and_universal_ones_compare(
    tmp_path: Path, gold: Path
) -> None:
    """Trees labelled as French ones: the structure is right, few labels are."""
    french = {"(VP": "(VN", "(ADJP": "(AP", "(S ": "(SENT "}
    other = write(tmp_path / "french.mrg", replaced(GOLD, french))
    own = scored(gold, other, punctuation="ptb")
    assert own.labelled_f1 == pytest.approx(100 * 5 / 12)
    assert "has labels that no gold tree has (SENT, VN, AP)" in own.tables()[0].note
    universal = scored(gold, other, punctuation="ptb", labels="universal")
    assert universal.labelled_f1 == 100
    assert "no gold tree has" not in universal.tables()[0].note


def test_missing_sentences_are_an_error_unless_accepted_and_count_as_wrong(
    tmp_path: Path, gold: Path
) -> None:
    one = write(tmp_path / "one.mrg", GOLD[:1])
    with refused("missing-trees", "2", "3", "--accept-loss", "0.67"):
        run(one, "--gold", gold, "--punctuation", "ptb")
    shown = " ".join(run(one, "--gold", gold, "--accept-loss", "0.7").stdout.split())
    assert "2 of 3 sentences have no tree; they are not scored" in shown
    found = scored(gold, one, punctuation="ptb")
    assert found.corpus_f1 == found.labelled_f1 == 100
    # 5 gold spans of 9 are found, and 5 labelled brackets of 12
    assert found.rows[0].wrong["corpus_f1"] == pytest.approx(200 * 5 / (9 + 5))
    assert found.rows[0].wrong["labelled_f1"] == pytest.approx(200 * 5 / (12 + 5))


def test_missing_sentences_count_as_wrong_in_any_score(tmp_path: Path, gold: Path) -> None:
    """A score that comes to be tested is no share of the trees that are there."""
    own = scored(gold, write(tmp_path / "all.mrg", GOLD), punctuation="ptb").rows[0].runs[0].counts
    none_right = own.all_missed()
    for metric in ("recall", "labelled_exact_match", "sentence_f1", "labelled_f1"):
        assert getattr(own, metric) == 100 and getattr(own + none_right, metric) < 70, metric
    assert (own + none_right).labelled_exact_match == 50


def test_every_two_are_compared_on_what_both_have(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.mrg", GOLD * 10)
    files = [
        write(tmp_path / name, trees)
        for name, trees in (("a.mrg", GOLD * 10), ("b.mrg", PREDICTED * 10), ("c.mrg", GOLD * 9))
    ]
    _, unlabelled, labelled = scored(gold, *files).tables()
    assert [one.title for one in (unlabelled, labelled)] == [
        "Corpus F1: every two",
        "Labelled F1: every two",
    ]
    assert labelled.note and not unlabelled.note  # below all
    pairs = unlabelled.rows
    assert [row[:2] for row in pairs] == [
        ["a.mrg", "b.mrg"],
        ["a.mrg", "c.mrg"],
        ["b.mrg", "c.mrg"],
    ]
    p = [float(row[4].lstrip("<")) for row in pairs]
    assert p[1] == 1 and max(p[0], p[2]) < 0.01
    assert pairs[1][2] == "+0.00" and float(pairs[0][2]) == -float(pairs[2][2]) > 0
    whole = scored(gold, files[1])
    low, high = whole.intervals["corpus_f1"]
    assert low < whole.corpus_f1 < high


def test_a_test_set_alone_is_the_ready_parser_s(
    gold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str, **_: object) -> None:
        raise AttreeError("loaded", f"{name} is loaded")

    monkeypatch.setattr(Parser, "load", load)
    for option in ("--test", "--gold"):
        with refused("loaded", "universal"):
            run(option, gold)


@pytest.mark.parametrize(
    ("trees", "refused"),
    [
        (PREDICTED[:1] + PREDICTED[2:], ["gold.mrg:2: no tree of this sentence"]),
        (
            [*PREDICTED, "(S (NP (X new)) (VP (Y one)))"],
            ["p.mrg:4: no such sentence among the gold trees"],
        ),
        (
            [PREDICTED[0], "(S (NP (PRP it)) (VP (VBD was)))", PREDICTED[2]],
            ["p.mrg:2: 2 words, but gold.mrg:2 has 4", "gold.mrg:2: no tree of this sentence"],
        ),
        (
            [PREDICTED[0], PREDICTED[1].replace("warm", "cold"), PREDICTED[2]],
            [
                "p.mrg:2: word 'cold' is 'warm' in gold.mrg:2",
                "gold.mrg:2: no tree of this sentence",
            ],
        ),
        ([PREDICTED[0], "(S (NP", PREDICTED[2]], ["p.mrg:2: ", "gold.mrg:2: no tree"]),
    ],
)
def test_a_sentence_without_a_partner_costs_no_other(
    tmp_path: Path, gold: Path, trees: list[str], refused: list[str]
) -> None:
    predicted = write(tmp_path / "p.mrg", trees)
    found = run(predicted, "--gold", gold, "--accept-loss", "0.5")
    lines = [line.replace(f"{tmp_path}/", "") for line in found.stderr.splitlines()]
    assert len(lines) == len(refused)
    for line, wanted in zip(lines, refused, strict=True):
        assert line.startswith(wanted)
    lost = "gold.mrg:2: no tree of this sentence" in lines
    assert ("1 of 3 sentences have no tree" in " ".join(found.stdout.split())) == lost


@pytest.mark.parametrize("missing", range(3))
def test_a_missing_tree_shifts_no_other_whatever_the_policy_removes(
    tmp_path: Path, gold: Path, missing: int
) -> None:
    for policy in ("keep", "ptb", "drop:DT NNS PRP"):
        trees = [tree for row, tree in enumerate(GOLD) if row != missing]
        (system,) = scored(gold, write(tmp_path / "p.mrg", trees), punctuation=policy).rows
        assert np.flatnonzero(system.runs[0].each.skipped).tolist() == [missing]
        assert system.mean("corpus_f1") == 100


def test_of_two_equal_words_the_removed_one_is_removed(tmp_path: Path) -> None:
    tree = "(S (V said) (NP (DT that)) (NP (NN that) (NN man)) (V left))"
    file = write(tmp_path / "gold.mrg", [tree])
    (system,) = scored(file, write(tmp_path / "p.mrg", [tree]), punctuation="drop:DT").rows
    assert system.mean("corpus_f1") == 100


def test_words_of_several_parts_are_those_that_brackets_hold(tmp_path: Path) -> None:
    words = ("New York", "10\u00a0000", "(", "sat")
    rows = [f"{n}\t{word}\t_\tNOUN\t_\t_\t{n - 1}\tdep\t_\t_\n" for n, word in enumerate(words, 1)]
    (tmp_path / "gold.conllu").write_text("".join(rows) + "\n")
    tree = Tree(words, ((0, 4), (1, 4), (2, 4))).brackets()
    (system,) = scored(tmp_path / "gold.conllu", write(tmp_path / "p.mrg", [tree])).rows
    assert system.missing == 0
    assert system.mean("subtree_recall") == 100


def test_other_sentences_altogether_are_refused(tmp_path: Path, gold: Path) -> None:
    predicted = write(tmp_path / "p.mrg", ["(S (NP (X new)) (VP (Y one)))"])
    with refused("other-sentences"):
        scored(gold, predicted)


def test_the_worst_sentences_are_drawn(tmp_path: Path, gold: Path) -> None:
    predicted = write(tmp_path / "p.mrg", PREDICTED)
    shown = run(predicted, "--gold", gold, "--punctuation", "ptb", "--worst", 1).stdout
    drawn = shown[shown.index("sentence F1") :]
    assert drawn.startswith("sentence F1 50.00")
    assert drawn.index("gold:") < drawn.index("predicted:")
    assert drawn.count("warm") == 2
