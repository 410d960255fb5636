"""Register the treebank formats by name, and read files of any format."""

import codecs
import contextlib
import dataclasses
import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from attree.base.errors import AttreeError
from attree.base.patterns import files_below, is_hidden, matching
from attree.base.reading import COMPRESSED, check_regular, opened
from attree.base.registry import check_name
from attree.base.text import listed
from attree.treebank import brackets, conllu, dialects, discbracket, export, half, tigerxml
from attree.treebank.crossing import Graph, continuous, without_dropped
from attree.treebank.labels import relabelled
from attree.treebank.sentence import UNDECODED, Format, Rejected, Sentence, SplitSettings, read_text


def _read_table(text: str, file: str, settings: SplitSettings) -> Iterator[Sentence | Rejected]:
    from attree.base.schemas import PARTLY_BRACKETED, read_table
    from attree.treebank.table import from_table

    yield from from_table(read_table(file, schema=PARTLY_BRACKETED)[0])


#: Name → format. To add one, write a module with a `Format`, and a line here.
FORMATS = {
    "ptb": brackets.PTB,
    "spmrl": brackets.SPMRL,
    "conllu": conllu.FORMAT,
    "stanza": conllu.STANZA,
    "conll2012": conllu.CONLL_2012,
    "export": export.FORMAT,
    "discbracket": discbracket.FORMAT,
    "tigerxml": tigerxml.FORMAT,
    "alpino": tigerxml.ALPINO,
    "icepahc": dialects.ICEPAHC,
    "penn-history": dialects.PENN_HISTORY,
    "greynir": dialects.GREYNIR,
    "floresta": dialects.FLORESTA,
    "cess": dialects.CESS,
    "starlang": dialects.STARLANG,
    "ontonotes": dialects.ONTONOTES,
    "switchboard": dialects.SWITCHBOARD,
    "half": half.FORMAT,
    "parquet": Format(_read_table, (".parquet",), continuous=True, binary=True),
}
_HEAD = 1 << 16  # bytes that tell a file's format
_NAMED = 3  # files of a format in a message
_File = TypeVar("_File", bound=str | Path)
#: Documents, which may hold an example, and earlier versions of files that editors leave.
_ASIDE = re.compile(r"(?i)README(\..*)?|.*(\.md|\.bak|\.old|\.orig|~)")
_DECLARED = re.compile(rb"\s*<\?xml[^>]*\bencoding=[\"']([\w.:-]+)[\"']")


def format_of(path: str | Path) -> str | None:
    """Return the format of a file's extension, or None."""
    extension = Path(path).suffix.lower()
    return next((name for name, form in FORMATS.items() if extension in form.extensions), None)


def is_aside(path: Path) -> bool:
    """Tell whether a file's name says that it is no treebank, or a hidden one."""
    return is_hidden(path.name) or _ASIDE.fullmatch(path.name) is not None


def recognised(path: str | Path, family: str) -> str | None:
    """Return the format that a file's beginning shows for certain, or None.

    Dialects of brackets are recognised only if ``family`` says that the file is in brackets, or it
    begins with one.
    """
    wide = (head := _head(path))[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    text = head.decode("utf-16" if wide else "utf-8", errors="replace").replace("\r\n", "\n")
    bracketed = family == "brackets" or (not family and text.lstrip().startswith("("))
    for name, form in sorted(FORMATS.items(), key=lambda item: bool(item[1].extensions)):
        if form.certain and (bracketed or form.family != "brackets") and form.certain(text):
            return name
    return None


def _head(path: str | Path) -> bytes:
    """Return the beginning of a file, empty if it cannot be read: reading it will tell why.

    Format, encoding and a check ask for it in turn: it is read once while the file is the same.
    """
    with contextlib.suppress(AttreeError, OSError):
        status = Path(path).stat()
        return _read_head(str(path), status.st_ino, status.st_size, status.st_mtime_ns)
    return b""


@functools.lru_cache(maxsize=64)
def _read_head(path: str, *_: int) -> bytes:
    with opened(path, what="file") as handle:
        return handle.read(_HEAD)


def _guess_format(path: str | Path) -> str | None:
    """Return a file's format by extension, or the format of its family that is certain.

    A file without a treebank's extension has the format that its beginning shows for certain.
    """
    name = format_of(path)
    family = FORMATS[name].family if name else ""
    certain = recognised(path, family) if family or name is None else None
    return certain if name is None or (certain and FORMATS[certain].family == family) else name


def in_folder(folder: Path, name: str | None = None) -> tuple[dict[str, list[Path]], list[Path]]:
    """Find the treebank files in a folder and the folders in it.

    Args:
        folder: where to look; hidden files are passed over.
        name: the only format to look for; by default all formats, by extension or beginning.

    Returns:
        title → the files of one folder and one format; and the files in no known format. A title is
        a path or pattern, with the format where two formats share it.
    """
    groups: dict[tuple[Path, str], list[Path]] = {}
    others = []
    for file in sorted(files_below(folder)):
        format = None if is_aside(file) else _guess_format(file)
        if format is None or name not in (None, format):
            others.append(file)
        else:
            groups.setdefault((file.parent, format), []).append(file)
    parents = Counter(parent for parent, _ in groups)
    patterns = {
        (parent, format): parent / f"*{files[0].suffix}" if parents[parent] > 1 else parent
        for (parent, format), files in groups.items()
    }
    shared = Counter(patterns.values())
    titles = {
        f"{path} ({key[1]})" if shared[path] > 1 else str(path): groups[key]
        for key, path in patterns.items()
    }
    return titles, others


def together(*paths: Path, format: str | None = None) -> list[list[Path]]:
    """Return the files of paths, in groups that are read together; a file of two names once.

    Args:
        paths: files, patterns of files, or folders of treebanks.
        format: of the files; in a folder, files of other formats are ignored.

    Raises:
        AttreeError: a folder has no treebank.
    """
    groups: list[list[Path]] = []
    for path in paths:
        found = list(in_folder(path, format)[0].values()) if path.is_dir() else [matching(path)]
        if not found:
            problem = "no treebank is in this folder"
            raise AttreeError("no-treebank", problem, file=path, fix="name its files")
        groups += found
    first = {os.path.realpath(file): file for group in groups for file in group}
    once = [[file for file in group if first.pop(os.path.realpath(file), None)] for group in groups]
    return list(filter(None, once))


def sniff(file: str | Path, settings: SplitSettings) -> str:
    """Return the certain format of a file if the settings have another; else empty."""
    usual = FORMATS[settings.format or ""]
    certain = None if usual.binary else recognised(file, usual.family)
    return certain if certain and certain != settings.format else ""


def resolve(settings: SplitSettings, files: Sequence[str | Path]) -> SplitSettings:
    """Fill in the format's defaults for settings that are None.

    Raises:
        AttreeError: the format is unknown, or is None and the files are absent, do not show it or
            have several.
    """
    name = settings.format or _common_format(files)
    check_name(name, FORMATS, f"unknown format {name!r}")
    usual = FORMATS[name]
    defaults = {
        key: getattr(usual, key)
        for key in ("punctuation", "dummy_roots", "drop_labels", "traces", "derived")
        if getattr(settings, key) is None
    }
    if usual.binary and "derived" in defaults:
        defaults["derived"] = _derived(files)
    encodings = {settings.encoding or _encoding(file, usual.fallback) for file in files}
    # of several, None: each file is read in its own
    encoding = settings.encoding if len(encodings) != 1 else encodings.pop()
    return dataclasses.replace(settings, format=name, encoding=encoding, **defaults)


def _derived(tables: Iterable[str | Path]) -> str:
    """Return what sentence tables say that their brackets were made from."""
    from attree.base.schemas import read_metadata

    said = {"constituency"}
    for table in tables:
        with contextlib.suppress(AttreeError, OSError, ValueError):  # reported when it is read
            said.add(read_metadata(table).get("derived") or "constituency")
    return max(said)  # "dependency" if one is


def _common_format(files: Sequence[str | Path]) -> str:
    """Return the format of all files, as each file's name or beginning tells it."""
    formats = by_format(files)
    if len(formats) == 1 and (name := next(iter(formats))):
        return name
    for file in files:
        check_regular(file, what="treebank file")
        if _head(file).startswith(COMPRESSED):
            read_text(file, "utf-8")  # says so
        if Path(file).suffix.lower() == ".ad":
            fix = "give the same trees in brackets, Bosque_CF_8.0.PennTreebank.ptb of Linguateca"
            raise AttreeError("format-not-read", "Floresta's .ad is not read", file=file, fix=fix)
    if None in formats or not formats:
        problem = "the format is not known from the files' extensions"
        fix = (
            f"add --format with one of {', '.join(FORMATS)}; where there is no --format, "
            "give the table of `attree treebank FILE --format … --output FILE.parquet`"
        )
        first = next(iter(formats.get(None, [])), None)
        raise AttreeError("unknown-format", problem, file=first, fix=fix)
    raise several_formats(formats)


def by_format(files: Iterable[_File]) -> dict[str | None, list[_File]]:
    """Return the files of each format, as their names or beginnings tell it; None is unknown."""
    formats: dict[str | None, list[_File]] = {}
    for file in files:
        formats.setdefault(_guess_format(file), []).append(file)
    return formats


def several_formats(formats: Mapping[Any, Sequence[str | Path]]) -> AttreeError:
    """Return the error that says which files are in which format."""
    named = ", ".join(f"{name} ({listed(files, _NAMED)})" for name, files in formats.items())
    fix = "name the files of one format, or add --format if all are in it"
    return AttreeError("several-formats", f"these files are in several formats: {named}", fix=fix)


def _encoding(file: str | Path, fallback: str) -> str:
    """Return the encoding that an XML file declares, or ``fallback`` if a file is not UTF-8."""
    if declared := _DECLARED.match(_head(file)):
        return declared[1].decode("ascii").lower()
    with contextlib.suppress(AttreeError):  # reported when the file is read
        text = read_text(file, "utf-8") if fallback else ""
        return fallback if UNDECODED.search(text) else "utf-8"
    return "utf-8"


def read_files(
    files: Iterable[str | Path], settings: SplitSettings, done: Callable[[], object] = lambda: None
) -> Iterator[Sentence | Rejected]:
    """Yield every sentence of ``files`` in order, each as a `Sentence` or as `Rejected`.

    Args:
        files: read one at a time.
        settings: resolved (see `resolve`).
        done: called after each file.

    Raises:
        AttreeError: a file is absent, the encoding is unknown or wrong, or no table of universal
            labels fits.
    """
    trees = read_trees(files, settings, done)
    items = (continuous(tree, settings) if isinstance(tree, Graph) else tree for tree in trees)
    return relabelled(items, settings.labels, FORMATS[settings.format or ""].labels)


def read_trees(
    files: Iterable[str | Path], settings: SplitSettings, done: Callable[[], object] = lambda: None
) -> Iterator[Sentence | Graph | Rejected]:
    """Yield every tree of ``files`` as its format reads it; see `read_files` for arguments."""
    form = FORMATS[settings.format or ""]
    for file in files:
        encoding = settings.encoding or _encoding(file, form.fallback)
        text = "" if form.binary else read_text(file, encoding)
        if text.strip() or form.binary:
            how = dataclasses.replace(settings, encoding=encoding)
            for tree in form.read(text, str(file), how):
                yield without_dropped(tree, how) if isinstance(tree, Graph) else tree
        else:
            yield Rejected(str(file), 1, "the file is empty", "failed")
        done()
