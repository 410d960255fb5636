"""Run ``attree parse``: take the folder, cut the input, start the workers, write the summary.

Standard input is parsed to brackets on standard output (:func:`stream`).
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.languages import ENOUGH_TEXTS
from attree.base.options import TextOptions
from attree.base.provenance import code_hash
from attree.base.terminal import progress, safe, say
from attree.bulk import folder as folders
from attree.bulk.driver import Driver, Outcome, Workers, gpus
from attree.bulk.manifest import Manifest, Shard, check_same, cut, input_changed, whole_shards
from attree.bulk.options import PARQUET, Place, RowSettings, RunSettings
from attree.bulk.output import Statistics, remove_shard, shard_statistics
from attree.bulk.pipeline import WorkerSetup
from attree.parsers.find import ParserSource
from attree.parsers.parser import Parser
from attree.parsers.reading import doubt
from attree.raw_text.inputs import InputFile, find_inputs
from attree.raw_text.lines import parse_lines, read_lines, refuse_treebanks
from attree.raw_text.words import WHITESPACE, Line, Splitting, Tokeniser, settle
from attree.trees import FAILED, OK, TOO_LONG


def workers(place: Place, setup: WorkerSetup) -> AbstractContextManager[Workers]:
    """Start or reach the workers that ``place`` asks for, and release them at the end."""
    count = place.workers or (1 if place.cluster else max(1, gpus(setup.device)))
    if place.cluster is None and count == 1:
        return nullcontext(setup.pipeline())
    from attree.bulk.dask_workers import dask_workers

    return dask_workers(place, setup, count)


#: The modules that decide the content of a shard. None runs ``SCORING``, of `Parser.evaluate`, and
#: parsers of heads do not run ``TRAINED``.
CODE, TRAINED, SCORING = "attree.bulk.pipeline", "attree.training", "attree.evaluation.side_by_side"

_SECONDS_BETWEEN_LINES = 10.0
_LINES_ON_CPU = 500
_LINES_ON_GPU = 20_000


def parse_corpus(
    inputs: Iterable[Path], setup: WorkerSetup, place: Place, run: RunSettings
) -> dict[str, Any]:
    """Parse the unfinished shards; return the summary, which is also written to ``summary.json``.

    Args:
        inputs: files and folders.
        setup: parser and settings of the workers, and the output folder.
        place: where the work is done.
        run: how the run treats its folder.

    Raises:
        AttreeError: bad input, another input or other settings than the folder was begun with,
            another run on the folder, or lost workers.
    """
    began = time.monotonic()
    folder = Path(setup.folder)
    if place.cluster is not None:
        from attree.base.cluster import CLUSTERS

        kind, asked = place.cluster
        CLUSTERS[kind].parse(asked)  # a wrong setting begins no folder
    with folders.only_run(folder, unlock=run.unlock):
        manifest = _manifest(inputs, setup, run)
        whole = whole_shards(folder / "trees")
        missing = [shard for shard in manifest.shards if shard.number not in whole]
        done = manifest.lines - sum(shard.lines for shard in missing)
        outcome = Outcome()
        if missing:
            place = replace(place, workers=min(place.workers, len(missing)))
            with (
                workers(place, setup) as crew,
                progress("corpus", total=manifest.lines, unit="lines", done=done) as advance,
            ):
                driver = Driver(manifest, crew, setup, advance)
                with driver.heeding_ctrl_c():
                    outcome = driver.run(missing)
        summary = _summary(manifest, folder, outcome, time.monotonic() - began)
        folders.note(folder, folders.SUMMARY, summary)
        (folder / folders.PROGRESS).unlink(missing_ok=True)
    return summary


def _manifest(inputs: Iterable[Path], setup: WorkerSetup, run: RunSettings) -> Manifest:
    """Return the folder's manifest if input and settings are the same, or cut the input."""
    folder = Path(setup.folder)
    found, left_out = find_inputs([path.absolute() for path in inputs], without=folder)
    files = tuple(found)
    refuse_treebanks(files)
    if setup.settings.id != RowSettings().id and "json" not in {file.kind for file in files}:
        problem = "--id names a field of JSON Lines, and no input is of this kind"
        raise AttreeError("option-without-effect", problem, file=files[0].path, fix="leave it out")
    if left_out:
        more = f" and {len(left_out) - 1:,} more" if len(left_out) > 1 else ""
        say(f"attree: not read, by its suffix: {left_out[0]}{more}")
    path = folder / folders.MANIFEST
    old = Manifest.read(path) if path.is_file() else None
    if old is not None:
        try:
            return _resume(old, files, setup, run)
        except AttreeError as difference:
            if not run.restart:
                raise
            say(f"attree: starting again: {difference.problem}")
    lines = run.shard_lines or (_LINES_ON_GPU if gpus(setup.device) else _LINES_ON_CPU)
    settings = _settings(setup, lines, run.limit)
    manifest = Manifest(settings, files, _cut(files, settings))
    if old is not None:
        _remove(folder, old)
    manifest.write(path)
    return manifest


def _resume(
    old: Manifest, files: tuple[InputFile, ...], setup: WorkerSetup, run: RunSettings
) -> Manifest:
    """Return the manifest to resume.

    Raises:
        AttreeError: it has other settings, other code or another input.
    """
    settings = _settings(setup, run.shard_lines or old.settings["shard_lines"], run.limit)
    check_same(old, Manifest(settings, files, ()), Path(setup.folder))
    touched = [new for new, old in zip(files, old.files, strict=True) if new.changed != old.changed]
    # a file's time may change without its content, so the content decides
    if touched and _cut(files, settings) != old.shards:
        raise input_changed(touched[0].path)
    # the input may have been moved, with the same names
    return replace(old, files=files)


def _remove(folder: Path, manifest: Manifest) -> None:
    """Remove the files that runs of a manifest wrote, and nothing else.

    The manifest stays until another replaces it: a removal that was killed is resumed, and the
    folder never holds trees of two manifests.
    """
    for name in (folders.SUMMARY, folders.PROGRESS, folders.FAILED_SHARDS):
        (folder / name).unlink(missing_ok=True)
    for shard in manifest.shards:
        remove_shard(folder, shard.number)


def _cut(files: Iterable[InputFile], settings: Mapping[str, Any]) -> tuple[Shard, ...]:
    began = reported = time.monotonic()
    done, shards = 0, list[Shard]()
    for shard in cut(files, **{key: settings[key] for key in ("shard_lines", "column", "limit")}):
        shards.append(shard)
        done += shard.lines
        if time.monotonic() - reported > _SECONDS_BETWEEN_LINES:
            reported = time.monotonic()
            rate = done / (reported - began)
            say(f"attree: cutting the input into shards: {done:,} lines, {rate:,.0f} a second")
    return tuple(shards)


def _settings(setup: WorkerSetup, shard_lines: int, limit: int | None) -> Mapping[str, Any]:
    parser = setup.parser.describe()
    return {
        "parser": parser,
        **setup.settings.describe(),
        "shard_lines": shard_lines,
        "limit": limit,
        "code": code_hash(CODE, not_run=(SCORING,) if "trained" in parser else (SCORING, TRAINED)),
    }


def _peak_memory() -> int:
    """Return the peak memory of this process or one of its workers, in KB."""
    try:
        # getrusage of this process also counts the process before its exec
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        used = int(status.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError):
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max(used, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


def _summary(manifest: Manifest, folder: Path, outcome: Outcome, seconds: float) -> dict[str, Any]:
    whole = [*whole_shards(folder / "trees").values()]
    run = outcome.statistics
    per_second = max(outcome.seconds, 1e-9)
    return {
        "complete": len(whole) == len(manifest.shards),
        "stopped": outcome.stopped,
        "shards": len(manifest.shards),
        "shards_whole": len(whole),
        "failed": {str(number): why for number, why in outcome.failed_shards.items()},
        "lines_of_input": manifest.lines,
        **sum(map(shard_statistics, whole), Statistics()).as_dict(),
        "bytes": sum(path.stat().st_size for path in whole),
        "run": {
            "lines": run.lines,
            "sentences": run.sentences,
            "seconds": round(seconds, 2),
            "parsing_seconds": round(outcome.seconds, 2),
            "encoder_seconds": round(outcome.encoder_seconds, 2),
            "sentences_per_second": round(run.sentences / per_second, 1),
            "pieces_per_second": round(run.pieces / per_second, 1),
            "peak_memory_mb": round(_peak_memory() / 1024, 1),
        },
    }


def how_split(source: ParserSource | None, text: TextOptions, texts: Iterable[Line]) -> Splitting:
    """Choose how text is split into words for a parser, and say so on the terminal.

    Args:
        source: the parser, or None.
        text: the options of the command.
        texts: as for :func:`attree.raw_text.words.settle`.
    """
    remembered, punctuation = (source.language, source.punctuation) if source else ("", "")
    asked = (text.language, text.tokenizer, text.split_lines)
    first = list(islice(texts, ENOUGH_TEXTS))
    how = settle(*asked, remembered=remembered, texts=first)
    if how.note:
        say(f"attree: {how.note}")
    # nobody has looked for the language of words that are given
    has_language = text.language or any(isinstance(line, str) for line in first)
    known = source.languages if source and how.name != WHITESPACE and has_language else {}
    if line := doubt(known, how.name):
        say(f"attree: {line}")
    if punctuation not in ("", "keep"):
        say(
            f"attree: this parser was trained on trees without punctuation ({punctuation}): its "
            "trees of text with punctuation are worse"
        )
    return how


def first_lines(inputs: Iterable[Path], column: str, without: Path | None = None) -> Iterator[Line]:
    """Yield the lines of files and folders, as text or words, reading only as far as needed.

    Arguments are those of :func:`attree.raw_text.inputs.find_inputs`, and a field of its files.
    """
    for _, _, lines in read_lines(find_inputs(inputs, without=without)[0], column):
        yield from (line.text for line in lines)


def stream(
    source: ParserSource,
    output: Path | None,
    rows: RowSettings,
    text: TextOptions,
    device: str | None,
    threads: int | None,
) -> None:
    """Parse standard input and write each tree in brackets as soon as it is made.

    A line without words gives an empty line, and so does one that has no tree in a file's output:
    its status is told at the end. If no option names the language, it is told from the first lines.
    """
    if output is not None or PARQUET in rows.formats:
        problem = "standard input is parsed to standard output, in brackets"
        fix = "leave --output out and use --to brackets, or parse a file"
        raise AttreeError("stdin-to-folder", problem, fix=fix)
    parser = Parser.of(source, device=device, threads=threads, max_words=rows.max_words)
    shown = safe if sys.stdout.isatty() else str  # who reads trees wants the words as they are
    split: Tokeniser | None = None
    told = Counter[str]()
    while block := list(islice(sys.stdin.buffer, ENOUGH_TEXTS)):
        lines = parse_lines(b"".join(block), kind="text", column="", first=split is None)
        if split is None:
            split = how_split(source, text, (line.text for line in lines)).tokeniser()
        sentences = split([line.text for line in lines])
        told.update(line.status for line in lines)
        told[TOO_LONG] += sentences.count(None)
        for tree in parser.parse([words for parts in sentences for words in parts or [[]]]):
            told[tree.status] += 1
            print(shown(tree.brackets()) if tree.words and tree.status != FAILED else "")
        sys.stdout.flush()
    if others := [f"{count:,} {status}" for status, count in (+told).items() if status != OK]:
        say(f"attree: without a tree by the parser: {', '.join(others)}")
