"""What stands below an experiment's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attree.experiments.cells import Cell
from attree.tables.render import number


def beside(record: Mapping[str, Any]) -> str | None:
    """Return what a row was trained on beside its own trees: ``80 trees of english/train``."""
    other = record["row"]["beside"]
    return f"{record['beside']:,} trees of {other['train']}" if other else None


def note(found: Sequence[Cell]) -> str:
    """Say what some cells rest on."""
    parts = []
    draws = max((cell.draws for cell in found), default=1)
    if draws > 1:
        parts.append(f"Mean ± standard deviation (maximum) of up to {draws} draws.")
    if any("trees" in note for cell in found for note in cell.notes):
        parts.append("[n trees]: the set holds no more than these.")
    if any("new head" in cell.notes for cell in found):
        parts.append("[new head]: masked-LM tuning began from a new language-model head.")
    chosen = {
        f"{cell.label}, {cell.column}: {cell.about['layers_used']} ({cell.about['dropout_used']})"
        for cell in found
        if cell.about.get("layer") == "tuned"
    }
    if chosen:
        parts.append(f"Layers (dropout) chosen: {'; '.join(sorted(chosen))}.")
    if overlap := max((cell.about.get("overlap") or 0 for cell in found), default=0):
        which = "One sentence" if overlap == 1 else f"Up to {overlap:,} of the sentences"
        parts.append(f"{which} scored may also stand in the trees drawn from.")
    if others := {cell.about["beside"] for cell in found if cell.about.get("beside")}:
        parts.append(f"Trained on too: {', '.join(sorted(others))}.")
    if trained := sorted({str(cell.about["train"]) for cell in found if cell.about.get("train")}):
        parts.append(f"Trees from {', '.join(trained)}.")
    return " ".join(parts)


def below(found: Mapping[tuple[str, str], Cell], metric: str, line: str | None) -> str:
    """Say which few-shot parsers are not above a line, and in which columns."""
    if line is None:
        return ""
    below: dict[str, list[str]] = {}
    trained = 0
    for (label, column), cell in found.items():
        bar = found.get((line, column))
        ours, theirs = cell.mean(metric), bar.mean(metric) if bar else None
        if cell.about.get("layers_used") is None or ours is None or theirs is None:
            continue
        trained += 1
        if ours <= theirs:
            below.setdefault(label, []).append(f"{column} ({number(ours)}, {number(theirs)})")
    if not trained:
        return ""
    if not below:
        return f"Every few-shot parser is above {line} in every column."
    said = "; ".join(f"{label} on {', '.join(columns)}" for label, columns in below.items())
    return f"Few-shot parsers not above {line}: {said}."
