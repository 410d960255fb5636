from __future__ import annotations

from tests.attention.conftest import make_table  # noqa: F401
from tests.fewshot.conftest import encoder, resolved, treebank  # noqa: F401
