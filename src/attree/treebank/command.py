"""``attree treebank``: convert treebank files to a sentence table, or check what is in them."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attree.errors import AttreeError

if TYPE_CHECKING:
    from attree.treebank.cleaning import Counts
    from attree.treebank.sentence import Rejected, Sentence
    from attree.treebank.settings import Settings
    from attree.treebank.table import TableBuilder

_CODE = ("attree.treebank.command:run",)
_FOLDERS = [Path("workflow/resources/treebanks"), Path("treebanks")]
_LONG = 30_000_000  # bytes: from here on progress is shown
_SHOWN = 20  # rejected sentences told on stderr

_MANY = "repeatable; - for none."

Text = str | None
Texts = list[str] | None
Paths = list[Path] | None


@dataclass(frozen=True, slots=True)
class _Job:
    language: str
    split: str
    files: tuple[Path, ...]
    settings: Settings

    @property
    def title(self) -> str:
        """How people know it: language and split, else its file or how many files it has."""
        files = str(self.files[0]) if len(self.files) == 1 else f"{len(self.files):,} files"
        return f"{self.language} {self.split}".strip() or files


def run(
    files: Annotated[
        Texts, typer.Argument(help="Files, or patterns such as 'wsj_{0125..0149}.mrg'.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the sentence table.")] = None,
    rejected: Annotated[Path | None, typer.Option(help="Write what was not read, and why.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Print what is in the files.")] = False,
    language: Annotated[str, typer.Option(help="The language's name.")] = "",
    split: Annotated[str, typer.Option(help="The split's name.")] = "",
    folder: Annotated[Paths, typer.Option(help="Holds --language, if no FILES are given.")] = None,
    format: Annotated[Text, typer.Option(help="ptb, spmrl, conllu; default: by extension.")] = None,
    encoding: Annotated[Text, typer.Option(help="Default: utf-8.")] = None,
    punctuation: Annotated[Text, typer.Option(help="keep, ptb, unicode or 'drop:TAG TAG'.")] = None,
    dummy_root: Annotated[Texts, typer.Option(help=f"Outer label, no phrase; {_MANY}")] = None,
    drop_label: Annotated[Texts, typer.Option(help=f"Of subtrees to leave out; {_MANY}")] = None,
    escapes: Annotated[Text, typer.Option(help="-LRB- and such: undo (default) or keep.")] = None,
    nonprojective: Annotated[Text, typer.Option(help="Crossing dependencies: skip, lift.")] = None,
    max_words: Annotated[int | None, typer.Option(help="Skip longer sentences.")] = None,
    first: Annotated[int | None, typer.Option(help="Skip all but the first so many.")] = None,
    exclude: Annotated[Texts, typer.Option(help="Files to leave out; repeatable.")] = None,
    derived: Annotated[Text, typer.Option(help="constituency or dependency.")] = None,
) -> None:
    """Convert treebank FILES to a sentence table, or --check what is in them.

    A sentence that cannot be read is reported with file, line and reason, and costs no other.

    Without FILES, --language is looked up in the folders of treebanks.
    """
    if output is None and rejected is None and not check:
        raise AttreeError("there is nothing to do", fix="add --output FILE, or --check")
    options = {
        "format": format,
        "encoding": encoding,
        "punctuation": punctuation,
        "dummy_roots": _labels(dummy_root),
        "drop_labels": _labels(drop_label),
        "escapes": escapes,
        "nonprojective": nonprojective,
        "max_words": max_words,
        "first": first,
        "derived": derived,
    }
    given = {name: value for name, value in options.items() if value is not None}
    jobs = list(_jobs(files or [], exclude or [], language, split, folder or _FOLDERS, given))
    if len(jobs) > 1 and (output or rejected):
        raise AttreeError("one table holds one split", fix="add --split")
    for job in jobs:
        _convert(job, output, rejected, check=check)


def _labels(given: Texts) -> list[str] | None:
    """Return the labels given; ``-`` alone stands for none."""
    return [] if given == ["-"] else given or None


def _jobs(
    files: list[str],
    exclude: list[str],
    language: str,
    split: str,
    folders: list[Path],
    given: dict[str, Any],
) -> Iterator[_Job]:
    """Yield what is to be read: FILES under the options given, or a language's splits."""
    from attree.treebank.language_file import check_settings
    from attree.treebank.readers import resolve
    from attree.treebank.settings import Settings

    check_settings(given, "command line")
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
    }
    if files:
        found = _find(files, exclude)
        yield _Job(language, split, found, resolve(Settings(**options), found))
        return
    if not language:
        raise AttreeError("no files are given", fix="name some, or a --language")
    from attree.treebank.language import discover

    catalogue = discover(folders)
    for name in [split] if split else list(catalogue[language].splits):
        one = catalogue[language].split(name)
        yield _Job(language, name, one.files, dataclasses.replace(one.settings, **options))


def _find(patterns: list[str], exclude: list[str]) -> tuple[Path, ...]:
    """Return the files that patterns match; each pattern must match one."""
    from attree.treebank.patterns import find

    for pattern in patterns:
        found = find([pattern])
        if not found.files:
            fix = f"name its files: '{pattern}/*'" if Path(pattern).is_dir() else "check its name"
            raise AttreeError("no such file", file=pattern, fix=fix)
        if found.missing:
            _say(f"warning: {len(found.missing)} of {pattern} are not there")
    excluded = set(find(exclude).files)
    files = tuple(file for file in find(patterns).files if file not in excluded)
    if not files:
        raise AttreeError("every file is excluded", fix="correct --exclude")
    return files


def _convert(job: _Job, output: Path | None, rejected: Path | None, *, check: bool) -> None:
    from attree.treebank.check import Inspector, totals
    from attree.treebank.cleaning import Counts, prepare

    builder: TableBuilder | None = None
    if output or rejected:
        from attree.treebank.table import TableBuilder

        builder = TableBuilder()
    counts, inspector = Counts(), Inspector()
    told = 0
    for item in prepare(_reading(job), job.settings, counts):
        if check:
            inspector.add(item)
        else:
            told += _tell(item, told)
        if builder is not None:
            builder.add(item)
    if check:
        print(inspector.report(job.title, job.settings, counts, len(job.files)))
    _say(f"{job.title}: {totals(counts)}")
    for warning in _warnings(job.settings, counts):
        _say(f"warning: {warning}")
    if counts.read == 0:
        raise AttreeError(
            f"no sentence could be read ({totals(counts)})",
            file=job.files[0],
            fix="see the reasons above, and check format, encoding and punctuation",
        )
    if builder is not None:
        _write(job, builder, counts, output, rejected)


def _write(
    job: _Job, builder: TableBuilder, counts: Counts, output: Path | None, rejected: Path | None
) -> None:
    from attree.provenance import provenance
    from attree.schemas import REJECTED, SENTENCES, write_table

    settings = dataclasses.asdict(job.settings)
    metadata = provenance(
        code=_CODE,
        settings=settings | {"files": [str(file) for file in job.files]},
        language=job.language,
        split=job.split,
        counts=counts.as_dict(),
        **{key: settings[key] for key in ("format", "punctuation", "derived")},
    )
    sentences, others = builder.tables()
    if rejected:
        write_table(rejected, others, schema=REJECTED, metadata=metadata)
    if output:
        write_table(output, sentences, schema=SENTENCES, metadata=metadata)


def _reading(job: _Job) -> Iterator[Sentence | Rejected]:
    """Yield every sentence of the job's files, and show progress where they are large."""
    from attree.progress import progress
    from attree.treebank.readers import read_files

    if sum(file.stat().st_size for file in job.files) < _LONG:
        yield from read_files(job.files, job.settings)
        return
    with progress(f"reading {job.title}", total=len(job.files), unit="files") as advance:
        for file in job.files:
            yield from read_files([file], job.settings)
            advance(1)


def _tell(item: Sentence | Rejected, told: int) -> bool:
    """Say on stderr why a sentence was not read, for the first few; return whether it counts."""
    from attree.treebank.sentence import Rejected

    if not isinstance(item, Rejected) or item.status == "skipped" or told > _SHOWN:
        return False
    more = "… more: see the rejected table, or --check"
    _say(f"{item.file}:{item.line}: {item.reason}" if told < _SHOWN else more)
    return True


def _warnings(settings: Settings, counts: Counts) -> Iterator[str]:
    """Yield what looks wrong about a whole split."""
    if counts.words_removed > counts.words:
        share = counts.words_removed / (counts.words_removed + counts.words)
        yield (
            f"punctuation policy {settings.punctuation} removed {share:.0%} of the words: "
            "is it meant for these tags? (punctuation: keep)"
        )
    if counts.failed > counts.read:
        yield f"most sentences failed: is format {settings.format}, {settings.encoding} right?"


def _say(line: str) -> None:
    print(line, file=sys.stderr)
