"""Self-training: what is sure, what is trained on, and that no gold tree of it is looked at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from attree.base.schemas import SENTENCES_SCHEMA, read_table, write_table
from attree.stages.train import TrainingRequest, train_parser
from attree.training import self_training
from attree.training.choice import choose_trees
from attree.training.fit import fit
from attree.training.gold import GoldTrees
from attree.training.options import Choice, Fitting
from attree.training.parser import TrainedModel
from attree.training.recipes import TrainingPlan, recipe
from attree.training.self_training import fit_in_rounds, sure_trees, sureness
from attree.trees.trees import Trees
from tests.refusals import refused

PLAN = TrainingPlan(recipe("fss"), layers=(1,), steps=30, batch=4, seed=1, size=8)


@pytest.fixture
def raw(treebank: Path, trees: GoldTrees) -> list[list[str]]:
    """The words of the other sentences."""
    rows = read_table(treebank)[0].to_pylist()
    return [row["words"] for row in rows if row["sentence"] not in trees.sentence]


def test_sure_is_the_mean_score_of_the_phrases_but_the_whole() -> None:
    spans = [[(0, 4), (0, 2), (2, 4)], [(0, 3)], [(0, 2)], [(0, 3), (1, 3)]]
    trees = Trees.from_spans([4, 3, 2, 3], spans)
    scores = np.array([9.0, 1.0, 3.0, 5.0, 5.0, -2.0, 0.5])
    assert sureness(replace(trees, scores=scores)).tolist() == [2.0, -np.inf, -np.inf, 0.5]


def test_the_surer_half_is_kept_as_the_parser_found_it(encoder, raw, trees) -> None:
    parser = fit(encoder, trees, PLAN)
    raw = [words for words in raw if len(words) > 2]
    kept = sure_trees(parser, encoder, raw)
    assert 0 < len(kept.gold) <= max(round(len(raw) / 2), 1)
    each, model = [], TrainedModel(parser, encoder)
    for words in raw:  # one by one: what is sure does not depend on the batch
        alone = model.trees(model.features(encoder.tokenise([words])))
        each.append((float(sureness(alone)[0]), alone))
    least = min(each[place][0] for place in kept.sentence)
    others = [sure for place, (sure, _) in enumerate(each) if place not in kept.sentence]
    finite = [sure for sure in others if np.isfinite(sure)]
    assert not finite or least >= max(finite) - 1e-3
    for place, words, gold in zip(kept.sentence, kept.words, kept.gold, strict=True):
        alone = each[place][1]
        spans = set(zip(alone.starts.tolist(), alone.ends.tolist(), strict=True))
        assert words == raw[place]
        assert {(i, j) for i, j in gold.brackets.tolist()} == spans | {(0, len(words))}


def test_the_last_round_is_trained_on_both(encoder, raw, trees) -> None:
    parser = fit_in_rounds(encoder, trees, PLAN, raw)
    assert parser.about["trees"] == len(trees.gold)
    assert parser.about["sources"][1] > 0
    assert parser.about["rounds"] == 1
    again = fit_in_rounds(encoder, trees, PLAN, raw)
    first = parser.scorer.state_dict()
    assert all((first[key] == value).all() for key, value in again.scorer.state_dict().items())


def test_the_session_gives_it_the_other_sentences_and_none_that_is_evaluated(
    treebank, tmp_path: Path
) -> None:
    rows = read_table(treebank)[0]
    plain = choose_trees(treebank, Choice(["4"], 0), [])
    assert len(plain.raw) == len(rows) - 4
    tested = tmp_path / "tested.parquet"
    every = rows["words"].to_pylist()
    left = next(row for row, words in enumerate(every) if len(words) > 6 and words in plain.raw)
    write_table(tested, rows.slice(left, 1), schema=SENTENCES_SCHEMA, metadata={})
    chosen = choose_trees(treebank, Choice(["4"], 0), [tested])
    assert every[left] not in chosen.raw
    assert chosen.trees.sentence == plain.trees.sentence


def test_the_gold_trees_of_raw_sentences_do_not_matter(treebank, resolved, tmp_path: Path) -> None:
    table, metadata = read_table(treebank)
    drawn = choose_trees(treebank, Choice(["6"], 0), []).trees.sentence
    rows = [
        row
        if row["sentence"] in drawn
        else row | {"starts": [0], "ends": [len(row["words"])], "labels": ["X"]}
        for row in table.to_pylist()
    ]
    flat = tmp_path / "flat.parquet"
    write_table(
        flat,
        pa.Table.from_pylist(rows, SENTENCES_SCHEMA),
        schema=SENTENCES_SCHEMA,
        metadata=metadata,
    )
    weights = []
    for path in (treebank, flat):
        fitting = Fitting(steps=20, batch=4, size=8)
        request = TrainingRequest(recipe("fss"), resolved, fitting)
        chosen = choose_trees(path, Choice(["6"], 0), [])
        assert chosen.trees.sentence == drawn
        weights.append(train_parser(request, chosen, tmp_path / path.stem).scorer.state_dict())
    assert all((weights[0][key] == value).all() for key, value in weights[1].items())


def test_there_must_be_raw_sentences_that_fit(
    encoder, trees, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_long = ["word"] * 400
    with refused("no-sentences"):
        fit_in_rounds(encoder, trees, PLAN, [["two", "words"], too_long])
    monkeypatch.setattr(self_training, "sureness", lambda trees: np.full(len(trees), -np.inf))
    with refused("no-phrases"):
        fit_in_rounds(encoder, trees, PLAN, [["three", "words", "here"]])
    with refused("two-treebanks"):
        fit_in_rounds(encoder, trees + trees, PLAN, [])
