"""Options of ``attree parse``: how rows are made and written, and where the work is done."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from attree.base import options
from attree.base.options import between
from attree.base.registry import check_name

_INPUT, _PLACE = "Input and output", "Where it runs"
PARQUET, BRACKETS = "parquet", "brackets"
#: Parquet is always written; brackets are written beside it.
FORMATS = (PARQUET, BRACKETS)
_TO = Parameter(
    name="--to", converter=options.words, completer=options.bulk_formats, show_default=PARQUET
)


@dataclass(frozen=True, slots=True)
class RowSettings:
    """How rows are made of lines and written; with the parser, all that they depend on.

    Attributes:
        tokenizer: a name that :func:`attree.raw_text.words.tokeniser` knows.
        sentences: whether lines are split into sentences.
        column: field of JSON Lines, column of Parquet.
        max_words: longer sentences are not parsed.
        tokens_per_batch: word pieces that go through the encoder at once; ``None`` for what suits
            the device.
        formats: Format to write: parquet, or parquet,brackets; of -, brackets.
        marginals: Column marginals: the probability of each span, by tree CRFs.
        too_long: what becomes of them, a key of :data:`attree.trees.parses.POLICIES`.
        id: Field of JSON Lines that comes back as column id.
    """

    tokenizer: options.Fixed[str] = "whitespace"
    sentences: options.Fixed[bool] = False
    column: options.Fixed[str] = "text"
    max_words: Annotated[options.MaxWords, Parameter(validator=between(1, 30_000))] = 500
    tokens_per_batch: options.TokensPerBatch | None = None
    formats: Annotated[tuple[str, ...], _TO] = ()
    marginals: bool = False
    too_long: options.TooLong = "right_branching"
    id: str = "id"

    def __post_init__(self) -> None:
        """Refuse an unknown format."""
        for name in self.formats:
            check_name(name, FORMATS, f"unknown format {name!r}")

    def describe(self) -> dict[str, Any]:
        """Return the settings as JSON, for a manifest; marginals are named if they are wanted."""
        written = [name for name in FORMATS if name in (PARQUET, *self.formats)]
        settings = {**asdict(self), "formats": written}
        if not self.marginals:
            del settings["marginals"]
        return settings


@dataclass(frozen=True, slots=True)
class Place:
    """Where the work is done.

    Attributes:
        workers: how many; 0 for one a GPU, or one where there is none.
        scheduler: of Dask, which is there already; certificates for it are those of Dask's
            configuration.
        slurm: One Slurm job a worker: KEY=VALUE for queue, account, cores, memory, walltime,
            interface, extra.
    """

    workers: Annotated[options.Workers, Parameter(show_default="one, or one a GPU")] = 0
    scheduler: options.Scheduler | None = None
    slurm: Annotated[tuple[str, ...], Parameter(converter=options.words)] = ()

    @property
    def cluster(self) -> tuple[str, Any] | None:
        """A key of :data:`attree.base.cluster.CLUSTERS`, and what it parses; None: no cluster."""
        if self.slurm:
            return "slurm", self.slurm
        return ("address", self.scheduler) if self.scheduler else None


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a run goes about its folder.

    Attributes:
        shard_lines: Input lines of one shard: that much is lost when a worker is killed. Default:
            those the folder was begun with, or 500, or 20,000 on a GPU.
        limit: Only the first lines.
        unlock: Do not wait for an earlier run on this folder: you are sure that it is dead.
        restart: where the folder was begun with other settings, code or input.
    """

    shard_lines: Annotated[int | None, Parameter(validator=between(1), group=_PLACE)] = None
    limit: Annotated[int | None, Parameter(validator=between(1), group=_INPUT)] = None
    unlock: Annotated[bool, Parameter(group=_PLACE)] = False
    restart: Annotated[options.Restart, Parameter(group=_PLACE)] = False
