"""Nodes one after another, each where it does most."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import Gaussian, GramOperator, Precomputed, QuadratureSparsifier
from mercer.problems import Discrepancy
from mercer.problems.pool_entries import PoolEntries
from mercer.solvers import Goal, Limits, Run, Status
from mercer.solvers.measure import pursuit
from mercer.solvers.measure.pursuit import Pursuit


def _problem(n=150, seed=0, sigma=0.7, **options):
    rng = np.random.default_rng(seed)
    X, weights = rng.uniform(-1, 1, (n, 2)), rng.uniform(0.5, 1.5, n)
    return Discrepancy(GramOperator(Gaussian(sigma=sigma) ** 2, X), weights / weights.sum(), np.ones(n), **options)


def _found(problem, count, start=None):
    return Run(Goal(0.0)).phase(problem, Pursuit(count), start, Limits(max_iter=1000))


def _least(problem, nodes):
    matrix = problem.squared.to_dense() + np.diag(problem.ridge)
    weights = np.linalg.solve(matrix[np.ix_(nodes, nodes)], problem.distortion[nodes])
    return problem.constant - 0.5 * problem.distortion[nodes] @ weights


@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_the_value_is_the_least_discrepancy_on_the_nodes(ridge):
    problem = _problem(ridge=np.full(150, ridge))
    found = _found(problem, 14)
    assert found.status is Status.CONVERGED
    assert np.unique(found.point).size == 14
    assert found.history[-1].objective == pytest.approx(_least(problem, found.point), rel=1e-7)


def test_every_first_point_is_the_best_one_there_is():
    """One at a time: no other point lowers the least discrepancy more, by dense solves."""
    problem = _problem(60)
    nodes = _found(problem, 6).point.tolist()
    for k in range(1, 6):
        others = {i: _least(problem, [*nodes[:k], i]) for i in range(60) if i not in nodes[:k]}
        wanted = [i for i, value in others.items() if _weight(problem, nodes[:k], i) > 0]
        assert others[nodes[k]] <= min(others[i] for i in wanted) * (1 + 1e-9)


def _weight(problem, nodes, point):
    both = [*nodes, point]
    matrix = problem.squared.to_dense()
    return np.linalg.solve(matrix[np.ix_(both, both)], problem.distortion[both])[-1]


def test_it_goes_on_from_nodes_that_are_given():
    problem = _problem()
    first = _found(problem, 9).point
    more = _found(problem, 20, first).point
    np.testing.assert_array_equal(more[:9], first)
    assert _least(problem, more) < 0.2 * _least(problem, first)


def test_it_ends_where_nothing_can_be_told_from_rounding():
    problem = _problem(120, sigma=4.0)
    found = _found(problem, 110)
    assert found.status is Status.CONVERGED
    assert found.point.size < 60  # the squared kernel has no more directions than that
    assert found.history[-1].objective < 1e-9 * problem.constant


def test_a_pool_of_some_points_holds_dense_places_and_thin(monkeypatch):
    monkeypatch.setattr(pursuit, "_POOL", 40)
    monkeypatch.setattr(pursuit, "_ENTRIES", 400)
    problem = _problem(400)
    pool = pursuit._spread(problem, np.array([7, 3]), 40)
    height = problem.distortion
    assert {3, 7} <= set(pool.tolist())
    assert np.all(np.diff(pool) > 0)
    assert np.quantile(height[pool], 0.1) == pytest.approx(np.quantile(height, 0.1), rel=0.2)
    assert _least(problem, _found(problem, 12).point) < 0.1 * problem.constant


def test_rows_of_a_pool_are_those_of_the_matrix():
    problem = _problem(90, ridge=np.linspace(0, 1, 90))
    pool, places = np.arange(5, 80, 3), np.array([4, 0, 9])
    whole = problem.squared.to_dense() + np.diag(problem.ridge)
    entries = PoolEntries(problem, pool)
    np.testing.assert_allclose(entries.rows(places), whole[np.ix_(pool[places], pool)], rtol=1e-12)
    np.testing.assert_allclose(entries.block(places), whole[np.ix_(pool[places], pool[places])], rtol=1e-12)


def test_entries_that_are_given_are_looked_up():
    K = Gaussian(sigma=0.7)(np.random.default_rng(0).uniform(-1, 1, (60, 2)))
    squared = GramOperator(Precomputed() ** 2, K)
    assert squared.between(np.arange(4)) is None
    problem = Discrepancy(squared, np.full(60, 1 / 60), np.ones(60))
    places = np.array([2, 1])
    np.testing.assert_allclose(PoolEntries(problem, np.arange(0, 60, 4)).rows(places), K[[8, 4]][:, ::4] ** 2)


def test_a_fit_by_pursuit_is_no_worse_than_by_the_penalised_programme():
    X = np.random.default_rng(3).standard_normal((700, 3))
    kernel = Gaussian(sigma=1.5)
    for m in (10, 40):
        pursued = QuadratureSparsifier(kernel, n_nodes=m).fit(X)
        penalised = QuadratureSparsifier(kernel, n_nodes=m, solver="active-set").fit(X)
        assert {line.phase for line in pursued.history_} == {"pursuit", "elimination", "swapping"}
        assert "pursuit" not in {line.phase for line in penalised.history_}
        assert pursued.discrepancy_ < 1.1 * penalised.discrepancy_
