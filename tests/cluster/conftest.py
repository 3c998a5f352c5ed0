"""A Dask cluster of two processes on this machine, started once, and matrices that go to it whatever their size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    """Two workers of one thread each."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def cluster(client: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The configuration in which every kernel matrix of dense points is multiplied on the workers, in six pairs."""
    from mercer import config_context
    from mercer.backends.dask import cluster, matrix

    monkeypatch.setattr(matrix, "LEAST_ENTRIES", 1)
    monkeypatch.setattr(cluster, "_FEWEST_ROWS", 16)
    monkeypatch.setattr(cluster, "_TASKS_A_THREAD", 2)
    with config_context(client=client) as config:
        yield config.cluster
