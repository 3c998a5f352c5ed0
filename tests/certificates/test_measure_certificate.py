"""Bounds of measures: always below the optimum, tight at it."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import Gaussian, GramOperator, Linear, Polynomial
from mercer.certificates import Certificate, certify_measure
from mercer.problems import Discrepancy
from mercer.solvers.measure.active_set import solve_exactly, solve_on


def _problem(seed, *, caps=False, ridge=False):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 30))
    X = rng.uniform(-1, 1, (n, 2))
    weights = rng.uniform(0.2, 2, n) / n
    return Discrepancy(
        GramOperator(Gaussian(sigma=0.6) ** 2, X),
        weights,
        rng.uniform(0.5, 2, n),
        caps=1.2 * weights if caps else None,
        ridge=rng.uniform(0, 0.1, n) if ridge else None,
    )


def _value(problem, v, alpha=0.0):
    S = problem.squared.to_dense()
    rest = problem.weights - v
    return 0.5 * rest @ S @ rest + 0.5 * problem.ridge @ v**2 + alpha * problem.penalty @ v


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("form", [{}, {"caps": True}, {"ridge": True}, {"caps": True, "ridge": True}])
@pytest.mark.parametrize("constrained", [False, True])
def test_bounds_hold_for_any_measure_and_are_tight_at_the_optimum(seed, form, constrained):
    problem = _problem(seed, **form)
    rng = np.random.default_rng(seed)
    level = 0.7 * problem.total
    programme = {"kappa": level} if constrained else {"alpha": 0.2 * problem.largest_alpha}
    alpha = programme.get("alpha", 0.0)
    best = solve_exactly(problem.at(**programme))
    at_best = certify_measure(problem, best.point.nodes, best.point.values, **programme)
    v = np.zeros(problem.size)
    v[best.point.nodes] = best.point.values
    optimum = _value(problem, v, alpha)
    assert at_best.upper == pytest.approx(optimum, rel=1e-10)
    assert at_best.holds(1e-7)
    for _ in range(8):
        other = np.minimum(rng.uniform(0, 1, problem.size) * problem.weights * 1.5, problem.caps)
        other[rng.random(problem.size) < 0.3] = 0.0
        if constrained:
            for _ in range(200):  # scaled to the level within the caps
                other = np.minimum(other * level / max(problem.penalty @ other, 1e-300), problem.caps)
            if abs(problem.penalty @ other - level) > 1e-9 * level:
                continue
        nodes = np.flatnonzero(other)
        if nodes.size:
            proof = certify_measure(problem, nodes, other[nodes], **programme)
            assert proof.upper == pytest.approx(_value(problem, other, alpha), rel=1e-9)
            assert proof.lower <= optimum * (1 + 1e-9) <= proof.upper * (1 + 1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_on_the_same_nodes(seed):
    problem = _problem(seed)
    nodes = np.sort(np.random.default_rng(seed).choice(problem.size, 3, replace=False))
    values = solve_on(problem.regularised(0.0), nodes)
    nodes, values = nodes[values > 0], values[values > 0]
    proof = certify_measure(problem, nodes, values, alpha=0.0, on_nodes=True)
    assert proof.holds(1e-7)
    assert "same nodes" in proof.method
    loose = certify_measure(problem, nodes, 0.9 * values, alpha=0.0, on_nodes=True)
    assert loose.lower <= proof.upper <= loose.upper


@pytest.mark.parametrize("seed", range(6))
def test_on_the_same_nodes_an_optimum_may_weigh_more_than_the_sample(seed):
    """Dear nodes stand for cheap points: dᵀu > dᵀω at the optimum on them, and the bound knows of it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (30, 2))
    penalty = np.r_[np.full(6, 50.0), np.ones(24)]
    problem = Discrepancy(GramOperator(Gaussian(sigma=1.5) ** 2, X), np.full(30, 1 / 30), penalty)
    nodes, alpha = np.arange(6), 1e-3 * problem.largest_alpha
    best = solve_on(problem.regularised(alpha), nodes)
    assert penalty[:6] @ best > 2 * problem.total
    optimum = _value(problem, np.r_[best, np.zeros(24)], alpha)
    for share in (0.05, 0.3, 0.9, 1.5):
        values = share * np.maximum(best, 1e-3)
        proof = certify_measure(problem, nodes, values, alpha=alpha, on_nodes=True)
        assert proof.lower <= optimum * (1 + 1e-9) <= proof.upper * (1 + 1e-8)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=2, gamma=1.0, coef0=1.0)], ids=repr)
@pytest.mark.parametrize("programme", [{"alpha": 0.05}, {"kappa": 0.4}])
def test_copies_and_singular_matrices(kernel, programme):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((12, 2)), 2, axis=0)
    problem = Discrepancy(GramOperator(kernel**2, X), np.full(24, 1 / 24), rng.uniform(0.5, 2, 24))
    best = solve_exactly(problem.at(**programme))
    proof = certify_measure(problem, best.point.nodes, best.point.values, **programme)
    assert proof.holds(1e-8)
    for _ in range(5):
        values = rng.uniform(0, 0.1, 24)
        values *= programme.get("kappa", 1.0) / (problem.penalty @ values)
        other = certify_measure(problem, np.arange(24), values, **programme)
        assert other.lower <= proof.upper <= other.upper


def test_a_minimised_certificate_reads_as_one():
    proof = Certificate(lower=0.9, upper=1.0, failure_probability=0.0, method="a bound", n_products=0, minimised=True)
    assert proof.objective == 1.0
    assert proof.relative_gap == pytest.approx(0.1)
    assert proof.holds(0.11)
    assert not proof.holds(0.09)
    assert "objective 1, best possible at least 0.9" in str(proof)


def test_one_of_alpha_and_kappa():
    problem = _problem(0)
    with pytest.raises(ValueError, match="either alpha or kappa"):
        certify_measure(problem, np.array([0]), np.array([0.1]))
