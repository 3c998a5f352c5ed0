"""Elimination of nodes against plain searches on dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from mercer import Gaussian, GramOperator, Polynomial, QuadratureSparsifier
from mercer.problems import Discrepancy
from mercer.solvers import Goal, solve
from mercer.solvers.measure.active_set import solve_on
from mercer.solvers.measure.elimination import Elimination, _missed_least, eliminate

NODES = np.array([25, 2, 17, 9, 4, 28, 13, 21, 0, 7, 11])


def _problem(seed=3, *, kernel=Gaussian(sigma=0.6), n=30, **options):  # noqa: B008  (immutable)
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return Discrepancy(GramOperator(kernel**2, X), rng.uniform(0.2, 2, n) / n, kernel.diag(X), **options)


def _least(problem, nodes, *, signed):
    """The least D (and ridge) on some nodes, with weights of any sign or none negative."""
    A = (problem.squared.to_dense() + np.diag(problem.ridge))[np.ix_(nodes, nodes)]
    R = np.linalg.cholesky(A).T
    right = np.linalg.solve(R.T, problem.distortion[nodes])
    v = np.linalg.solve(R, right) if signed else nnls(R, right)[0]
    return problem.constant - right @ (R @ v) + 0.5 * (R @ v) @ (R @ v), v


@pytest.mark.parametrize("ridge", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_every_step_takes_out_the_node_that_is_missed_least(seed, ridge):
    problem = _problem(seed, ridge=np.full(30, 0.01) if ridge else None)
    sequence = eliminate(problem, NODES)
    left = [node for node in NODES if _least(problem, NODES, signed=False)[1][list(NODES).index(node)] > 1e-12]
    idle = NODES.size - len(left)
    assert set(sequence.removed[:idle]) == set(NODES) - set(left)
    assert sequence.removed.size == NODES.size - 1
    for step in range(idle, sequence.removed.size):
        value, weights = _least(problem, left, signed=True)
        assert sequence.values[step] == pytest.approx(value, rel=1e-8, abs=1e-15)
        np.testing.assert_array_equal(sequence.left(step), left)
        without = [_least(problem, [n for n in left if n != node], signed=True)[0] for node in left]
        assert np.all(weights > 0)
        assert sequence.removed[step] == left[int(np.argmin(without))]
        left.remove(sequence.removed[step])
    assert sequence.values[-1] == pytest.approx(_least(problem, left, signed=False)[0], rel=1e-8)


def test_a_node_that_would_have_a_negative_weight_goes_first():
    place, increase = _missed_least(np.array([0.1, 2.0, -1.0]), np.array([1.0, 1.0, 4.0]))
    assert (place, increase) == (2, 0.125)


def test_values_rise_and_are_those_of_non_negative_weights_where_all_are_positive():
    problem = _problem(5, n=60)
    sequence = eliminate(problem, np.arange(60))
    assert np.all(np.diff(sequence.values) >= 0)
    assert sequence.n_nodes.tolist() == list(range(60, 0, -1))
    checked = 0
    for stage in range(60):
        left = sequence.left(stage)
        assert left.size == sequence.n_nodes[stage]
        if left.size <= 40:
            value, weights = _least(problem, left, signed=True)
            assert sequence.values[stage] == pytest.approx(value, rel=1e-6, abs=1e-13)
            checked += bool(np.all(weights > 0))
    assert checked > 10


def test_limits():
    problem = _problem(n=60)
    whole = eliminate(problem, NODES)
    assert eliminate(problem, NODES, n_nodes=4).removed.tolist() == whole.removed[:7].tolist()
    assert eliminate(problem, NODES, n_nodes=40).removed.size == 0
    for allowed in (0.01, 0.5, 1.5):
        part = eliminate(problem, NODES, max_increase=allowed)
        assert part.values[-1] <= (1 + allowed) * whole.values[0]
        assert whole.values[part.values.size] > (1 + allowed) * whole.values[0]
    both = eliminate(problem, NODES, n_nodes=8, max_increase=10.0)
    assert both.n_nodes[-1] == 8
    renamed = whole.in_rows(np.arange(60) + 100)
    np.testing.assert_array_equal(renamed.removed, whole.removed + 100)
    np.testing.assert_array_equal(renamed.left(3), whole.left(3) + 100)


def test_dependent_nodes_go_first_and_leave_no_trace():
    """The square of this kernel has rank six: of twenty nodes, fourteen or more are not needed."""
    problem = _problem(0, kernel=Polynomial(degree=1, gamma=1.0, coef0=1.0))
    sequence = eliminate(problem, np.arange(20), n_nodes=3)
    assert sequence.n_nodes[-1] == 3
    assert sequence.values[14] <= 1e-12 * problem.constant
    assert sequence.values[-1] == pytest.approx(_least(problem, sequence.left(17), signed=True)[0], rel=1e-5)


def test_the_estimator_eliminates_and_names_rows():
    X = np.random.default_rng(0).uniform(-1, 1, (80, 2))
    X[40:50] = X[:10]  # repeated rows are one node, their first row
    model = QuadratureSparsifier(Gaussian(sigma=0.5), trace_fraction=0.8, n_nodes=12).fit(X)
    sequence = model.reduction_
    np.testing.assert_array_equal(np.sort(sequence.left(sequence.removed.size)), np.sort(model.indices_))
    assert not set(sequence.nodes) & set(range(40, 50))
    assert model.kappa_ == pytest.approx(0.8, rel=1e-10)
    assert model.certificate_.holds(1e-9)
    assert "same nodes" in model.certificate_.method
    free = QuadratureSparsifier(Gaussian(sigma=0.5), trace_fraction=0.8, n_nodes=12, reweight=True).fit(X)
    assert model.discrepancy_ == pytest.approx(sequence.values[-1], rel=1e-7)  # of the programme under its constraint
    assert free.discrepancy_ == pytest.approx(free.reduction_.values[-1], rel=1e-7)  # and without one
    assert free.kappa_ != pytest.approx(0.8, rel=1e-3)


@pytest.mark.parametrize("merge", ["eliminate", "strong", "weak"])
@pytest.mark.parametrize("programme", [{"trace_fraction": 0.8}, {"alpha": 0.003}])
def test_an_allowed_increase_is_used_but_not_exceeded(merge, programme):
    X = np.random.default_rng(0).uniform(-1, 1, (80, 2))
    kernel = Gaussian(sigma=0.5)
    whole = QuadratureSparsifier(kernel, **programme).fit(X)
    sizes = [whole.indices_.size]
    for allowed in (0.0, 0.05, 0.5):
        model = QuadratureSparsifier(kernel, merge=merge, max_increase=allowed, **programme).fit(X)
        assert model.discrepancy_ <= (1 + allowed) * whole.discrepancy_ * (1 + 1e-9)
        sizes.append(model.indices_.size)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]


@pytest.mark.parametrize("level", [{"alpha": 0.02}, {"kappa": 0.6}])
def test_what_a_node_is_missed_by_is_the_growth_of_the_programme(level):
    """Every step against the best programme on the nodes without one, solved for each of them by a dense system."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (40, 2))
    d = rng.uniform(0.5, 2.0, 40)
    problem = Discrepancy(GramOperator(Gaussian(sigma=0.5) ** 2, X), np.full(40, 1 / 40), d)
    nodes = np.arange(0, 40, 4)
    S = problem.squared.to_dense()

    def least(chosen):
        A, q, c = S[np.ix_(chosen, chosen)], problem.distortion[chosen], d[chosen]
        if "alpha" in level:
            v = np.linalg.solve(A, q - level["alpha"] * c)
            return problem.constant + 0.5 * v @ A @ v - q @ v + level["alpha"] * c @ v
        system = np.block([[A, c[:, None]], [c[None], np.zeros((1, 1))]])
        v = np.linalg.solve(system, [*q, level["kappa"]])[:-1]
        return problem.constant + 0.5 * v @ A @ v - q @ v

    found = solve(problem, Elimination(3, **level), nodes, goal=Goal(0.0, max_iter=50)).point
    idle = int(np.flatnonzero(np.diff(found.values) > 0)[0])  # those without weight go first, at no cost
    assert found.removed.size - idle > 3
    for step in range(idle, found.removed.size):
        left, gone = found.left(step), int(found.removed[step])
        growth = {int(j): least(left[left != j]) for j in left}
        assert found.values[step] == pytest.approx(least(left), rel=1e-8)
        assert growth[gone] == pytest.approx(min(growth.values()), rel=1e-8)


def test_fewer_nodes_of_a_trace_fraction_are_those_that_serve_it():
    """Random subsets of as many nodes, with the weights of the same programme, are no better; nor the free choice."""
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    kernel = Gaussian(sigma=0.5)
    model = QuadratureSparsifier(kernel, trace_fraction=0.5, n_nodes=8).fit(X)
    problem = Discrepancy(GramOperator(kernel**2, X), np.full(200, 1 / 200), np.ones(200))
    free = eliminate(problem, model.reduction_.nodes, n_nodes=8).left(model.reduction_.nodes.size - 8)
    level = problem.constrained(model.kappa_)
    values = solve_on(level, free)
    assert model.discrepancy_ <= problem.value(free[values > 0], values[values > 0]) * (1 + 1e-9)
