"""Outputs, links, locks and folders of others; bulk input; what reaches a terminal or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.attacks.harness import Content, Row, copied, edited, fifo, folder, link
from tests.attacks.rows_encoders import PICKLE

GOOD = "( (S (NP (DT the) (NN cat)) (VP (VBD slept))) )\n"
_PARSE = (
    "--tokenizer",
    "whitespace",
    "--encoder",
    "{base}/bert.json",
    "--heads",
    "list:0.1",
)
_MADE = ("out", "out/*", "out/.*")

#: Every command that writes, with OUT for its output.
_WRITERS: dict[str, tuple[str, ...]] = {
    "treebank": ("treebank", "{base}/dev.mrg", "--output", "OUT"),
    "resolve": (
        "encoder",
        "resolve",
        "--slug",
        "x",
        "--path",
        "{base}/checkpoint",
        "--output",
        "OUT",
    ),
    "attention": (
        "attention",
        "{base}/dev.parquet",
        "--encoder",
        "{base}/bert.json",
        "--heads",
        "all",
        "--output",
        "OUT",
    ),
    "heads": (
        "heads",
        "{base}/all.json",
        "--sentences",
        "{base}/dev.parquet",
        "--score",
        "inside",
        "--decoder",
        "chart",
        "--heads",
        "best",
        "--output",
        "OUT",
        "--output-selection",
        "s.json",
    ),
    "decode": (
        "decode",
        "{base}/selected.json",
        "--selection",
        "{base}/selection.json",
        "--output",
        "OUT",
    ),
    "score": (
        "score",
        "{base}/parses.parquet",
        "--sentences",
        "{base}/dev.parquet",
        "--output",
        "OUT",
        "--summary",
        "s.json",
    ),
    "baselines": ("baselines", "{base}/dev.parquet", "--output", "OUT"),
    "train": (
        "train",
        "--sentences",
        "{base}/dev.parquet",
        "--encoder",
        "{base}/bert.json",
        "--trees",
        "4",
        "--steps",
        "1",
        "--output",
        "OUT",
    ),
    "apply": (
        "apply",
        "{base}/dev.parquet",
        "--parser",
        "{base}/parser",
        "--encoder",
        "{base}/bert.json",
        "--allow-overlap",
        "--output",
        "OUT",
    ),
    "parse": ("parse", "{base}/lines.txt", *_PARSE, "--output", "OUT"),
    "figure": ("figure", "heads", "--ranking", "{base}/heads.parquet", "--output", "OUT"),
    "tune": (
        "encoder",
        "tune",
        "--encoder",
        "{base}/checkpoint",
        "--text",
        "{base}/lines.txt",
        "--epochs",
        "1",
        "--batch",
        "2",
        "--head-steps",
        "1",
        "--output",
        "OUT",
    ),
}
_FOLDERS = ("train", "parse", "tune")
_SIDE = ("s.json", ".*.lock", "*.shards", "*.shards/*", ".*.checkpoints*", "out", "out/.lock")


def _writes(
    command: str, name: str, out: str, files: dict[str, Content], says: tuple[str, ...], **more: Any
) -> Row:
    argv = tuple(out if part == "OUT" else part for part in _WRITERS[command])
    more = {"makes": _SIDE, **more}
    return Row(f"output-{command}-{name}", argv, says, files, **more)


def _untouched(work: Path, stdout: str, stderr: str) -> None:
    assert (work / "precious").read_text() == "precious"


def _rows_of_outputs() -> list[Row]:
    found = []
    for command in _WRITERS:
        under: dict[str, Content] = {"file": "x"}
        found.append(
            _writes(
                command,
                "under-a-file",
                "file/out.png",
                under,
                ("file",),
                full=command not in ("decode", "parse"),
            )
        )
        if command in _FOLDERS:
            found += [
                _writes(command, "is-a-file", "out", {"out": "precious"}, ("out",)),
                _writes(command, "is-dangling", "out", {"out": link("nowhere/x")}, ("out",)),
                _writes(
                    command,
                    "is-foreign",
                    "out",
                    {"out/thesis.txt": "precious"},
                    ("out",),
                    full=command != "parse",
                ),
            ]
        else:
            found += [
                _writes(command, "is-a-folder", "x.png", {"x.png": folder}, ("x.png",)),
                _writes(command, "in-dangling", "d/x.png", {"d": link("nowhere/x")}, ("d",)),
            ]
    locked = {".x.json.lock": link("precious"), "precious": "precious"}
    found += [
        _writes(
            "attention",
            "lock-is-a-link",
            "x.json",
            locked,
            (".x.json.lock", "link"),
            check=_untouched,
            full=False,
        ),
        _writes(
            "attention",
            "lock-is-foreign",
            "x.json",
            {".x.json.lock": "precious"},
            (".x.json.lock",),
        ),
        _writes("attention", "lock-is-a-fifo", "x.json", {".x.json.lock": fifo}, (".x.json.lock",)),
        _writes(
            "attention", "lock-is-a-folder", "x.json", {".x.json.lock": folder}, (".x.json.lock",)
        ),
        _writes(
            "parse",
            "lock-is-a-link",
            "out",
            {"out/.lock": link("../precious"), "precious": "precious"},
            ("out",),
            check=_untouched,
        ),
        _writes("figure", "format", "x.evil", {}, ("x.evil",), full=False),
        _writes(
            "parse", "foreign-part", "out", {"out/thesis.part": "precious"}, ("out",), full=False
        ),
        _writes(
            "parse", "foreign-summary", "out", {"out/summary.json": "{}"}, ("out",), full=False
        ),
        _writes("parse", "foreign-progress", "out", {"out/progress.json": "x"}, ("out",)),
        _writes("parse", "foreign-manifest", "out", {"out/manifest.json": "{}"}, ("out",)),
        _writes("parse", "manifest-null", "out", {"out/manifest.json": "null"}, ("out",)),
        _writes("parse", "manifest-fifo", "out", {"out/manifest.json": fifo}, ("out",)),
        _writes("resolve", "long-name", "x" * 250, {}, (), status=0, makes=("x" * 250,)),
        _writes("resolve", "longer-name", "x" * 300, {}, ("x" * 300, "too long")),
    ]
    return found


def _bulk(
    name: str,
    files: dict[str, Content],
    statuses: str,
    *,
    argv: tuple[str, ...] = (),
    inputs: tuple[str, ...] = ("in.txt",),
    **more: Any,
) -> Row:
    """Lines that cannot be parsed are reported one by one and cost no other line."""

    def check(work: Path, stdout: str, stderr: str) -> None:
        import pyarrow.parquet as pq

        found = pq.read_table(work / "out/trees", partitioning=None).to_pydict()["status"]
        assert " ".join(map(str, found)) == statuses, found

    usual = zip(_PARSE[::2], _PARSE[1::2], strict=True)  # but those that may come once
    given = [word for pair in usual if pair[0] not in argv for word in pair]
    command = ("parse", *given, "--output", "out", *argv, "--", *inputs)
    return Row(f"bulk-{name}", command, (), files, status=0, makes=_MADE, check=check, **more)


def _bulk_refused(
    name: str,
    files: dict[str, Content],
    says: tuple[str, ...],
    *,
    argv: tuple[str, ...] = (),
    inputs: tuple[str, ...] = ("in.txt",),
    **more: Any,
) -> Row:
    usual = zip(_PARSE[::2], _PARSE[1::2], strict=True)  # but those that may come once
    given = [word for pair in usual if pair[0] not in argv for word in pair]
    command = ("parse", *given, "--output", "out", *argv, "--", *inputs)
    makes = ("out", "out/.lock", "out/manifest.json")
    return Row(f"bulk-{name}", command, says, files, **{"makes": makes, **more})


def _rows_of_bulk() -> list[Row]:
    def json_lines(*lines: str) -> dict[str, Content]:
        return {"in.jsonl": "\n".join(['{"text": "a cat"}', *lines, '{"text": "a cat"}']) + "\n"}

    def half_lines(line: str) -> dict[str, Content]:
        return {"in.half": f"( (? a cat) sat)\n{line}\na cat\n"}

    jsonl: dict[str, Any] = {"inputs": ("in.jsonl",)}
    half: dict[str, Any] = {"inputs": ("in.half",)}
    good = "a cat\n"
    return [
        _bulk("control", {"in.txt": good + "a \x1b[31m cat\n" + good}, "ok control ok", full=False),
        _bulk("nul", {"in.txt": good + "a \0 cat\n" + good}, "ok control ok"),
        _bulk("undecodable", {"in.txt": b"a cat\n\xff\xfe\na cat\n"}, "ok undecodable ok"),
        _bulk("empty-line", {"in.txt": good + "\n" + good}, "ok empty ok"),
        _bulk("long-word", {"in.txt": good + "x" * 1_000_000 + "\n" + good}, "ok ok ok"),
        _bulk("long-line", {"in.txt": good + "x " * 1_000_000 + "\n" + good}, "ok too_long ok"),
        _bulk("brackets", {"in.txt": "( ( ( a ) )\n" + good}, "ok ok"),
        _bulk(
            "json-digits",
            json_lines('{"text": "a", "n": ' + "9" * 4301 + "}"),
            "ok malformed ok",
            full=False,
            **jsonl,
        ),
        _bulk("json-deep", json_lines('{"text": ' + "[" * 100_000), "ok malformed ok", **jsonl),
        _bulk("json-number", json_lines('{"text": 3}'), "ok malformed ok", **jsonl),
        _bulk(
            "json-surrogate", json_lines('{"text": "a \\ud800 b"}'), "ok undecodable ok", **jsonl
        ),
        _bulk(
            "half-deep", half_lines("(NP " * 200_000 + "a b" + ")" * 200_000), "ok ok ok", **half
        ),
        _bulk("half-open", half_lines("(" * 1_000_000), "ok malformed ok", **half),
        _bulk(
            "half-complete",
            half_lines(f"({' '.join(['(= ' + 'w ' * 300 + ')'] * 1500)})"),
            "ok contradictory ok",
            full=False,
            **half,
        ),
        _bulk("name-option", {"-y.txt": good}, "ok", inputs=("-y.txt",)),
        _bulk("name-newline", {"a\nb.txt": good}, "ok", inputs=("a\nb.txt",)),
        _bulk("name-escape", {"a\x1b[31m.txt": good}, "ok", inputs=("a\x1b[31m.txt",)),
        _bulk("name-not-utf8", {"a\udcff.txt": good}, "ok", inputs=("a\udcff.txt",)),
        _bulk_refused(
            "is-brackets",
            {"in.txt": GOOD * 2},
            ("in.txt: this is trees in brackets, not text",),
            full=False,
        ),
        _bulk_refused(
            "is-conllu",
            {"in.txt": "# text = a\n1\ta\t" + "_\t" * 4 + "0\troot\t_\t_\n"},
            ("in.txt: this is CoNLL-U, not text",),
        ),
        _bulk_refused(
            "is-xml",
            {"in.txt": "<?xml version='1.0'?><corpus/>"},
            ("in.txt: this is XML, not text",),
        ),
        _bulk_refused("too-long", {"in.txt": good}, ("evil",), argv=("--too-long", "evil")),
        _bulk_refused("absent", {}, ("in.txt",), full=False),
        _bulk_refused("fifo", {"in.txt": fifo}, ("in.txt",), seconds=15),
        _bulk_refused("zeros", {"in.txt": link("/dev/zero")}, ("in.txt",), seconds=15),
        _bulk_refused("dangling", {"in.txt": link("nowhere")}, ("in.txt",)),
        _bulk_refused(
            "cut-gzip", {"in.txt.gz": b"\x1f\x8b\x08\0"}, ("in.txt.gz",), inputs=("in.txt.gz",)
        ),
        _bulk_refused(
            "pickle-as-parquet", {"in.parquet": PICKLE}, ("in.parquet",), inputs=("in.parquet",)
        ),
        _bulk_refused(
            "column",
            {"in.parquet": copied("dev.parquet")},
            ("column",),
            inputs=("in.parquet",),
            argv=("--column", "evil"),
        ),
        _bulk_refused("empty-folder", {"in.txt": folder}, ("in.txt",)),
        _bulk_refused("encoder-empty", {"in.txt": good}, ("encoder",), argv=("--encoder", "")),
        _bulk_refused(
            "encoder-is-text", {"in.txt": good}, ("in.txt",), argv=("--encoder", "in.txt")
        ),
        _bulk_refused(
            "device-evil", {"in.txt": good}, ("unknown device",), argv=("--device", "evil")
        ),
        _bulk_refused("slurm-key", {"in.txt": good}, ("foo",), argv=("--slurm", "foo=bar")),
        _bulk_refused(
            "slurm-absent",
            {"in.txt": good},
            ("sbatch",),
            argv=("--slurm", "queue=x"),
            environment={"PATH": "/nowhere"},
            seconds=15,
        ),
        _bulk_refused("tokenizer", {"in.txt": good}, ("../x",), argv=("--tokenizer", "../x")),
        _bulk_refused("format", {"in.txt": good}, ("evil",), argv=("--to", "evil")),
        _bulk_refused("association", {"in.txt": good}, ("evil",), argv=("--association", "evil")),
        _bulk_refused("heads", {"in.txt": good}, ("9.9",), argv=("--heads", "list:9.9")),
        _bulk_refused("heads-text", {"in.txt": good}, ("evil",), argv=("--heads", "evil")),
        _bulk_refused(
            "scheduler",
            {"in.txt": good},
            ("scheduler",),
            argv=("--scheduler", "evil://x"),
            seconds=30,
        ),
        _bulk("json-duplicate", json_lines('{"text": "a", "text": "b"}'), "ok ok ok", **jsonl),
    ]


_ESCAPE = "\x1b]0;owned\x07\x9b31m"


def _rows_of_text() -> list[Row]:
    summary = {"encoder": _ESCAPE, "parser": "<script>", "language": "a|b\nc"}
    prefix = ("--output-prefix", "out")
    tables = ("out.parquet", "out.csv", "out.md")

    def clean(work: Path, stdout: str, stderr: str) -> None:
        text = (work / "out.md").read_text()
        assert "<script>" not in text and "\x1b" not in text and "a|b" not in text

    return [
        Row(
            "table-escapes",
            ("table", "crosslingual", "x.json", *prefix, "--title", "<script>"),
            (),
            {"x.json": edited("summary.json", **summary)},
            status=0,
            makes=tables,
            check=clean,
            full=False,
        ),
        Row(
            "table-null",
            ("table", "crosslingual", "x.json", *prefix),
            ("x.json",),
            {"x.json": "null"},
            full=False,
        ),
        Row(
            "table-not-a-summary",
            ("table", "language", "x.json", *prefix),
            ("x.json",),
            {"x.json": "{}"},
        ),
        Row(
            "table-summary-text",
            ("table", "language", "x.json", *prefix),
            ("x.json",),
            {"x.json": edited("summary.json", scores="lots")},
        ),
        Row("table-fifo", ("table", "language", "x.json", *prefix), ("x.json",), {"x.json": fifo}),
        Row(
            "table-sizes-escapes",
            ("table", "sizes", "x.parquet", *prefix),
            ("x.parquet",),
            {"x.parquet": copied("heads.parquet")},
        ),
        Row(
            "table-show-other",
            ("table", "show", "x.parquet"),
            ("x.parquet",),
            {"x.parquet": copied("heads.parquet")},
        ),
        Row(
            "table-show-pickle",
            ("table", "show", "x.parquet"),
            ("x.parquet",),
            {"x.parquet": PICKLE},
            full=False,
        ),
        Row(
            "figure-title",
            (
                "figure",
                "heads",
                "--ranking",
                "{base}/heads.parquet",
                "--output",
                "x.png",
                "--title",
                r"$\frac{$ \x1b[31m",
            ),
            (),
            status=0,
            makes=("x.png",),
            full=False,
        ),
        Row(
            "figure-other-table",
            ("figure", "heads", "--ranking", "{base}/dev.parquet", "--output", "x.png"),
            ("dev.parquet",),
            full=False,
        ),
        Row("corpus-status-absent", ("corpus", "status", "x"), ("x",)),
        Row("corpus-status-foreign", ("corpus", "status", "x"), ("x",), {"x/manifest.json": "[]"}),
        Row("corpus-status-null", ("corpus", "status", "x"), ("x",), {"x/manifest.json": "null"}),
        Row(
            "score-labels",
            (
                "score",
                "{base}/parses.parquet",
                "--sentences",
                "{base}/dev.parquet",
                "--output",
                "o.parquet",
                "--summary",
                "s.json",
                "--recall",
                _ESCAPE,
                "--encoder-name",
                _ESCAPE,
            ),
            (),
            status=0,
            makes=("o.parquet", "s.json"),
        ),
        Row("unknown-command", (_ESCAPE,), (), status=2),
        Row("unknown-option", ("treebank", "--" + _ESCAPE), (), status=2),
        Row(
            "slug-escapes",
            ("encoder", "resolve", "--slug", _ESCAPE, "--path", "nowhere", "--output", "x.json"),
            ("no such folder",),
        ),
        Row(
            "heads-form",
            (
                "heads",
                "{base}/all.json",
                "--sentences",
                "{base}/dev.parquet",
                "--score",
                "inside",
                "--decoder",
                "chart",
                "--heads",
                _ESCAPE,
                "--output",
                "o",
                "--output-selection",
                "s",
            ),
            ("selection",),
        ),
        Row(
            "experiment-rows",
            (
                "experiment",
                "rows",
                "evil",
                "--plan",
                "x.json",
                "--encoder",
                "x",
                "--output",
                "o",
            ),
            ("x.json",),
            {"x.json": "{}"},
            full=False,
        ),
        Row(
            "experiment-table",
            (
                "experiment",
                "table",
                "x.json",
                "--plan",
                "plan.json",
                "--experiment",
                "{",
                "--output-prefix",
                "o",
            ),
            ("plan.json",),
            {"plan.json": "null"},
            full=False,
        ),
    ]


#: Commands that people type, and what each writes; OUT is there already.
_TYPED: dict[str, tuple[str, ...]] = {
    "choose": ("choose", "{base}/lines.txt", "--min-words", "2", "--output", "OUT"),
    "convert": ("treebank", "convert", "{base}/dev.mrg", "--to", "ptb", "--output", "OUT"),
    "treebank": ("treebank", "{base}/dev.mrg", "--output", "OUT"),
    "rejected": ("treebank", "{base}/dev.mrg", "--output", "x.parquet", "--rejected", "OUT"),
}


def _rows_of_typed() -> list[Row]:
    """What is there already stays, unless --overwrite is given."""
    found = []
    for name, argv in _TYPED.items():
        argv = tuple("precious" if part == "OUT" else part for part in argv)
        for kind, there in {
            "file": "precious",
            "link": link("{base}/checkpoint/config.json"),
        }.items():
            says, files = ("precious", "--overwrite"), {"precious": there}
            full = (name, kind) != ("choose", "file")
            found.append(Row(f"typed-{name}-{kind}", argv, says, files, full=full))
    measures = ("measures", "{base}/dev.mrg", "--output")
    own = {"words.tsv": "precious"}
    found += [
        Row("typed-measures-here", (*measures, "."), ("words.tsv",), own, full=False),
        Row(
            "typed-measures-linked",
            (*measures, "x"),
            ("a table of measures is here",),
            {"x": link("measured"), "measured": _measured},
        ),
        Row(
            "typed-measures-linked-file",
            (*measures, "x"),
            ("words.tsv",),
            {"x": _measured, "x/words.tsv": link("../precious"), "precious": "precious"},
        ),
        Row("typed-measures-again", (*measures, "x"), ("--overwrite",), {"x": _measured}),
        Row(
            "typed-measures-beside",
            (*measures, "x", "--overwrite"),
            ("thesis.txt",),
            {"x": _measured, "x/thesis.txt": "precious"},
        ),
    ]
    return found


def _measured(path: Path, _: Path) -> None:
    """A folder of `attree measures`, which lacks its text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from attree.measures.tables import TABLES

    path.mkdir()
    for name, (schema, _make) in TABLES.items():
        pq.write_table(pa.Table.from_pylist([], schema=schema), path / f"{name}.parquet")


def rows() -> list[Row]:
    """Return them all."""
    return _rows_of_typed() + _rows_of_outputs() + _rows_of_bulk() + _rows_of_text()
