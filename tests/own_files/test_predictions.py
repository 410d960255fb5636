"""``attree evaluate``: anyone's trees against gold ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from attree.cli import app
from attree.decoding.fixed import fixed_trees
from attree.errors import AttreeError
from attree.own_files.align import align
from attree.own_files.predictions import Evaluation
from attree.treebank.sentence import Settings

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


def write(path: Path, trees: list[str]) -> Path:
    path.write_text("".join(f"{tree}\n" for tree in trees))
    return path


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return write(tmp_path / "gold.mrg", GOLD)


def run(*arguments: object) -> Result:
    given = ["evaluate", *map(str, arguments)]
    return CliRunner().invoke(app, given, catch_exceptions=False, standalone_mode=False)


def test_the_table_has_predictions_baselines_and_ceiling(tmp_path: Path, gold: Path) -> None:
    predicted = write(tmp_path / "mine.mrg", PREDICTED)
    pairs = align(gold, predicted, Settings(punctuation="ptb"))
    rows = dict(Evaluation(pairs, "mine").rows())
    assert [*rows] == ["mine", "right branching", "left branching", "balanced", "binary ceiling"]
    # 5, 3 and 1 gold spans, 5, 3 and 1 predicted ones, 5, 2 and 1 in both
    assert rows["mine"].corpus_f1 == pytest.approx(100 * 2 * 8 / 18)
    assert rows["mine"].corpus_f1_no_root == pytest.approx(100 * 2 * 5 / 12)
    assert rows["mine"].sentence_f1 == pytest.approx((100 + 50 + 100) / 3)
    shown = run(predicted, "--gold", gold, "--punctuation", "ptb").stdout
    assert "88.89" in shown
    assert "3 sentences; punctuation: ptb" in " ".join(shown.split())


def test_tags_of_the_predictions_do_not_matter(tmp_path: Path, gold: Path) -> None:
    tagged = [tree.replace("(. .)", "(XX .)").replace("(DT", "(,") for tree in GOLD]
    pairs = align(gold, write(tmp_path / "p.mrg", tagged), Settings(punctuation="ptb"))
    found = dict(Evaluation(pairs, "p").rows())
    assert found["p"].corpus_f1 == 100
    assert pairs.refused == []


def test_predictions_without_punctuation_are_recognised(tmp_path: Path, gold: Path) -> None:
    bare = [tree.replace(" (. .)", "").replace(" (, ,)", "") for tree in GOLD]
    pairs = align(gold, write(tmp_path / "p.mrg", bare), Settings(punctuation="ptb"))
    assert pairs.refused == []
    assert dict(Evaluation(pairs, "p").rows())["p"].corpus_f1 == 100


def test_brackets_of_our_own_are_read_as_they_were_written(tmp_path: Path, gold: Path) -> None:
    words = [("the", "cat", "sat", "on", "a", "mat", "."), ("it", "was", "very", "warm", "."),
             ("dogs", ",", "bark", ".")]  # fmt: skip
    trees = fixed_trees("right_branching", [len(one) for one in words])
    pairs = align(gold, write(tmp_path / "p.mrg", trees.bracketed(words)), Settings())
    found = dict(Evaluation(pairs, "p").rows())
    assert pairs.refused == []
    assert found["p"].corpus_f1 == found["right branching"].corpus_f1


def test_labelled_f1_is_that_of_evalb(tmp_path: Path, gold: Path) -> None:
    predicted = write(tmp_path / "p.mrg", PREDICTED)
    pairs = align(gold, predicted, Settings(punctuation="ptb"))
    # gold 5 + 4 + 3 brackets, predicted 5 + 4 + 3, in both 5 + 3 + 3
    assert Evaluation(pairs, "p").labelled() == (
        f"Labelled F1 as EVALB counts it: {100 * 22 / 24:.2f}, exact match 66.67 %."
    )
    other = [tree.replace("(", "(Q") for tree in GOLD]
    pairs = align(gold, write(tmp_path / "q.mrg", other), Settings(punctuation="ptb"))
    assert Evaluation(pairs, "q").labelled() == ""


@pytest.mark.parametrize(
    ("trees", "refused"),
    [
        (PREDICTED[:1] + PREDICTED[2:], ["gold.mrg:2: no tree of this sentence in"]),
        ([*PREDICTED, "(S (NP (X new)) (VP (Y one)))"], ["p.mrg:4: no such sentence in"]),
        (
            [PREDICTED[0], "(S (NP (PRP it)) (VP (VBD was)))", PREDICTED[2]],
            ["p.mrg:2: 2 words, but the gold sentence of line 2 has 5"],
        ),
        (
            [PREDICTED[0], PREDICTED[1].replace("warm", "cold"), PREDICTED[2]],
            ["p.mrg:2: word 4 is 'cold', but 'warm' in the gold sentence of line 2"],
        ),
        ([PREDICTED[0], "(S (NP", PREDICTED[2]], ["p.mrg:2: ", "gold.mrg:2: no tree"]),
    ],
)
def test_a_sentence_without_a_partner_costs_no_other(
    tmp_path: Path, gold: Path, trees: list[str], refused: list[str]
) -> None:
    predicted = write(tmp_path / "p.mrg", trees)
    found = run(predicted, "--gold", gold)
    lines = found.stderr.splitlines()
    assert len(lines) == len(refused)
    for line, wanted in zip(lines, refused, strict=True):
        assert line.removeprefix(f"{tmp_path}/").startswith(wanted)
    assert f"2 sentences; {len(refused)} refused" in " ".join(found.stdout.split()) or (
        len(trees) == 4 and "3 sentences; 1 refused" in " ".join(found.stdout.split())
    )


def test_other_sentences_altogether_are_refused(tmp_path: Path, gold: Path) -> None:
    predicted = write(tmp_path / "p.mrg", ["(S (NP (X new)) (VP (Y one)))"])
    with pytest.raises(AttreeError, match="no sentence has the words of a gold sentence"):
        align(gold, predicted, Settings())


def test_the_worst_sentences_are_drawn(tmp_path: Path, gold: Path) -> None:
    predicted = write(tmp_path / "p.mrg", PREDICTED)
    shown = run(predicted, "--gold", gold, "--punctuation", "ptb", "--worst", 1).stdout
    drawn = shown[shown.index("sentence F1") :]
    assert drawn.startswith("sentence F1 50.00")
    assert drawn.index("gold:") < drawn.index("predicted:")
    assert drawn.count("warm") == 2
