"""What goes to a pipeline and what comes back: light, so that a driver need not load torch."""

from __future__ import annotations

from dataclasses import dataclass

from attree.corpus.output import Statistics

#: Shards that a pipeline works on at the same time, so that none of its threads has to wait.
IN_HAND = 3


@dataclass(frozen=True, slots=True)
class Source:
    """One part of a shard's payload: lines of one file.

    Attributes:
        file: its name in the output.
        kind: a key of :data:`attree.corpus.lines.PARSERS`.
        first: 1-based line number of the first line.
        payload: the lines.
    """

    file: str
    kind: str
    first: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Work:
    """One shard to parse."""

    number: int
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What parsing a shard gave, and the seconds that the encoder took for it."""

    number: int
    statistics: Statistics
    encoder_seconds: float


@dataclass(frozen=True, slots=True)
class Settings:
    """How rows are made.

    Attributes:
        column: field of JSON Lines.
        max_words: longer sentences are not parsed.
        tokens_per_batch: word pieces that go through the encoder at once; ``None`` for what suits
            the device.
        formats: what is written, names of :data:`attree.corpus.output.FORMATS`.
    """

    column: str = "text"
    max_words: int = 500
    tokens_per_batch: int | None = None
    formats: tuple[str, ...] = ("parquet",)
