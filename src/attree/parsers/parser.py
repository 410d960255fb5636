"""Parse sentences: ``Parser.load().parse("A sentence.")``.

This module splits strings into words and sentences into blocks and batches of similar length;
:mod:`attree.parsers.batches` makes trees of batches. Bulk parsing runs the same steps in three
threads (:mod:`attree.bulk.pipeline`).
"""

from __future__ import annotations

import functools
import pickle
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.languages import code_of
from attree.base.text import encodable
from attree.decoding import MOST_BEST
from attree.parsers.find import Overrides, ParserSource, WithoutEncoder, find, find_parser
from attree.raw_text.words import sentences_of
from attree.ready import default_parser
from attree.trees import OK, TOO_LONG
from attree.trees.constraints import Constraints
from attree.trees.tree import Tree
from attree.trees.trees import Trees

if TYPE_CHECKING:
    from attree.evaluation.side_by_side import Evaluation, Gold, System
    from attree.parsers.batches import Model, Prepared, SentenceScores
    from attree.treebank.labels import Labelling

_NOTHING = Constraints()


class Candidate(NamedTuple):
    """One of the best trees of a sentence.

    Attributes:
        tree: the tree.
        score: the quantity that the decoder maximises, summed over the tree: split scores; for
            ``normalised_chart`` the log probability of the tree; for ``minimum_risk`` the expected
            number of right spans, without the whole sentence; for ``labelled_risk`` the expected
            number of right labels, minus the threshold for each label; for ``optional_chart`` span
            scores. None for a sentence with only one tree.
        probability: probability of the tree among all binary trees, or all labelled trees; None if
            the parser has no distribution over trees. An expected number of right spans or labels
            may rank trees differently: the most probable tree need not have the most right spans.
    """

    tree: Tree
    score: float | None
    probability: float | None


@dataclass(frozen=True, slots=True)
class Chart:
    """A parser's scores of one sentence, from :meth:`Parser.chart`.

    No method runs the encoder again.

    Attributes:
        words: words of the sentence.
        scores: scores of its spans.
    """

    words: tuple[str, ...]
    scores: SentenceScores

    def tree(self, constraints: Constraints | None = None) -> Tree:
        """Return the best tree that keeps to constraints.

        A required span is in the tree, with its label if trees have labels; if its label is not
        given, it gets the best label other than the empty one. A forbidden span is never in the
        tree. Without constraints this is the tree of :meth:`Parser.parse`, which gives a sentence
        of one word no label.

        Raises:
            AttreeError: a span reaches outside the sentence.
        """
        return self.scores.trees(constraints or _NOTHING).of(0, self.words)

    def best(self, k: int) -> list[Candidate]:
        """Return the best k different trees, best first, or all if there are fewer.

        The first is that of :meth:`Parser.parse`. A lazy search finds exactly the best
        (:mod:`attree.decoding.k_best`).

        Raises:
            AttreeError: ``k`` is out of 1 to :data:`~attree.decoding.MOST_BEST`, or the parser
                decides split by split and does not compare whole trees.
        """
        if not 1 <= k <= MOST_BEST:
            fix = f"ask for 1 to {MOST_BEST:,}"
            raise AttreeError("bad-count", f"{k} is no number of trees", fix=fix)
        ranked = self.scores.best(k)
        chances: Sequence[float | None] = ranked.probabilities or [None] * len(ranked.scores)
        trees = ranked.trees.each([self.words] * len(ranked.scores))
        return list(map(Candidate, trees, ranked.scores, chances))

    def marginals(self, constraints: Constraints | None = None) -> NDArray[np.float64]:
        """Return the probability of each span to be a phrase of the tree.

        If trees have labels, a phrase is a span with a label; only then do single words have
        probabilities. The probability is 1 for a required span, and 0 for a span that is forbidden
        or crosses a required one.

        Returns:
            float64 (n + 1, n + 1), span ``[i, j)`` at ``[i, j]``.

        Raises:
            AttreeError: the parser has no distribution over trees, or a span reaches outside the
                sentence.
        """
        return self.scores.marginals(constraints or _NOTHING)


#: A sentence as a string or a list of words.
Sentence = str | Sequence[str]

#: Most cells of a batch's attention matrices: sentences × longest².
_CELLS_PER_BATCH = 1 << 20

#: Sentences that `Parser.stream` parses at a time.
_AT_A_TIME = 512


class Parser:
    """A parser that is ready to parse; make one with :meth:`load`.

    Args:
        model: makes trees of batches.
        max_words: longer sentences are too long, even if the encoder takes them.
        tokens_per_batch: word pieces in a batch of the encoder; by default chosen by device.
        language: name or code of the language whose rules split strings into sentences and words;
            by default each string's language is detected.

    Attributes:
        language: code of that language; empty if it is detected.
    """

    def __init__(
        self,
        model: Model,
        *,
        max_words: int | None = None,
        tokens_per_batch: int | None = None,
        language: str | None = None,
    ) -> None:
        self.model, self.encoder = model, model.encoder
        self._max_words = max_words
        self._tokens_per_batch = tokens_per_batch or model.encoder.tokens_per_batch
        self.language = code_of(language) if language else ""
        self._made_by: tuple[Any, dict[str, Any]] | None = None

    @classmethod
    def load(
        cls,
        parser: str | None = None,
        *,
        encoder: str | None = None,
        heads: str | None = None,
        association: str | None = None,
        score: str | None = None,
        decoder: str | None = None,
        dtype: str | None = None,
        device: str | None = None,
        threads: int | None = None,
        language: str | None = None,
        **settings: Any,
    ) -> Parser:
        """Load a parser.

        Args:
            parser: ``universal``, ``upoa``, ``upio`` or ``upio-log`` (for a hundred languages), a
                folder of ``attree train`` or ``attree grammar train``, or a selection of ``attree
                heads`` (``results/heads/…/dev.json``).
            encoder: ``results/encoders/….json``, a folder, a package; by default the parser's own.
            heads: ``list:LAYER.HEAD,…`` or ``all``; by default the parser's own.
            association, score, decoder: names; by default the parser's own.
            dtype: by default the description's, or ``auto``: ``bfloat16`` where the device
                multiplies it, else ``float32``. In bfloat16 about one tree in twenty differs from
                float32, F1 does not, and one in a hundred depends on its batch.
            device: ``cpu``, ``cuda``, ``cuda:1``…; by default a GPU if there is one.
            threads: threads of a CPU run; by default torch's choice.
            language: name or code of the language whose rules split strings into sentences and
                words; by default that of the parser's training trees, else each string's language
                is detected.
            settings: further arguments of :class:`Parser`.

        Raises:
            AttreeError: the parser or language does not exist, the parser needs another encoder,
                or it cannot be loaded.
        """
        parser = str(default_parser(encoder=encoder, heads=heads) if parser is None else parser)
        chosen = Overrides(encoder, heads, association, score, decoder, dtype)
        source = (find if chosen == Overrides() else find_parser)(parser, chosen)
        language = language or source.language
        return cls.of(source, device=device, threads=threads, language=language, **settings)

    @classmethod
    def of(
        cls,
        source: ParserSource | WithoutEncoder,
        *,
        device: str | None = None,
        threads: int | None = None,
        **settings: Any,
    ) -> Parser:
        """Load the parser that a source describes; arguments as for :meth:`load`."""
        if isinstance(source, ParserSource):
            from attree.encoder.load import load_encoder

            encoder = load_encoder(source.encoder, device=device, threads=threads)
            loaded = cls(source.on(encoder), **settings)
        else:
            loaded = cls(source.load(threads=threads), **settings)
        loaded._made_by = source, {"device": device, "threads": threads, **settings}
        return loaded

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what the parser was loaded from; who reads the pickle loads it from there, once.

        Raises:
            TypeError: it was made of a model, not loaded.
        """
        if self._made_by is None:
            raise TypeError("only a parser of Parser.load or Parser.of can be pickled or copied")
        return _load_again, (pickle.dumps(self._made_by),)

    @overload  # Any: most strings are one sentence, and callers need not check
    def parse(self, sentences: str, *, constraints: Constraints | None = None) -> Tree | Any: ...
    @overload
    def parse(
        self,
        sentences: list[Any] | tuple[Any, ...],
        *,
        constraints: Sequence[Constraints | None] | None = None,
    ) -> list[Tree]: ...
    def parse(
        self,
        sentences: str | Sequence[Sentence],
        *,
        constraints: Constraints | Sequence[Constraints | None] | None = None,
    ) -> Tree | list[Tree]:
        """Parse a text, or a list of sentences.

        Args:
            sentences: a text as a string, which the language's rules split into sentences; or a
                list of sentences, each a string or a list of words, which are not split into
                sentences. The same rules split strings into words.
            constraints: constraints on the tree of the string, or one for each sentence of a list,
                None for no constraint; see :meth:`Chart.tree`. They do not change the other trees.
                A string with constraints is one sentence.

        Returns:
            for a string the tree of its sentence, or a list of trees if it has several; for a list
            a list of trees in the same order. A sentence that is too long for the encoder gets a
            right-branching tree with the ``status`` ``too_long``.

        Raises:
            AttreeError: the numbers of constraints and sentences differ, or a constraint reaches
                outside its sentence.
        """
        if not isinstance(sentences, Iterable):
            raise _no_sentence(sentences)
        if isinstance(sentences, str):
            if (constraint := cast("Constraints | None", constraints)) is not None:
                return next(self.stream([sentences], [constraint]))
            trees = list(self.stream(self.sentences(sentences)[1]))
            return trees[0] if len(trees) == 1 else trees
        trees = list(self.stream(sentences, cast("Sequence[Constraints | None]", constraints)))
        if isinstance(sentences, list | tuple) and {*map(type, sentences)} == {str}:
            _warn_of_words(trees)
        return trees

    def stream(
        self, sentences: Iterable[Sentence], constraints: Iterable[Constraints | None] | None = None
    ) -> Iterator[Tree]:
        """Yield the trees of sentences in order, parsing a block at a time in constant memory.

        Arguments are those of :meth:`parse`.
        """
        waiting = self._paired(sentences, constraints)
        while block := list(islice(waiting, _AT_A_TIME)):
            trees, status = self.trees(*zip(*block, strict=True))
            for position, (words, _) in enumerate(block):
                yield trees.of(position, words, status=str(status[position]))

    def _paired(
        self, sentences: Iterable[Sentence], constraints: Iterable[Constraints | None] | None
    ) -> Iterator[tuple[list[str], Constraints | None]]:
        """Yield the words of each sentence and the constraints on its tree."""
        if constraints is None:
            yield from ((self.words(sentence), None) for sentence in sentences)
            return
        for row, (sentence, known) in enumerate(zip_longest(sentences, constraints, fillvalue=...)):
            if sentence is ... or known is ...:
                problem = "there are not as many constraints as sentences"
                raise AttreeError("constraint-count", problem, fix="give None for no constraint")
            words = self.words(sentence)
            if known:
                try:
                    known.check(len(words))
                except AttreeError as error:
                    raise error.replace(problem=f"sentence {row}: {error.problem}") from None
            yield words, known

    def trees(
        self,
        words: Sequence[Sequence[str]],
        constraints: Sequence[Constraints | None] = (),
        *,
        at_a_time: int | None = None,
        watch: Callable[[NDArray[np.int64], Any], None] = lambda positions, features: None,
        advance: Callable[[int], None] = lambda count: None,
    ) -> tuple[Trees, NDArray[np.str_]]:
        """Parse sentences of words into arrays.

        Args:
            words: words of each sentence.
            constraints: constraints on the trees of the first sentences, None for no constraint.
            at_a_time: number of sentences that are grouped into batches together; all by default.
            watch: called with the positions and the features of each batch, in any thread.
            advance: called with the number of sentences done.

        Returns:
            the trees, and the status of each: ``ok``, ``too_long`` or ``failed``.
        """
        from attree.parsers.batches import in_threads, threads_of

        size = at_a_time or max(len(words), 1)
        trees, statuses = [], []
        for first in range(0, max(len(words), 1), size):
            block = slice(first, first + size)
            prepared = self.prepare(words[block], constraints[block])

            def step(batch: NDArray[np.int64], at: int = first, to: Prepared = prepared) -> Trees:
                features = to.encode(batch)
                watch(batch + at, features)
                return to.decode(batch, features)

            # torch's own threads share the products of a single batch
            threads = min(threads_of(self.model), len(prepared.batches))
            trees.append(prepared.assemble(list(in_threads(step, prepared.batches, threads))))
            statuses.append(prepared.status)
            advance(len(prepared.status))
        return Trees.concatenate(trees), np.concatenate(statuses)

    def evaluate(
        self, trees: str | Path | Iterable[Tree], *, max_words: int | None = None, **settings: Any
    ) -> Evaluation:
        """Parse the sentences of gold trees and score the parses; ``print`` the result for a table.

        Args:
            trees: a treebank file or a sentence table, or trees.
            max_words: score only sentences of at most this many words.
            settings: fields of :class:`attree.treebank.sentence.SplitSettings`, for reading a file.

        Returns:
            ``corpus_f1``, ``labelled_f1`` and their ``intervals``; and ``tables()``.

        Raises:
            AttreeError: no tree can be read.
        """
        from attree.evaluation.side_by_side import Evaluation, Gold
        from attree.treebank.sentence import SplitSettings

        if isinstance(trees, str | Path):
            gold = Gold.read([Path(trees)], SplitSettings(**settings))
        else:
            gold = Gold.of(trees)
        return Evaluation(gold, [self.parse_gold(gold, "this parser")], max_words)

    def parse_gold(self, gold: Gold, name: str, labels: Labelling | None = None) -> System:
        """Parse the sentences of gold trees, to be compared with other parsers.

        A parser that was trained with punctuation gets it here too; its trees are scored without.

        Args:
            gold: the gold trees.
            name: name of the parser in tables.
            labels: how labels are mapped; the parser's are mapped if universal labels are asked
                for.
        """
        from attree.evaluation.side_by_side import System, sentence_of
        from attree.treebank.labels import UNIVERSAL, with_labels

        trained = self.model.trained
        policy = trained.about.get("table", {}).get("punctuation") if trained is not None else None
        with_all = policy == "keep" and gold.whole is not None
        words: Any = gold.whole if with_all else [list(s.words) for s in gold.sentences]
        trees, _ = self.trees(words)
        each = enumerate(trees.each(words), start=1)
        read = [sentence_of(tree, (name, line)) for line, tree in each]
        labelled, tagged = bool(trees.label_of_each()), bool(trees.tag_of_each())
        if labelled and labels is not None and labels.kind == UNIVERSAL:
            read = with_labels(read, labels)
        system = System.of_trees(name, gold, read, labelled=labelled, tagged=tagged)
        return replace(system, refused=[], where={})

    def sentences_a_second(self, words: Sequence[Sequence[str]]) -> float:
        """Return the speed of :meth:`trees`, from words to trees, without loading the encoder."""
        self.trees(words[:2])  # compiles kernels
        began = time.perf_counter()
        self.trees(words)
        return round(len(words) / (time.perf_counter() - began), 2)

    def association(self, words: Sentence) -> NDArray[np.float32]:
        """Return the (words, words) association matrix that a sentence's tree is made from.

        Raises:
            AttreeError: the sentence has no word, or is too long for the encoder.
        """
        return self.model.associations(self._features(self.words(words)))[0]

    def chart(self, sentence: Sentence) -> Chart:
        """Return the scores of one sentence, for decoding it repeatedly.

        Raises:
            AttreeError: the sentence has no word, or is too long.
            NotFiniteError: the encoder's output for it is not finite.
        """
        words = self.words(sentence)
        return Chart(tuple(words), self.model.chart(self._features(words)))

    def k_best(self, sentence: Sentence, k: int) -> list[Candidate]:
        """Return the best k trees of a sentence with their scores, best first.

        See :meth:`Chart.best`. A sentence with only one tree, or that is too long, gets the tree
        of :meth:`parse` without a score.

        Raises:
            AttreeError: ``k`` is out of bounds, or the parser does not compare whole trees.
        """
        words = self.words(sentence)
        tree = self.parse([words])[0]
        if len(words) < 2 or tree.status != OK:
            return [Candidate(tree, None, None)]
        return self.chart(words).best(k)

    def _features(self, words: list[str]) -> Any:
        """Run the encoder over one sentence."""
        pieces = self.encoder.tokenise([words])
        fix = "give another sentence"
        if pieces[0].too_long or len(words) > (self._max_words or np.inf):
            raise AttreeError("too-long", "this sentence is too long for the encoder", fix=fix)
        if not words:
            raise AttreeError("no-word", "this sentence has no word", fix=fix)
        return self.model.features(pieces)

    def words(self, sentence: Sentence) -> list[str]:
        """Return the words of a sentence, which are those of a list of words.

        Raises:
            AttreeError: ``sentence`` is no list of words, or has an item that is no string, or an
                empty one.
        """
        if not isinstance(sentence, str):
            if not isinstance(sentence, Iterable) or isinstance(sentence, bytes):
                raise _no_sentence(sentence)
            words = list(sentence)  # a generator gives them once
            for word in words:
                if not isinstance(word, str) or not word.strip():
                    raise _no_sentence(word, "word")
            return list(map(encodable, words))
        return self.sentences(sentence, split=False)[1][0]

    def sentences(self, text: str, *, split: bool = True) -> tuple[str, list[list[str]]]:
        """Split a text into sentences of words.

        Args:
            text: a text of any number of sentences.
            split: whether the text is cut into sentences; else it is one.

        Returns:
            the code of the language whose rules were used, and the words of each sentence; a text
            that is too long for the rules is one sentence, split at white space.
        """
        return sentences_of(text, self.language, split=split)

    def prepare(
        self, words: Sequence[Sequence[str]], constraints: Sequence[Constraints | None] = ()
    ) -> Prepared:
        """Split words into pieces and group sentences of similar length into batches.

        Constraints do not change the batches of longer sentences, so that the scores of other
        sentences do not depend on them. Arguments are those of :meth:`trees`.
        """
        from attree.encoder.pieces import batches
        from attree.parsers.batches import Prepared

        known = {i: x for i, x in enumerate(constraints) if x}
        pieces = self.encoder.tokenise(words)
        n_words = np.array([sentence.n_words for sentence in pieces], np.int64)
        too_long = np.array([sentence.too_long for sentence in pieces], bool)
        too_long |= n_words > (self._max_words or np.inf)
        status = np.where(too_long, TOO_LONG, OK).astype("<U16")
        parsed = np.flatnonzero((status == OK) & (n_words > 1))
        groups = batches(
            [len(pieces[i].ids) for i in parsed],
            tokens_per_batch=self._tokens_per_batch,
            cells_per_batch=_CELLS_PER_BATCH,
        )
        chosen = [parsed[group] for group in groups]
        # a single word needs decoding only for its label
        single = [i for i in known if status[i] == OK and n_words[i] == 1]
        if single and self.model.labelled:
            chosen.append(np.array(single, dtype=np.int64))
        return Prepared(self.model, n_words, status, chosen, known, pieces)


@functools.lru_cache(maxsize=2)  # a pool sends its parser along with every task
def _load_again(made_by: bytes) -> Parser:
    source, settings = pickle.loads(made_by)
    return Parser.of(source, **settings)


def _warn_of_words(trees: Sequence[Tree]) -> None:
    if len(trees) > 1 and all(len(tree.words) == 1 for tree in trees):
        warnings.warn(
            "each of these strings is a sentence of one word: for one sentence give a list of "
            'lists, parse([["This", "is", "one"]]), or a text, parse("This is one")',
            stacklevel=3,
        )


def _no_sentence(value: Any, noun: str = "sentence") -> AttreeError:
    problem = f"{str(value)[:40]!r} ({type(value).__name__}) is no {noun}"
    fix = "give a text, a list of words, none of them empty, or a list of these"
    return AttreeError("not-a-sentence", problem, fix=fix)
