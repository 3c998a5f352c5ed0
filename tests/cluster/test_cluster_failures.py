"""Workers that die, run out of memory, are slow or another version, and schedulers that go: the answer or a sentence."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact_bits import told

from mercer import Gaussian, GramOperator, SDPEmbedding, config_context
from mercer.backends.dask import Cluster, failures

distributed = pytest.importorskip("distributed")
_rng = np.random.default_rng(11)
X = np.concatenate([_rng.normal(size=(150, 5)), _rng.normal(size=(150, 5)) + 3])
KERNEL = Gaussian(2.0)


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


def _takes_memory(megabytes: int) -> None:
    taken = []
    for _ in range(megabytes // 8):
        taken.append(np.ones(2**20))
        time.sleep(0.005)  # the process that watches over a worker looks ten times a second


@pytest.mark.slow
def test_workers_without_memory_are_named() -> None:
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "600MB", "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options) as small,
        distributed.Client(small) as client,
        config_context(client=client) as config,
    ):
        with pytest.raises(MemoryError, match="died one after the other on one task .*give each more of it"):
            config.cluster.gather(config.cluster.apply(_takes_memory, [3000]))
        client.wait_for_workers(1)
        assert config.cluster.gather(config.cluster.apply(abs, [-1])) == [1]  # the cluster goes on


def test_a_client_that_is_closed_within_the_block_is_told(client: Any, small_matrices_go_there: None) -> None:
    own = distributed.Client(client.scheduler.address, set_as_default=False)
    with config_context(client=own):
        gram = GramOperator(KERNEL, X)
        assert (gram @ np.ones(len(X))).shape == (len(X),)
        own.close()
        with pytest.raises(
            ConnectionError, match="client is closed, .* start the cluster again if it is gone, connect a new Client"
        ):
            gram @ np.ones(len(X))


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


ALONE = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}


def test_a_scheduler_that_goes_leaves_the_earlier_fit_and_the_journal(
    small_matrices_go_there: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with distributed.LocalCluster(**ALONE) as whole, distributed.Client(whole) as client, config_context(client=client):
        expected = SDPEmbedding(KERNEL, random_state=0).fit(X[:200])
    model = SDPEmbedding(KERNEL, random_state=0).fit(X)
    earlier = model.embedding_.copy()
    journal = {"checkpoint": tmp_path, "checkpoint_every": 0}
    local = distributed.LocalCluster(**ALONE)
    client = distributed.Client(local)
    gather, count = Cluster.gather, []

    def gone(self: Cluster, futures: list[Any], steps: Any = ()) -> list[Any]:
        count.append(1)
        if len(count) == 3:
            local.close()
        return gather(self, futures, steps)

    with monkeypatch.context() as patch:
        patch.setattr(Cluster, "gather", gone)
        try:
            with (
                pytest.raises(ConnectionError, match="start the cluster again"),
                config_context(client=client, **journal),
            ):
                model.fit(X[:200])
        finally:
            client.close()
            local.close()
    assert (model.embedding_ == earlier).all()
    assert model.n_features_in_ == 5
    assert len(list(tmp_path.iterdir())) == 1
    with (
        distributed.LocalCluster(**ALONE) as other,
        distributed.Client(other) as client,
        config_context(client=client, **journal),
    ):
        model.fit(X[:200])
    assert (model.embedding_ == expected.embedding_).all()
    assert model.certificate_.upper == expected.certificate_.upper


class Killed(BaseException):
    """What no code catches."""


def test_a_run_that_is_taken_up_by_fewer_workers_ends_with_the_same_bits(
    client: Any, small_matrices_go_there: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(callback: Any = None, **options: Any) -> Any:
        with config_context(client=client, **options) as config:
            model = SDPEmbedding(KERNEL, random_state=0, callback=callback).fit(X)
            assert config.cluster.divided_for == threads
            return told(model)

    def down(line: Any) -> None:
        raise Killed

    journal = {"checkpoint": tmp_path, "checkpoint_every": 0}
    threads = 2
    monkeypatch.setattr(Cluster, "_threads", lambda self: threads)
    whole = fit()
    with pytest.raises(Killed):
        fit(down, **journal)
    threads = 1
    assert fit() != whole  # other groups of rows, whose sums are rounded otherwise
    assert fit(**journal) == whole


def test_a_worker_that_is_lost_does_not_change_the_groups_of_rows(
    client: Any, small_matrices_go_there: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cluster, "_threads", lambda self: threads)
    threads = 2
    with config_context(client=client) as config:
        before = config.cluster.group_rows(300)
        threads = 1
        assert config.cluster.group_rows(300) == before
        threads = 8
        assert config.cluster.group_rows(300) < before  # others came
