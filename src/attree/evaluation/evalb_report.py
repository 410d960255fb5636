"""EVALB's own output: a row a sentence, then the summary, as its releases print them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from attree.errors import AttreeError
from attree.evaluation.evalb import ERROR, OK, SKIPPED, Result
from attree.evaluation.evalb_parameters import Parameters

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


class _Total:
    """Sums over the sentences of a summary."""

    def __init__(self) -> None:
        self.status = {OK: 0, ERROR: 0, SKIPPED: 0}
        self.scored: list[Result] = []

    def add(self, result: Result) -> None:
        self.status[result.status] += 1
        if result.status == OK:
            self.scored.append(result)

    def sum(self, name: str) -> int:
        return sum(getattr(one, name) for one in self.scored)

    def share(self, part: str, whole: str) -> float:
        return _percent(self.sum(part), self.sum(whole))

    def crossed_at_most(self, most: int) -> int:
        return sum(one.crossing <= most for one in self.scored)


def report(
    results: Iterable[Result], parameters: Parameters, release: str = "2008"
) -> Iterator[tuple[str, bool]]:
    """Yield EVALB's lines, and whether each is an error, which EVALB writes to standard error.

    Raises:
        AttreeError: more errors than the parameters allow.
    """
    style, total, short, errors = RELEASES[release], _Total(), _Total(), 0
    outer = [0, 0]
    yield from ((line, False) for line in _HEAD)
    for number, result in enumerate(results, 1):
        if result.problem:
            yield f"{number} : {result.problem}", True
            errors += 1
            if errors > parameters.max_errors:
                raise AttreeError(
                    f"more than {parameters.max_errors} errors",
                    fix="check that both files have the same sentences, or raise MAX_ERROR",
                )
        if result.length < 0:
            break  # one file is longer: no sentence
        yield _row(number, result, style), False
        total.add(result)
        outer = [count + there for count, there in zip(outer, result.outer, strict=True)]
        if result.length <= parameters.cutoff:
            short.add(result)
    if outer[0] != outer[1]:
        problem = f"an outer bracket without a label: {outer[0]:,} gold trees, {outer[1]:,} others"
        yield f"{problem}; it counts nowhere", True
    yield from ((line, False) for line in (_LINE, _totals(total, style), "=== Summary ==="))
    for title, part in (("All", total), (f"len<={parameters.cutoff}", short)):
        yield from ((line, False) for line in ("", f"-- {title} --", *_summary(part, style)))


def _row(number: int, one: Result, style: Release) -> str:
    words = one.words if one.status == OK or style.words_of_failed else 0
    recall, precision = _percent(one.matched, one.gold), _percent(one.matched, one.test)
    return (
        f"{number:4d}  {one.length:3d}    {one.status:d}  {recall:6.2f} {precision:6.2f}"
        f"   {one.matched:3d}    {one.gold:3d}  {one.test:3d}    {one.crossing:3d}"
        f"   {words:4d}  {one.tags:4d}   {_percent(one.tags, words):6.2f}"
    )


def _totals(total: _Total, style: Release) -> str:
    matched, gold, test = (total.sum(name) for name in ("matched", "gold", "test"))
    line = ""
    if gold and test:
        crossing = total.sum("crossing") if style.counts_crossings else total.crossed_at_most(0)
        shares = f"{_percent(matched, gold):6.2f} {_percent(matched, test):6.2f}"
        line = " " * 16 + shares + style.total % (matched, gold, test, crossing)
    words, tags = total.sum("words"), total.sum("tags")
    return f"{line}  {words:5d} {tags:5d}   {_percent(tags, words):6.2f}"


def _summary(total: _Total, style: Release) -> Iterator[str]:
    valid = len(total.scored)
    counts = {
        "Number of sentence": sum(total.status.values()),
        "Number of Error sentence": total.status[ERROR],
        "Number of Skip  sentence": total.status[SKIPPED],
        "Number of Valid sentence": valid,
    }
    recall, precision = total.share("matched", "gold"), total.share("matched", "test")
    both = recall + precision
    shares = {
        "Bracketing Recall": recall,
        "Bracketing Precision": precision,
        "Bracketing FMeasure": 2 * precision * recall / both if both else math.nan,
        "Complete match": _percent(total.sum("complete"), valid),
        "Average crossing": _percent(total.sum("crossing"), valid) / 100,
        "No crossing": _percent(total.crossed_at_most(0), valid),
        "2 or less crossing": _percent(total.crossed_at_most(2), valid),
        "Tagging accuracy": total.share("tags", "words"),
    }
    if not style.f_measure:
        del shares["Bracketing FMeasure"]
    yield from (f"{name:25} = {value:6d}" for name, value in counts.items())
    yield from (f"{name:25} = {value:6.2f}" for name, value in shares.items())


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
