"""The code hash sees statements and nothing else; outputs carry what they were made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from attree import provenance


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scoring").mkdir()
    (tmp_path / "scoring" / "prefix.py").write_text('"""Doc."""\ndef f(x):\n    return x\n')
    monkeypatch.setattr(provenance, "_ROOT", tmp_path)
    return tmp_path / "scoring" / "prefix.py"


def _hash() -> str:
    provenance._syntax.cache_clear()
    return provenance.code_hash("scoring")


def test_a_comment_or_docstring_changes_nothing(package: Path) -> None:
    before = _hash()
    package.write_text('"""Other."""\n# why\ndef f(x):\n    """New."""\n    return x\n')
    assert _hash() == before


def test_a_statement_changes_the_hash(package: Path) -> None:
    before = _hash()
    package.write_text('"""Doc."""\ndef f(x):\n    return -x\n')
    assert _hash() != before


def test_a_renamed_module_changes_the_hash(package: Path) -> None:
    before = _hash()
    package.rename(package.with_name("sums.py"))
    assert _hash() != before


def test_a_module_that_is_gone_is_an_error(package: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"attree\.scoring\.gone"):
        provenance.code_hash("scoring.gone")
