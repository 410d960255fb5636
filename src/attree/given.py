"""What people give a command for sentences: a sentence table, or a treebank file of any format."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from attree.errors import AttreeError
from attree.files import opened

if TYPE_CHECKING:
    import pyarrow as pa

    from attree.treebank.sentence import Settings

_PARQUET = b"PAR1"  # how Parquet files begin


@dataclass(frozen=True, slots=True)
class Treebank:
    """The sentences of a file, cleaned.

    Attributes:
        table: of ``schemas.SENTENCES``.
        refused: a line for each sentence that was not read.
        punctuation: the policy by which words were removed.
    """

    table: pa.Table
    refused: list[str]
    punctuation: str

    @classmethod
    def read(cls, path: Path, settings: Settings, *, half: bool = False) -> Treebank:
        """Read a treebank file or a sentence table, ``half`` where half-known trees will do.

        Raises:
            AttreeError: no sentence of it can be read, more is lost than can be right (see
                ``check.refuse``), or trees are half known.
        """
        from attree.schemas import HALF, read_metadata
        from attree.treebank import check, cleaning
        from attree.treebank.formats import read_files, resolve, sniff
        from attree.treebank.sentence import Rejected
        from attree.treebank.table import TableBuilder

        how, counts, seen = resolve(settings, [path]), cleaning.Counts(), check.Inspector()
        builder, refused = TableBuilder(), []
        for item in cleaning.prepare(read_files([path], how), how, counts):
            builder.add(item)
            seen.add(item)
            if isinstance(item, Rejected):
                refused.append(str(item))
        try:
            check.refuse(seen, how, counts, str(path), sniff(path, how))
        except AttreeError as error:
            fix = f"see `attree treebank {path} --check`, and write a table with the settings there"
            raise AttreeError(error.problem, file=path, fix=fix) from None
        table = builder.tables()[0]
        if HALF.name in table.schema.names and not half:
            problem = "only some brackets of these trees are known"
            fix = "give whole trees; `attree train` and `attree parse` take these"
            raise AttreeError(problem, file=path, fix=fix)
        policy = counts.punctuation
        if policy == "keep" and is_table(path):  # words were removed when it was made
            policy = read_metadata(path).get("punctuation") or policy
        return cls(table, refused, policy)

    def write(self, path: Path, **about: Any) -> None:
        """Write the table, with ``about`` in its metadata."""
        from attree.schemas import write_table

        about["punctuation"] = self.punctuation
        write_table(path, self.table, schema=self.table.schema, metadata=about)


def settings_of(**given: Any) -> Settings:
    """Return how treebank files are read, from keys of ``language.yaml``; None means not given.

    Raises:
        AttreeError: a value that cannot be.
    """
    from attree.treebank.language_file import as_settings, check_settings
    from attree.treebank.sentence import Settings

    checked = check_settings({k: v for k, v in given.items() if v is not None}, "command line")
    return Settings(**as_settings(checked))


@contextlib.contextmanager
def as_tables(
    paths: Iterable[Path], *, half: Iterable[Path] = (), settings: Settings | None = None
) -> Iterator[list[Path]]:
    """Yield sentence tables, for as long as a command runs: what is none is read as a treebank.

    Sentences that are not read are told on stderr, each with file, line and reason.

    Args:
        paths: sentence tables, which stay as they are, or treebank files.
        half: those of them whose trees may be half known; of the others dependency trees are read
            whole.
        settings: how files are read; by default as suits each.

    Raises:
        AttreeError: see :meth:`Treebank.read`.
    """
    with TemporaryDirectory(prefix="attree-") as folder:
        found, half = [], set(half)
        for number, path in enumerate(paths):
            if is_table(path):
                found.append(path)
                continue
            found.append(Path(folder) / f"{number}-{path.stem[:40]}.parquet")
            one = _read(path, settings, half=path in half)
            one.write(found[-1], language=path.stem, split="")
        yield found


@contextlib.contextmanager
def as_table(
    paths: Sequence[Path], *, half: bool = False, settings: Settings | None = None
) -> Iterator[Path]:
    """Yield one sentence table, for as long as a command runs, of files and tables.

    The arguments are those of :func:`as_tables`; sentences are numbered on from file to file.
    """
    with as_tables(paths, half=paths if half else (), settings=settings) as found:
        if len(found) == 1:
            yield found[0]
            return
        import pyarrow as pa

        from attree.schemas import HALF, HALF_KNOWN, read_table, write_table

        read = [read_table(path, schema=HALF_KNOWN) for path in found]
        tables = [table for table, _ in read]
        if any(HALF.name in table.schema.names for table in tables):
            tables = [
                table
                if HALF.name in table.schema.names
                else table.append_column(HALF, pa.array([False] * len(table)))
                for table in tables
            ]
        joined = pa.concat_tables(tables)
        numbers = pa.array(range(len(joined)), pa.int32())
        joined = joined.set_column(0, joined.schema.field(0), numbers)
        with TemporaryDirectory(prefix="attree-") as folder:
            path = Path(folder) / "joined.parquet"
            write_table(path, joined, schema=joined.schema, metadata=read[0][1])
            yield path


def check_files(paths: Iterable[Path], option: str) -> None:
    """Refuse tables where an option says how files are read: they would not follow it.

    Raises:
        AttreeError: one of them is a table.
    """
    for path in paths:
        if path.is_file() and is_table(path):
            fix = f"leave {option} out, or give the treebank's own file"
            raise AttreeError("this table was cleaned when it was made", file=path, fix=fix)


def _read(path: Path, settings: Settings | None, *, half: bool) -> Treebank:
    # not imported for tables: the workflow's stages depend on no reader
    from attree.text import say
    from attree.treebank.sentence import Settings

    settings = settings or Settings()
    if not half:
        settings = dataclasses.replace(settings, dependencies="whole")
    one = Treebank.read(path, settings, half=half)
    for line in one.refused:
        say(line)
    return one


def is_table(path: Path) -> bool:
    """Tell a table by its name or its first bytes; what is no file is left to who reads tables."""
    if path.suffix == ".parquet" or not path.is_file():
        return True
    with opened(path, what="file") as handle:
        return handle.read(len(_PARQUET)) == _PARQUET
