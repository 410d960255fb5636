from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.encoder.checkpoints import save


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT checkpoint: 3 layers, 4 heads, 64 positions; not to be changed."""
    folder = tmp_path_factory.mktemp("bert")
    save("bert", folder)
    return folder


@pytest.fixture
def checkpoint(bert: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(bert, tmp_path / "checkpoint"))
