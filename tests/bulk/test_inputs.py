from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attree.raw_text import inputs
from attree.raw_text.inputs import InputFile, find_inputs, natural, open_input
from attree.raw_text.lines import STATUSES, parse_lines, refuse_treebanks
from tests.bulk.conftest import BAD_LINES
from tests.refusals import refused


def _zstd(path: Path, content: bytes) -> None:
    with pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd") as stream:
        stream.write(content)


WRITERS = {
    "": Path.write_bytes,
    ".gz": lambda path, content: path.write_bytes(gzip.compress(content)),
    ".xz": lambda path, content: path.write_bytes(lzma.compress(content)),
    ".zst": _zstd,
}


def _one(path: Path) -> InputFile:
    (found,), _ = find_inputs([path])
    return found


def _read(file: InputFile, *, lines: int = 7, column: str = "text") -> list[tuple[str, str]]:
    """Read a file in small bites; return (text or words joined, status) of each line."""
    found = []
    with open_input(file, column=column) as reader:
        first = True
        while (taken := reader.take(lines))[1]:
            read = parse_lines(taken[0], kind=file.kind, column=column, first=first)
            assert len(read) == taken[1]
            found += [
                (one.text if isinstance(one.text, str) else " ".join(one.text), one.status)
                for one in read
            ]
            first = False
    return found


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_line_of_a_compressed_file_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    WRITERS[suffix](path, "".join(f"line {n}\n" for n in range(1000)).encode() + b"no end")
    assert _read(_one(path)) == [(f"line {n}", "ok") for n in range(1000)] + [("no end", "ok")]


@pytest.mark.parametrize("suffix", WRITERS)
def test_an_offset_given_before_leads_back_to_the_same_line(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    WRITERS[suffix](path, "".join(f"{'x' * n} {n}\n" for n in range(3000)).encode())
    file = _one(path)
    offsets, bites = [], []
    with open_input(file, column="") as reader:
        while True:
            offsets.append(reader.offset)
            bites.append(reader.take(100)[0])
            if not bites[-1]:
                break
    with open_input(file, column="") as reader:
        for place in (0, 3, 4, 17, 29):
            reader.seek(offsets[place])
            assert reader.take(100)[0] == bites[place]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.text(alphabet="ab é", max_size=40), max_size=30),
    at_once=st.integers(1, 9),
    size=st.one_of(st.none(), st.integers(1, 50)),
    line_bytes=st.integers(4, 64),
)
def test_bites_of_any_size_give_the_same_lines(
    tmp_path: Path, lines: list[str], at_once: int, size: int | None, line_bytes: int
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "LINE_BYTES", line_bytes)
        patch.setattr(inputs, "_BLOCK", line_bytes)
        with open_input(_one(path), column="") as reader:
            payloads = []
            while (taken := reader.take(at_once, size))[1]:
                assert taken[0].count(b"\n") == taken[1] <= at_once
                payloads.append(taken[0])
    expected = [line.encode()[: line_bytes + 1] for line in lines]
    assert b"".join(payloads).split(b"\n")[:-1] == expected


def test_every_bad_line_has_its_status(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(b"\n".join(BAD_LINES))
    statuses = [status for _, status in _read(_one(path), lines=100)]
    # what depends on words and pieces is found out later
    expected = [s if s not in ("empty",) else "ok" for s in BAD_LINES.values()]
    expected[5] = "ok"
    assert statuses == expected
    assert set(statuses) <= set(STATUSES)


def test_one_huge_line_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.txt"
    with path.open("wb") as file:
        for _ in range(64):
            file.write(b"y" * (1 << 20))
        file.write(b"\nafter\n")
    with open_input(_one(path), column="") as reader:
        payload, lines = reader.take(10)
    assert lines == 2 and len(payload) < (1 << 20) + 20
    assert [status for _, status in _read(_one(path))] == ["too_long", "ok"]


def test_byte_order_mark_and_carriage_returns_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "dos.txt"
    path.write_bytes(b"\xef\xbb\xbfone two\r\nthree\r\n\xef\xbb\xbfinside\r\n")
    assert _read(_one(path)) == [("one two", "ok"), ("three", "ok"), ("\ufeffinside", "ok")]


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [
        ('{"text": "a b", "id": 1}', "a b", "ok"),
        ('{"text": ["a", "b"]}', "a b", "ok"),
        ('{"text": ["a", "b c"]}', "", "malformed"),
        ('{"text": null}', "", "empty"),
        ('{"other": "a"}', "", "malformed"),
        ('{"text": 3}', "", "malformed"),
        ("[1, 2", "", "malformed"),
        ('{"text": "\\ud800"}', "", "undecodable"),
        ('{"text": "a\\u0000"}', "", "control"),
        ('{"text": "a\\nb"}', "a\nb", "ok"),
        ("[" * 100_000, "", "malformed"),
        ('{"text": "a", "id": ' + "9" * 4301 + "}", "", "malformed"),
        ("", "", "empty"),
    ]
    path.write_text("".join(line + "\n" for line, _, _ in lines))
    assert _read(_one(path)) == [(text, status) for _, text, status in lines]


def test_parquet_columns_of_text_and_of_words(tmp_path: Path) -> None:
    table = pa.table(
        {"body": ["a b", None, "c", "d\x00"] * 50, "words": [["a", "b"], [], None, ["c"]] * 50}
    )
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=7)
    expected = [("a b", "ok"), ("", "empty"), ("c", "ok"), ("", "control")]
    assert _read(_one(path), column="body") == expected * 50
    words = [("a b", "ok"), ("", "ok"), ("", "empty"), ("c", "ok")]
    assert _read(_one(path), column="words") == words * 50
    with open_input(_one(path), column="body") as reader:
        reader.seek(101)
        assert json.loads(reader.take(1)[0]) is None
        reader.seek(150)
        assert json.loads(reader.take(1)[0]) == "c"
    with (
        refused("no-column", "text", file="a.parquet"),
        open_input(_one(path), column="text"),
    ):
        pass


def test_rows_of_parquet_are_decoded_once_however_shards_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(
        pa.table({"text": [f"row {n}" for n in range(90)]}),
        tmp_path / "a.parquet",
        row_group_size=30,
    )
    decoded = []
    lines_of = inputs._json_lines

    def counted(values: pa.Array) -> Iterator[bytes]:
        for line in lines_of(values):
            decoded.append(line)
            yield line

    monkeypatch.setattr(inputs, "_json_lines", counted)
    with open_input(_one(tmp_path / "a.parquet"), column="text") as reader:
        for offset in [*range(3, 30, 6), *range(63, 90, 6), 0]:
            reader.seek(offset)
            assert reader.take(2) == (f'"row {offset}"\n"row {offset + 1}"\n'.encode(), 2)
        # of the group in the middle none, and of the first its two first rows again
        assert len(decoded) == len(set(decoded)) + 2 == 60


def test_parquet_strings_that_are_not_utf8_are_undecodable(tmp_path: Path) -> None:
    column = pa.array([b"good", b"b\xffd", b"\xc3\xa9"]).view(pa.string())
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    found = _read(_one(tmp_path / "a.parquet"))
    assert found == [("good", "ok"), ("", "undecodable"), ("é", "ok")]


def test_words_that_a_program_wrote_as_bytes_are_text(tmp_path: Path) -> None:
    rows = [[b"caf\xc3\xa9", b"noir"], None, [b"a", b"\xff"]]
    pq.write_table(pa.table({"text": pa.array(rows)}), tmp_path / "a.parquet")
    assert _read(_one(tmp_path / "a.parquet")) == [
        ("café noir", "ok"), ("", "empty"), ("", "undecodable"),
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_file_that_is_cut_short_is_one_clear_line(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    WRITERS[suffix](path, b"".join(b"%d\n" % (n * n) for n in range(100_000)))
    path.write_bytes(path.read_bytes()[:-1000])
    with refused("unreadable", file=path.name):
        _read(_one(path))


@pytest.mark.parametrize("name", ["a.txt.gz", "a.txt.xz", "a.txt.zst", "a.parquet"])
def test_a_file_that_is_not_what_its_name_says_is_one_clear_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"nothing of the kind" * 100)
    with refused("unreadable"):
        _read(_one(tmp_path / name))


def test_folders_are_read_in_natural_order(tmp_path: Path) -> None:
    names = ["part-1.txt", "part-2.txt.gz", "part-10.jsonl", "sub/part-3.parquet"]
    for name in ["part-10.jsonl", "sub/part-3.parquet", "part-2.txt.gz", "part-1.txt"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    for name in ("README.md", ".hidden.txt", "_SUCCESS.txt"):
        (tmp_path / name).write_bytes(b"")
    found, left_out = find_inputs([tmp_path])
    assert [file.name for file in found] == names
    assert [file.kind for file in found] == ["text", "text", "json", "parquet"]
    assert left_out == [tmp_path / "README.md"]
    assert sorted(["b10", "b9", "a"], key=natural) == ["a", "b9", "b10"]
    assert sorted(["5²10", "5²9"], key=natural) == ["5²9", "5²10"]  # ² is a digit, and no number


@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        (["texts", "texts/b.txt"], "a.txt b.txt"),
        (["texts/b.txt", "texts"], "b.txt a.txt"),
        (["texts", "texts"], "a.txt b.txt"),
        (["texts/b.txt", "link.txt", "texts/b.txt"], "b.txt"),
        (["link.txt", "texts"], "link.txt a.txt"),
    ],
)
def test_a_folder_and_a_file_in_it_give_each_file_once(
    tmp_path: Path, inputs: list[str], names: str
) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(name)
    (tmp_path / "link.txt").symlink_to(folder / "b.txt")
    found, left_out = find_inputs([tmp_path / name for name in inputs])
    assert [Path(file.name).name for file in found] == names.split() and not left_out


def test_absent_and_unreadable_inputs_are_named(tmp_path: Path) -> None:
    with refused("missing-file", file="nowhere.txt"):
        find_inputs([tmp_path / "nowhere.txt"])
    with refused("no-inputs"):
        find_inputs([tmp_path])
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    with refused("missing-file", file="loop.txt"):
        find_inputs([tmp_path / "loop.txt"])


def test_a_folder_with_an_unreadable_file_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("fine\n")
    (tmp_path / "b.txt").write_text("locked\n")
    real = Path.open

    def refuse(self: Path, *rest: object, **named: object) -> object:
        if self.name == "b.txt":  # root may read everything, so the refusal is played
            raise PermissionError(13, "Permission denied")
        return real(self, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "open", refuse)
    with refused("unreadable", file="b.txt"):
        find_inputs([tmp_path])


def test_output_is_no_input(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("fine\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/b.txt").write_text("brackets\n")
    found, left_out = find_inputs([tmp_path], without=tmp_path / "out")
    assert [file.name for file in found] == ["a.txt"] and not left_out
    with refused("input-in-output", file="b.txt"):
        find_inputs([tmp_path / "out/b.txt"], without=tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("( (S (NP (DT the) (NN cat)) (VP (VBD slept))) )\n", "trees in brackets"),
        ("(S\n  (NP (D le) (N chat))\n  (V dort))\n", "trees in brackets"),
        ("# a = b\n1-2\tdu" + "\t_" * 8 + "\n1\tde" + "\t_" * 8 + "\n", "CoNLL-U"),
        ("<?xml version='1.0'?>\n<a/>", "XML"),
        ("<corpus>\n <s>a</s></corpus>", "XML"),
        ("(He left.) And (as I said) came back.\n", ""),
        ("( ( ( a ) )\na cat\n", ""),
        ("1\tone\n2\ttwo\n", ""),
        ("<3 you\n", ""),
        ("# a heading\ntext\n", ""),
    ],
)
def test_treebanks_given_as_text_are_refused(tmp_path: Path, text: str, what: str) -> None:
    for name, content in (("a.txt", text.encode()), ("a.txt.gz", gzip.compress(text.encode()))):
        (tmp_path / name).write_bytes(content)
        files, _ = find_inputs([tmp_path / name])
        if not what:
            refuse_treebanks(files)
            continue
        with refused("not-text", *what.split(), file=name) as told:
            refuse_treebanks(files)
        assert "--column words" in str(told.value)


@pytest.mark.parametrize("name", ["a.json", "a.JSONL", "a.txt"])
@pytest.mark.parametrize("text", ['{"text": "a cat"}\n', '[\n {\n  "id": 3', "[1] a note\n"])
def test_json_under_a_name_of_text_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    files, _ = find_inputs([tmp_path / name])
    if '"' in text:
        with refused("not-text", "JSON", "jsonl", file=name):
            refuse_treebanks(files)
    else:
        refuse_treebanks(files)


def test_malformed_lines_have_reasons_and_ids_come_back() -> None:
    lines = [
        b'{"id": "a1", "text": "a cat"}',
        b'{"id": 7, "body": "a"}',
        b"{",
        b"[3]",
        b'{"id": ["x"], "text": 3}',
        b'{"id": 12, "text": ["a b"]}',
        b'{"id": 13, "text": "sat"}',
        b'{"text": "no id"}',
        b"9" * 5000,
    ]
    payload = b"\n".join(lines) + b"\n"
    read = parse_lines(payload, kind="json", column="text", first=True)
    assert [one.status for one in read] == ["ok", *["malformed"] * 5, "ok", "ok", "malformed"]
    assert [one.reason for one in read if one.reason] == [
        "no field 'text'",
        "not JSON (Expecting property name enclosed in double quotes)",
        "not a JSON object",
        "text is neither a text nor a list of words",
        "a word with a space in it",
        "not JSON (a number of too many digits)",
    ]
    assert [one.id for one in read] == ["a1", *[None] * 5, "13", None, None]


def test_no_input_is_one_line() -> None:
    with refused("no-inputs"):
        find_inputs([])
