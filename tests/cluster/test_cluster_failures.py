"""Workers that die, run out of memory, are slow or another version, and schedulers that go: the answer or a sentence."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

from mercer import Gaussian, GramOperator, SDPEmbedding, config_context
from mercer.backends.dask import Cluster, failures

distributed = pytest.importorskip("distributed")
_rng = np.random.default_rng(11)
X = np.concatenate([_rng.normal(size=(150, 5)), _rng.normal(size=(150, 5)) + 3])
KERNEL = Gaussian(2.0)


class Killer:
    """Kills a worker, as the system does where memory is short, while the workers are busy with certain products."""

    def __init__(self, cluster: Cluster, passes: set[int], patch: pytest.MonkeyPatch) -> None:
        self.killed: list[int] = []
        gather = Cluster.gather

        def deadly(self_: Cluster, futures: list[Any], steps: Any = ()) -> list[Any]:
            if steps and self_.traffic.products in passes:
                workers = self_.client.run(os.getpid)
                self.killed.append(sorted(workers.values())[0])
                os.kill(self.killed[-1], signal.SIGKILL)
            return gather(self_, futures, steps)

        patch.setattr(Cluster, "gather", deadly)


def test_a_worker_that_dies_amid_a_product_changes_no_bit(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gram, v = GramOperator(KERNEL, X), _rng.normal(size=(len(X), 3))
    expected = gram @ v
    killer = Killer(cluster, {2}, monkeypatch)
    assert (gram @ v == expected).all()
    assert killer.killed
    assert (gram @ v == expected).all()  # from what is left


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["row sums", "solve", "certificate"])
def test_a_fit_whose_worker_dies_is_the_same(phase: str, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SDPEmbedding(KERNEL, random_state=0).fit(X)
    passes = cluster.traffic.products
    at = {"row sums": 1, "solve": passes // 2, "certificate": passes}[phase]
    killer = Killer(cluster, {passes + at}, monkeypatch)
    again = SDPEmbedding(KERNEL, random_state=0).fit(X)
    assert len(killer.killed) == 1
    assert (again.embedding_ == whole.embedding_).all()
    assert again.certificate_.lower == whole.certificate_.lower
    assert again.certificate_.upper == whole.certificate_.upper
    assert cluster.traffic.points == X.nbytes


@pytest.mark.slow
def test_a_slow_worker_changes_no_bit(cluster: Any) -> None:
    gram, v = GramOperator(KERNEL, X), _rng.normal(size=(len(X), 3))
    expected = gram @ v
    slow = sorted(cluster.client.run(os.getpid).values())[0]
    os.kill(slow, signal.SIGSTOP)
    wakes = threading.Timer(2.0, os.kill, (slow, signal.SIGCONT))
    wakes.start()
    try:
        assert (gram @ v == expected).all()
    finally:
        wakes.join()


def _dies(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_workers_without_memory_are_named(cluster: Any) -> None:
    with pytest.raises(MemoryError, match="died one after the other on one task .*give each more of it"):
        cluster.gather(cluster.apply(_dies, [0]))


def test_another_version_on_the_workers_is_refused(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "__version__", "0.9")
    sentence = r"The worker at tcp://\S+ has numpy \S+, this process 0.9: install the same version of numpy on both."
    with pytest.raises(RuntimeError, match=sentence), config_context(client=client):
        pass


def test_a_cluster_without_workers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "WAIT", 0.2)
    options = {"n_workers": 0, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as empty, distributed.Client(empty) as client:
        refused = pytest.raises(ConnectionError, match="has had no workers for 0 seconds: start some")
        with refused:
            Cluster(client)


def test_a_scheduler_that_goes_leaves_the_earlier_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    from mercer.backends.dask import matrix

    model = SDPEmbedding(KERNEL, random_state=0).fit(X)
    earlier = model.embedding_.copy()
    monkeypatch.setattr(matrix, "LEAST_ENTRIES", 1)
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    local = distributed.LocalCluster(**options)
    client = distributed.Client(local)
    gather, count = Cluster.gather, []

    def gone(self: Cluster, futures: list[Any], steps: Any = ()) -> list[Any]:
        count.append(1)
        if len(count) == 3:
            local.close()
        return gather(self, futures, steps)

    monkeypatch.setattr(Cluster, "gather", gone)
    try:
        refused = pytest.raises(ConnectionError, match="no longer answers: start the cluster again")
        with refused, config_context(client=client):
            model.fit(X[:200])
    finally:
        client.close()
        local.close()
    assert (model.embedding_ == earlier).all()
    assert model.n_features_in_ == 5
