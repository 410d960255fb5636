"""One session of annotating: the sentence that is shown, its corrections, undo, saving."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from attree.annotate.draft import CORRECTIONS, Draft, Node, labels_of, tree_of
from attree.annotate.folder import BEGIN, Folder, now
from attree.annotate.history import accepted
from attree.annotate.proposals import Chart, Proposal, Proposer, Trained
from attree.annotate.text import Sentences, Source
from attree.errors import AttreeError, NotFiniteError
from attree.schemas import FAILED, TOO_LONG
from attree.treebank.sentence import Sentence

#: A phrase less likely than this is marked as weak.
WEAK = 0.5

#: Sentences that undo can go back over; each keeps its chart.
_MOST_FINISHED = 20

#: Labels offered beside those of the parser.
_MOST_LABELS = 60


@dataclass(slots=True)
class Shown:
    """The sentence on the page.

    Attributes:
        source: it, and where it stands.
        chart: what proposes its trees.
        drafts: what was settled after each correction, the first of nothing.
        proposal: the tree under the last of them.
        parser: what proposes.
        actions: the corrections, as they are logged.
        began: when it was shown, in seconds.
    """

    source: Source
    chart: Chart
    drafts: list[Draft]
    proposal: Proposal
    parser: str
    actions: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    @property
    def edits(self) -> int:
        """How many corrections it has, those undone not counted."""
        return len(self.drafts) - 1

    def nodes(self) -> list[Node]:
        """Return the phrases shown."""
        return self.drafts[-1].nodes(self.proposal.tree)


@dataclass(slots=True)
class Finished:
    """A sentence that was accepted or skipped in this session, and the files before it."""

    shown: Shown
    trees: str
    accepted: bool


class Session:
    """What the page does, one request at a time.

    Args:
        folder: the treebank.
        saved: its trees so far.
        sentences: to annotate.
        proposer: proposes their trees.
        about: what the log says about the session, such as the language.
    """

    def __init__(
        self,
        folder: Folder,
        saved: list[Sentence],
        sentences: Sentences,
        proposer: Proposer,
        about: dict[str, Any],
    ) -> None:
        self.folder, self.sentences, self.proposer = folder, sentences, proposer
        self._waiting: Iterator[Source] = iter(sentences)
        self._again: list[Shown] = []
        self._lock = threading.RLock()
        self.version, self.saved_now = 0, 0
        self._finished: deque[Finished] = deque(maxlen=_MOST_FINISHED)
        self._saved = saved
        self._curve = accepted(folder.records())
        self._pending: list[dict[str, Any]] = [{"time": now(), **BEGIN, **about}]
        used = Counter(name for one in self._saved for name in labels_of(one))
        self._labels = Counter(dict(used.most_common()))  # what is new is added at the end
        proposer.told = self._trained
        self.shown: Shown | None = None
        self._next()
        if proposer.due(len(self._saved)):
            proposer.train(self._saved)

    @property
    def saved(self) -> int:
        """How many trees the treebank has."""
        return len(self._saved)

    def state(self) -> dict[str, Any]:
        """Return what the page shows, as JSON."""
        with self._lock:
            trained, shown = self.proposer.trained, self.shown
            found: dict[str, Any] = {
                "version": self.version,
                "saved": self.saved,
                "parser": self.proposer.name,
                "training": self.proposer.training,
                "trained": {"trees": trained.trees, "seconds": trained.seconds},
                "training_failed": trained.failed,
                "labels": self._offered(),
                "curve": [one.get("edits", 0) for one in self._curve],
                "passed": dict(self.sentences.passed),
                "can_undo": bool(self._finished or (shown and shown.edits)),
                "sentence": None,
            }
            if shown is not None:
                found["sentence"] = self._sentence(shown)
            return found

    def act(self, action: str, start: int, end: int, to: tuple[int, int], label: str) -> None:
        """Correct the tree shown.

        Raises:
            AttreeError: an unknown action, or one that cannot be done; nothing has changed.
        """
        with self._lock:
            shown = self._current()
            if action not in CORRECTIONS:
                raise AttreeError(f"unknown action {action!r}")
            draft = CORRECTIONS[action](shown.drafts[-1], (start, end), to, label)
            shown.proposal = shown.chart.propose(draft)
            shown.drafts.append(draft)
            more: dict[str, Any] = {"to": list(to)} if action == "move" else {}
            if action == "label":
                more["label"] = label.strip()
                self._labels[label.strip()] += 0  # from now on it has its place
            self._note(shown, action, start=start, end=end, **more)
            self.version += 1

    def undo(self) -> None:
        """Take back the last correction, or the last sentence accepted or skipped.

        Raises:
            AttreeError: there is nothing to take back.
        """
        with self._lock:
            shown = self.shown
            if shown is not None and shown.edits:
                proposal = shown.chart.propose(shown.drafts[-2])
                shown.drafts.pop()
                shown.proposal = proposal
                self._note(shown, "undo")
            elif self._finished:
                self._reopen()
            else:
                raise AttreeError("there is nothing to undo")
            self.version += 1

    def accept(self) -> None:
        """Save the tree shown, and show the next sentence.

        Raises:
            AttreeError, OSError: it could not be saved; nothing has changed, and it can be tried
                again.
        """
        with self._lock:
            shown = self._current()
            tree = tree_of(shown.source.words, shown.nodes())
            brackets = tree.brackets()
            record = self._finish(
                shown,
                "accept",
                self.folder.trees + brackets + "\n",
                edits=shown.edits,
                seconds=round(time.monotonic() - shown.began, 1),
                parser=shown.parser,
                tree=brackets,
            )
            labels = tree.labels or ()
            spans = tuple((*span, name) for span, name in zip(tree.spans, labels, strict=True))
            source = shown.source
            self._saved.append(Sentence(source.words, (), spans, source.file, source.line))
            self._labels.update(labels_of(self._saved[-1]))
            self._curve.append(record)
            self.saved_now += 1
            self._next()
            if self.proposer.due(self.saved):
                self.proposer.train(self._saved)

    def skip(self) -> None:
        """Leave the sentence out for good, and show the next.

        Raises:
            AttreeError, OSError: as :meth:`accept`.
        """
        with self._lock:
            self._finish(self._current(), "skip", self.folder.trees)
            self._next()

    def end(self) -> None:
        """Write what the log does not have yet, such as a training; an empty folder stays so."""
        with self._lock:
            if self.folder.log and any(one["action"] == "train" for one in self._pending):
                self.folder.save(self.folder.trees, self._pending)
                self._pending.clear()

    def _finish(self, shown: Shown, action: str, trees: str, **more: Any) -> dict[str, Any]:
        """Save, and keep what undo needs; return the record of it in the log."""
        record = self._record(shown.source, action, words=list(shown.source.words), **more)
        before = self.folder.trees
        self.folder.save(trees, [*self._pending, *shown.actions, record])
        self._pending.clear()
        self._finished.append(Finished(shown, before, action == "accept"))
        self.version += 1
        return record

    def _reopen(self) -> None:
        """Show the last finished sentence again, and take its tree out of the treebank."""
        last = self._finished[-1]
        record = self._record(last.shown.source, "reopen", words=list(last.shown.source.words))
        self.folder.save(last.trees, [*self._pending, record])
        self._pending.clear()
        self._finished.pop()
        if last.accepted:
            taken = self._saved.pop()
            self._labels.subtract(labels_of(taken))
            self._curve.pop()
            self.saved_now -= 1
        last.shown.actions.clear()
        if self.shown is not None:
            self._again.append(self.shown)
        self.shown = last.shown

    def _next(self) -> None:
        """Show the next sentence that the encoder takes."""
        self.shown = None
        if self._again:
            self.shown = self._again.pop()
            return
        for source in self._waiting:
            if not self.proposer.takes(source.words):
                self.sentences.passed[TOO_LONG] += 1
                continue
            try:
                self.shown = self._proposed(source)
            except NotFiniteError:
                self.sentences.passed[FAILED] += 1
                continue
            return

    def _proposed(self, source: Source) -> Shown:
        """Return a sentence with its first proposal, by the newest parser."""
        draft, name = Draft(len(source.words)), self.proposer.name
        chart = self.proposer.chart(source.words)
        return Shown(source, chart, [draft], chart.propose(draft), name)

    def _current(self) -> Shown:
        if self.shown is None:
            raise AttreeError("all sentences are done")
        return self.shown

    def _note(self, shown: Shown, action: str, **more: Any) -> None:
        shown.actions.append(self._record(shown.source, action, **more))

    @staticmethod
    def _record(source: Source, action: str, **more: Any) -> dict[str, Any]:
        where = {"file": source.file, "line": source.line}
        return {"time": now(), "action": action, **where, **more}

    def _trained(self, done: Trained) -> None:
        """Log a training; of a sentence that is not corrected yet, show the new proposal."""
        with self._lock:
            record = {"time": now(), "action": "train", "trees": done.trees}
            record["seconds"] = done.seconds
            self._pending.append(record | ({"failed": done.failed} if done.failed else {}))
            if self.shown is not None and not self.shown.edits and not done.failed:
                with contextlib.suppress(NotFiniteError):
                    self.shown = self._proposed(self.shown.source)
                    self.version += 1

    def _offered(self) -> list[str]:
        """Return the labels offered, in an order that stays: digits on the page set the first."""
        here = set(self.shown.drafts[-1].fixed.values()) - {""} if self.shown else set()
        used = [name for name, count in self._labels.items() if count > 0 or name in here]
        return list(dict.fromkeys([*used, *self.proposer.labels()]))[:_MOST_LABELS]

    def _sentence(self, shown: Shown) -> dict[str, Any]:
        likely, nodes = shown.proposal.likely, []
        for node in shown.nodes():
            sure = None if likely is None else float(likely[node.start, node.end])
            whole = node.end - node.start == len(shown.source.words)
            weak = sure is not None and sure < WEAK and not node.fixed and not whole
            nodes.append(
                {
                    "start": node.start,
                    "end": node.end,
                    "label": node.label,
                    "fixed": node.fixed,
                    "flat": node.flat,
                    "weak": round(sure, 2) if weak and sure is not None else None,
                }
            )
        return {
            "file": shown.source.file,
            "line": shown.source.line,
            "words": list(shown.source.words),
            "nodes": nodes,
            "edits": shown.edits,
        }
