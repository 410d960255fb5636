"""``attree treebank``: check treebank files, convert them, or write a sentence table."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from attree.base import options
from attree.base.errors import AttreeError
from attree.base.languages import code_in, code_of
from attree.base.options import Asked, ReadingOptions
from attree.base.patterns import distinct, find
from attree.base.settings import form_of, meanings
from attree.base.terminal import progress, safe_lines, say, silent
from attree.base.text import listed
from attree.treebank import formats
from attree.treebank.language import discover
from attree.treebank.language_file import LanguageKeys, settings_of
from attree.treebank.sentence import Rejected, Sentence, SplitSettings

_LONG = 30_000_000  # bytes: from here on progress is shown
_SHOWN = 20  # rejected sentences told on stderr
_FOLDERS = [Path("workflow/resources/treebanks"), Path("treebanks")]
_NAMED = 5  # files that are no treebanks and are named in a message

_READING = "How files are read"

_FILES = "Treebank files, patterns such as 'wsj_{0125..0149}.mrg', or folders."
Files = Annotated[list[str], Parameter(converter=options.words, help=_FILES)]


def _of(key: str, *, several: bool = False) -> Parameter:
    """Return the option for a key of ``language.yaml``, with the help of the key."""
    meaning = meanings(LanguageKeys)[key]
    form = "several, or - for none" if several else form_of(LanguageKeys, key)
    text = f"{meaning[0].upper()}{meaning[1:]} ({form})."
    if not several:
        return Parameter(help=text)
    option = f"--{key.removesuffix('s').replace('_', '-')}"
    return Parameter(name=option, help=text, converter=options.words, allow_leading_hyphen=True)


@dataclass(frozen=True, slots=True)
class TreeOptions(Asked):
    """Settings for reading trees; None stands for the default of the files' format.

    Attributes:
        traces, drop_labels, functions, escapes, nonprojective, short: keys of ``language.yaml``.
        dependencies: how dependency trees become constituency trees.
    """

    traces: Annotated[str | None, _of("traces")] = None
    drop_labels: Annotated[list[str] | None, _of("drop_labels", several=True)] = None
    functions: Annotated[str | None, _of("functions")] = None
    escapes: Annotated[str | None, _of("escapes")] = None
    nonprojective: Annotated[str | None, _of("nonprojective")] = None
    dependencies: options.Dependencies | None = None
    short: Annotated[
        bool | None,
        Parameter(help="Sentences of dependency trees come again, cut to their main clause."),
    ] = None


@dataclass(frozen=True, slots=True)
class WordOptions(Asked):
    """Settings for choosing words and sentences; None stands for the default of the files' format.

    Attributes:
        dummy_roots, final_punctuation, part, derived: keys of ``language.yaml``.
        max_words, first: limits on the sentences read.
        accept_loss: share of sentences that may be lost.
    """

    dummy_roots: Annotated[list[str] | None, _of("dummy_roots", several=True)] = None
    final_punctuation: Annotated[str | None, _of("final_punctuation")] = None
    max_words: options.MaxWords | None = None
    part: Annotated[str | None, _of("part")] = None
    first: options.First | None = None
    derived: Annotated[str | None, _of("derived")] = None
    accept_loss: options.AcceptLoss | None = None


@dataclass(frozen=True, slots=True)
class ReadingJob:
    """Files that are read together, and their settings.

    Attributes:
        files, settings: which files, and how they are read.
        language, split: of the treebank; empty if unknown.
        place: the folder that was searched, if one was.
    """

    files: tuple[Path, ...]
    settings: SplitSettings
    language: str = ""
    split: str = ""
    place: str = ""

    @property
    def title(self) -> str:
        """The folder, the treebank, the only file, or the number of files."""
        files = str(self.files[0]) if len(self.files) == 1 else f"{len(self.files):,} files"
        return self.place or f"{self.language} {self.split}".strip() or files


app = App(
    name="treebank",
    help="Check, read or convert treebanks; `attree treebank FILES` is `… read FILES`.",
)


@app.default
@app.command(name="read")
@options.needs(folder="language", exclude="FILES", split_name="language FILES")
def run(
    files: Files | None = None,
    /,
    *,
    output: options.Output | None = None,
    rejected: Path | None = None,
    check: bool = False,
    language: str = "",
    split_name: str = "",
    folder: options.Paths | None = None,
    exclude: options.Words | None = None,
    reading: Annotated[ReadingOptions, Parameter(name="*", group=_READING)] = ReadingOptions(),
    trees: Annotated[TreeOptions, Parameter(name="*", group=_READING)] = TreeOptions(),
    words: Annotated[WordOptions, Parameter(name="*", group=_READING)] = WordOptions(),
    overwrite: options.Overwrite = False,
) -> None:
    """Check what is in treebank FILES, or write them as a sentence table.

    A sentence that cannot be read is reported with file, line and reason, and costs no other.
    Where more than a tenth is lost, nothing is written. Without FILES, --language is looked up in
    the folders of treebanks; --check also takes a folder, and reads what treebanks are in it.

    Example: attree treebank mine/test.ptb --check

    Args:
        output: Where to write: the sentence table.
        rejected: Write what was not read, and why.
        check: Print what is in the files.
        language: Language, by name or code: of FILES; without FILES, what is looked up.
        split_name: The split's name.
        folder: Folder that holds --language, if no FILES are given.
        exclude: Files to leave out.
    """
    from attree.base.files import check_apart, check_new

    if output is None and rejected is None and not check:
        raise AttreeError("nothing-to-do", "nothing to do", fix="add --output FILE, or --check")
    settings = reading.given() | trees.given() | words.given()
    if folders := [Path(name) for name in files or [] if check and Path(name).is_dir()]:
        others = len(folders) < len(files or [])
        if others or output or rejected or exclude or language or split_name:
            fix = "give only --check and folders, or name files"
            raise AttreeError("folder-by-itself", "a folder is checked whole, by itself", fix=fix)
        _check_each([job for folder in folders for job in jobs_in_folder(folder, settings)])
        return
    if files:
        jobs = jobs_of_files(files, exclude or [], settings, language=language, split=split_name)
        if len(jobs) > 1 and (output or rejected):
            raise formats.several_formats({job.settings.format: job.files for job in jobs})
    else:
        jobs = list(jobs_of_language(language, split_name, folder, settings))
    if len(jobs) > 1 and (output or rejected):
        raise AttreeError("one-split-a-table", "one table holds one split", fix="add --split-name")
    check_apart(filter(None, (output, rejected)), [file for job in jobs for file in job.files])
    check_new((output, rejected), overwrite=overwrite)
    for job in jobs:
        _convert(job, output, rejected, check=check)


@app.command(name="convert")
def convert_command(
    files: Files,
    /,
    *,
    output: options.Output,
    to: Annotated[str | None, Parameter(completer=options.written_formats)] = None,
    format: Annotated[options.Format | None, Parameter(group=_READING)] = None,
    encoding: Annotated[options.Encoding | None, Parameter(group=_READING)] = None,
    labels: Annotated[options.Labels | None, Parameter(group=_READING)] = None,
    trees: Annotated[TreeOptions, Parameter(name="*", group=_READING)] = TreeOptions(),
    overwrite: options.Overwrite = False,
) -> None:
    """Write the trees of FILES in another format; only traces and remarks are taken out.

    Functions stay in labels unless --functions cut.

    Formats: ptb (.mrg), spmrl (.ptb), stanza (.conllu, trees in comments), export (.export),
    discbracket (.discbracket), tigerxml (.xml), half (.half, partly bracketed trees: of
    dependency trees the subtrees that are phrases), parquet (a sentence table).

    Example: attree treebank convert tiger.xml --output tiger.mrg

    Args:
        output: Where to write: a treebank file, UTF-8.
        to: Format to write: see above. Default: by the output's extension.
    """
    from attree.base.files import check_apart, check_new
    from attree.treebank.convert import convert, target

    how = ReadingOptions(format, encoding, labels=labels)
    jobs = jobs_of_files(files, [], {"functions": "keep"} | how.given() | trees.given())
    check_apart([output], [file for job in jobs for file in job.files])
    check_new([output], overwrite=overwrite)
    to = to or target(output)
    done = convert([(job.files, job.settings) for job in jobs], output, to)
    list(_told(done.rejected))
    say(f"{output}: {done.written:,} sentences written, {len(done.rejected):,} rejected")
    if done.raised:
        say(f"{done.raised:,} sentences had crossing branches, which were made continuous")
    if done.crossed:
        why = "brackets cannot cross; `attree train --dependencies` reads CoNLL-U without this loss"
        say(f"{done.crossed:,} spans that are no phrases were left out: {why}")
    if done.words:
        shown = ", ".join(repr(word) for word, _ in done.words.most_common(5))
        say(f"warning: {done.words.total():,} words cannot stand in {to} as they are: {shown}")


def _check_each(jobs: list[ReadingJob]) -> None:
    """Report on each treebank, even if another cannot be read."""
    failed = 0
    for job in jobs:
        try:
            _convert(job, check=True)
        except AttreeError as error:
            say(f"error: {error}")
            failed += 1
    if failed:
        problem = f"{failed} of {len(jobs)} treebanks could not be read"
        raise AttreeError("unreadable-treebanks", problem, fix="see the lines above")


def _convert(
    job: ReadingJob, output: Path | None = None, rejected: Path | None = None, *, check: bool
) -> None:
    """Read one split, and write it or report on it."""
    from attree.treebank.check import Inspector, refuse, report, totals, warnings
    from attree.treebank.table import split_table, table_of_rejected

    inspector = Inspector(job.files, job.settings)
    items = inspector.watch(_reading(job))
    sentences, others = split_table(items if check else _told(items))
    warned = list(warnings(inspector))
    if check:
        print(safe_lines(report(inspector, job.title, warned)))
    say(f"{job.title}: {totals(inspector.counts)}")
    for warning in warned:
        say(f"warning: {warning}")
    if not check or inspector.counts.read == 0:
        refuse(inspector)
    if output or rejected:
        from attree.base.provenance import provenance
        from attree.base.schemas import REJECTED, write_table

        counts, settings = inspector.counts, dataclasses.asdict(job.settings)
        metadata = provenance(
            code=["attree.cli.treebank:run"],
            settings=settings | {"files": [str(file) for file in job.files]},
            language=job.language,
            split=job.split,
            counts=counts.as_dict() | {"left_out": counts.left_out},
            note=counts.note,
            crossing=counts.crossing,
            words_removed=round(counts.removed, 4),
            punctuation=counts.punctuation,
            punctuation_reason=counts.reason,
            **{key: settings[key] for key in ("format", "derived")},
        )
        if rejected:
            write_table(rejected, table_of_rejected(others), schema=REJECTED, metadata=metadata)
        if output:
            write_table(output, sentences, schema=sentences.schema, metadata=metadata)


def _reading(job: ReadingJob) -> Iterator[Sentence | Rejected]:
    """Yield the sentences of the job's files; show progress if the files are large."""
    shown = progress if sum(file.stat().st_size for file in job.files) >= _LONG else silent
    with shown(f"reading {job.title}", total=len(job.files), unit="files") as advance:
        yield from formats.read_files(job.files, job.settings, lambda: advance(1))


def _told(items: Iterable[Sentence | Rejected]) -> Iterator[Sentence | Rejected]:
    """Yield the items of a reader; say of the first few why a sentence was not read."""
    told = 0
    for item in items:
        if isinstance(item, Rejected) and item.status != "skipped" and told <= _SHOWN:
            say(str(item) if told < _SHOWN else "… more: see the rejected table, or --check")
            told += 1
        yield item


def jobs_of_files(
    patterns: Sequence[str], exclude: Sequence[str], options: dict[str, Any], **names: str
) -> list[ReadingJob]:
    """Return a job of the files that patterns match, or one for each of their formats.

    Args:
        patterns: each must match a file.
        exclude: patterns of files to leave out.
        options: keys of ``language.yaml``.
        names: language and split.

    Raises:
        AttreeError: a pattern matches nothing, or an option is wrong.
    """
    settings = settings_of(**options)
    files = _files(patterns, exclude, settings.format)
    groups = [list(files)] if settings.format else formats.by_format(files).values()
    return [ReadingJob(tuple(group), formats.resolve(settings, group), **names) for group in groups]


def jobs_of_language(
    language: str, split: str, folders: list[Path] | None, keys: dict[str, Any]
) -> Iterator[ReadingJob]:
    """Yield the splits of a language in folders of treebanks; all splits, or only ``split``."""
    if not language:
        raise AttreeError("no-inputs", "no files are given", fix="name some, or a --language")
    asked = settings_of(**keys)
    options = {key: getattr(asked, key) for key in keys}
    catalogue = discover(folders or _FOLDERS)
    language = _find_language(language, catalogue)
    for name in [split] if split else list(catalogue[language].splits):
        part = catalogue[language].split(name)
        yield ReadingJob(part.files, dataclasses.replace(part.settings, **options), language, name)


def _find_language(language: str, names: Iterable[str]) -> str:
    """Return the treebank's name for a language's name or code."""
    if language in (names := list(names)):
        return language
    try:
        code = code_of(language)
    except AttreeError:
        return language
    matches = [name for name in names if code_in(name) == code]
    return matches[0] if len(matches) == 1 else language


def jobs_in_folder(folder: Path, options: dict[str, Any]) -> Iterator[ReadingJob]:
    """Yield the treebanks in a folder: a language's splits, or a job for each format."""
    if (folder / "language.yaml").is_file():
        yield from jobs_of_language(folder.resolve().name, "", [folder.resolve().parent], options)
        return
    settings = settings_of(**options)
    groups, others = formats.in_folder(folder, settings.format)
    if others:
        names = listed([file.relative_to(folder) for file in others], _NAMED)
        kind = settings.format or "any format that their names or contents tell"
        say(f"{folder}: not in {kind}: {names}")
    if not groups:
        fix = f"name its files, with --format: '{folder}/*'"
        raise AttreeError("no-treebank", "no treebank is in this folder", file=folder, fix=fix)
    for name, files in groups.items():
        yield ReadingJob(tuple(files), formats.resolve(settings, files), place=name)


def _files(patterns: Sequence[str], exclude: Sequence[str], format: str | None) -> tuple[Path, ...]:
    """Return the files of patterns and folders; each of these must have one."""
    paths: list[Path] = []
    for pattern in patterns:
        if Path(pattern).is_dir():
            paths += chain(*formats.together(Path(pattern), format=format))
            continue
        matched = find([pattern])
        if not matched.files:
            raise AttreeError("missing-file", "no such file", file=pattern, fix="check its name")
        paths += matched.files
        if matched.missing:
            say(f"warning: {len(matched.missing)} of {pattern} do not exist")
    if not (files := tuple(distinct(paths, find(exclude).files))):
        raise AttreeError("all-excluded", "every file is excluded", fix="correct --exclude")
    return files
