"""A session: correcting, undo, saving, going on tomorrow, training on the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attree.annotate.folder import LOG, TREES
from attree.annotate.proposals import Chart, Proposer
from attree.annotate.session import Session
from attree.errors import AttreeError, NotFiniteError
from attree.given import Treebank
from attree.treebank.language import discover
from attree.treebank.sentence import Settings
from tests.annotate.conftest import TEXT, Begin

FIRST = "the old man lived near the harbour ."


def words(session: Session) -> str:
    return "" if session.shown is None else " ".join(session.shown.source.words)


def spans(session: Session) -> set[tuple[int, int]]:
    assert session.shown is not None
    return {(node.start, node.end) for node in session.shown.nodes()}


def act(session: Session, action: str, start: int, end: int, label: str = "") -> None:
    session.act(action, start, end, (0, 0), label)


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
    with pytest.raises(AttreeError, match="nothing to undo"):
        session.undo()


def test_labels_keep_their_places_in_the_order_of_use(session: Session) -> None:
    for label in ("S+VP", "NP", "PP"):
        act(session, "label", 0, 3, label)
    act(session, "label", 0, 8, "S+VP")
    assert session.state()["labels"] == ["S+VP", "PP"]
    session.accept()
    act(session, "label", 0, 3, "PP")
    act(session, "label", 0, 2, "NP")
    assert session.state()["labels"] == ["S+VP", "NP", "PP"]
    session.undo()
    assert session.state()["labels"] == ["S+VP", "PP"]
    session.undo()
    session.undo()
    act(session, "dissolve", 0, 3)
    session.accept()
    assert session.state()["labels"] == ["S+VP"]


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
    table = Treebank.read(path, Settings()).table.to_pylist()
    assert [" ".join(row["words"]) for row in table] == [FIRST]
    found = dict(
        zip(zip(table[0]["starts"], table[0]["ends"], strict=True), table[0]["labels"], strict=True)
    )
    assert found[0, 3] == "NP"
    assert table[0]["labels"][:2] == ["S", "IP"]
    assert discover([tmp_path])["bank"].files("train") == (path,)
    log = [json.loads(line) for line in (tmp_path / "bank" / LOG).read_text().splitlines()]
    assert [one["action"] for one in log] == ["begin", "label", "label", "accept", "skip"]
    assert log[3]["edits"] == 2
    assert (log[3]["file"], log[3]["line"], log[3]["words"]) == ("text.txt", 1, FIRST.split())
    assert all("T" in one["time"] for one in log)


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

    def broken(self: Proposer, sentence: tuple[str, ...]) -> Chart:
        if list(sentence) == second:
            raise NotFiniteError("numbers that are none")
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
    with pytest.raises(AttreeError, match="all sentences are done"):
        session.accept()
    session.undo()
    assert words(session) == TEXT.splitlines()[-1]


def test_all_done_tomorrow_is_one_line(session_of: Begin) -> None:
    with session_of() as session:
        for _ in TEXT.splitlines():
            session.accept()
    with pytest.raises(AttreeError, match="every sentence of this text is done"), session_of():
        pass


def test_a_parser_is_trained_every_few_trees(session_of: Begin, tmp_path: Path) -> None:
    with session_of(every=2) as session:
        for _ in range(2):
            act(session, "label", 0, 2, "NP")
            assert session.proposer.name == "upio-log"
            session.accept()
        session.proposer.wait()
        state = session.state()
        assert state["trained"]["trees"] == 2
        assert state["training_failed"] == ""
        assert state["parser"] == "2 trees"
        assert state["labels"] == ["NP"]
        assert session.shown is not None  # with a new proposal, as it is not corrected yet
        assert session.shown.proposal.likely is not None
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
        session.proposer.wait()
        assert session.proposer.name == "1 trees"
        assert (session.state()["sentence"], session.version) == (before, version)


def test_what_cannot_be_trained_on_stops_nobody(session_of: Begin, text: Path) -> None:
    text.write_text("a b\nc d\nthe old man\n", encoding="utf-8")
    with session_of(every=1) as session:
        session.accept()
        session.proposer.wait()
        assert "no tree of three words" in session.state()["training_failed"]
        session.accept()
        assert words(session) == "the old man"
