"""A Dask cluster of two processes on this machine, started once, and matrices that go to it whatever their size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

distributed = pytest.importorskip("distributed")


@contextmanager
def two_workers() -> Iterator[Any]:
    """The client of two processes of one thread each."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    """That of a cluster which tests share, and none of them kills."""
    with two_workers() as client:
        yield client


@pytest.fixture
def mortal_client() -> Iterator[Any]:
    """That of a cluster of a test's own: now and then Dask does not bring a worker back that was killed."""
    with two_workers() as client:
        yield client


@pytest.fixture
def small_matrices_go_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kernel matrix of dense points is multiplied on the workers of a client that is given, in six pairs."""
    from mercer.backends.dask import cluster, matrix

    monkeypatch.setattr(matrix, "LEAST_ENTRIES", 1)
    monkeypatch.setattr(cluster, "_FEWEST_ROWS", 16)
    monkeypatch.setattr(cluster, "_TASKS_A_THREAD", 2)


@pytest.fixture
def cluster(client: Any, small_matrices_go_there: None) -> Iterator[Any]:
    """The cluster of a configuration in which they do."""
    from mercer import config_context

    with config_context(client=client) as config:
        yield config.cluster
