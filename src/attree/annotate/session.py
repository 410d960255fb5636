"""A session of annotating: begin it, show sentences, correct, undo, save."""

import contextlib
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.annotate.draft import CORRECTIONS, Draft, ShownPhrase, proposed, tree_of
from attree.annotate.folder import BEGIN, Folder, accepted, finished, now, order_of_labels
from attree.annotate.proposals import Proposer, Trained, propose
from attree.annotate.text import (
    REPEATED,
    OriginalSentence,
    are_treebanks,
    text_sentences,
    trees_to_correct,
)
from attree.base.errors import AttreeError, NotFiniteError
from attree.base.options import TextOptions
from attree.bulk.run import first_lines, how_split
from attree.parsers.find import ParserSource
from attree.parsers.parser import Chart, Parser
from attree.raw_text.inputs import find_inputs
from attree.raw_text.lines import refuse_treebanks
from attree.treebank.sentence import Sentence
from attree.trees import FAILED, TOO_LONG
from attree.trees.tree import NO_LABEL, Tree

#: A phrase of a lower probability is marked as weak.
WEAK = 0.5

#: The number of sentences that undo can go back; each keeps its chart.
_MOST_FINISHED = 20

#: Code of an error of a sentence that is passed over → the reason that is counted.
_PASSED_OVER = {"too-long": TOO_LONG, "not-finite": FAILED}

#: The most labels, or tags, that the page offers.
_MOST_LABELS = 60


@dataclass(slots=True)
class Shown:
    """The sentence on the page.

    Attributes:
        source: the sentence with its file and line.
        chart: the parser's chart of it, which gives trees under constraints.
        drafts: the first draft, and the draft after each correction.
        tree, likely: the tree under the last draft, and what :func:`propose` gives beside it.
        parser: name of the parser.
        actions: log records of the corrections.
        began: time when it was shown, in seconds.
        doubts: span probabilities without constraints, for a tree that is to be corrected.
    """

    source: OriginalSentence
    chart: Chart
    drafts: list[Draft]
    tree: Tree
    likely: NDArray[np.float64] | None
    parser: str
    actions: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    doubts: NDArray[np.float64] | None = None

    @property
    def edits(self) -> int:
        """The number of corrections, without those undone."""
        return len(self.drafts) - 1

    def nodes(self) -> list[ShownPhrase]:
        """Return the phrases shown."""
        return self.drafts[-1].nodes(self.tree)


class Session:
    """The state behind the page, which handles one request at a time.

    Args:
        folder: the folder of the treebank.
        sentences: the sentences to annotate.
        passed: reason → number of sentences passed over.
        proposer: proposes trees.
        log: fields of the log record that begins the session, such as the language.

    Attributes:
        lock: hold it to read :attr:`version` and act on it.
    """

    def __init__(
        self,
        folder: Folder,
        sentences: Iterator[OriginalSentence],
        passed: Counter[str],
        proposer: Proposer,
        log: dict[str, Any],
    ) -> None:
        self.folder, self.passed, self.proposer = folder, passed, proposer
        self._waiting = sentences
        self._again: list[Shown] = []
        self.lock = threading.RLock()
        self.version = 0
        # the sentence, and the text of the trees before it was accepted or skipped
        self._finished: deque[tuple[Shown, str]] = deque(maxlen=_MOST_FINISHED)
        self._saved = list(folder.sentences)
        self._curve = [record.edits for record in accepted(folder.records)]
        self._pending: list[dict[str, Any]] = [{"time": now(), **BEGIN, **log}]
        self._labels = Counter(name for tree in self._saved for name in _labels_of(tree))
        names = {*self._labels, *proposer.names("labels")}
        self._logged = order_of_labels(folder.records)
        # a label keeps its digit: new labels are added at the end
        kept = [name for name in self._logged if name in names]
        self._order = dict.fromkeys([*kept, *self._labels])
        proposer.told = self._log_training
        self.shown: Shown | None = None
        self._next()
        if proposer.due(len(self._saved)):
            proposer.train(self._saved)

    @property
    def saved(self) -> int:
        """The number of trees in the treebank."""
        return len(self._saved)

    def state(self) -> dict[str, Any]:
        """Return the state of the page as JSON."""
        with self.lock:
            trained, shown = asdict(self.proposer.trained), self.shown
            return {
                "version": self.version,
                "saved": self.saved,
                "parser": self.proposer.name,
                "training": self.proposer.training,
                "training_failed": trained.pop("failed"),
                "trained": trained,
                "labels": self._offer_labels(),
                "tags": self._offer_tags(),
                "curve": list(self._curve),
                "passed": dict(self.passed),
                "can_undo": bool(self._finished or (shown and shown.edits)),
                "sentence": None if shown is None else self._sentence(shown),
            }

    def act(self, action: str, start: int, end: int, to: tuple[int, int], label: str) -> None:
        """Correct the tree shown.

        Raises:
            AttreeError: the action is unknown or cannot be done; nothing has changed.
        """
        with self.lock:
            shown = self._current()
            if action not in CORRECTIONS:
                raise AttreeError("unknown-action", f"unknown action {action!r}")
            draft = CORRECTIONS[action](shown.drafts[-1], (start, end), to, label)
            shown.tree, shown.likely = propose(shown.chart, draft)
            shown.drafts.append(draft)
            more: dict[str, Any] = {"to": list(to)} if action == "move" else {}
            if action in ("label", "tag"):
                more["label"] = label.strip()
            shown.actions.append(self._record(shown.source, action, start=start, end=end, **more))
            self.version += 1

    def undo(self) -> None:
        """Take back the last correction, or the last sentence accepted or skipped.

        Raises:
            AttreeError: there is nothing to take back.
        """
        with self.lock:
            shown = self.shown
            if shown is not None and shown.edits:
                shown.tree, shown.likely = propose(shown.chart, shown.drafts[-2])
                shown.drafts.pop()
                shown.actions.append(self._record(shown.source, "undo"))
            elif self._finished:
                self._reopen()
            else:
                raise AttreeError("nothing-to-undo", "there is nothing to undo")
            self.version += 1

    def accept(self) -> None:
        """Save the tree shown, and show the next sentence.

        Raises:
            AttreeError, OSError: it could not be saved; nothing has changed, so that the user can
                try again.
        """
        with self.lock:
            shown = self._current()
            tree = tree_of(shown.source.words, shown.nodes(), shown.drafts[-1].tags_of(shown.tree))
            brackets = tree.brackets()
            self._finish(
                shown,
                "accept",
                self.folder.trees + brackets + "\n",
                edits=shown.edits,
                seconds=round(time.monotonic() - shown.began, 1),
                parser=shown.parser,
                tree=brackets,
            )
            source, spans = shown.source, tuple(tree.labelled())
            saved = Sentence(source.words, tree.tags or (), spans, source.file, source.line)
            self._saved.append(saved)
            self._labels.update(_labels_of(saved))
            self._curve.append(shown.edits)
            self._next()
            if self.proposer.due(self.saved):
                self.proposer.train(self._saved)

    def skip(self) -> None:
        """Leave the sentence out for good, and show the next one.

        Raises:
            AttreeError, OSError: as :meth:`accept`.
        """
        with self.lock:
            self._finish(self._current(), "skip", self.folder.trees)
            self._next()

    def end(self) -> None:
        """Write pending log records if a training is among them; an empty folder stays empty."""
        with self.lock:
            if self.folder.log and any(record["action"] == "train" for record in self._pending):
                self.folder.save(self.folder.trees, self._pending)
                self._pending.clear()

    def _finish(self, shown: Shown, action: str, trees: str, **more: Any) -> None:
        """Save trees and log, and keep the state that undo needs."""
        record = self._record(shown.source, action, words=list(shown.source.words), **more)
        self._offer_labels()  # the labels of this tree get their digits
        before, order = self.folder.trees, list(self._order)
        records = [*self._pending, *shown.actions, record]
        if order != self._logged:
            records.append({"time": now(), "action": "labels", "names": order})
        self.folder.save(trees, records)
        self._logged = order
        self._pending.clear()
        self._finished.append((shown, before))
        self.version += 1

    def _reopen(self) -> None:
        """Show the last finished sentence again, and take its tree out of the treebank."""
        last, trees = self._finished[-1]
        record = self._record(last.source, "reopen", words=list(last.source.words))
        was_accepted = trees != self.folder.trees
        self.folder.save(trees, [*self._pending, record])
        self._pending.clear()
        self._finished.pop()
        if was_accepted:
            self._labels.subtract(_labels_of(self._saved.pop()))
            self._curve.pop()
        last.actions.clear()
        if self.shown is not None:
            self._again.append(self.shown)
        self.shown = last

    def _next(self) -> None:
        """Show the next sentence that fits the encoder."""
        self.shown = self._again.pop() if self._again else None
        if self.shown is not None:
            return
        for source in self._waiting:
            try:
                self.shown = self._propose(source)
                return
            except AttreeError as error:
                if error.code not in _PASSED_OVER:
                    raise
                self.passed[_PASSED_OVER[error.code]] += 1

    def _propose(self, source: OriginalSentence) -> Shown:
        """Return a sentence with its first proposal by the current parser."""
        free, name = Draft(len(source.words)), self.proposer.name
        draft = free if source.given is None else Draft.of(source.given)
        chart = self.proposer.chart(source.words)
        shown = Shown(source, chart, [draft], *propose(chart, draft), name)
        if source.given is not None:
            _, shown.doubts = propose(chart, free)
        return shown

    def _current(self) -> Shown:
        if self.shown is None:
            raise AttreeError("all-done", "all sentences are done")
        return self.shown

    @staticmethod
    def _record(source: OriginalSentence, action: str, **more: Any) -> dict[str, Any]:
        return {"time": now(), "action": action, "file": source.file, "line": source.line, **more}

    def _log_training(self, training: Trained) -> None:
        """Log a training; if the sentence has no correction yet, show the new proposal."""
        with self.lock:
            fields = {k: v for k, v in asdict(training).items() if v not in (None, "")}
            self._pending.append({"time": now(), "action": "train", **fields})
            if self.shown is not None and not self.shown.edits and training.took_over:
                with contextlib.suppress(NotFiniteError):
                    self.shown = self._propose(self.shown.source)
                    self.version += 1

    def _offer_labels(self) -> list[dict[str, Any]]:
        """Return the labels to offer, and the digit keys of the first nine.

        A label keeps the digit that it gets when a tree, proposed or corrected, first has it.
        """
        shown = [node.label for node in self.shown.nodes() if node.label] if self.shown else []
        self._order.update(dict.fromkeys(shown))
        names = {*shown, *self.proposer.names("labels"), *(+self._labels)}
        digits = {name: str(digit) for digit, name in enumerate(list(self._order)[:9], 1)}
        listed = [name for name in dict.fromkeys([*self._order, *sorted(names)]) if name in names]
        return [{"name": name, "key": digits.get(name)} for name in listed[:_MOST_LABELS]]

    def _offer_tags(self) -> list[str]:
        """Return the tags of the treebank and of the parser, the most frequent first."""
        used = Counter(tag for sentence in self._saved for tag in sentence.tags)
        tags = [tag for tag, _ in used.most_common()] + self.proposer.names("tags")
        return [tag for tag in dict.fromkeys(tags) if tag not in ("", NO_LABEL)][:_MOST_LABELS]

    def _sentence(self, shown: Shown) -> dict[str, Any]:
        nodes, first, draft = [], shown.drafts[0], shown.drafts[-1]
        tags = draft.tags_of(shown.tree)
        changed = {index for index, tag in draft.tags.items() if first.tags.get(index) != tag}
        for node in shown.nodes():
            span = (node.start, node.end)
            # an uncorrected phrase of the original tree, which the parser may doubt
            as_given = node.fixed and shown.source.given is not None and span in first.fixed
            likely = shown.doubts if as_given else shown.likely
            whole = node.end - node.start == len(shown.source.words)
            can_be_weak = not whole and (as_given or not node.fixed)
            sure = float(likely[span]) if likely is not None and can_be_weak else 1.0
            fixed = node.fixed and not as_given
            weak = round(sure, 2) if sure < WEAK else None
            nodes.append(asdict(node) | {"fixed": fixed, "given": as_given, "weak": weak})
        return {
            "file": shown.source.file,
            "line": shown.source.line,
            "words": list(shown.source.words),
            "nodes": nodes,
            "tags": [{"tag": tag, "fixed": index in changed} for index, tag in enumerate(tags)],
            "edits": shown.edits,
        }


@dataclass(frozen=True, slots=True)
class AnnotationRequest:
    """The arguments of ``attree annotate``.

    Attributes:
        texts: files and folders of text, or treebank files, whose trees are corrected.
        parser: the parser that proposes the first trees.
        name: its name.
        how: how text is split into words.
        max_words: longer sentences are passed over.
        every: number of trees between two trainings.
        device: device of the encoder.
        labels: labels of the treebank, as ``labels`` of ``language.yaml``.
    """

    texts: tuple[Path, ...]
    parser: ParserSource
    name: str
    how: TextOptions = field(default_factory=TextOptions)
    max_words: int = 80
    every: int = 5
    device: str | None = None
    labels: str | None = None


def begin(request: AnnotationRequest, folder: Folder) -> Session:
    """Load the parser and show the first sentence.

    Raises:
        AttreeError: the text has no sentence to annotate, or all are done.
    """
    done = finished(folder.records, folder.sentences)
    passed: Counter[str] = Counter()
    code, sentences = _to_annotate(request, folder, done, passed)
    parser = Parser.of(request.parser, device=request.device)
    log = {"language": folder.path.name, "rules": code, "encoder": request.parser.encoder.slug}
    session = Session(folder, sentences, passed, Proposer(parser, request.name, request.every), log)
    if session.shown is None:
        raise _no_sentence(request.texts[0], passed, before=bool(done))
    return session


def _to_annotate(
    request: AnnotationRequest, folder: Folder, done: set[tuple[str, ...]], passed: Counter[str]
) -> tuple[str, Iterator[OriginalSentence]]:
    """Return the name of the rules that split words (empty for treebanks), and the sentences."""
    if are_treebanks(request.texts):
        for path in request.texts:
            if path.resolve().is_relative_to(folder.path.resolve()):
                problem, fix = "this input is in the output folder", "name another --output"
                raise AttreeError("input-in-output", problem, file=path, fix=fix)
        return "", trees_to_correct(request.texts, done, passed, request.labels)
    files, _ = find_inputs(request.texts, without=folder.path)
    refuse_treebanks(files)
    column, most = request.how.column, request.max_words
    how = how_split(request.parser, request.how, first_lines(request.texts, column, folder.path))
    todo = text_sentences(files, how.tokeniser(), done, passed, max_words=most, column=column)
    return how.name, todo


def _no_sentence(text: Path, passed: Counter[str], *, before: bool) -> AttreeError:
    """Return the error that says why no sentence is shown."""
    if before:
        problem = "every sentence of this text is done"
        return AttreeError("all-done", problem, file=text, fix="give more text")
    counts = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in passed.items() if name != REPEATED
    )
    problem, fix = "this text has no sentence", "give another text"
    if counts:
        problem = f"no sentence of this text can be annotated: {counts}"
        fix = "give one sentence a line, or a higher --max-words"
    return AttreeError("no-sentences", problem, file=text, fix=fix)


def _labels_of(sentence: Sentence) -> list[str]:
    """Return the labels of a saved tree in the order of its spans; chains are joined."""
    return [label for label in proposed(sentence.spans).values() if label]
