"""The comparison as people read it: scores, scores by length and recall of each split."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from attree.plan import GRAMMAR, IMPORTED
from attree.tables import LABELLED, METRICS
from attree.tables.comparison import (
    COMPUTED,
    FIRST,
    PUBLISHED,
    UNDERTRAINED,
    System,
    grammar_means,
)
from attree.tables.render import Table, number
from attree.tables.resampling import PARTS, RESAMPLES, SentenceScores

_SCORED = PARTS.index("scored")
_NOTE = " ".join(
    [
        f"p: paired bootstrap over sentences ({RESAMPLES:,} resamples, two-sided) of corpus F1",
        "against the best system. sent/s: sentences a second, words to trees, one thread. article:",
        "its figure for this system, of its own encoder and test set; (s) is sentence F1,",
        "(max) corpus F1 of its best run.",
        "computed: by attree; imported: another program's trees; published: figures alone, of the",
        "best run where no mean is given.",
    ]
)
#: What stands in the column of the article, and how it is marked.
_FIGURES = ((FIRST, ""), ("sentence_f1", " (s)"), (f"{FIRST}_max", " (max)"))
#: The gain in corpus F1 over its best member that an average should have.
_GAIN = 1.0

#: average → the parsers and systems that it averages
Averages = Mapping[str, Sequence[str]]

_HEADINGS = ["system", "kind", "corpus F1", "no root", "sent. F1", "p", "sent/s", "article"]


def comparison(
    found: Sequence[System], title: str, speed_of: int, averages: Averages | None = None
) -> list[Table]:
    """Build the tables of every split, and one that says what each system rests on.

    Args:
        found: as :func:`attree.tables.comparison.compared` returns them.
        title: of all of them.
        speed_of: on how many sentences speed was measured.
        averages: those among the systems; the note says what each gains over its best member.
    """
    made = []
    for place in dict.fromkeys(one.place for one in found):
        own = [one for one in found if one.place == place]
        where = f"{title}: {place[0]}, {place[1]}"
        gains = [f" {one}" for one in _gains(own, averages or {})]
        made.append(_scores(own, where, speed_of, "".join(gains)))
        made += _lengths(own, where)
        made += [*_recall(own, where), *_labels(own, where)]
    return [*made, _systems(found, title)]


def _gains(own: Sequence[System], averages: Averages) -> Iterator[str]:
    """Say of each average of a split whether it is better by a point than its best member."""
    for one in own:
        among = [
            (score, other.name)
            for other in own
            if other.kind in (COMPUTED, UNDERTRAINED)
            and other.parser in averages.get(one.parser, ())
            and other.encoder in (one.encoder, IMPORTED, GRAMMAR)
            and (score := other.values.get(FIRST)) is not None
        ]
        score = one.values.get(FIRST)
        if among and score is not None:
            best, name = max(among)
            whether = "beats" if score - best >= _GAIN else "does not beat"
            yield (
                f"{one.name} {whether} its best member, {name}, by {_GAIN:g} corpus F1"
                f" or more: {score:.2f} to {best:.2f}."
            )


def _scores(own: Sequence[System], where: str, speed_of: int, gains: str) -> Table:
    timed = f" Speed on the first {speed_of:,} sentences." if any(one.speed for one in own) else ""
    lines = [_line(one) for one in own]
    return Table(where, _HEADINGS, lines, _NOTE + timed + _grammars(own) + gains)


def _grammars(own: Sequence[System]) -> str:
    """Say what the seeds of each grammar come to together."""
    means = [
        f" {name}: mean of {seeds} seed{'s' * (seeds > 1)} {mean:.2f} corpus F1."
        for (name, *_), (seeds, mean) in grammar_means(own).items()
    ]
    if any(one.kind == UNDERTRAINED for one in own):
        means.append(" undertrained: that mean is not above left branching and random trees.")
    return "".join(means)


def _line(one: System) -> list[str]:
    scores = [number(one.values.get(metric)) for metric in METRICS]
    speed = "–" if one.speed is None else f"{one.speed:.0f}"
    return [one.name, one.kind, *scores, _p(one.p), speed, _article(one)]


def _p(p: float | None) -> str:
    if p is None:
        return "–"
    return "(best)" if math.isnan(p) else "<.001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def _article(one: System) -> str:
    """Return the article's figure of a system: the first of ``_FIGURES`` that it has."""
    if one.kind == PUBLISHED:
        return "–"
    figures = (f"{one.published[name]:g}{mark}" for name, mark in _FIGURES if name in one.published)
    return next(figures, "–")


def _lengths(own: Sequence[System], where: str) -> list[Table]:
    known = [(one, one.scores) for one in own if one.scores is not None]
    if not known:
        return []
    lengths, (_, first) = list(known[0][0].by_length), known[0]
    headings = [f"≤{n} ({_scored(first, n):,})" for n in lengths]
    headings.append(f"all ({_scored(first, math.inf):,})")
    rows = []
    for one, _ in known:
        scores = [*one.by_length.values(), one.values.get(FIRST)]
        rows.append([one.name, *map(number, scores)])
    note = "Corpus F1 on the sentences of at most so many words; in brackets, how many they are."
    return [Table(f"{where}: by length", ["system", *headings], rows, note)]


def _scored(scores: SentenceScores, longest: float) -> int:
    """Return how many sentences of at most so many words have a tree to score."""
    return int(scores.where(scores.n_words <= longest).parts[:, _SCORED].sum())


def _recall(own: Sequence[System], where: str) -> list[Table]:
    labels = list(
        dict.fromkeys(
            label for one in own for label, recall in one.recall.items() if recall is not None
        )
    )
    rows = [
        [one.name, *(number(one.recall.get(label)) for label in labels)]
        for one in own
        if any(recall is not None for recall in one.recall.values())
    ]
    note = "Share of the gold constituents with this label that were found, in percent."
    return [Table(f"{where}: recall by label", ["system", *labels], rows, note)] if labels else []


def _labels(own: Sequence[System], where: str) -> list[Table]:
    """Score labels and tags: of the systems that have any, those metrics that any of them has."""
    shown = [name for name in LABELLED if any(one.values.get(name) is not None for one in own)]
    scores = {one.name: [one.values.get(name) for name in shown] for one in own}
    lines = [[name, *map(number, each)] for name, each in scores.items() if set(each) - {None}]
    note = "Labelled brackets by EVALB's rules; exact match: trees with all of them right."
    headings = ["system", *(LABELLED[name] for name in shown)]
    return [Table(f"{where}: labels", headings, lines, note)] if shown else []


def _systems(found: Sequence[System], title: str) -> Table:
    rows = {
        one.name: [one.name, one.kind, one.encoder or "–", one.tuned_on or "–"] for one in found
    }
    note = "Tuned on: the trees that heads were ranked or weights trained on; –: none, or unknown."
    headings = ["system", "kind", "encoder", "tuned on"]
    return Table(f"{title}: systems", headings, list(rows.values()), note)
