"""``attree treebank``: treebank files to a sentence table, checked, or in another format."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from attree import completion
from attree.errors import AttreeError
from attree.options import Overwrite
from attree.treebank.language_file import LANGUAGE_KEYS

if TYPE_CHECKING:
    from attree.treebank.cleaning import Counts
    from attree.treebank.jobs import Job
    from attree.treebank.sentence import Rejected, Sentence
    from attree.treebank.table import TableBuilder

_CODE = ("attree.treebank.command:run",)
_LONG = 30_000_000  # bytes: from here on progress is shown
_SHOWN = 20  # rejected sentences told on stderr

#: Options that are given once for each label → their keys.
_KEYS = {"dummy_root": "dummy_roots", "drop_label": "drop_labels"}
_LABELS = "repeatable; - for none"

Text = str | None
Texts = list[str] | None
Paths = list[Path] | None


def _setting(key: str, more: str = "") -> Any:
    """Return the option of a key of ``language.yaml``, with the help that the key has."""
    kind, sets = LANGUAGE_KEYS[key].kind, LANGUAGE_KEYS[key].sets
    about = more or kind.words.removeprefix("one of ")
    text = f"{sets[0].upper()}{sets[1:]} ({about})."
    offered = completion.treebank_formats if key == "format" else None
    panel = "How files are read"
    hyphen = key in _KEYS.values()
    return Parameter(
        allow_leading_hyphen=hyphen, help=text, metavar="", group=panel, completer=offered
    )


app = App(
    name="treebank",
    help="Check, read or convert treebanks; `attree treebank FILES` is `… read FILES`.",
)


@app.default
@app.command(name="read")
def run(
    files: Annotated[
        Texts, Parameter(help="Files, or patterns such as 'wsj_{0125..0149}.mrg'.")
    ] = None,
    /,
    *,
    output: Annotated[Path | None, Parameter(help="Write the sentence table.")] = None,
    rejected: Annotated[Path | None, Parameter(help="Write what was not read, and why.")] = None,
    check: Annotated[bool, Parameter(help="Print what is in the files.")] = False,
    language: Annotated[str, Parameter(help="The language's name.")] = "",
    split: Annotated[str, Parameter(help="The split's name.")] = "",
    folder: Annotated[Paths, Parameter(help="Holds --language, if no FILES are given.")] = None,
    format: Annotated[Text, _setting("format")] = None,
    encoding: Annotated[Text, _setting("encoding", "utf-8, latin-1 …")] = None,
    punctuation: Annotated[Text, _setting("punctuation")] = None,
    dummy_root: Annotated[Texts, _setting("dummy_roots", _LABELS)] = None,
    traces: Annotated[Text, _setting("traces")] = None,
    drop_label: Annotated[Texts, _setting("drop_labels", _LABELS)] = None,
    functions: Annotated[Text, _setting("functions")] = None,
    escapes: Annotated[Text, _setting("escapes")] = None,
    nonprojective: Annotated[Text, _setting("nonprojective")] = None,
    dependencies: Annotated[Text, _setting("dependencies")] = None,
    labels: Annotated[Text, _setting("labels")] = None,
    final_punctuation: Annotated[Text, _setting("final_punctuation")] = None,
    max_words: Annotated[int | None, _setting("max_words")] = None,
    part: Annotated[Text, _setting("part")] = None,
    first: Annotated[int | None, _setting("first")] = None,
    exclude: Annotated[Texts, Parameter(help="Files to leave out (repeatable).")] = None,
    derived: Annotated[Text, _setting("derived")] = None,
    accept_loss: Annotated[Text, _setting("accept_loss")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Check what is in treebank FILES, or write them as a sentence table.

    A sentence that cannot be read is reported with file, line and reason, and costs no other.
    Where more than a tenth is lost, nothing is written. Without FILES, --language is looked up in
    the folders of treebanks; --check also takes a folder, and reads what treebanks are in it.

    Example: attree treebank mine/test.ptb --check
    """
    arguments = dict(locals())
    from attree.files import check_apart, check_new
    from attree.treebank.check import other_scripts
    from attree.treebank.jobs import of_files, of_folder, of_language

    if output is None and rejected is None and not check:
        raise AttreeError("nothing to do", fix="add --output FILE, or --check")
    del arguments["folder"]  # where languages lie; the setting of that name is a language's own
    given = _given(arguments)
    folders = [name for name in files or [] if check and Path(name).is_dir()]
    if folders:
        others = len(folders) < len(files or [])
        if others or output or rejected or exclude or language or split:
            fix = "give --check and folders alone, or name files"
            raise AttreeError("a folder is checked whole, by itself", fix=fix)
        _check_each([job for place in folders for job in of_folder(Path(place), given)])
        return
    if files:
        jobs = [of_files(files, exclude or [], given, language=language, split=split)]
    else:
        jobs = list(of_language(language, split, folder, given))
    if len(jobs) > 1 and (output or rejected):
        raise AttreeError("one table holds one split", fix="add --split")
    check_apart(filter(None, (output, rejected)), [file for job in jobs for file in job.files])
    check_new((output, rejected), overwrite=overwrite)
    scripts = {job.title: _convert(job, output, rejected, check=check) for job in jobs}
    for line in other_scripts(scripts):
        _say(f"warning: {line}")


@app.command(name="convert")
def convert_command(
    files: Annotated[list[str], Parameter(help="Treebank files, or patterns.")],
    /,
    *,
    output: Annotated[Path, Parameter(help="The file to write, UTF-8.")],
    to: Annotated[
        Text,
        Parameter(
            help="Its format (default: by its extension).",
            completer=completion.written_formats,
        ),
    ] = None,
    format: Annotated[Text, _setting("format")] = None,
    encoding: Annotated[Text, _setting("encoding", "utf-8, latin-1 …")] = None,
    traces: Annotated[Text, _setting("traces")] = None,
    drop_label: Annotated[Texts, _setting("drop_labels", _LABELS)] = None,
    escapes: Annotated[Text, _setting("escapes")] = None,
    functions: Annotated[str, _setting("functions")] = "keep",
    nonprojective: Annotated[Text, _setting("nonprojective")] = None,
    dependencies: Annotated[Text, _setting("dependencies")] = None,
    labels: Annotated[Text, _setting("labels")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the trees of FILES in another format; no word is taken out but traces.

    Formats: ptb (.mrg), spmrl (.ptb), stanza (.conllu, trees in comments), export (.export),
    discbracket (.discbracket), tigerxml (.xml), half (.half, half-known trees: of dependency trees
    the subtrees that are phrases), parquet (a sentence table).

    Example: attree treebank convert tiger.xml --output tiger.mrg
    """
    arguments = dict(locals())
    from attree.files import check_apart, check_new
    from attree.treebank.convert import convert, target
    from attree.treebank.jobs import of_files

    job = of_files(files, [], _given(arguments))
    check_apart([output], job.files)
    check_new([output], overwrite=overwrite)
    to = to or target(output)
    done = convert(job.files, job.settings, output, to)
    for told, item in enumerate(done.rejected):
        _tell(item, told)
    _say(f"{output}: {done.written:,} sentences written, {len(done.rejected):,} rejected")
    if done.raised:
        _say(f"{done.raised:,} sentences had crossing branches, which were made continuous")
    if done.words:
        shown = ", ".join(repr(word) for word, _ in done.words.most_common(5))
        _say(f"warning: {done.words.total():,} words cannot stand in {to} as they are: {shown}")


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the settings among a command's arguments, by their keys, that were given."""
    values = {_KEYS.get(name, name): value for name, value in arguments.items()}
    values["accept_loss"] = _share(values.get("accept_loss"))
    for name in _KEYS.values():
        values[name] = _labels(values.get(name))
    return {key: values[key] for key in LANGUAGE_KEYS if values.get(key) is not None}


def _labels(given: Texts) -> list[str] | None:
    """Return the labels given; ``-`` alone stands for none."""
    return [] if given == ["-"] else given or None


def _share(given: Text) -> Any:
    """Return ``true`` or a number as such; what is neither is left for the check to refuse."""
    if given is None or given.lower() == "true":
        return given and True
    try:
        return float(given)
    except ValueError:
        return given


def _check_each(jobs: list[Job]) -> None:
    """Report on each treebank; one that cannot be read costs no other."""
    failed = 0
    for job in jobs:
        try:
            _convert(job, None, None, check=True)
        except AttreeError as error:
            _say(f"error: {error}")
            failed += 1
    if failed:
        problem = f"{failed} of {len(jobs)} treebanks could not be read"
        raise AttreeError(problem, fix="see the lines above")


def _convert(job: Job, output: Path | None, rejected: Path | None, *, check: bool) -> str:
    """Read one split; write it, or report what is in it. Return its script."""
    from attree.text import shown
    from attree.treebank.check import Inspector, refuse, report, totals, warnings
    from attree.treebank.cleaning import Counts, prepare
    from attree.treebank.formats import sniff

    builder: TableBuilder | None = None
    if output or rejected:
        from attree.treebank.table import TableBuilder

        builder = TableBuilder()
    counts, seen = Counts(), Inspector()
    told = 0
    for item in prepare(_reading(job), job.settings, counts):
        seen.add(item)
        told += not check and _tell(item, told)
        if builder is not None:
            builder.add(item)
    sniffed = sniff(job.files[0], job.settings)
    warned = list(warnings(seen, job.settings, counts, sniffed))
    if check:
        print(shown(report(seen, job.title, job.settings, counts, len(job.files), warned)))
    _say(f"{job.title}: {totals(counts)}")
    for warning in warned:
        _say(f"warning: {warning}")
    if not check or counts.read == 0:
        refuse(seen, job.settings, counts, str(job.files[0]), sniffed)
    if builder is not None:
        _write(job, builder, counts, output, rejected)
    return seen.script()


def _write(
    job: Job, builder: TableBuilder, counts: Counts, output: Path | None, rejected: Path | None
) -> None:
    from attree.provenance import provenance
    from attree.schemas import REJECTED, write_table

    settings = dataclasses.asdict(job.settings)
    metadata = provenance(
        code=_CODE,
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
    sentences, others = builder.tables()
    if rejected:
        write_table(rejected, others, schema=REJECTED, metadata=metadata)
    if output:
        write_table(output, sentences, schema=sentences.schema, metadata=metadata)


def _reading(job: Job) -> Iterator[Sentence | Rejected]:
    """Yield every sentence of the job's files, and show progress where they are large."""
    from attree.progress import progress
    from attree.treebank.formats import read_files

    if sum(file.stat().st_size for file in job.files) < _LONG:
        yield from read_files(job.files, job.settings)
        return
    with progress(f"reading {job.title}", total=len(job.files), unit="files") as advance:
        yield from read_files(job.files, job.settings, lambda: advance(1))


def _tell(item: Sentence | Rejected, told: int) -> bool:
    """Say on stderr why a sentence was not read, for the first few; return whether it counts."""
    from attree.treebank.sentence import Rejected

    if not isinstance(item, Rejected) or item.status == "skipped" or told > _SHOWN:
        return False
    more = "… more: see the rejected table, or --check"
    _say(str(item) if told < _SHOWN else more)
    return True


def _say(line: str) -> None:
    from attree.text import say

    say(line)
