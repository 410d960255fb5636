"""A repetitive little corpus and tiny checkpoints with and without a language-model head."""

from __future__ import annotations

from pathlib import Path

import pytest

from attree.encoder.source import EncoderSource, ResolvedEncoder, resolve
from tests.encoder import checkpoints


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(checkpoints.TEXT * 8), encoding="utf-8")
    return path


def headless(family: str, folder: Path) -> ResolvedEncoder:
    """Save a checkpoint without a language-model head."""
    return resolve(checkpoints.save(family, folder))


def headed(family: str, folder: Path) -> ResolvedEncoder:
    """Save a checkpoint with one."""
    from transformers import AutoModelForMaskedLM

    source: EncoderSource = checkpoints.save(family, folder)
    AutoModelForMaskedLM.from_pretrained(folder).save_pretrained(folder)
    return resolve(source)
