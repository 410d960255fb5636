"""Compiled code is cached where it can be, and runs where it cannot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.base import compiled
from attree.base.compiled import interpreting_small
from attree.decoding import DECODERS, FIXED
from attree.decoding.batch import decode
from attree.decoding.fixed import fixed_trees
from attree.evaluation.metrics import count_each
from attree.evaluation.spans import distinct_spans
from attree.scoring import SCORES
from attree.training.inside import batch_inside_outside
from attree.training.label_trees import decode_labelled
from tests.command_line import python
from tests.training.test_labels import example

_DECODE = """
import numpy as np
from attree.decoding import kernels
from attree.decoding.batch import decode
decode(np.ones(9), [3], score="inside", decoder="chart")
print(sum(kernels.add_best.compiled.stats.cache_hits.values()))
"""


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    hits = [python(_DECODE, NUMBA_CACHE_DIR=str(tmp_path)).stdout for _ in range(2)]
    assert hits == ["0\n", "1\n"]


def test_without_any_folder_to_write_a_kernel_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(numba.core.dispatcher.Dispatcher, "enable_caching", refuse)

    @compiled.kernel
    def double(x: float) -> float:
        return 2.0 * x

    assert double(1.5) == 3.0


@pytest.fixture
def fresh() -> Iterator[None]:
    compiled.cache_folder.cache_clear()
    yield
    compiled.cache_folder.cache_clear()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o1777])
def test_a_folder_that_others_can_write_is_passed_over(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(shared))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = Path(compiled.cache_folder(tmp_path) or "")
    assert found == tmp_path / "cache/attree/compiled"
    assert found.stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("fresh")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "cache/attree/compiled"
    theirs.mkdir(parents=True)
    os.chown(theirs, 1234, 1234)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert compiled.cache_folder(tmp_path / "gone") is None


@pytest.mark.parametrize("mode", [pytest.param(0o755, marks=pytest.mark.full), 0o777])
def test_beside_the_code_nothing_is_cached_that_others_could_change(
    tmp_path: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(compiled.__file__).parent.parent
    shutil.copytree(package, tmp_path / "src/attree", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "src/attree/decoding"
    kernels.chmod(mode)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    more = {"PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    assert python(_DECODE, **more).returncode == 0
    beside = list(kernels.rglob("*.nbi"))
    own = list((tmp_path / "cache/attree/compiled").rglob("kernels*.nbi"))
    assert (bool(beside), bool(own)) == (mode == 0o755, mode == 0o777)


def test_kernels_divide_by_zero_as_numpy_does() -> None:
    @compiled.kernel
    def divide(x: float, y: float) -> float:
        return x / y

    assert np.isinf(divide(1.0, 0.0))


_SIZES = {"seed": st.integers(0, 10_000), "n": st.integers(2, 12)}


@settings(max_examples=60)
@given(**_SIZES, score=st.sampled_from([*SCORES]), decoder=st.sampled_from([*DECODERS]))
def test_uncompiled_loops_give_the_same_trees(seed: int, n: int, score: str, decoder: str) -> None:
    matrix = np.random.default_rng(seed).random(n * n)
    right = decode(matrix, [n], score=score, decoder=decoder)
    with interpreting_small(True):
        found = decode(matrix, [n], score=score, decoder=decoder)
        counts = count_each(distinct_spans(right), found)
    assert (found.starts.tolist(), found.ends.tolist()) == (
        right.starts.tolist(), right.ends.tolist()
    )  # fmt: skip
    assert counts.corpus_f1.tolist() == [100.0]


@settings(max_examples=40)
@given(**_SIZES, spread=st.sampled_from([1.0, 1e3]), unlabelled=st.sampled_from([0.0, 0.25]))
def test_uncompiled_loops_give_the_same_chances_and_labels(
    seed: int, n: int, spread: float, unlabelled: float
) -> None:
    drawn = np.random.default_rng(seed)
    table, allowed = spread * drawn.normal(size=(2, n + 1, n + 1)), drawn.random((n + 1, n + 1))
    arguments = (table, np.array([n, n - 1]), np.stack([allowed > 0.3, allowed > -1]))
    scores = example(seed, n)
    right = batch_inside_outside(*arguments)
    tree = decode_labelled(scores, 0.3, unlabelled=unlabelled)
    with interpreting_small(True):
        found = batch_inside_outside(*arguments)
        again = decode_labelled(scores, 0.3, unlabelled=unlabelled)
    for one, other in zip(right, found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert again.of(0).brackets() == tree.of(0).brackets()


@pytest.mark.parametrize("name", FIXED)
def test_uncompiled_loops_give_the_same_fixed_trees(name: str) -> None:
    right = fixed_trees(name, range(2, 20), seed=3)
    with interpreting_small(True):
        found = fixed_trees(name, range(2, 20), seed=3)
    assert found.starts.tolist() == right.starts.tolist()


def test_long_sentences_are_parsed_by_compiled_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    @compiled.kernel
    def total(values: np.ndarray) -> float:
        return values.sum()

    monkeypatch.setattr(total, "compiled", calls.append)
    with interpreting_small(True):
        assert total(np.ones((51, 51))) == 51 * 51 and not calls
        total(np.ones((52, 52)))
    total(np.ones(1))
    assert len(calls) == 2
