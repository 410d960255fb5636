"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# No test is timed: compiling alone takes longer than hypothesis' deadline.
settings.register_profile("attree", deadline=None)
settings.load_profile("attree")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real treebanks: $ATTREE_TREEBANKS, or ../shared/data beside the checkout."""
    default = Path(__file__).parents[2] / "shared/data"
    folder = Path(os.environ.get("ATTREE_TREEBANKS") or default).resolve()
    if not (folder / "constituency").is_dir():
        pytest.skip(f"no treebanks in {folder}: set ATTREE_TREEBANKS to the folder that has them")
    return folder
