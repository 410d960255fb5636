"""Packages made up for tests: a small encoder in each form that packages carry one in."""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
from pathlib import Path

import numpy as np

from attree.encoder.forms import Carried
from tests.encoder.checkpoints import save

HIDDEN, LAYERS, HEADS, INNER, POSITIONS, TYPES = 64, 2, 4, 96, 40, 2
PIECES = ["<s>", "<pad>", "</s>", "<unk>", *("▁" + letter for letter in "abcdefgh"), "a", "b", "ab"]
PIECES += ["▁alte", "▁Mann", "ging", "<mask>"]
VOCABULARY = len(PIECES) + 3

SIZES = {"emb.word": (VOCABULARY, HIDDEN), "emb.pos": (POSITIONS, HIDDEN)}
SIZES |= {"emb.type": (TYPES, HIDDEN), "emb.ln.w": (HIDDEN,), "emb.ln.b": (HIDDEN,)}
for layer in range(LAYERS):
    for name in ("q", "k", "v", "ao"):
        SIZES |= {f"l{layer}.{name}.w": (HIDDEN, HIDDEN), f"l{layer}.{name}.b": (HIDDEN,)}
    SIZES |= {f"l{layer}.fi.w": (INNER, HIDDEN), f"l{layer}.fi.b": (INNER,)}
    SIZES |= {f"l{layer}.fo.w": (HIDDEN, INNER), f"l{layer}.fo.b": (HIDDEN,)}
    for name in ("aln", "oln"):
        SIZES |= {f"l{layer}.{name}.w": (HIDDEN,), f"l{layer}.{name}.b": (HIDDEN,)}
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


def q4(
    data: dict[str, bytes] | None = None,
    *,
    magic: bytes = b"E5S1",
    version: int = 1,
    block: int = 32,
    pieces: list[bytes] | None = None,
    heads: int = HEADS,
    shift: int = 0,
) -> bytes:
    """Return a file of the form E5S1; the further arguments make it a wrong one."""
    tensors = weights()[1] if data is None else data
    names = [piece.encode() for piece in PIECES] if pieces is None else pieces
    head = magic + struct.pack(
        "<i7i", version, HIDDEN, LAYERS, heads, INNER, VOCABULARY, POSITIONS, TYPES
    )
    head += struct.pack("<fi5i", 1e-6, block, len(names), 0, 2, 1, 3)
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
        head += struct.pack("<BIQQ", name in QUANTISED, count, place + shift, len(packed))
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


def install(site: Path, name: str, content: bytes, *, pieces: int = 1, form: str = "q4") -> Carried:
    """Write packages with ``content`` into ``site``; importing one raises."""
    parts = {}
    for number in range(pieces):
        package = f"{name}-part-{number}" if pieces > 1 else name
        module = package.replace("-", "_")
        start, end = (len(content) * at // pieces for at in (number, number + 1))
        (site / module).mkdir(parents=True, exist_ok=True)
        (site / module / "__init__.py").write_text("raise RuntimeError('imported')")
        (site / module / "weights.bin").write_bytes(content[start:end])
        about = site / f"{module}-1.0.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        parts[package] = f"{module}/weights.bin"
    return Carried(form, "1.0", parts, hashlib.sha256(content).hexdigest(), 1_000_000)
