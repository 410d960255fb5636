"""Search trees for nodes, by patterns that TGrep2 and Tregex know too; NLTK's ``tgrep`` reads them.

``attree`` has no language of its own: it reads the trees, and calls the function that
``nltk.tgrep`` makes of the pattern on every node and word. Several processes search many trees.
"""

import multiprocessing
import os
import re
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
from nltk.tree import ParentedTree
from nltk.tree import Tree as NltkTree

from attree.base.errors import AttreeError
from attree.bulk.output import Rows
from attree.trees.tree import Tree

#: Batches that this process searches before it starts others, which takes them a second.
_HERE = 2
#: Batches that wait for each other process: so memory stays bounded.
_WAITING = 3


@dataclass(frozen=True, slots=True)
class Match:
    """A node or word that a pattern matches.

    Attributes:
        file, line, sentence, status: of its sentence, as in :class:`attree.bulk.output.Rows`.
        label: of the node; the word itself if a word is matched.
        start, end: its half-open word interval.
        words: of the sentence.
    """

    file: str
    line: int
    sentence: int
    status: str
    label: str
    start: int
    end: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found among some trees.

    Attributes:
        files: of each tree that was searched.
        matches: in the order of trees, in pre-order within a tree.
        refused: a line for each tree that is too deep for the pattern.
    """

    files: list[str]
    matches: list[Match]
    refused: list[str]


class _Node(ParentedTree):
    """A node that knows its parent: made of nodes without one, so nothing needs to be checked.

    Attributes:
        n_words: the number of words below it.
    """

    def __init__(self, label: str, children: list[Any]) -> None:
        NltkTree.__init__(self, label, children)
        self._parent = None
        self.n_words = 0
        for child in children:
            self.n_words += getattr(child, "n_words", 1)
            if not isinstance(child, str):
                child._parent = self


#: What tgrep raises, beside errors of its own, for patterns that it does not understand.
_FAULTS = (ValueError, re.error, RecursionError, AssertionError)


class Pattern:
    """A pattern of nodes, compiled.

    Args:
        text: the pattern, such as ``NP < (PP <1 IN)``; see ``nltk.tgrep``.

    Raises:
        AttreeError: ``tgrep`` cannot read it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        import pyparsing
        from nltk import tgrep

        try:
            with warnings.catch_warnings():  # of names that pyparsing has renamed
                warnings.simplefilter("ignore", DeprecationWarning)
                self._matches = tgrep.tgrep_compile(text)
        except pyparsing.ParseBaseException as error:
            raise self._unread(error.loc) from None
        except (tgrep.TgrepException, *_FAULTS) as error:
            raise self._wrong(error) from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the text: each process compiles the pattern itself."""
        return Pattern, (self.text,)

    def _unread(self, position: int) -> AttreeError:
        rest = self.text[position:].strip()
        where = f"at column {position + 1}: {rest[:40]!r}" if rest else "to its end"
        fix = "see the patterns of nltk.tgrep, such as 'NP < PP' or 'VP << /^give/'"
        problem = f"tgrep cannot read the pattern {self.text[:200]!r} {where}"
        return AttreeError("bad-pattern", problem, fix=fix)

    def _wrong(self, error: Exception) -> AttreeError:
        """Return the error of a pattern that is read but means nothing, with its position."""
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        if isinstance(error, AssertionError):  # tgrep gives no reason
            reason = "a quotation mark or a slash is not closed"
        if isinstance(error, TypeError):  # a fault of tgrep
            reason = "only a macro can have a name, as in '@ N /NP/; @N=n < PP'"
        named = re.findall(r"""["'](.+?)["']|(=\w+)|macro (\S+)""", reason)
        places = [self.text.find(part) for parts in named for part in parts if part]
        at = next((f" at column {place + 1}" for place in places if place >= 0), "")
        problem = f"tgrep cannot use the pattern {self.text[:200]!r}{at}: {reason}"
        return AttreeError("bad-pattern", problem, fix="correct the pattern")

    def nodes(self, tree: Tree) -> Iterator[tuple[str, int, int]]:
        """Yield label, start and end of each node and word of a tree that matches, in pre-order."""
        todo, start = [tree.to_nltk(_Node)], 0
        while todo:
            node = todo.pop()
            is_word = isinstance(node, str)
            if self._is_match(node):
                label, n_words = (node, 1) if is_word else (node.label(), node.n_words)
                yield label, start, start + n_words
            if is_word:
                start += 1
            else:
                todo.extend(node[::-1])

    def _is_match(self, node: Any) -> bool:
        try:
            return bool(self._matches(node))
        except RecursionError:
            raise
        except Exception as error:  # its own, of a regular expression, or a fault of tgrep
            raise self._wrong(error) from None

    def search(self, some: Rows) -> Found:
        """Search some trees.

        Raises:
            AttreeError: a macro or a name of a node is not defined, or a regular expression takes
                too long.
        """
        rows = np.flatnonzero(some.trees.n_words).tolist()
        matches, refused = [], []
        for row in rows:
            tree = some.trees.of(row, some.words[row])
            where = (some.file[row], some.line[row], some.sentence[row], some.status[row])
            try:
                matches += [Match(*where, *node, tree.words) for node in list(self.nodes(tree))]
            except RecursionError:
                refused.append(f"{where[0]}:{where[1]}: this tree is too deep for the pattern")
        return Found([some.file[row] for row in rows], matches, refused)


def search(pattern: Pattern, batches: Iterable[Rows]) -> Iterator[Found]:
    """Yield what is found in each batch of trees, in order; search many on all cores.

    Raises:
        AttreeError: see :meth:`Pattern.search`.
    """
    batches = iter(batches)
    yield from map(pattern.search, islice(batches, _HERE))
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    first = list(islice(batches, 1))
    if not first or cores < 2:
        yield from map(pattern.search, chain(first, batches))
        return
    # a fork may copy a lock that Arrow holds
    pool = ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("spawn"))
    waiting: deque[Future[Found]] = deque()
    try:
        for batch in chain(first, batches):
            waiting.append(pool.submit(pattern.search, batch))
            if len(waiting) > _WAITING * cores:
                yield waiting.popleft().result()
        yield from (future.result() for future in waiting)
    except BrokenProcessPool:
        fix = "run again; a machine that is short of memory kills processes"
        raise AttreeError("killed", "a process of the search was killed", fix=fix) from None
    finally:
        pool.shutdown(cancel_futures=True)
