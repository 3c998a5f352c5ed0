"""The memory limit bounds what a quadrature allocates beside its data and its answer."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from mercer import Gaussian, Precomputed, QuadratureSparsifier, config_context, verify
from mercer.solvers.measure.kinks import PathEnd

N = 6000
LIMIT = 8_000_000
KERNEL = Gaussian(sigma=1.5)


@pytest.fixture(scope="module")
def X():
    X = np.random.default_rng(0).standard_normal((N, 3))
    for options in ({"n_nodes": 5}, {"trace_fraction": 0.2, "solver": "path"}):  # whatever is compiled, is by now
        QuadratureSparsifier(KERNEL, **options).fit(X[:200])
    return X


def _peak(task):
    """What a task allocated at most at a time, and what it returns."""
    tracemalloc.start()
    try:
        answer = task()
        return tracemalloc.get_traced_memory()[1], answer
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "options",
    [
        {"n_nodes": 40},
        {"n_nodes": 40, "merge": "strong"},
        {"trace_fraction": 0.5},
        {"trace_fraction": 0.5, "solver": "exchange"},
        {"trace_fraction": 0.5, "solver": "path"},
        pytest.param({"n_nodes": 40, "solver": "path"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_fit_stays_within_the_limit(X, options):
    with config_context(memory_limit=LIMIT):
        peak, model = _peak(lambda: QuadratureSparsifier(KERNEL, **options).fit(X))
    assert peak <= LIMIT
    assert model.certificate_.holds(1e-6)
    if options.get("solver") == "path":  # whose columns do not fit: it says so, and the rest is solved otherwise
        assert model.path_.end is PathEnd.NO_ROOM
        assert "memory_limit" in model.path_.end.value
    if "n_nodes" in options:
        assert model.indices_.size == 40


def test_a_proof_stays_within_the_limit(X):
    model = QuadratureSparsifier(KERNEL, trace_fraction=0.5).fit(X)
    with config_context(memory_limit=LIMIT):
        peak, proof = _peak(lambda: verify(model, X))
    assert peak <= LIMIT
    assert proof.holds(1e-6)


def test_what_cannot_fit_is_refused_before_the_work(X):
    with config_context(memory_limit="1MB"), pytest.raises(MemoryError, match="6000 points needs about 3.07 MB"):
        QuadratureSparsifier(KERNEL).fit(X)
    with config_context(memory_limit=LIMIT), pytest.raises(MemoryError, match="n_nodes=400 needs about 40 MB"):
        QuadratureSparsifier(KERNEL, n_nodes=400).fit(X)
    K = KERNEL(X[:400])
    with config_context(memory_limit="2MB"):
        model = QuadratureSparsifier(Precomputed(), trace_fraction=0.3).fit(K)
    assert "no lower bound" in model.certificate_.method
