"""Exchanging nodes for points that do more."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import Gaussian, GramOperator, Polynomial, QuadratureSparsifier
from mercer.problems import Discrepancy
from mercer.solvers import Goal, solve
from mercer.solvers.measure import swapping


def _problem(n, seed, kernel=Gaussian(sigma=0.7), **options):  # noqa: B008  (immutable)
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    weights = rng.uniform(0.5, 1.5, n)
    return Discrepancy(GramOperator(kernel**2, X), weights / weights.sum(), np.ones(n), **options)


def _least(problem, nodes):
    """The least D on some nodes, weights of any sign, by a dense solve."""
    matrix = problem.squared.to_dense() + np.diag(problem.ridge)
    weights = np.linalg.solve(matrix[np.ix_(nodes, nodes)], problem.distortion[nodes])
    return problem.constant - 0.5 * problem.distortion[nodes] @ weights


def swap(problem, nodes, n_sweeps=3):
    return solve(problem, swapping.Swapping(), nodes, goal=Goal(0.0, max_iter=n_sweeps)).point


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kernel", [Gaussian(sigma=0.7), Polynomial(degree=3, gamma=1.0, coef0=1.0)])
def test_what_a_sweep_keeps_track_of_is_right(seed, kernel):
    problem = _problem(60, seed, kernel, ridge=np.full(60, 1e-4))
    nodes = np.random.default_rng(seed).choice(60, 7, replace=False)
    sweep = swapping._Sweep(problem, nodes)
    before = _least(problem, nodes)
    assert sweep.run() > 0
    matrix = problem.squared.to_dense() + np.diag(problem.ridge)
    inner = matrix[np.ix_(sweep.nodes, sweep.nodes)]
    np.testing.assert_allclose(sweep._inverse @ inner, np.eye(7), atol=1e-5)
    weights = np.linalg.solve(inner, problem.distortion[sweep.nodes])
    np.testing.assert_allclose(sweep._weights, weights, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(sweep._gradient, matrix[:, sweep.nodes] @ weights - problem.distortion, atol=1e-9)
    explained = np.einsum("ij,ji->i", matrix[:, sweep.nodes], np.linalg.solve(inner, matrix[sweep.nodes]))
    np.testing.assert_allclose(sweep._rest, np.diag(matrix) - explained, atol=1e-7)
    assert sweep.value == pytest.approx(_least(problem, sweep.nodes), rel=1e-5)
    assert sweep.value < before


@pytest.mark.parametrize("seed", range(3))
def test_a_single_swap_cannot_be_improved_at_the_end(seed):
    """At a local optimum no exchange of one node for one point of positive weight lowers D by more than the threshold."""
    problem = _problem(25, seed)
    nodes = swap(problem, np.arange(4), n_sweeps=50)
    least = _least(problem, nodes)
    matrix = problem.squared.to_dense()
    for place in range(4):
        for point in np.setdiff1d(np.arange(25), nodes):
            other = nodes.copy()
            other[place] = point
            weights = np.linalg.solve(matrix[np.ix_(other, other)], problem.distortion[other])
            if weights[place] > 0:
                assert _least(problem, other) >= least * (1 - 2 * swapping._WORTH)


def test_nodes_stay_distinct_and_as_many(monkeypatch):
    monkeypatch.setattr(swapping, "_POOL", 40)  # smaller than the sample
    problem = _problem(300, 0)
    nodes = swap(problem, np.arange(12))
    assert np.unique(nodes).size == 12
    assert _least(problem, nodes) < 0.5 * _least(problem, np.arange(12))


def test_swapped_nodes_beat_eliminated_ones():
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    kernel = Gaussian(sigma=0.5)
    alone = QuadratureSparsifier(kernel, n_nodes=25).fit(X)
    merged = QuadratureSparsifier(kernel, n_nodes=25, merge="strong").fit(X)
    assert alone.indices_.size == 25
    assert alone.discrepancy_ < 0.8 * merged.discrepancy_


@pytest.mark.parametrize("merge", ["eliminate", "strong"])
def test_the_increase_of_the_programme_is_what_max_increase_limits(merge):
    X = np.random.default_rng(1).uniform(-1, 1, (300, 2))
    kernel = Gaussian(sigma=0.6)
    whole = QuadratureSparsifier(kernel, trace_fraction=0.8).fit(X)
    fewer = QuadratureSparsifier(kernel, trace_fraction=0.8, merge=merge, max_increase=0.05).fit(X)
    assert fewer.indices_.size < whole.indices_.size
    assert fewer.kappa_ == pytest.approx(whole.kappa_, rel=1e-12)
    assert whole.discrepancy_ <= fewer.discrepancy_ <= 1.05 * whole.discrepancy_


def test_the_sequence_names_rows_of_the_data():
    X = np.repeat(np.random.default_rng(2).uniform(-1, 1, (80, 2)), 2, axis=0)  # every point twice, first rows even
    for merge in ("eliminate", "strong"):
        model = QuadratureSparsifier(Gaussian(sigma=0.6), trace_fraction=0.7, n_nodes=8, merge=merge).fit(X)
        assert np.all(model.reduction_.nodes % 2 == 0)
        assert set(model.indices_) <= set(model.reduction_.nodes)


def test_the_whole_path_is_followed_for_the_whole_trace():
    X = np.random.default_rng(3).uniform(-1, 1, (12, 2))
    model = QuadratureSparsifier(Gaussian(sigma=0.3), trace_fraction=1.0, solver="path").fit(X)
    assert model.path_.kappas[-1] == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(model.weights_, 1 / 12, atol=1e-9)
