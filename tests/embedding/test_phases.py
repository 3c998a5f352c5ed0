"""What a fit says of its time."""

from __future__ import annotations

import time

import pytest

from mercer import Gaussian, SDPEmbedding
from mercer.datasets import three_clusters
from mercer.progress import Phases


def test_time_goes_to_the_phase_under_way(monkeypatch):
    clock = iter([0.0, 1.0, 3.0, 6.0, 10.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    phases = Phases("first")
    assert phases.begin("second") == "first"
    assert phases.begin("first") == "second"
    assert phases.begin("third") == "first"
    assert phases.begin("") == "third"
    assert phases.seconds == {"first": 1.0 + 3.0, "second": 2.0, "third": 4.0}


@pytest.mark.parametrize(
    ("n", "named"),
    [
        (20, {"climbing by power steps"}),
        (90, {"factoring a stand-in", "solving with the stand-in", "climbing by lower models"}),
    ],
)
def test_phases_of_a_fit_add_up_to_it(n, named):
    X, _ = three_clusters(n_per_cluster=n)
    began = time.perf_counter()
    model = SDPEmbedding(Gaussian(sigma=1.2), random_state=0).fit(X)
    seconds = time.perf_counter() - began
    assert named | {"reading the points", "summing rows", "proving the bound", "storing"} <= set(model.phase_seconds_)
    assert 0 < sum(model.phase_seconds_.values()) <= seconds
    assert min(model.phase_seconds_.values()) >= 0
