"""F1 and label recall: against a plain reference, and every corner case by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.decoding.fixed import fixed_trees
from attree.evaluation.labels import LabelCount
from attree.evaluation.metrics import Counts, Scored, count_each, gold_spans, score, upper_bound
from attree.trees.parses import Parses
from attree.trees.trees import Trees
from tests.evaluation.reference import (
    Labelled,
    Spans,
    naive_f1,
    parses,
    random_tree,
    sentences,
)
from tests.refusals import refused


def labelled(spans: Spans, label: str = "X") -> Labelled:
    return [(start, end, label) for start, end in spans]


def scored(gold: list[tuple[int, Labelled]], predicted: list[Spans], **how: object) -> Scored:
    """Score trees; the predicted ones have as many words as the gold ones."""
    trees = [(n, spans) for (n, _), spans in zip(gold, predicted, strict=True)]
    statuses = how.pop("status", None)
    table = parses(trees, status=statuses)  # type: ignore[arg-type]
    return score(Parses.gold(sentences(gold)), Parses.of_table(table), **how)  # type: ignore[arg-type]


def one(n: int, gold: Spans, predicted: Spans, **how: object) -> Counts:
    return scored([(n, labelled(gold))], [predicted], **how).counts


@given(st.lists(st.integers(1, 12), min_size=1, max_size=12), st.integers(0, 10_000))
def test_f1_is_that_of_the_plain_reference(lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = [*lengths, 3]
    gold = [(n, random_tree(rng, n, binary=False)) for n in lengths]
    binary = [random_tree(rng, n, binary=True) for n in lengths]
    other = [random_tree(rng, n, binary=False) for n in lengths]
    right = Parses.gold(sentences([(n, labelled(spans)) for n, spans in gold]))
    for predicted in (binary, other):
        for spans in predicted:
            rng.shuffle(spans)  # no order is asked for
        wanted = naive_f1(gold, predicted)
        table = parses([(n, spans) for n, spans in zip(lengths, predicted, strict=True)])
        found = score(right, Parses.of_table(table)).counts
        assert found.corpus_f1 == pytest.approx(wanted[0])
        assert found.corpus_f1_no_root == pytest.approx(wanted[1])
        assert found.sentence_f1 == pytest.approx(wanted[2])


def test_several_parsers_at_once_are_scored_as_each_alone() -> None:
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 20, size=40)
    gold = [(int(n), random_tree(rng, int(n), binary=False)) for n in lengths]
    right = Parses.gold(sentences([(n, labelled(spans)) for n, spans in gold]))
    names = ("right_branching", "random_uniform_split", "balanced")
    flat, per_parser = [], [[], [], []]
    for n, _ in gold:
        for parser, name in enumerate(names):
            flat.append(fixed_trees(name, [n], seed=len(flat)))
            per_parser[parser].append(list(flat[-1].of(0).spans))
    counts = count_each(gold_spans(right), Trees.concatenate(flat), 3)
    found = counts.corpus_f1, counts.corpus_f1_no_root, counts.sentence_f1
    for parser in range(3):
        wanted = naive_f1(gold, per_parser[parser])
        assert tuple(column[parser] for column in found) == pytest.approx(wanted)


def test_unary_chains_and_repeated_spans_collapse() -> None:
    counts = one(4, [(0, 4), (0, 4), (1, 3), (1, 3), (1, 2)], [(1, 3), (0, 4), (1, 3)])
    assert (counts.gold, counts.predicted, counts.matched) == (2, 2, 2)


def test_one_word_spans_do_not_count() -> None:
    counts = one(3, [(0, 1), (0, 3), (2, 3)], [(0, 3), (1, 3)])
    assert (counts.gold, counts.predicted, counts.matched) == (1, 2, 1)


def test_the_whole_sentence_is_always_in_both() -> None:
    counts = one(4, [(0, 2), (2, 4)], [(0, 2)])  # a German tree has no node over all of it
    assert (counts.gold, counts.predicted, counts.matched) == (3, 2, 2)
    assert counts.corpus_f1 == pytest.approx(80)
    assert counts.corpus_f1_no_root == pytest.approx(100 * 2 / 3)
    assert counts.sentence_f1 == pytest.approx(100 * 2 / 3)


def test_corpus_f1_without_root_removes_the_span_by_value() -> None:
    counts = one(3, [(0, 3), (0, 3), (0, 2)], [(0, 3), (1, 3)])
    assert counts.corpus_f1 == pytest.approx(50)
    assert counts.corpus_f1_no_root == 0


def test_one_word_sentences_are_skipped_and_counted() -> None:
    found = scored([(1, labelled([(0, 1)])), (3, labelled([(0, 2)]))], [[], [(0, 3), (0, 2)]])
    counts = found.counts
    assert (counts.sentences, counts.scored, counts.one_word) == (2, 1, 1)
    assert counts.corpus_f1 == counts.sentence_f1 == 100
    each = found.each
    assert each.gold[0] == each.predicted[0] == each.matched[0] == 0
    assert np.isnan(found.sentence_f1[0])


def test_a_two_word_sentence_scores_one() -> None:
    assert one(2, [(0, 2)], [(0, 2)]).sentence_f1 == 100
    assert one(2, [], [(0, 2)]).sentence_f1 == 100


def test_a_flat_gold_tree_scores_zero() -> None:
    assert one(3, [(0, 3)], [(0, 3), (1, 3)]).sentence_f1 == 0


def test_an_empty_prediction_scores_zero_unless_gold_is_empty_too() -> None:
    assert one(3, [(0, 3), (1, 3)], [(0, 3)]).sentence_f1 == 0
    assert one(3, [(0, 3)], []).sentence_f1 == 100


def test_nothing_to_score_is_no_score() -> None:
    counts = one(1, [], [])
    assert counts.corpus_f1 is counts.sentence_f1 is counts.precision is None
    assert one(2, [(0, 2)], [(0, 2)]).corpus_f1_no_root is None


def test_skipped_sentences_are_counted_not_scored() -> None:
    gold = [(3, labelled([(0, 2)]))] * 3
    tree = [(0, 3), (0, 2)]
    status = ["ok", "skipped", "right_branching"]
    found = scored(gold, [tree, [], [(0, 3), (1, 3)]], status=status)
    counts = found.counts
    assert (counts.sentences, counts.scored, counts.skipped, counts.fallback) == (3, 2, 1, 1)
    assert (counts.gold, counts.predicted, counts.matched) == (4, 4, 3)
    assert counts.sentence_f1 == 50
    assert np.isnan(found.sentence_f1[1])
    assert found.each.gold[1] == 0
    assert found.labels["NP"] == LabelCount()


def test_label_recall_counts_distinct_triples_and_the_whole_sentence() -> None:
    tree = [(0, 4, "S"), (0, 2, "NP"), (0, 2, "NP"), (0, 2, "VP"), (2, 4, "NP"), (3, 4, "NP")]
    found = scored([(4, tree)], [[(0, 4), (0, 2)]], labels=["S", "NP", "VP", "PP"])
    assert found.labels == {
        "S": LabelCount(1, 1),
        "NP": LabelCount(2, 1),
        "VP": LabelCount(1, 1),
        "PP": LabelCount(0, 0),
    }
    assert found.labels["NP"].recall == 50
    assert found.labels["PP"].recall is None


def test_label_recall_counts_a_label_with_its_functions_too() -> None:
    tree = [(0, 4, "S"), (0, 2, "NP-SBJ"), (2, 4, "NP=2"), (2, 4, "NP"), (1, 2, "NP-SBJ")]
    found = scored([(4, tree)], [[(0, 4), (0, 2)]], labels=["NP", "NP-SBJ", "N"])
    assert found.labels == {"NP": LabelCount(2, 1), "NP-SBJ": LabelCount(1, 1), "N": LabelCount()}


def test_label_recall_keeps_sentences_apart() -> None:
    gold = [(3, [(0, 2, "NP")]), (5, [(0, 2, "NP"), (3, 5, "PP")]), (1, [(0, 1, "NP")])]
    found = scored(gold, [[(1, 3)], [(0, 2), (3, 5)], []], labels=["NP", "PP"])
    assert found.labels == {"NP": LabelCount(2, 1), "PP": LabelCount(1, 1)}


def test_longer_sentences_are_left_out_by_max_words() -> None:
    gold = [(3, labelled([(0, 2)])), (5, labelled([(0, 2)])), (2, [])]
    predicted = [[(0, 2)], [(1, 5)], []]
    found = scored(gold, predicted, max_words=3)
    assert found.sentence.tolist() == [0, 2]
    assert found.counts.corpus_f1 == 100


def test_counts_of_parts_add_up_to_those_of_the_whole() -> None:
    rng = np.random.default_rng(1)
    lengths = [int(n) for n in rng.integers(1, 15, size=30)]
    gold = Parses.gold(
        sentences([(n, labelled(random_tree(rng, n, binary=False), "NP")) for n in lengths])
    )
    table = parses([(n, random_tree(rng, n, binary=True)) for n in lengths])
    guessed = Parses.of_table(table)
    whole = score(gold, guessed).counts
    halves = [np.arange(0, 13), np.arange(13, 30)]
    parts = [score(gold.take(rows), guessed.take(rows)).counts for rows in halves]
    total = parts[0] + parts[1]
    assert total.sentence_f1 == pytest.approx(whole.sentence_f1)
    assert total.corpus_f1 == whole.corpus_f1
    assert (Counts() + whole) == whole == (whole + Counts())


def test_rows_may_come_in_any_order() -> None:
    gold = sentences([(3, labelled([(0, 2)])), (4, labelled([(1, 3)]))], [7, 3])
    table = parses([(4, [(1, 3)]), (3, [(0, 2)])], [3, 7])
    found = score(Parses.gold(gold), Parses.of_table(table))
    assert found.sentence.tolist() == [3, 7]
    assert found.counts.corpus_f1 == 100


def test_another_number_of_words_is_an_error_that_names_the_sentence() -> None:
    gold = Parses.gold(sentences([(3, []), (3, [])], [10, 11]))
    with refused("other-sentences", "11", "3", "4"):
        score(gold, Parses.of_table(parses([(3, []), (4, [])], [10, 11])))


def test_a_sentence_missing_on_either_side_is_an_error_that_names_it() -> None:
    two, three = [(3, [])] * 2, [(3, [])] * 3
    with refused("other-sentences", "2"):
        score(Parses.gold(sentences(three)), Parses.of_table(parses(two)))
    with refused("other-sentences", "2"):
        score(Parses.gold(sentences(two)), Parses.of_table(parses(three)))
    with refused("sentence-twice", "1"):
        score(Parses.gold(sentences(two)), Parses.of_table(parses(three, [0, 1, 1])))


@pytest.mark.parametrize("span", [(0, 4), (-1, 2), (2, 2), (2, 1)])
def test_a_span_outside_its_sentence_is_an_error_that_names_it(span: tuple[int, int]) -> None:
    with refused("span-outside", "1", "3"):
        scored([(3, []), (3, [])], [[(0, 2)], [(0, 3), span]])
    with refused("span-outside", "0"):
        scored([(3, labelled([span]))], [[]])


def test_upper_bound_is_reached_by_a_tree_that_holds_every_gold_span() -> None:
    gold = [(5, labelled([(0, 2), (2, 5)])), (1, []), (4, [])]
    best = [[(0, 5), (0, 2), (2, 5), (3, 5)], [], [(0, 4), (1, 4), (2, 4)]]
    bound = upper_bound(Parses.gold(sentences(gold))).counts
    reached = scored(gold, best).counts
    assert bound == reached


def test_upper_bound_refuses_crossing_spans() -> None:
    gold = Parses.gold(sentences([(4, []), (4, labelled([(0, 2), (1, 3)]))]))
    with refused("crossing-spans", "1"):
        upper_bound(gold)


def test_labelled_brackets_are_counted_where_both_sides_have_labels() -> None:
    spans = [[(0, 3), (0, 1), (1, 3)], [(0, 2)]]
    gold = Trees.from_spans([3, 2], spans, [["S", "NP", "VP"], ["NP"]])
    found = Trees.from_spans([3, 2], [[(0, 3), (1, 3)], [(0, 2)]], [["S", "PP"], ["NP"]])
    numbers = np.arange(2, dtype=np.int32)
    counts = score(Parses.all_ok(numbers, gold), Parses.all_ok(numbers, found)).counts
    assert counts.labelled_f1 == pytest.approx(100 * 2 * 2 / (4 + 3))
    assert counts.labelled_exact_match == 50
    bare = Trees(found.n_words, found.offsets, found.starts, found.ends)
    other = score(Parses.all_ok(numbers, gold), Parses.all_ok(numbers, bare)).counts
    assert other.labelled_f1 is None
    assert other.corpus_f1 == counts.corpus_f1


def test_parses_keep_their_labels_in_a_table() -> None:
    trees = Trees.from_spans([3, 2], [[(0, 3), (0, 1)], [(0, 2)]], [["S", "NP"], ["S"]])
    parses = Parses.all_ok(np.arange(2, dtype=np.int32), trees)
    assert Parses.of_table(parses.table()).trees == trees
