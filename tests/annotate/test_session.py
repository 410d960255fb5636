"""A session: correcting, undo, saving, going on tomorrow, training on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from attree.annotate.folder import BEGIN, LOG, TREES, opened
from attree.annotate.proposals import Proposer, labelled_f1
from attree.annotate.session import Session
from attree.base.errors import AttreeError, NotFiniteError
from attree.cli.annotate import annotate_command
from attree.treebank.as_table import Treebank
from attree.treebank.language import discover
from attree.treebank.sentence import Sentence, SplitSettings
from attree.trees.tree import Tree
from tests.annotate.conftest import TEXT, Begin
from tests.refusals import refused

FIRST = "the old man lived near the harbour ."


def words(session: Session) -> str:
    return "" if session.shown is None else " ".join(session.shown.source.words)


def spans(session: Session) -> set[tuple[int, int]]:
    assert session.shown is not None
    return {(node.start, node.end) for node in session.shown.nodes()}


def act(session: Session, action: str, start: int, end: int, label: str = "") -> None:
    session.act(action, start, end, (0, 0), label)


def finish(proposer: Proposer) -> None:
    """Wait for the running training, if any."""
    if proposer._thread is not None:
        proposer._thread.join()


def test_each_correction_is_kept_and_the_rest_is_a_tree(session: Session) -> None:
    assert words(session) == FIRST
    act(session, "label", 0, 3, "NP")
    act(session, "join", 3, 7)
    act(session, "break", 4, 7)
    assert {(0, 3), (3, 7), (0, 8)} <= spans(session)
    assert (4, 7) not in spans(session)
    act(session, "flat", 3, 7)
    assert {span for span in spans(session) if span[0] >= 3 and span[1] <= 7} == {(3, 7)}


def test_undo_takes_back_one_correction_after_the_other(session: Session) -> None:
    before = spans(session)
    act(session, "join", 1, 3)
    act(session, "join", 2, 4)
    session.undo()
    assert (1, 3) in spans(session)
    session.undo()
    assert spans(session) == before
    with refused("nothing-to-undo"):
        session.undo()


def labels(session: Session) -> dict[str, str]:
    return {one["name"]: one["key"] for one in session.state()["labels"]}


def test_labels_keep_their_digits(session: Session) -> None:
    for label in ("S+VP", "NP", "PP"):
        act(session, "label", 0, 3, label)
        session.state()
    act(session, "label", 0, 8, "S+VP")
    assert labels(session) == {"S+VP": "1", "PP": "3"}
    session.accept()
    act(session, "label", 0, 3, "PP")
    act(session, "label", 0, 2, "NP")
    assert labels(session) == {"S+VP": "1", "NP": "2", "PP": "3"}
    session.undo()
    assert labels(session) == {"S+VP": "1", "PP": "3"}
    session.undo()
    session.undo()
    act(session, "dissolve", 0, 3)
    session.accept()
    assert labels(session) == {"S+VP": "1"}


def test_labels_have_the_same_digits_tomorrow(session_of: Begin) -> None:
    with session_of() as session:
        for name in ("A", "B", "C"):
            act(session, "label", 0, 3, name)
            session.state()
        act(session, "label", 4, 6, "B")
        assert labels(session) == {"B": "2", "C": "3"}
        session.accept()
    with session_of() as session:
        assert labels(session) == {"B": "1", "C": "2"}  # nobody uses A
        act(session, "label", 0, 3, "A")
        session.accept()
    with session_of() as session:
        assert labels(session) == {"B": "1", "C": "2", "A": "3"}


def test_tags_are_shown_set_and_saved(session: Session, tmp_path: Path) -> None:
    assert {one["tag"] for one in session.state()["sentence"]["tags"]} == {""}
    act(session, "tag", 1, 2, "JJ")
    act(session, "tag", 2, 3, "NN")
    act(session, "tag", 2, 3, "")
    tags = session.state()["sentence"]["tags"]
    assert [place for place, one in enumerate(tags) if one["fixed"]] == [1]
    with refused("tag-of-phrase"):
        act(session, "tag", 0, 2, "NN")
    session.accept()
    assert "(JJ old)" in (tmp_path / "bank" / TREES).read_text()
    assert session.state()["tags"] == ["JJ"]


TREEBANK = """\
( (S (NP-SBJ (DT the) (JJ old) (NN man)) (VP (VBD came) (ADVP (RB home))) (. .)) )
( (S (NP (DT the) (NN cat)) (VP (VBD chased) (NP (NNS mice)))) )
( (NP (NN rain)) )
( (NP (DT the) (NN harbour)) )
"""


def test_a_treebank_is_opened_and_corrected(session_of: Begin, tmp_path: Path) -> None:
    mine = tmp_path / "mine.mrg"
    mine.write_text(TREEBANK, encoding="utf-8")
    with session_of("new", texts=(mine,)) as session:
        sentence = session.state()["sentence"]
        shown = {(one["start"], one["end"]): one["label"] for one in sentence["nodes"]}
        assert shown == {(0, 6): "S", (0, 3): "NP-SBJ", (3, 5): "VP", (4, 5): "ADVP"}
        assert [one["tag"] for one in sentence["tags"]] == ["DT", "JJ", "NN", "VBD", "RB", "."]
        assert not any(one["fixed"] for one in [*sentence["nodes"], *sentence["tags"]])
        act(session, "dissolve", 4, 5)
        act(session, "label", 0, 3, "NP")
        act(session, "tag", 4, 5, "NN")
        session.accept()
        for _ in TREEBANK.splitlines()[1:]:
            session.accept()
        assert session.state()["sentence"] is None
    corrected = (tmp_path / "new" / TREES).read_text().splitlines()
    assert corrected[0] == ("(S (NP (DT the) (JJ old) (NN man)) (VP (VBD came) (NN home)) (. .))")
    assert corrected[1:] == [line[2:-2] for line in TREEBANK.splitlines()[1:]]
    assert mine.read_text() == TREEBANK


def test_what_cannot_be_done_changes_nothing(session: Session) -> None:
    before = session.state()
    with pytest.raises(AttreeError):
        act(session, "label", 0, 3, "N P")
    with pytest.raises(AttreeError):
        act(session, "burn", 0, 3)
    assert session.state() == before


def test_accepting_saves_a_treebank_that_attree_reads(session: Session, tmp_path: Path) -> None:
    act(session, "label", 0, 3, "NP")
    act(session, "label", 0, 8, "S+IP")
    session.accept()
    session.skip()
    path = tmp_path / "bank" / TREES
    table = Treebank.read([path], SplitSettings()).table.to_pylist()
    assert [" ".join(row["words"]) for row in table] == [FIRST]
    found = dict(
        zip(zip(table[0]["starts"], table[0]["ends"], strict=True), table[0]["labels"], strict=True)
    )
    assert found[0, 3] == "NP"
    assert table[0]["labels"][:2] == ["S", "IP"]
    assert discover([tmp_path])["bank"].files("train") == (path,)
    log = [json.loads(line) for line in (tmp_path / "bank" / LOG).read_text().splitlines()]
    assert [one["action"] for one in log] == ["begin", "label", "label", "accept", "labels", "skip"]
    assert log[3]["edits"] == 2
    assert (log[3]["file"], log[3]["line"], log[3]["words"]) == ("text.txt", 1, FIRST.split())
    assert all("T" in one["time"] for one in log)


def test_its_log_is_read_again_without_a_word(
    session_of: Begin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with session_of(tokenizer="rules") as session:
        session.accept()
    capsys.readouterr()
    with opened(tmp_path / "bank") as folder:
        assert [record.action for record in folder.records][:2] == ["begin", "accept"]
    assert capsys.readouterr().err == ""


def test_it_goes_on_tomorrow(session_of: Begin) -> None:
    with session_of() as session:
        session.accept()
        session.skip()
        third = words(session)
        assert third == TEXT.splitlines()[2] == "rain !"
    with session_of() as session:
        assert words(session) == third
        assert session.saved == 1
        assert session.state()["curve"] == [0]


def test_a_tree_taken_out_by_hand_is_shown_again(session_of: Begin, tmp_path: Path) -> None:
    with session_of() as session:
        session.accept()
        second = words(session)
        session.accept()
    path = tmp_path / "bank" / TREES
    path.write_text(path.read_text().splitlines()[0] + "\n")
    with session_of() as session:
        assert words(session) == second


def test_an_edited_text_repeats_nothing(session_of: Begin, text: Path) -> None:
    with session_of() as session:
        session.accept()
    text.write_text("a new line\n" + TEXT, encoding="utf-8")
    with session_of() as session:
        assert words(session) == "a new line"
        session.accept()
        assert words(session) == TEXT.splitlines()[1]


def test_undo_goes_back_into_the_sentence_before(session: Session, tmp_path: Path) -> None:
    act(session, "join", 1, 3)
    session.accept()
    second = words(session)
    session.accept()
    session.skip()
    for _ in range(3):
        session.undo()
    assert words(session) == FIRST
    assert (1, 3) in spans(session)
    assert session.saved == 0
    assert (tmp_path / "bank" / TREES).read_text() == ""
    session.accept()
    assert words(session) == second
    assert len((tmp_path / "bank" / TREES).read_text().splitlines()) == 1


def test_a_sentence_that_the_encoder_fails_on_costs_only_itself(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    chart, second = Proposer.chart, TEXT.splitlines()[1].split()

    def broken(self: Proposer, sentence: tuple[str, ...]) -> Any:
        if list(sentence) == second:
            raise NotFiniteError("not-finite", "numbers that are none")
        return chart(self, sentence)

    monkeypatch.setattr(Proposer, "chart", broken)
    session.accept()
    assert words(session) == TEXT.splitlines()[2]
    assert session.state()["passed"] == {"failed": 1}
    assert session.saved == 1


def test_all_done_is_told_and_can_be_undone(session: Session) -> None:
    for _ in TEXT.splitlines():
        session.accept()
    assert session.state()["sentence"] is None
    with refused("all-done"):
        session.accept()
    session.undo()
    assert words(session) == TEXT.splitlines()[-1]


def test_each_treebank_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("en.train", "en.dev"):
        Path(f"{name}.ptb").write_text("(S (A a) (B b))\n")
        Path(f"{name}-corrected").touch()  # a file in the folder's place, so that nothing begins
        with refused("not-a-folder", file=f"{name}-corrected"):
            annotate_command([Path(f"{name}.ptb")], parser="upio")


def test_the_log_beside_a_text_does_not_tell_its_language(
    session_of: Begin, text: Path, tmp_path: Path
) -> None:
    text.write_text("Der alte Mann ging z. B. gestern nach Hause und schlief.\n", encoding="utf-8")
    (tmp_path / "bank").mkdir()
    lines = [BEGIN, *[{"action": "train"}] * 120]
    (tmp_path / "bank" / LOG).write_text("".join(json.dumps(line) + "\n" for line in lines))
    with session_of(texts=(tmp_path,), tokenizer=None) as session:
        assert "z." in words(session).split()


def test_all_done_tomorrow_is_one_line(session_of: Begin) -> None:
    with session_of() as session:
        for _ in TEXT.splitlines():
            session.accept()
    with refused("all-done", file="text.txt"), session_of():
        pass


def test_a_parser_is_trained_every_few_trees(session_of: Begin, tmp_path: Path) -> None:
    with session_of(every=2) as session:
        for _ in range(2):
            act(session, "label", 0, 2, "NP")
            assert session.proposer.name == "upio-log"
            session.accept()
        finish(session.proposer)
        state = session.state()
        assert state["trained"]["trees"] == 2
        assert state["training_failed"] == ""
        assert state["parser"] == "2 trees"
        assert state["trained"]["took_over"]
        assert labels(session) == {"NP": "1"}
        assert session.shown is not None  # with a new proposal, as it is not corrected yet
        assert session.shown.likely is not None
        session.accept()
        session.end()
    log = [json.loads(line) for line in (tmp_path / "bank" / LOG).read_text().splitlines()]
    assert [one["trees"] for one in log if one["action"] == "train"] == [2]
    assert [one["parser"] for one in log if one["action"] == "accept"] == [
        *["upio-log"] * 2,
        "2 trees",
    ]


def test_a_new_parser_leaves_what_is_corrected_alone(session_of: Begin) -> None:
    with session_of(every=100) as session:
        session.accept()
        act(session, "join", 1, 3)
        before, version = session.state()["sentence"], session.version
        session.proposer.train(session._saved)
        finish(session.proposer)
        assert session.proposer.name == "1 tree"
        assert (session.state()["sentence"], session.version) == (before, version)


def test_what_cannot_be_trained_on_stops_nobody(session_of: Begin, text: Path) -> None:
    text.write_text("a b\nc d\nthe old man\n", encoding="utf-8")
    with session_of(every=1) as session:
        session.accept()
        finish(session.proposer)
        assert "no tree of three words" in session.state()["training_failed"]
        session.accept()
        assert words(session) == "the old man"


def test_a_parser_that_proposes_no_better_does_not_take_over(
    session_of: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two parsers it is compared by trees that neither has learnt from."""
    compared: list[tuple[int, list[int]]] = []
    with session_of(every=3) as session:
        proposer, parsed = session.proposer, Proposer._parse

        def noted(self: Proposer, parser: Any, sentences: Any, places: list[int]) -> Any:
            learnt = len(parser.model.trained.trained_on)
            compared.append((learnt, list(places)))
            return parsed(self, parser, sentences, places)

        monkeypatch.setattr(Proposer, "_parse", noted)
        for turn in range(6):
            act(session, "label", 0, 2, "NP" if turn < 3 else "XP")
            session.accept()
            finish(proposer)
            if turn == 2:
                assert proposer.trained.took_over and proposer.trained.scores is None
                monkeypatch.setattr(
                    "attree.annotate.proposals.labelled_f1", lambda gold, found: 50.0
                )
        assert proposer.trained.scores == (50.0, 50.0)
        assert not proposer.trained.took_over
        assert (proposer.name, proposer.learnt) == ("3 trees", 3)
        assert compared == [(4, [3]), (4, [4]), (4, [5]), (2, [3, 4, 5])]  # one has two words


def test_labelled_f1_is_that_of_counts_by_hand() -> None:
    words = tuple("abcd")
    gold = Sentence(words, (), ((0, 4, "S"), (0, 2, "NP"), (2, 4, "VP"), (3, 4, "NP")), "f", 1)
    same = Tree(words, ((0, 4), (0, 2), (2, 4), (3, 4)), labels=("S", "NP", "VP", "NP"))
    other = Tree(words, ((0, 4), (0, 2), (1, 2)), labels=("S", "VP", "NP"))
    assert labelled_f1([gold], [same]) == 100.0
    assert labelled_f1([gold, gold], [same, other]) == round(200 * 5 / (8 + 7), 2)
    assert labelled_f1([gold], [Tree(words, ((0, 4),))]) == 0.0
