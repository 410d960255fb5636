"""EVALB, the scorer of labelled brackets by Sekine and Collins, with Ellis' repair of quotes.

Each line holds a tree. Words and brackets with a deleted label do not count. What follows ``-`` or
``=`` in a bracket's label is cut off, and brackets over no word are left out. Two brackets are
equal if start, end and (unless labels are ignored) label are. A bracket without a label around the
whole sentence, as treebanks write it, does not count. Repeated brackets match as often as both
trees have them. Lines, words and labels may have any length. A tree that cannot be read makes an
error of its sentence; the C program may stop there.
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
from typing import Any

from attree.base.errors import AttreeError
from attree.base.reading import opened
from attree.base.text import unescape
from attree.evaluation.labels import COLLINS, Parameters, cut
from attree.treebank.cleaning import policy
from attree.treebank.sentence import Sentence, cut_label

#: keyword → the attribute of :class:`Parameters` that it sets, and its number of values
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
    settings: dict[str, Any] = {}
    for line, text in enumerate(lines(path, "parameter file"), 1):
        keyword, *values = text.split()[:3] or [""]
        if text.startswith("#") or len(text.strip()) < 3 or keyword == "DEBUG":
            continue
        name, n_values = _KEYWORDS.get(keyword, ("", 1))
        code, problem, fix = "bad-parameter", "", None
        if len(values) < n_values:
            problem = f"{keyword} needs {n_values} values"
        elif not name:
            code, problem = "unknown-name", f"unknown keyword {keyword}"
            fix = f"the keywords are {', '.join(_KEYWORDS)}"
        elif name in _NUMBERS and not re.fullmatch(r"\d{1,9}", values[0]):
            problem = f"{keyword} {values[0][:20]} is not a number of at most nine digits"
        if problem:
            raise AttreeError(code, problem, file=path, line=line, fix=fix)
        if name in _NUMBERS:
            settings[name] = bool(int(values[0])) if name == "labelled" else int(values[0])
        else:
            value = values[0] if n_values == 1 else tuple(values)
            settings[name] = settings.get(name, frozenset()) | {value}
    return Parameters(**settings)


def lines(path: str | Path, what: str) -> Iterator[str]:
    """Yield the lines of a text file or stream; bytes that are not UTF-8 are kept."""
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
    """A quotation mark: its position among the words, and the brackets open there."""

    word: str
    tag: str
    position: int
    brackets_before: int
    open: list[int]


@dataclass(slots=True)
class Bracketing:
    """A tree as EVALB counts it.

    Attributes:
        words: (word, tag) of the words that count.
        brackets: [start, end, label] in the order in which they open.
        quotes: quotation marks that may be deleted from one tree only.
        length: words of the sentence, without those of ``delete_for_length``.
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
        """Return the tree with only the words for which ``stays`` is true."""
        new = list(itertools.accumulate(stays, initial=0))
        words = list(itertools.compress(self.words, stays))
        brackets = [[new[start], new[end], label] for start, end, label in self.brackets]
        return Bracketing(words, brackets, length=len(words))

    def put_back(self, which: int) -> None:
        """Make a deleted quotation mark a word again."""
        quote = self.quotes[which]
        self.words.insert(quote.position, (quote.word, quote.tag))
        for bracket in self.brackets[quote.brackets_before :]:
            bracket[0] += 1
            bracket[1] += 1
        for number in quote.open:
            self.brackets[number][1] += 1
        for later in self.quotes[which:]:
            later.position += 1


def read_tree(line: str, parameters: Parameters) -> Bracketing:
    """Read the tree or trees of one line.

    Raises:
        ValueError: brackets are unbalanced, or a word has no bracket of its own.
    """
    tree, open_brackets, position = Bracketing(), list[int](), 0
    while position < len(line):
        if line[position] in _SPACE:
            position += 1
        elif line[position] == ")":
            if not open_brackets:
                raise ValueError("a bracket closes that was not opened")
            tree.brackets[open_brackets.pop()][1] = len(tree.words)
            position += 1
        elif match := _OPEN.match(line, position):
            label, word = match.groups()
            if word is not None and line.startswith(")", match.end()):
                position = match.end() + 1
                tree.length += label not in parameters.delete_for_length
                if label in parameters.quotes and word in _QUOTES:
                    counts = len(tree.words), len(tree.brackets)
                    tree.quotes.append(_Quote(word, label, *counts, list(open_brackets)))
                if label not in parameters.delete:
                    tree.words.append((word, label))
                continue
            if word:
                raise ValueError(f"more than two elements in the bracket of {label} {word}")
            open_brackets.append(len(tree.brackets))
            tree.brackets.append([len(tree.words), -1, label])
            position = match.end(1)
        else:
            raise ValueError(f"{line[position:].split()[0]} stands outside a bracket of its own")
    if open_brackets:
        raise ValueError("a bracket is not closed")
    return tree


@dataclass(frozen=True, slots=True)
class Result:
    """The counts of a row of EVALB; all but ``length`` are 0 if not scored.

    ``outer`` tells whether the gold tree and the test tree had an outer bracket without a label.
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
    """Score a tree; put deleted quotation marks back if the trees differ in length."""
    if not test.words:
        return Result(gold.length, SKIPPED)
    if len(gold.words) != len(test.words):
        _mend_quotes(gold, test, parameters)
    if len(gold.words) != len(test.words):
        problem = f"Length unmatch ({len(gold.words)}|{len(test.words)})"
        return Result(gold.length, ERROR, problem=problem)
    pairs = list(zip(gold.words, test.words, strict=True))
    for (word, _), (other, _) in pairs:
        if word != other and not {(word, other), (other, word)} & parameters.same_words:
            return Result(gold.length, ERROR, problem=f"Words unmatch ({word}|{other})")
    gold_brackets, test_brackets = _brackets_of(gold, parameters), _brackets_of(test, parameters)
    return Result(
        gold.length,
        matched=_count_equal(gold_brackets, test_brackets, parameters),
        gold=len(gold_brackets),
        test=len(test_brackets),
        crossing=sum(any(_cross(span, other) for other in gold_brackets) for span in test_brackets),
        words=len(pairs),
        tags=sum(parameters.same_label(tag, other) for (_, tag), (_, other) in pairs),
        outer=(gold.outer, test.outer),
    )


def _mend_quotes(gold: Bracketing, test: Bracketing, parameters: Parameters) -> None:
    for i, quote in enumerate(test.quotes):
        position = quote.position  # the others are compared with where it was
        for j, other in enumerate(gold.quotes):
            deleted = other.tag in parameters.delete
            if other.position != position or deleted == (quote.tag in parameters.delete):
                continue
            gold.put_back(j) if deleted else test.put_back(i)


def _brackets_of(tree: Bracketing, parameters: Parameters) -> list[_Bracket]:
    """Return the brackets that count, with functions cut from their labels."""
    around = [0, len(tree.words), ""]
    brackets = [(i, j, cut(label)) for i, j, label in tree.brackets if [i, j, label] != around]
    return [b for b in brackets if b[0] != b[1] and not parameters.deletes(b[2])]


def _count_equal(gold: Iterable[_Bracket], test: Iterable[_Bracket], parameters: Parameters) -> int:
    labels: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for start, end, label in test:
        labels[start, end].append(label)
    count = 0
    for start, end, label in gold:
        remaining = labels[start, end]
        for index, other in enumerate(remaining):
            if not parameters.labelled or parameters.same_label(label, other):
                del remaining[index]
                count += 1
                break
    return count


def _cross(a: _Bracket, b: _Bracket) -> bool:
    """Tell whether two brackets overlap and neither is inside the other."""
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


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
        parameters: settings of EVALB.
        punctuation: a policy of :data:`attree.treebank.cleaning.POLICIES`. The words that it
            removes from a gold tree are removed from both trees, whatever their tags in the other.
            ``parameters`` then deletes brackets and traces, but no other words.

    Raises:
        AttreeError: a file is missing, or the policy is unknown.
    """
    line_pairs = itertools.zip_longest(
        (line for file in gold for line in lines(file, "gold file")),
        (line for file in test for line in lines(file, "file of trees")),
    )
    keep, how = None, parameters
    if punctuation is not None:
        keep = policy(punctuation)
        if punctuation == "auto":
            problem, fix = "auto looks at a treebank, and here are lines", "name another policy"
            raise AttreeError("unknown-policy", problem, fix=fix)
        how = replace(parameters, delete=frozenset({"-NONE-"}), quotes=frozenset())
    for pair in line_pairs:
        if None in pair:
            longer = "test" if pair[0] is None else "gold"
            problem = f"Number of lines unmatch (too many lines in {longer} file)"
            yield Result(-1, ERROR, problem=problem)
            return
        trees: list[Bracketing] = []
        try:
            trees.extend(read_tree(line, how) for line in pair)  # which keeps those before a fault
        except ValueError as error:
            side, length = ("test", trees[0].length) if trees else ("gold", 0)
            yield Result(length, ERROR, problem=f"{error} ({side})")
            continue
        gold_tree, test_tree = trees
        if keep is not None and len(gold_tree.words) == len(test_tree.words):
            # policies take words and tags as the treebank readers give them
            words = tuple(unescape(word) for word, _ in gold_tree.words)
            tags = tuple(cut_label(tag) for _, tag in gold_tree.words)
            stays = keep(Sentence(words, tags, (), "", 0))
            gold_tree, test_tree = gold_tree.without(stays), test_tree.without(stays)
        yield compare(gold_tree, test_tree, parameters)


_LINE = "=" * 76
_HEAD = (
    "  Sent.                        Matched  Bracket   Cross        Correct Tag",
    " ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy",
    _LINE,
)


def _sums(rows: Sequence[Result]) -> list[int]:
    """Return the sums of matched, gold, test and crossing brackets, of words and of tags."""
    names = ("matched", "gold", "test", "crossing", "words", "tags")
    return [sum(getattr(row, name) for row in rows) for name in names]


def report(results: Iterable[Result], parameters: Parameters) -> Iterator[tuple[str, bool]]:
    """Yield the lines of EVALB's release of 2008, each with whether it is an error.

    Errors belong on standard error.

    Raises:
        AttreeError: more errors than the parameters allow.
    """
    rows, errors, waiting = list[Result](), 0, iter(results)
    first = list(itertools.islice(waiting, 1))  # files that cannot be read have no heading
    yield from ((line, False) for line in _HEAD)
    for number, result in enumerate(itertools.chain(first, waiting), 1):
        if result.problem:
            yield f"{number} : {result.problem}", True
            errors += 1
            if errors > parameters.max_errors:
                fix = "check that both files have the same sentences, or raise MAX_ERROR"
                problem = f"more than {parameters.max_errors} errors"
                raise AttreeError("too-many-errors", problem, fix=fix)
        if result.length < 0:
            break  # one file is longer: this is no sentence
        yield _row(number, result), False
        rows.append(result)
    of_gold, of_test = (sum(row.outer[side] for row in rows) for side in (0, 1))
    if of_gold != of_test:
        problem = f"an outer bracket without a label: {of_gold:,} gold trees, {of_test:,} others"
        yield f"{problem}; it counts nowhere", True
    yield from ((line, False) for line in (_LINE, _totals(rows), "=== Summary ==="))
    short = [row for row in rows if row.length <= parameters.cutoff]
    for title, part in (("All", rows), (f"len<={parameters.cutoff}", short)):
        yield from ((line, False) for line in ("", f"-- {title} --", *_summary(part)))


def _row(number: int, row: Result) -> str:
    recall, precision = _percent(row.matched, row.gold), _percent(row.matched, row.test)
    return (
        f"{number:4d}  {row.length:3d}    {row.status:d}  {recall:6.2f} {precision:6.2f}"
        f"   {row.matched:3d}    {row.gold:3d}  {row.test:3d}    {row.crossing:3d}"
        f"   {row.words:4d}  {row.tags:4d}   {_percent(row.tags, row.words):6.2f}"
    )


def _totals(rows: Sequence[Result]) -> str:
    matched, gold, test, crossing, words, tags = _sums(rows)
    line = ""
    if gold and test:
        shares = f"{_percent(matched, gold):6.2f} {_percent(matched, test):6.2f}"
        line = f"{' ' * 16}{shares} {matched:6d} {gold:5d} {test:5d}  {crossing:5d}"
    return f"{line}  {words:5d} {tags:5d}   {_percent(tags, words):6.2f}"


def _summary(rows: Sequence[Result]) -> Iterator[str]:
    matched, gold, test, crossing, words, tags = _sums(rows)
    recall, precision = _percent(matched, gold), _percent(matched, test)
    total = recall + precision
    status, scored = Counter(row.status for row in rows), [x for x in rows if x.status == OK]
    valid = len(scored)
    numbers = {
        "Number of sentence": len(rows),
        "Number of Error sentence": status[ERROR],
        "Number of Skip  sentence": status[SKIPPED],
        "Number of Valid sentence": valid,
        "Bracketing Recall": recall,
        "Bracketing Precision": precision,
        "Bracketing FMeasure": 2 * precision * recall / total if total else math.nan,
        "Complete match": _percent(sum(row.complete for row in scored), valid),
        "Average crossing": _percent(crossing, valid) / 100,
        "No crossing": _percent(sum(row.crossing == 0 for row in scored), valid),
        "2 or less crossing": _percent(sum(row.crossing <= 2 for row in scored), valid),
        "Tagging accuracy": _percent(tags, words),
    }
    for name, number in numbers.items():
        yield f"{name:25} = {number:{'6d' if isinstance(number, int) else '6.2f'}}"


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
