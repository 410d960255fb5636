from __future__ import annotations

from tests.attention.conftest import encoder, make_table  # noqa: F401
