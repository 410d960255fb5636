"""What bulk parsing asks of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")

from attree.base.cluster import Wanted
from attree.bulk import dask_workers as module
from attree.bulk.options import Place, RowSettings
from attree.bulk.pipeline import WorkerSetup


class Asked(Exception):  # noqa: N818
    """Stands for a cluster that is started."""


@pytest.mark.parametrize(
    ("device", "gpus"), [(None, 2), ("cuda", 2), ("cuda:1", 0), ("cuda:0", 0), ("cpu", 0)]
)
def test_workers_share_gpus_unless_one_is_named(
    device: str | None, gpus: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connected(kind: str, wanted: Wanted) -> None:
        raise Asked(kind, wanted.count, wanted.gpus)

    monkeypatch.setattr(module, "connected", connected)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    source: Any = None
    setup = WorkerSetup(source, RowSettings(), str(tmp_path), device, 1)
    with pytest.raises(Asked) as asked, module.dask_workers(Place(workers=3), setup, 3):
        pass
    assert asked.value.args == ("local", 3, gpus)
