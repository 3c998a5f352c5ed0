"""What is said of a fit before it is begun: seconds and memory that grow as those of the fits that were timed."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from mercer import (
    Precomputed,
    QuadratureSparsifier,
    SDPEmbedding,
    config_context,
    costs,
    estimate_cost,
    open_rows,
)
from mercer.costs import Pilot


class Sleeper(BaseEstimator):
    """A fit whose seconds and bytes are known: on a clock of its own, so that no machine is too slow for it."""

    clock = 0.0

    def __init__(self, power=2.0, landmarks=None, verbose=True):
        self.power, self.landmarks, self.verbose = power, landmarks, verbose

    def fit(self, X, y=None):
        assert not self.verbose
        assert self.landmarks is None or self.landmarks <= len(X)
        assert y is None or len(y) == len(X)
        held = np.ones(len(X) ** 2)
        Sleeper.clock += 1e-7 * len(X) ** self.power + 0 * held[0]
        return self


@pytest.fixture
def own_clock(monkeypatch):
    monkeypatch.setattr(costs.time, "perf_counter", lambda: Sleeper.clock)
    monkeypatch.setattr(costs.time, "monotonic", lambda: Sleeper.clock)


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_seconds_and_bytes_grow_as_they_do(power, own_clock):
    model = Sleeper(power, landmarks=5000)
    cost = estimate_cost(model, np.zeros((40_000, 2)), np.zeros(40_000), budget=1.0 if power > 1 else 0.01)
    assert cost.seconds == pytest.approx(1e-7 * 40_000**power, rel=0.01)
    assert cost.fastest < cost.seconds < cost.slowest
    assert cost.bytes == pytest.approx(8 * 40_000**2, rel=0.1)
    assert model.landmarks == 5000  # the model is as it was
    assert cost.pilots[-1].rows < 40_000


def test_what_does_not_fit_is_said_with_what_would(own_clock):
    with config_context(memory_limit="100MB"):
        cost = estimate_cost(Sleeper(), np.zeros((40_000, 2)), budget=0.1)
    assert not cost.fits
    assert cost.most_rows == pytest.approx((1e8 / 8) ** 0.5, rel=0.05)
    said = str(cost)
    assert f"landmarks={cost.most_rows}" in said
    assert "beyond the limit of 100 MB" in said
    assert "memory_limit" in said
    assert "float32" in said
    assert replace(cost, bytes=1e6).advice == ""


def test_a_small_fit_is_measured_and_no_journal_is_written(tmp_path):
    X = np.random.default_rng(0).normal(size=(150, 2))
    with config_context(checkpoint=tmp_path, checkpoint_every=0):
        cost = estimate_cost(QuadratureSparsifier(n_nodes=300), X)
    assert [pilot.rows for pilot in cost.pilots] == [150]
    assert cost.seconds == cost.pilots[0].seconds
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("budget", [0, -1.0, float("nan"), float("inf")])
def test_times_that_are_none_are_refused(budget):
    with pytest.raises(ValueError, match="must be a positive number of seconds"):
        estimate_cost(SDPEmbedding(), np.zeros((10, 2)), budget=budget)


@pytest.mark.parametrize(
    ("model", "X", "sentence"),
    [
        (None, np.ones((5, 2)), "takes an estimator and its rows"),
        (QuadratureSparsifier(n_nodes=5), "a.npy", "open a file by mercer.open_rows"),
        (QuadratureSparsifier(n_nodes=5), np.ones((0, 2)), "X has no rows"),
    ],
)
def test_what_has_no_cost_is_refused(model, X, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        estimate_cost(model, X)


@pytest.mark.parametrize(("landmarks", "first"), [(None, 200), (60, 240), (300, 1200), (10_000, 200)])
def test_pilots_have_more_rows_than_landmarks(landmarks, first, own_clock):
    model = Sleeper(0.9, landmarks=landmarks)
    assert estimate_cost(model, np.zeros((40_000, 2)), budget=0.01).pilots[0].rows == first


def test_rows_of_a_file_take_no_more_memory_than_the_limit_allows(own_clock, monkeypatch):
    monkeypatch.setattr(costs, "_OF_A_FILE", 800)
    rows = open_rows(np.zeros((40_000, 2)))
    with config_context(memory_limit="100MB"):
        cost = estimate_cost(Sleeper(), rows)
    assert (cost.rows, cost.pilots[-1].rows) == (40_000, 800)
    assert cost.seconds == pytest.approx(1e-7 * 40_000**2, rel=0.01)
    assert (cost.bytes, cost.fits) == (1e8, True)  # blocks are as large as the limit lets them be
    with config_context(memory_limit="1MB"):
        assert not estimate_cost(Sleeper(), rows).fits  # what a fit to 800 rows takes is no matter of blocks


def test_a_kernel_matrix_has_no_rows_to_try():
    with pytest.raises(ValueError, match="has no rows to try a fit on"):
        estimate_cost(SDPEmbedding(Precomputed()), np.eye(10))


def test_exponents_stay_within_what_fits_can_have():
    noisy = [Pilot(200, 5.0, 100), Pilot(400, 0.1, 100_000)]  # another job ended meanwhile
    cost = costs._extrapolated(noisy, 800)
    assert cost.seconds == pytest.approx(0.1 * 2**0.8, abs=0)
    assert cost.bytes == pytest.approx(100_000 * 2**2.0, abs=0)


def test_the_clock_of_the_test_is_that_of_the_estimate():
    assert costs.time is time
