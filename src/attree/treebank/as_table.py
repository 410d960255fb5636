"""Read the sentences that a command is given: sentence tables, or treebank files of any format."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from attree.base.errors import AttreeError
from attree.base.patterns import matching
from attree.base.reading import opened

if TYPE_CHECKING:
    import pyarrow as pa

    from attree.treebank.sentence import SplitSettings

_USUAL = "constituency"
_PARQUET = b"PAR1"  # the first bytes of a Parquet file


@dataclass(frozen=True, slots=True)
class Treebank:
    """The sentences of a file, cleaned.

    Attributes:
        table: of ``schemas.SENTENCES_SCHEMA``.
        refused: a line for each rejected sentence.
        punctuation: the policy that removed words.
        derived: what its brackets were made from.
    """

    table: pa.Table
    refused: list[str]
    punctuation: str
    derived: str

    @classmethod
    def read(
        cls, files: Sequence[Path], settings: SplitSettings, *, partial: bool = False
    ) -> Treebank:
        """Read treebank files, or a sentence table; ``partial`` accepts partly bracketed trees.

        Raises:
            AttreeError: no sentence is read, too many are lost, or trees are partly bracketed.
        """
        from attree.base.schemas import PARTIAL
        from attree.treebank import check
        from attree.treebank.formats import read_files, resolve
        from attree.treebank.table import split_table

        path, how = files[0], resolve(settings, files)
        seen = check.Inspector(files, how)
        table, rejected = split_table(seen.watch(read_files(files, how)))
        try:
            check.refuse(seen)
        except AttreeError as error:
            fix = "correct them, or write a table of the rest"
            raise error.replace(fix=f"see `attree treebank {path} --check`: {fix}") from None
        if PARTIAL.name in table.schema.names and not partial:
            problem = "only some brackets of these trees are known"
            fix = "give whole trees; `attree train` and `attree parse` take these"
            raise AttreeError("partly-known-trees", problem, file=path, fix=fix)
        return cls(table, list(map(str, rejected)), seen.counts.punctuation, str(how.derived))

    @classmethod
    def read_all(
        cls, paths: Iterable[Path], settings: SplitSettings, *, partial: bool = False
    ) -> Treebank:
        """Read several treebanks as one, with sentences renumbered; a path may be a folder.

        Raises:
            AttreeError: see :meth:`read`; or their punctuation policies differ.
        """
        from attree.base.schemas import join_tables
        from attree.treebank.cleaning import common_policy
        from attree.treebank.formats import together

        groups = together(*paths, format=settings.format)
        read = [cls.read(files, settings, partial=partial) for files in groups]
        policy = common_policy([treebank.punctuation for treebank in read], groups[0][0])
        refused = [line for treebank in read for line in treebank.refused]
        whole = join_tables([treebank.table for treebank in read])
        # some brackets of dependencies mark them all
        return cls(whole, refused, policy, max(treebank.derived for treebank in read))

    def write(self, path: Path, **metadata: Any) -> None:
        """Write the table with its metadata."""
        from attree.base.schemas import write_table

        metadata |= {"punctuation": self.punctuation, "derived": self.derived}
        write_table(path, self.table, schema=self.table.schema, metadata=metadata)


@contextlib.contextmanager
def as_tables(
    paths: Iterable[Path], *, partial: Iterable[Path] = (), settings: SplitSettings | None = None
) -> Iterator[list[Path]]:
    """Yield a sentence table for each path; treebanks are read into temporary tables.

    Rejected sentences are reported on stderr with file, line and reason.

    Args:
        paths: sentence tables, which are used as they are, and treebanks, each a file, a pattern of
            files or a folder.
        partial: paths whose trees may be partly bracketed; elsewhere dependency trees are read
            whole.
        settings: how files are read; by default as their format says.

    Raises:
        AttreeError: see :meth:`Treebank.read`.
    """
    with TemporaryDirectory(prefix="attree-") as folder:
        tables, partial = [], set(partial)
        for number, path in enumerate(paths):
            first, *others = matching(path)
            if is_table(first) and not others:
                tables.append(first)
                continue
            # imported only here: the workflow's stages read tables and depend on no reader
            from attree.base.terminal import say
            from attree.treebank.sentence import SplitSettings

            how = settings or SplitSettings()
            if path not in partial:
                how = dataclasses.replace(how, dependencies="whole")
            treebank = Treebank.read_all([path], how, partial=path in partial)
            for line in treebank.refused:
                say(line)
            tables.append(Path(folder) / f"{number}-{first.stem[:40]}.parquet")
            treebank.write(tables[-1], language=first.stem, split="")
        yield tables


@contextlib.contextmanager
def as_table(paths: Sequence[Path], *, partial: bool = False) -> Iterator[Path]:
    """Yield one temporary sentence table of several files and tables.

    They are read by :func:`as_tables`; sentences are numbered on from file to file.
    """
    check_once(paths)
    with as_tables(paths, partial=paths if partial else ()) as tables:
        if len(tables) == 1:
            yield tables[0]
            return
        from attree.base.schemas import PARTLY_BRACKETED, join_tables, read_table, write_table
        from attree.treebank.cleaning import common_policy

        read = [read_table(path, schema=PARTLY_BRACKETED) for path in tables]
        about = [facts for _, facts in read]
        common_policy([facts.get("punctuation") for facts in about], paths[0])
        metadata = about[0] | {"derived": max(x.get("derived") or _USUAL for x in about)}
        for key in ("language", "split", "counts"):  # those of one are not those of all
            if any(facts.get(key) != about[0].get(key) for facts in about):
                metadata[key] = None
        whole = join_tables([table for table, _ in read])
        with TemporaryDirectory(prefix="attree-") as folder:
            path = Path(folder) / "joined.parquet"
            write_table(path, whole, schema=whole.schema, metadata=metadata)
            yield path


def check_once(paths: Iterable[Path]) -> None:
    """Refuse a file that several paths name: its sentences would count twice."""
    names: set[str] = set()
    for path in paths:
        files = list(matching(path))
        if not is_table(path):
            from attree.treebank.formats import together

            files = [file for group in together(path) for file in group]
        for file in files:
            if (name := os.path.realpath(file)) in names:
                fix = "name each file once"
                raise AttreeError("file-twice", "this file is named twice", file=file, fix=fix)
            names.add(name)


def check_files(paths: Iterable[Path], option: str) -> None:
    """Refuse tables beside an option for reading files, which has no effect on them.

    Raises:
        AttreeError: a path is a table.
    """
    for path in paths:
        if matching(path)[0].is_file() and is_table(path):
            problem = "this table was cleaned when it was made"
            fix = f"leave {option} out, or give the treebank's own file"
            raise AttreeError("cleaned-already", problem, file=path, fix=fix)


def is_table(path: Path) -> bool:
    """Tell a table by its name or its first bytes; an absent file counts as one.

    For a pattern, its first file decides; a folder is no table.
    """
    path = matching(path)[0]
    if path.suffix == ".parquet" or not path.exists():
        return True
    if path.is_dir():
        return False
    with opened(path, what="file") as handle:
        return handle.read(len(_PARQUET)) == _PARQUET
