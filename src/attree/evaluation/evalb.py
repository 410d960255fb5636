"""EVALB, the scorer of labelled brackets by Sekine and Collins, with Ellis' repair of quotes.

A line holds a tree. Words and brackets with a deleted label do not count, what follows ``-`` or
``=`` in the label of a bracket is cut off, brackets over no word are left out, and two brackets are
the same if start, end and, unless told otherwise, label are. A bracket without a label around the
whole sentence, as treebanks put it around a tree, counts nowhere. Several of the same span and
label count as many times as both trees have them. Nothing limits the length of a line, word or
label. A tree that cannot be read costs its sentence alone, where the C program may end.
"""

from __future__ import annotations

import io
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from attree.base.errors import AttreeError
from attree.base.files import opened
from attree.base.text import unescape
from attree.evaluation.parameters import COLLINS, Parameters, cut
from attree.treebank.cleaning import policy
from attree.treebank.sentence import Sentence, cut_label

#: keyword → the attribute of :class:`Parameters` that it sets, and how many values it takes
_KEYWORDS = {
    "LABELED": ("labelled", 1),
    "CUTOFF_LEN": ("cutoff", 1),
    "MAX_ERROR": ("max_errors", 1),
    "DELETE_LABEL": ("delete", 1),
    "DELETE_LABEL_FOR_LENGTH": ("delete_for_length", 1),
    "QUOTE_LABEL": ("quotes", 1),
    "EQ_LABEL": ("same_labels", 2),
    "EQ_WORD": ("same_words", 2),
}
_NUMBERS = ("labelled", "cutoff", "max_errors")


def read_parameters(path: str | Path) -> Parameters:
    """Read a parameter file; ``collins`` stands for :data:`COLLINS` where no file has that name.

    Raises:
        AttreeError: an unknown keyword, or a keyword without its values; ``DEBUG`` is ignored.
    """
    if str(path).lower() == "collins" and not Path(path).exists():
        return COLLINS
    found: dict[str, Any] = {}
    for line, text in enumerate(lines(path, "parameter file"), 1):
        keyword, *values = text.split()[:3] or [""]
        if text.startswith("#") or len(text.strip()) < 3 or keyword == "DEBUG":
            continue
        name, wanted = _KEYWORDS.get(keyword, ("", 1))
        code, problem, fix = "bad-parameter", "", None
        if len(values) < wanted:
            problem = f"{keyword} needs {wanted} values"
        elif not name:
            code, problem = "unknown-name", f"unknown keyword {keyword}"
            fix = f"the keywords are {', '.join(_KEYWORDS)}"
        elif name in _NUMBERS and not re.fullmatch(r"\d{1,9}", values[0]):
            problem = f"{keyword} {values[0][:20]} is not a number of at most nine digits"
        if problem:
            raise AttreeError(code, problem, file=path, line=line, fix=fix)
        if name in _NUMBERS:
            found[name] = bool(int(values[0])) if name == "labelled" else int(values[0])
        else:
            value = values[0] if wanted == 1 else tuple(values)
            found[name] = found.get(name, frozenset()) | {value}
    return Parameters(**found)


def lines(path: str | Path, what: str) -> Iterator[str]:
    """Yield the lines of a text file or stream; bytes that are not UTF-8 pass through."""
    with (
        opened(path, what=what, stream=True) as handle,
        io.TextIOWrapper(handle, "utf-8", "surrogateescape", newline="\n") as file,
    ):
        yield from file


#: start, end and label
_Bracket = tuple[int, int, str]

#: status of a sentence: scored, an error in it or between the two trees, no tree by the parser
OK, ERROR, SKIPPED = 0, 1, 2

_QUOTES = ("'", '"', "/")
_SPACE = " \t\n\v\f\r"
_OPEN = re.compile(rf"\(([^{_SPACE}()]*)(?:[{_SPACE}]+([^{_SPACE}()]*))?")


@dataclass(slots=True)
class _Quote:
    """A quotation mark: where it is among the words, and the brackets that are open there."""

    word: str
    tag: str
    place: int
    brackets_before: int
    open: list[int]


@dataclass(slots=True)
class Bracketing:
    """What EVALB sees of a tree.

    Attributes:
        words: (word, tag) of those that count.
        brackets: [start, end, label] in the order in which they open.
        length: words of the sentence, deleted ones included but for ``delete_for_length``.
    """

    words: list[tuple[str, str]] = field(default_factory=list)
    brackets: list[list[Any]] = field(default_factory=list)
    quotes: list[_Quote] = field(default_factory=list)
    length: int = 0

    @property
    def outer(self) -> bool:
        """Whether a bracket without a label is around the whole sentence."""
        return [0, len(self.words), ""] in self.brackets

    def without(self, stays: Sequence[bool]) -> Bracketing:
        """Return the tree without some of its words."""
        new = list(itertools.accumulate(stays, initial=0))
        words = list(itertools.compress(self.words, stays))
        brackets = [[new[start], new[end], label] for start, end, label in self.brackets]
        return Bracketing(words, brackets, length=len(words))

    def put_back(self, which: int) -> None:
        """Make a deleted quotation mark a word again."""
        quote = self.quotes[which]
        self.words.insert(quote.place, (quote.word, quote.tag))
        for bracket in self.brackets[quote.brackets_before :]:
            bracket[0] += 1
            bracket[1] += 1
        for number in quote.open:
            self.brackets[number][1] += 1
        for later in self.quotes[which:]:
            later.place += 1


def read_tree(line: str, parameters: Parameters) -> Bracketing:
    """Read a tree, or several, of one line.

    Raises:
        ValueError: its brackets are unbalanced, or a word stands outside a bracket of its own.
    """
    tree, open_brackets, at = Bracketing(), list[int](), 0
    while at < len(line):
        if line[at] in _SPACE:
            at += 1
        elif line[at] == ")":
            if not open_brackets:
                raise ValueError("a bracket closes that was not opened")
            tree.brackets[open_brackets.pop()][1] = len(tree.words)
            at += 1
        elif found := _OPEN.match(line, at):
            label, word = found.groups()
            if word is not None and line.startswith(")", found.end()):
                at = found.end() + 1
                tree.length += label not in parameters.delete_for_length
                if label in parameters.quotes and word in _QUOTES:
                    here = len(tree.words), len(tree.brackets)
                    tree.quotes.append(_Quote(word, label, *here, list(open_brackets)))
                if label not in parameters.delete:
                    tree.words.append((word, label))
                continue
            if word:
                raise ValueError(f"more than two elements in the bracket of {label} {word}")
            open_brackets.append(len(tree.brackets))
            tree.brackets.append([len(tree.words), -1, label])
            at = found.end(1)
        else:
            raise ValueError(f"{line[at:].split()[0]} stands outside a bracket of its own")
    if open_brackets:
        raise ValueError("a bracket is not closed")
    return tree


@dataclass(frozen=True, slots=True)
class Result:
    """A sentence's counts, as in a row of EVALB; 0 but for ``length``, ``words`` if not scored.

    ``outer`` says of the gold tree and of the other whether an unlabelled bracket was around it.
    """

    length: int
    status: int = OK
    matched: int = 0
    gold: int = 0
    test: int = 0
    crossing: int = 0
    words: int = 0
    tags: int = 0
    problem: str = ""
    outer: tuple[bool, bool] = (False, False)

    @property
    def complete(self) -> bool:
        """Whether both trees have the same brackets."""
        return self.gold == self.test == self.matched


def compare(gold: Bracketing, test: Bracketing, parameters: Parameters) -> Result:
    """Score a tree; deleted quotation marks are put back where that makes both of one length."""
    if not test.words:
        return Result(gold.length, SKIPPED, words=len(gold.words))
    if len(gold.words) != len(test.words):
        _mend_quotes(gold, test, parameters)
    if len(gold.words) != len(test.words):
        problem = f"Length unmatch ({len(gold.words)}|{len(test.words)})"
        return Result(gold.length, ERROR, words=len(gold.words), problem=problem)
    pairs = list(zip(gold.words, test.words, strict=True))
    for (word, _), (other, _) in pairs:
        if not parameters.same_word(word, other):
            problem = f"Words unmatch ({word}|{other})"
            return Result(gold.length, ERROR, words=len(pairs), problem=problem)
    right, found = _counted(gold, parameters), _counted(test, parameters)
    return Result(
        gold.length,
        matched=_matched(right, found, parameters),
        gold=len(right),
        test=len(found),
        crossing=sum(any(_cross(span, other) for other in right) for span in found),
        words=len(pairs),
        tags=sum(parameters.same_label(tag, other) for (_, tag), (_, other) in pairs),
        outer=(gold.outer, test.outer),
    )


def _mend_quotes(gold: Bracketing, test: Bracketing, parameters: Parameters) -> None:
    for i, there in enumerate(test.quotes):
        place = there.place  # the others are compared with where it was
        for j, here in enumerate(gold.quotes):
            deleted = here.tag in parameters.delete
            if here.place != place or deleted == (there.tag in parameters.delete):
                continue
            gold.put_back(j) if deleted else test.put_back(i)


def _counted(tree: Bracketing, parameters: Parameters) -> list[_Bracket]:
    """Return the brackets that count, their labels without functions."""
    around = [0, len(tree.words), ""]
    brackets = [
        (start, end, cut(x)) for start, end, x in tree.brackets if [start, end, x] != around
    ]
    return [one for one in brackets if one[0] != one[1] and not parameters.deletes(one[2])]


def _matched(gold: Iterable[_Bracket], test: Iterable[_Bracket], parameters: Parameters) -> int:
    labels: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for start, end, label in test:
        labels[start, end].append(label)
    count = 0
    for start, end, label in gold:
        left = labels[start, end]
        for place, other in enumerate(left):
            if not parameters.labelled or parameters.same_label(label, other):
                del left[place]
                count += 1
                break
    return count


def _cross(one: _Bracket, other: _Bracket) -> bool:
    """Tell whether two brackets overlap and neither is inside the other."""
    return one[0] < other[0] < one[1] < other[1] or other[0] < one[0] < other[1] < one[1]


def results(
    gold: Sequence[Path],
    test: Sequence[Path],
    parameters: Parameters,
    *,
    punctuation: str | None = None,
) -> Iterator[Result]:
    """Score files of trees against gold ones, a tree a line.

    Args:
        gold, test: the files.
        parameters: what does not count.
        punctuation: a policy of :data:`attree.treebank.cleaning.POLICIES`. The words that it
            removes from a gold tree are removed from both, whatever their tags in the other; of the
            deleted labels of ``parameters`` only those of brackets and of traces count then.

    Raises:
        AttreeError: a file that is not there, or an unknown policy.
    """
    both = itertools.zip_longest(
        (line for file in gold for line in lines(file, "gold file")),
        (line for file in test for line in lines(file, "file of trees")),
    )
    keep, how = None, parameters
    if punctuation is not None:
        keep = policy(punctuation)
        how = replace(parameters, delete=frozenset({"-NONE-"}), quotes=frozenset())
    for pair in both:
        if None in pair:
            longer = "test" if pair[0] is None else "gold"
            problem = f"Number of lines unmatch (too many lines in {longer} file)"
            yield Result(-1, ERROR, problem=problem)
            return
        trees: list[Bracketing] = []
        try:
            for line in pair:
                trees.append(read_tree(line, how))
        except ValueError as error:
            side, length = ("test", trees[0].length) if trees else ("gold", 0)
            yield Result(length, ERROR, problem=f"{error} ({side})")
            continue
        right, found = trees
        if keep is not None and len(right.words) == len(found.words):
            # the words of a gold tree, with their tags, as treebank readers give them to policies
            words = tuple(unescape(word) for word, _ in right.words)
            tags = tuple(cut_label(tag) for _, tag in right.words)
            stays = keep(Sentence(words, tags, (), "", 0))
            right, found = right.without(stays), found.without(stays)
        yield compare(right, found, parameters)


_LINE = "=" * 76
_HEAD = (
    "  Sent.                        Matched  Bracket   Cross        Correct Tag",
    " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy",
    _LINE,
)


class Release(NamedTuple):
    """How a release of EVALB prints totals.

    Attributes:
        total: the line of totals; the older releases end it with the number of sentences without
            crossing brackets, by mistake.
        counts_crossings: whether it ends with the number of crossing brackets.
        f_measure: whether the summary has F.
        words_of_failed: whether rows of sentences that are not scored have their number of words.
    """

    total: str
    counts_crossings: bool = True
    f_measure: bool = True
    words_of_failed: bool = False


#: year → release; the last one is what most papers used
RELEASES = {
    "1997": Release(
        " %6d    %3d  %3d    %3d", counts_crossings=False, f_measure=False, words_of_failed=True
    ),
    "2006": Release(" %5d %5d %5d  %5d", counts_crossings=False),
    "2008": Release(" %6d %5d %5d  %5d"),
}


def _sums(rows: Sequence[Result]) -> dict[str, int]:
    """Return sums over scored sentences, and how many sentences there are of each kind."""
    scored = [row for row in rows if row.status == OK]
    names = ("matched", "gold", "test", "crossing", "words", "tags", "complete")
    return {
        **{name: sum(getattr(row, name) for row in scored) for name in names},
        "none_crosses": sum(row.crossing == 0 for row in scored),
        "two_cross": sum(row.crossing <= 2 for row in scored),
        "valid": len(scored),
    }


def report(
    results: Iterable[Result], parameters: Parameters, release: str = "2008"
) -> Iterator[tuple[str, bool]]:
    """Yield EVALB's lines, and whether each is an error, which EVALB writes to standard error.

    Raises:
        AttreeError: more errors than the parameters allow.
    """
    style, rows, errors = RELEASES[release], list[Result](), 0
    yield from ((line, False) for line in _HEAD)
    for number, result in enumerate(results, 1):
        if result.problem:
            yield f"{number} : {result.problem}", True
            errors += 1
            if errors > parameters.max_errors:
                fix = "check that both files have the same sentences, or raise MAX_ERROR"
                problem = f"more than {parameters.max_errors} errors"
                raise AttreeError("too-many-errors", problem, fix=fix)
        if result.length < 0:
            break  # one file is longer: no sentence
        yield _row(number, result, style), False
        rows.append(result)
    right, found = (sum(one.outer[side] for one in rows) for side in (0, 1))
    if right != found:
        problem = f"an outer bracket without a label: {right:,} gold trees, {found:,} others"
        yield f"{problem}; it counts nowhere", True
    yield from ((line, False) for line in (_LINE, _totals(rows, style), "=== Summary ==="))
    short = [one for one in rows if one.length <= parameters.cutoff]
    for title, part in (("All", rows), (f"len<={parameters.cutoff}", short)):
        yield from ((line, False) for line in ("", f"-- {title} --", *_summary(part, style)))


def _row(number: int, row: Result, style: Release) -> str:
    words = row.words if row.status == OK or style.words_of_failed else 0
    recall, precision = _percent(row.matched, row.gold), _percent(row.matched, row.test)
    return (
        f"{number:4d}  {row.length:3d}    {row.status:d}  {recall:6.2f} {precision:6.2f}"
        f"   {row.matched:3d}    {row.gold:3d}  {row.test:3d}    {row.crossing:3d}"
        f"   {words:4d}  {row.tags:4d}   {_percent(row.tags, words):6.2f}"
    )


def _totals(rows: Sequence[Result], style: Release) -> str:
    total, line = _sums(rows), ""
    matched, gold, test = total["matched"], total["gold"], total["test"]
    if gold and test:
        crossing = total["crossing" if style.counts_crossings else "none_crosses"]
        shares = f"{_percent(matched, gold):6.2f} {_percent(matched, test):6.2f}"
        line = " " * 16 + shares + style.total % (matched, gold, test, crossing)
    share = _percent(total["tags"], total["words"])
    return f"{line}  {total['words']:5d} {total['tags']:5d}   {share:6.2f}"


def _summary(rows: Sequence[Result], style: Release) -> Iterator[str]:
    total, status = _sums(rows), Counter(row.status for row in rows)
    recall = _percent(total["matched"], total["gold"])
    precision = _percent(total["matched"], total["test"])
    both = recall + precision
    numbers = {
        "Number of sentence": len(rows),
        "Number of Error sentence": status[ERROR],
        "Number of Skip  sentence": status[SKIPPED],
        "Number of Valid sentence": total["valid"],
        "Bracketing Recall": recall,
        "Bracketing Precision": precision,
        "Bracketing FMeasure": 2 * precision * recall / both if both else math.nan,
        "Complete match": _percent(total["complete"], total["valid"]),
        "Average crossing": _percent(total["crossing"], total["valid"]) / 100,
        "No crossing": _percent(total["none_crosses"], total["valid"]),
        "2 or less crossing": _percent(total["two_cross"], total["valid"]),
        "Tagging accuracy": _percent(total["tags"], total["words"]),
    }
    for name, number in numbers.items():
        if style.f_measure or name != "Bracketing FMeasure":
            shown = f"{number:6d}" if isinstance(number, int) else f"{number:6.2f}"
            yield f"{name:25} = {shown}"


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
