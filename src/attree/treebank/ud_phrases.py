"""Derive phrases of a constituency tree from the Universal Dependencies tree of a sentence.

The rules have four parts. **Subtrees that are phrases** (``dependencies: half``): a word and the
words below it are a phrase if they are two or more and adjacent (a projective subtree), after
punctuation and coordinating conjunctions at its edges are removed, but not one of a pair of
quotation marks, brackets or dashes: ``[the cat]`` of *, and the cat,*. The root's phrase is the
whole sentence with punctuation. No phrases are the subtrees of words that constituency treebanks
attach without a node of their own (`_NO_PHRASE`: function words, parts of names and of fixed
expressions, numerals), and of repairs and ellipses, whose phrases have another shape.

**Phrases inside subtrees** (``dependencies: inner``): a nominal without its adpositions, as in
nearly all treebanks (except TIGER and SQUOIA), and a nominal predicate with its own dependents,
without subject and copula, unless it is coordinated. With ``inner_flat_group``, for Romance
languages, so is a verb or copula with its auxiliaries: ``[has seen]``; for French
(``inner_flat_group_clitics``) with clitics and negation too: ``[il ne l' a pas vu]``. Other spans
stay unknown: the subject's sister VP and a first conjunct are phrases in some treebanks.

**Spans that are no phrases**: two or more neighbouring dependents of a clause's head or of a noun,
without that head: subject and object before a final verb, or ``[the old]`` of *the old man*.
With ``half_flat`` and ``inner_flat``, for languages without verb phrases, neither are a verb and
some of its dependents, such as ``[saw Ann]`` of *he saw Ann*: treebanks of Basque, German, Hebrew
and Hungarian put subject, verb and objects side by side (those of English and Icelandic have verb
phrases). A verb without its auxiliary may be in a phrase there too: ``[seen Ann]`` of *he has seen
Ann*.

In 781 sentences with phrases in Floresta and dependencies in UD_Portuguese-Bosque, 93 % of the
derived spans are Floresta's phrases, in either of the first two parts; they are 46 % and 65 % of
its phrases. Of the spans that are no phrases, in 438 of them, 0.5 % are phrases of Floresta in
``inner``, 3.2 % in ``inner_flat``, and 0.8 % in ``inner_flat_group``, where they are nearly twice
as many as in ``inner``; of 86 verbs with their auxiliaries 73 are phrases.

**Labels**, of the nine of Han et al. (2014), follow from the head's part of speech, relation and
dependents (see `Tree.labels`). The label is ``None`` where treebanks disagree: an infinitive under
an adposition is a PP in French and an S in English, a second conjunct without subject a VP or an S.
"""

import itertools
import random
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from attree.treebank.crossing import top_down

#: Relations whose dependents' subtrees are no phrases, or not surely.
# fmt: off
_NO_PHRASE = frozenset((
    "aux", "case", "cc", "clf", "compound", "cop", "dep", "det", "discourse", "fixed", "flat",
    "goeswith", "list", "mark", "nummod", "orphan", "punct", "reparandum",
))
# fmt: on
_NOMINAL_RELATIONS = frozenset(
    ("nsubj", "obj", "iobj", "obl", "nmod", "appos", "dislocated", "vocative", "expl")
)
_CORE = frozenset(("nsubj", "obj", "iobj", "expl"))
_NOUNS = frozenset(("NOUN", "PROPN", "PRON", "NUM", "SYM", "DET"))
#: Dependents of a noun, and of a clause's head, that form no phrase with each other.
_OF_NOUN = frozenset(("acl", "amod", "case", "det", "nmod", "nummod"))
_OF_CLAUSE = frozenset(
    ("advcl", "advmod", "ccomp", "discourse", "dislocated", "expl", "iobj", "nsubj", "obj", "obl")
)
#: Features of French clitics and negation.
_CLITIC = frozenset(("Emph=No", "Reflex=Yes", "Polarity=Neg"))
#: Dependents at the edge of a clause that need not be in one node with the rest.
_MARGINAL = frozenset(("cc", "mark", "punct"))
_SUBJECTS = frozenset(("nsubj", "csubj"))
#: Dependents that make a clause of a nominal, and dependents within a nominal predicate.
_CLAUSAL = frozenset(("nsubj", "csubj", "cop"))
_OF_PREDICATE = frozenset(
    ("acl", "amod", "appos", "case", "compound", "det", "fixed", "flat", "nmod", "nummod")
)
_LABELS = {"ADJ": "AJP", "ADV": "AVP"}
#: Opening mark → closing mark; some marks both open and close.
_PAIRS = {
    pair[0]: pair[1]
    for pair in ("()", "[]", "{}", "«»", "“”", "‘’", "„“", "「」", "『』", "（）", "《》")
}
_PAIRS |= {"``": "''"} | {mark: mark for mark in ('"', "--", "—", "–")}
_CLOSING = frozenset(_PAIRS.values())


class Words(NamedTuple):
    """The words of one sentence.

    Attributes:
        forms, tags: the words, and their universal parts of speech.
        heads: 0-based, -1 for a root.
        relations: to the head, with subtypes.
        features: the column as it is.
    """

    forms: list[str]
    tags: list[str]
    heads: list[int]
    relations: list[str]
    features: list[str]


#: Relations whose subtrees a shortened sentence keeps, and of others the share that it keeps.
# fmt: off
_KEPT = frozenset((
    "aux", "case", "clf", "compound", "cop", "det", "expl", "fixed", "flat", "goeswith", "iobj",
    "nsubj", "nummod", "obj", "xcomp",
))
# fmt: on
_SOMETIMES = {"amod": 0.5, "nmod": 0.3, "obl": 0.4, "advmod": 0.3}
#: Fewest and most words of a shortened sentence.
_SHORTEST, _LONGEST = 3, 8


def shortened(words: Words) -> Words | None:
    """Return a sentence's main clause, with its subject, objects and some of the rest.

    Treebanks have few sentences as short as those that people type first. What is left out, always
    the same for the same sentence, are whole subtrees, so that the rest is a tree too.

    Returns:
        the words, or None if there are several roots, if the root is no verb with a subject or an
        object, if nothing can be left out, or if the rest is not of three to eight words.
    """
    if words.heads.count(-1) != 1:
        return None
    draw = random.Random(zlib.crc32(" ".join(words.forms).encode("utf-8", "replace")))
    root = words.heads.index(-1)
    kept = [False] * len(words.heads)
    core = False
    for word in top_down(words.heads):
        relation, head = words.relations[word].partition(":")[0], words.heads[word]
        if word == root:
            kept[word] = words.tags[word] == "VERB"
        elif kept[head] and relation == "punct":
            kept[word] = head == root and word == len(kept) - 1
        elif kept[head]:
            kept[word] = relation in _KEPT or draw.random() < _SOMETIMES.get(relation, 0.0)
            core = core or (head == root and relation in ("nsubj", "obj"))
    if not core or all(kept) or not _SHORTEST <= sum(kept) <= _LONGEST:
        return None
    new = list(itertools.accumulate(kept, initial=0))
    columns: list[list[Any]] = [list(itertools.compress(column, kept)) for column in words]
    rest = Words(*columns)
    rest.forms[0] = rest.forms[0][:1].upper() + rest.forms[0][1:]
    return rest._replace(heads=[new[head] if head >= 0 else -1 for head in rest.heads])


@dataclass(frozen=True, slots=True)
class Phrase:
    """A span that is a phrase, its head word, and its label if it is no subtree."""

    start: int
    end: int
    head: int
    label: str | None = None


class Tree:
    """A dependency tree, and the phrases that it shows.

    Attributes:
        words: of the tree.
        rules: those that apply beside the first, such as ``inner`` and ``flat``.
        relations: of the words, without subtypes.
        starts, ends, sizes: first word, end and number of words of each word's subtree.
        below: the dependents of each word.
    """

    def __init__(self, words: Words, rules: Collection[str] = ()) -> None:
        self.words, self.rules = words, rules
        self.relations = [relation.partition(":")[0] for relation in words.relations]
        self.starts, self.ends, self.sizes = extents(words.heads)
        self._edge = [relation in ("punct", "cc") for relation in self.relations]
        self.below: list[list[int]] = [[] for _ in words.heads]
        for word, head in enumerate(words.heads):
            if head >= 0:
                self.below[head].append(word)
                if self.relations[word] == "fixed":
                    self._edge[word] = self.relations[head] == "cc"

    def phrases(self) -> list[Phrase]:
        """Return the phrases of the tree in pre-order; of two with the same words, the outer."""
        phrases: dict[tuple[int, int], Phrase] = {}
        for head, relation in enumerate(self.relations):
            if self.sizes[head] == len(self.relations):
                phrases[0, len(self.relations)] = Phrase(0, len(self.relations), head)
            elif self.sizes[head] > 1 and relation not in _NO_PHRASE and self._is_whole(head):
                start, end = self._trim(self.starts[head], self.ends[head])
                if end - start > 1:
                    phrases.setdefault((start, end), Phrase(start, end, head))
        for name, rule in (("inner", self._inner), ("group", self._group)):
            for head in range(len(self.relations)) if name in self.rules else ():
                for phrase in rule(head):
                    phrases.setdefault((phrase.start, phrase.end), phrase)
        # leave out phrases that cross an earlier one, which unclear pairs of marks can cause
        kept: list[Phrase] = []
        open_ends: list[int] = []
        for phrase in sorted(phrases.values(), key=lambda phrase: (phrase.start, -phrase.end)):
            while open_ends and open_ends[-1] <= phrase.start:
                open_ends.pop()
            if not open_ends or phrase.end <= open_ends[-1]:
                open_ends.append(phrase.end)
                kept.append(phrase)
        return kept

    def no_phrases(self) -> set[tuple[int, int]]:
        """Return spans that are no phrases: neighbouring dependents of a clause's head or a noun.

        Coordination, marks, complements that share a subject (``xcomp``) and, unless ``flat``,
        auxiliaries do not count, since treebanks group them in several ways.
        """
        spans: set[tuple[int, int]] = set()
        for head, dependents in enumerate(self.below):
            tag, names = self.words.tags[head], {self.relations[word] for word in dependents}
            if tag == "VERB" or {"cop", "nsubj"} & names:
                spans.update(self._groups(dependents, _OF_CLAUSE))
            elif tag in _NOUNS:
                groups = self._groups(dependents, _OF_NOUN)
                # adpositions in a row may be one compound: "out of"
                spans |= {span for span in groups if {*self.relations[slice(*span)]} != {"case"}}
            if "flat" in self.rules and tag == "VERB" and "conj" not in names:
                spans.update(self._with_verb(head))
        return spans

    def _with_verb(self, verb: int) -> Iterator[tuple[int, int]]:
        """Yield the groups of a verb, all its auxiliaries and some of its other dependents."""
        parts = sorted([*self.below[verb], verb])
        while parts[0] != verb and self.relations[parts[0]] in _MARGINAL:
            del parts[0]
        while parts[-1] != verb and self.relations[parts[-1]] in _MARGINAL:
            del parts[-1]
        auxiliaries = [word for word in self.below[verb] if self.relations[word] == "aux"]
        whole = (self._span(parts[0], verb)[0], self._span(parts[-1], verb)[1])
        for span in self._groups(parts, _OF_CLAUSE | {"aux"}, verb):
            inside = range(*span)
            has_all = all(word in inside for word in auxiliaries)
            if span != whole and (has_all or verb not in inside):
                yield span

    def _groups(
        self, words: Iterable[int], relations: frozenset[str], head: int | None = None
    ) -> Iterator[tuple[int, int]]:
        """Yield the spans of two or more neighbours among dependents and their head.

        Args:
            words: dependents, and the head if it is given, in their order.
            relations: of dependents that count; others, and those with gaps, part their neighbours.
            head: the word that stands for itself, not for its subtree.
        """
        starts: list[int] = []  # of the groups that end where the next word may begin
        end = 0
        for word in words:
            first, after = self._span(word, head)
            counts = word == head or (self.relations[word] in relations and self._is_whole(word))
            if not counts or first != end:
                starts = []
            if counts:
                yield from ((start, after) for start in starts)
                starts.append(first)
                end = after

    def _span(self, word: int, head: int | None) -> tuple[int, int]:
        """Return the extent of a word's subtree; of ``head`` the word alone."""
        return (word, word + 1) if word == head else (self.starts[word], self.ends[word])

    def labels(self, phrases: Iterable[Phrase]) -> list[str | None]:
        """Return the labels of phrases; None where treebanks disagree."""
        return [phrase.label or self._label(phrase.head) for phrase in phrases]

    def _label(self, head: int) -> str | None:
        """Return the label of the phrase that a word heads; None where treebanks disagree."""
        tag, relation = self.words.tags[head], self.words.relations[head]
        base = self.relations[head]
        below = {self.relations[word] for word in self.below[head]}
        marks = (word for word in self.below[head] if self.relations[word] == "mark")
        mark = next((self.words.tags[word] for word in marks), "")  # its part of speech
        if below & _SUBJECTS or ("cop" in below and base != "xcomp"):
            return None if mark == "ADP" else "S"
        if tag in ("VERB", "AUX"):
            finite = "VerbForm=Fin" in self.words.features[head] or "cop" in below
            return _verbal(relation, below, mark=mark, finite=finite)
        if base == "root" and tag not in _NOUNS:
            return None
        if mark:
            return "PP" if mark == "ADP" else None
        if "case" in below:
            # a possessor is no PP ('s), and of subjects and objects languages differ
            return "NP" if relation == "nmod:poss" else None if base in _CORE else "PP"
        if tag in _NOUNS or (tag == "ADJ" and base in _NOMINAL_RELATIONS):
            return "NP"
        return _LABELS.get(tag)

    def _is_whole(self, head: int) -> bool:
        """Tell whether the words of a subtree are adjacent."""
        return self.ends[head] - self.starts[head] == self.sizes[head]

    def _trim(self, start: int, end: int) -> tuple[int, int]:
        """Return a span without punctuation and conjunctions at its edges; keep paired marks."""
        first, last = start, end
        while start < end and self._edge[start]:
            start += 1
        while start < end and self._edge[end - 1]:
            end -= 1
        if start == end or (start == first and end == last):
            return start, end
        forms = self.words.forms
        lone = _missing_partners(forms[start:end])
        end = next((word + 1 for word in range(end, last) if forms[word] in lone), end)
        before = range(start - 1, first - 1, -1)
        return next((word for word in before if forms[word] in lone), start), end

    def _inner(self, head: int) -> Iterator[Phrase]:
        """Yield the phrases inside a nominal's subtree: without adpositions, and as a predicate."""
        if self.words.tags[head] not in _NOUNS | {"ADJ"}:
            return
        names = {self.relations[word] for word in self.below[head]}
        label = _LABELS.get(self.words.tags[head], "NP")
        start, end = self.starts[head], self.ends[head]
        if names & _CLAUSAL:
            if "conj" in names:
                return
            dependents = [one for one in self.below[head] if self.relations[one] in _OF_PREDICATE]
            start = min([head, *(self.starts[word] for word in dependents)])
            end = max([head + 1, *(self.ends[word] for word in dependents)])
            if end - start != 1 + sum(self.sizes[word] for word in dependents):
                return
            if end - start > 1:
                yield Phrase(start, end, head, "PP" if "case" in names else label)
        elif not self._is_whole(head) or self.relations[head] in _NO_PHRASE:
            return
        if "case" not in names:
            return
        cases = [word for word in self.below[head] if self.relations[word] == "case"]
        start = max([start, *(self.ends[word] for word in cases if word < head)])
        end = min([end, *(self.starts[word] for word in cases if word > head)])
        start, end = self._trim(start, end)
        if start <= head < end and end - start > 1:
            yield Phrase(start, end, head, label)

    def _group(self, head: int) -> Iterator[Phrase]:
        """Yield the phrase of a clause's verb or copula with its auxiliaries, if it has any."""
        below = self.below[head]
        verbs = [word for word in below if self.relations[word] in ("aux", "cop")]
        if all(self.relations[word] == "aux" for word in verbs):
            if self.words.tags[head] != "VERB":
                return
            verbs.append(head)
        start, end = min(verbs), max(verbs) + 1
        single = {word for word in below if self.sizes[word] == 1}
        if "clitics" in self.rules:
            small = {x for x in single if _CLITIC.intersection(self.words.features[x].split("|"))}
            while start - 1 in small:
                start -= 1
            while end in small and self.words.tags[end] == "PRON":
                end += 1
        if end - start > 1 and single.issuperset({*range(start, end)} - {*verbs}):
            yield Phrase(start, end, verbs[-1], "VP")


def _verbal(relation: str, below: set[str], *, mark: str, finite: bool) -> str | None:
    """Return the label of a phrase whose head is a verb without a subject.

    Args:
        relation: the head's, with the subtype.
        below: relations of its dependents, without subtypes.
        mark: the part of speech of its subordinating word, if any.
        finite: whether the head is finite or has a copula.
    """
    base = relation.partition(":")[0]
    if base in ("root", "ccomp", "csubj", "parataxis") or relation == "acl:relcl":
        return "S"
    if base in ("amod", "advmod"):
        return "AJP" if base == "amod" else None
    if base in _NOMINAL_RELATIONS:
        return "PP" if "case" in below and base not in _CORE else "NP" if "det" in below else None
    if "case" in below or mark == "ADP":
        return "PP"
    if mark == "PART" or (not mark and not finite and base != "conj"):
        return "VP"
    return "S" if base in ("advcl", "acl") else None


def _missing_partners(forms: Sequence[str]) -> set[str]:
    """Return the partners of the marks in a span that have no partner in it."""
    open_marks: list[str] = []
    closing: set[str] = set()
    for form in forms:
        if open_marks[-1:] == [form]:
            open_marks.pop()
        elif form in _PAIRS:
            open_marks.append(_PAIRS[form])
        elif form in _CLOSING:
            closing.add(form)
    return {*open_marks, *(mark for mark, partner in _PAIRS.items() if partner in closing)}


def extents(heads: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return the first word, the end and the number of words of each word's subtree."""
    starts = list(range(len(heads)))
    ends = [word + 1 for word in starts]
    sizes = [1] * len(heads)
    for word in reversed(top_down(heads)):
        if (head := heads[word]) >= 0:
            starts[head] = min(starts[head], starts[word])
            ends[head] = max(ends[head], ends[word])
            sizes[head] += sizes[word]
    return starts, ends, sizes
