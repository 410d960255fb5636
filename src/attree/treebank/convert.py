"""Convert treebank files into another format: ``attree treebank convert``."""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from attree.base.errors import AttreeError
from attree.base.files import whole_file
from attree.base.registry import check_name
from attree.treebank.cleaning import common_policy, untraced
from attree.treebank.crossing import Graph, graph_of
from attree.treebank.formats import FORMATS, format_of, read_files, read_trees
from attree.treebank.half import no_label, without_crossing
from attree.treebank.labels import Labelling, relabelled
from attree.treebank.sentence import Format, Rejected, Sentence, SplitSettings

_PARTLY_BRACKETED = "only some of this tree is known"
_Tree = TypeVar("_Tree", Sentence, Graph)


@dataclass(slots=True)
class Converted:
    """What was written, and what was left out or changed.

    Attributes:
        written, raised: sentences written, and those of them with crossing branches.
        crossed: spans that are no phrases and were left out, since brackets cannot cross.
        rejected: sentences that were not written.
        words: that the format changes.
    """

    written: int = 0
    raised: int = 0
    crossed: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    words: collections.Counter[str] = field(default_factory=collections.Counter)


def writable() -> list[str]:
    """Return the formats that can be written."""
    return [name for name, form in FORMATS.items() if form.write or form.binary]


def target(output: Path) -> str:
    """Return the format to write, by the extension of the output file.

    Raises:
        AttreeError: no format that can be written has this extension.
    """
    own = {name: FORMATS[name].extensions or FORMATS["conllu"].extensions for name in writable()}
    if name := next((name for name, ends in own.items() if output.suffix.lower() in ends), ""):
        return name
    fix = f"end its name in {', '.join(extensions[0] for extensions in own.values())}"
    if other := format_of(output):  # which would be read back as what it is not
        raise AttreeError("unknown-format", f"{other} cannot be written", file=output, fix=fix)
    problem = "the format is not known from this file's extension"
    fix += f", or add --to with one of {', '.join(own)}"
    raise AttreeError("unknown-format", problem, file=output, fix=fix)


def convert(
    treebanks: Sequence[tuple[Sequence[Path], SplitSettings]], output: Path, to: str
) -> Converted:
    """Write the sentences of treebanks to ``output``, whole or not at all.

    Args:
        treebanks: files, read one after the other, and their resolved settings; every word is kept.
            Dependency trees become partly bracketed trees in a format of such trees.
        output: replaced if it exists.
        to: a format in `writable`.

    Raises:
        AttreeError: the format cannot be written, no sentence can be read, or the format cannot
            hold a word.
    """
    check_name(to, writable(), f"{to} cannot be written")
    done, form = Converted(), FORMATS[to]
    trees = (tree for files, settings in treebanks for tree in _read(files, settings, form, done))
    with whole_file(output) as part:
        if form.binary:
            _write_table(_count(trees, form, done), treebanks, part)
        else:
            assert form.write is not None
            with part.open("w", encoding="utf-8", errors="replace", newline="\n") as handle:
                handle.writelines(form.write(_count(trees, form, done)))
        if not done.written:
            empty = Rejected(str(treebanks[0][0][0]), 1, "there is no tree in it", "failed")
            first = next(iter(done.rejected), empty)
            problem = f"no sentence could be read ({first.reason})"
            fix = "check it, and its --format"
            raise AttreeError("no-sentences", problem, file=first.file, line=first.line, fix=fix)
    return done


def _read(
    files: Sequence[Path], settings: SplitSettings, form: Format, done: Converted
) -> Iterator[Any]:
    """Yield the trees of a treebank as a format takes them: as sentences, or as graphs."""
    if form.partial and settings.dependencies == "whole":
        settings = dataclasses.replace(settings, dependencies="half")
    if not form.partial and Labelling.parse(settings.labels).kind == "unknown":
        problem = "only partly bracketed trees can have unknown labels"
        raise AttreeError("unknown-labels", problem, fix="add --to half")
    if form.continuous:
        return _filter(read_files(files, settings), settings, form, done)
    trees = _filter(read_trees(files, settings), settings, form, done)
    graphs = (tree if isinstance(tree, Graph) else graph_of(tree) for tree in trees)
    return relabelled(graphs, settings.labels, FORMATS[settings.format or ""].labels)


def _filter(
    items: Iterable[Any], settings: SplitSettings, form: Format, done: Converted
) -> Iterator[Any]:
    """Yield the trees that a format can hold, without traces: partly bracketed or whole."""
    for item in items:
        if isinstance(item, Sentence):
            unknown = form.partial and not item.spans and (item.partial or len(item.words) == 1)
            problem = ""
            if unknown or item.partial > form.partial:
                problem = "nothing is known of this tree" if unknown else _PARTLY_BRACKETED
            elif form.partial and (marked := next(filter(no_label, item.spans), None)):
                problem = f"{marked[2]!r} begins as a mark of a partly bracketed tree"
            elif form.partial and not all(map(str.strip, item.words)):
                problem = "a word is nothing but white space"
            item = Rejected(item.file, item.line, problem, "failed") if problem else item
        if not isinstance(item, Rejected):
            item = untraced(item, settings)
        if isinstance(item, Rejected):
            done.rejected.append(item)
            continue
        if isinstance(item, Sentence):
            done.raised += item.crossing
        elif settings.functions == "cut":
            item.functions = [""] * len(item.functions)
        yield item


def _count(trees: Iterable[_Tree], form: Format, done: Converted) -> Iterator[_Tree]:
    """Count the sentences, and the words that the format changes."""
    for tree in trees:
        done.written += 1
        if isinstance(tree, Sentence) and form.partial:
            done.crossed += len(tree.spans) - len(without_crossing(tree.spans))
        done.words.update(word for word in tree.words if form.held(word) != word)
        yield tree


def _write_table(
    sentences: Iterable[Sentence],
    treebanks: Sequence[tuple[Sequence[Path], SplitSettings]],
    part: Path,
) -> None:
    from attree.base.schemas import read_metadata, write_table
    from attree.treebank.table import to_table

    formats = ", ".join(how.format or "" for _, how in treebanks)
    derived = max(str(how.derived) for _, how in treebanks)
    files = {file: how.format == "parquet" for given, how in treebanks for file in given}
    said = [read_metadata(file).get("punctuation") if old else None for file, old in files.items()]
    policy = common_policy(said, next(iter(files)))
    metadata = {"format": formats, "derived": derived, "punctuation": policy}
    table = to_table(sentences)
    write_table(part, table, schema=table.schema, metadata=metadata | {"language": "", "split": ""})
