from __future__ import annotations

from tests.association.conftest import make_table  # noqa: F401
from tests.training.conftest import encoder, resolved, treebank  # noqa: F401
