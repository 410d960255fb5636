"""What people give a command for sentences: a sentence table, or a treebank file of any format."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from attree.errors import AttreeError

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
        from attree.schemas import HALF
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
        return cls(table, refused, counts.punctuation)

    def write(self, path: Path, **about: Any) -> None:
        """Write the table, with ``about`` in its metadata."""
        from attree.schemas import write_table

        about["punctuation"] = self.punctuation
        write_table(path, self.table, schema=self.table.schema, metadata=about)


@contextlib.contextmanager
def as_tables(
    paths: Iterable[Path], *, half: Iterable[Path] = (), punctuation: str | None = None
) -> Iterator[list[Path]]:
    """Yield sentence tables, for as long as a command runs: what is none is read as a treebank.

    Sentences that are not read are told on stderr, each with file, line and reason.

    Args:
        paths: sentence tables, which stay as they are, or treebank files.
        half: those of them whose trees may be half known.
        punctuation: the policy by which words of files are removed; by default what suits a file.

    Raises:
        AttreeError: see :meth:`Treebank.read`.
    """
    with TemporaryDirectory(prefix="attree-") as folder:
        found, half = [], set(half)
        for number, path in enumerate(paths):
            if _is_table(path):
                found.append(path)
                continue
            found.append(Path(folder) / f"{number}-{path.stem[:40]}.parquet")
            one = _read(path, half=path in half, punctuation=punctuation)
            one.write(found[-1], language=path.stem, split="")
        yield found


def check_files(paths: Iterable[Path], option: str) -> None:
    """Refuse tables where an option says how files are read: they would not follow it.

    Raises:
        AttreeError: one of them is a table.
    """
    for path in paths:
        if path.is_file() and _is_table(path):
            fix = f"leave {option} out, or give the treebank's own file"
            raise AttreeError("this table was cleaned when it was made", file=path, fix=fix)


def _read(path: Path, *, half: bool, punctuation: str | None) -> Treebank:
    # not imported for tables: the workflow's stages depend on no reader
    from attree.text import say
    from attree.treebank.sentence import Settings

    one = Treebank.read(path, Settings(punctuation=punctuation), half=half)
    for line in one.refused:
        say(line)
    return one


def _is_table(path: Path) -> bool:
    """Tell a table by its name or its first bytes; what is no file is left to who reads tables."""
    if path.suffix == ".parquet" or not path.is_file():
        return True
    with path.open("rb") as handle:
        return handle.read(len(_PARQUET)) == _PARQUET
