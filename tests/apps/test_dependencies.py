"""``attree evaluate`` of dependency trees: phrases against heads, in place of F1."""

from __future__ import annotations

from pathlib import Path

import pytest

from attree.apps.systems import How, evaluate
from attree.evaluation.side_by_side import Evaluation, Gold
from attree.treebank.sentence import SplitSettings
from tests.apps.conftest import evaluate as run
from tests.apps.conftest import write
from tests.refusals import refused

#: A word a line: its tag and its head.
CAT = "Kedi/NOUN/4 küçük/ADJ/3 fareyi/NOUN/4 kovaladı/VERB/0 ./PUNCT/4"
OLD = "Yaşlı/ADJ/2 adam/NOUN/4 eve/NOUN/4 gitti/VERB/0 ./PUNCT/4"
#: Its word 1 depends across the root: one subtree is no span.
CROSSING = "a/X/4 b/X/0 c/X/2 d/X/3"
#: All phrases have one head; a subject with an object; the same and no subtree.
RIGHT = "(S (A Kedi) (VP (NP (A küçük) (N fareyi)) (V kovaladı)) (P .))"
WRONG = "(S (X (NP (A Yaşlı) (N adam)) (N eve)) (V gitti) (P .))"
OTHER = "(S (A Kedi) (A küçük) (X (N fareyi) (V kovaladı)) (P .))"


def conllu(path: Path, *sentences: str) -> Path:
    blocks = []
    for sentence in sentences:
        words = [word.split("/") for word in sentence.split()]
        rows = [
            f"{n}\t{form}\t_\t{tag}\t_\t_\t{head}\tdep\t_\t_"
            for n, (form, tag, head) in enumerate(words, start=1)
        ]
        blocks.append("\n".join(rows) + "\n\n")
    path.write_text("".join(blocks), encoding="utf-8")
    return path


def scored(gold: Path, *predicted: Path, **settings: str) -> Evaluation:
    how = SplitSettings(**settings)  # type: ignore[arg-type]
    return evaluate(Gold.read([gold], how), list(map(str, predicted)), How(how))


def test_phrases_are_compared_with_heads(tmp_path: Path) -> None:
    gold = conllu(tmp_path / "gold.conllu", CAT, OLD)
    found = scored(gold, write(tmp_path / "mine.mrg", [RIGHT, WRONG]))
    counts = found.rows[0].runs[0].counts
    # küçük fareyi, küçük fareyi kovaladı; Yaşlı adam, Yaşlı adam eve: the last has two heads
    assert (counts.headed, counts.phrases) == (3, 4)
    assert (counts.found, counts.subtrees) == (2, 2)
    assert counts.headed_precision == 75 and counts.subtree_recall == 100
    assert counts.corpus_f1 is None
    right = next(row for row in found.baselines() if row.name == "right branching").runs[0].counts
    # küçük fareyi kovaladı ., fareyi kovaladı .; adam eve gitti ., eve gitti .: a full stop is cut
    assert (right.headed, right.phrases, right.found) == (4, 4, 0)
    assert [row.name for row in found.baselines()][-1] == "balanced"


def test_punctuation_that_is_removed_changes_nothing(tmp_path: Path) -> None:
    gold = conllu(tmp_path / "gold.conllu", CAT, OLD)
    mine = write(tmp_path / "mine.mrg", [RIGHT, WRONG])
    kept, removed = (
        scored(gold, mine, punctuation=policy).rows[0].runs[0].counts
        for policy in ("keep", "unicode")
    )
    names = ("headed", "phrases", "found", "subtrees")
    assert [getattr(kept, n) for n in names] == [getattr(removed, n) for n in names]


def test_a_subtree_that_is_no_span_is_not_counted(tmp_path: Path) -> None:
    gold = conllu(tmp_path / "gold.conllu", CROSSING)
    found = scored(gold, write(tmp_path / "mine.mrg", ["(S (X a) (X b) (Y (X c) (X d)))"]))
    counts = found.rows[0].runs[0].counts
    # below d are a and d; below c these too; c d has one head outside, that of c
    assert (counts.headed, counts.phrases, counts.found, counts.subtrees) == (1, 1, 0, 0)


def test_the_table_has_intervals_and_p_values(tmp_path: Path) -> None:
    gold = conllu(tmp_path / "gold.conllu", CAT, OLD)
    mine = write(tmp_path / "mine.mrg", [RIGHT, WRONG])
    other = write(tmp_path / "other.mrg", [OTHER, WRONG])
    done = run("--test", gold, "--parser", f"{mine},{other}", "--worst", 1)
    for part in ("Headed precision: every two", "Recall of subtrees: every two", "95 %", "p"):
        assert part in done.stdout
    assert "Corpus F1" not in done.stdout and "2 sentences" in done.stdout
    # drawn: the tree with a phrase of two heads
    assert f"{mine}:2: right less all -1.00" in done.stdout


def test_trees_that_are_missing_are_wrong_in_a_column_of_their_own(tmp_path: Path) -> None:
    gold = conllu(tmp_path / "gold.conllu", CAT, OLD)
    row = scored(gold, write(tmp_path / "mine.mrg", [RIGHT])).rows[0]
    assert row.missing == 1 and row.runs[0].counts.subtree_recall == 100
    assert row.wrong["subtree_recall"] == 50


@pytest.mark.parametrize("text", ["1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n"])
def test_a_file_without_heads_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "gold.conllu").write_text(f"# a comment\n{text}")
    with refused("no-sentences", file="gold.conllu", line=2):
        run("--test", tmp_path / "gold.conllu", "--parser", write(tmp_path / "a.mrg", [RIGHT]))


def test_dependencies_and_constituents_are_not_scored_together(tmp_path: Path) -> None:
    gold = conllu(tmp_path / "gold.conllu", CAT)
    mine = write(tmp_path / "a.mrg", [RIGHT])
    with refused("mixed-trees"):
        run("--test", gold, "--test", mine, "--parser", mine)
