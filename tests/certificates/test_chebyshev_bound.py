"""Bounds from Chebyshev polynomials of a map, on matrices whose eigenvalues are known, and what they build on."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import chi2

from mercer import DiffusionOperator, GramOperator, Precomputed
from mercer.certificates import certify_elliptope
from mercer.certificates.allowances import ProductRounding
from mercer.certificates.chebyshev import ChebyshevFilter, bound_by_filter, least_share
from mercer.certificates.krylov import Deflated, deflate
from mercer.linalg.lanczos import RandomStarts
from mercer.problems import Elliptope
from mercer.solvers import AcceleratedPower, Goal, solve

EXACT = ProductRounding(4.0, 1e-15)


def _diagonal(values):
    return lambda V: np.asarray(values)[:, None] * V


def _bound(values, taken, seed=0, **options):
    deflated = deflate(_diagonal(values), np.eye(len(values))[:, :taken])
    return bound_by_filter(deflated, RandomStarts(np.random.default_rng(seed), 1e-9), rounding=EXACT, **options)[0]


@pytest.mark.parametrize("starts", [1, 2, 4, 7])
@pytest.mark.parametrize("chance", [1e-12, 1e-6, 0.1])
def test_the_share_of_a_direction_in_random_starts(starts, chance):
    least = chi2.cdf(least_share(starts, chance) ** 2, starts)
    assert 0.3 * chance < least <= chance * (1 + 1e-12)


@pytest.mark.parametrize("least", [-1.5, 0.0])
@pytest.mark.parametrize("outside", [0.5, 0.9, 0.999, 1.0, 1.05, 3.0])
def test_the_largest_eigenvalue_is_bounded(outside, least):
    """Also where it hides in the complement of the space that was expected to hold it."""
    values = np.concatenate([np.ones(2), np.linspace(least, outside, 598)])
    top = values.max()
    for seed in range(3):
        bound = _bound(values, 2, seed)
        assert top <= bound <= top + (1e-8 if outside < 0.99 else 0.1 * top)
        assert top <= _bound(values, 2, seed, goal=1.01) <= max(1.01, 2 * top - 0.9)


@pytest.mark.parametrize("values", [np.ones(40), np.zeros(40), np.array([1.0, 0.5, 0.2]), np.repeat([1.0, 0.3], 30)])
def test_small_and_degenerate_spectra(values):
    for taken in {1, min(3, len(values))}:
        assert values.max() <= _bound(values, taken) <= values.max() + 0.2


def test_a_goal_within_reach_is_proved_and_imperfect_directions_cost_their_square():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.ones(2), np.linspace(-0.2, 0.9, 998)])
    shaken = np.eye(1000)[:, :2] + 1e-4 * rng.standard_normal((1000, 2)) / np.sqrt(1000)
    deflated = deflate(_diagonal(values), shaken)
    bound, _ = bound_by_filter(deflated, RandomStarts(rng, 1e-9), rounding=EXACT, goal=1 + 1e-5)
    assert 1 - 1e-12 <= bound <= 1 + 1e-5


def _filtered(values, steps, *, chance=1e-9, seed=0, rounding=EXACT, multiply=None, interval=(-1.0, 1.0)):
    nothing = Deflated(
        multiply or _diagonal(values), np.eye(len(values))[:, :1], np.eye(len(values))[:, :1] * values[0]
    )
    filter_ = ChebyshevFilter(nothing, interval, RandomStarts(np.random.default_rng(seed), chance, 4), rounding)
    for _ in range(steps):
        filter_.step()
    return filter_


def test_the_chance_is_what_it_says():
    """One eigenvalue beyond the interval, and starts that may miss it: they do so as often as stated at most."""
    values = np.concatenate([[0.0], np.linspace(-1, 1, 199), [1.02]])
    wrong = sum(_filtered(values, 30, chance=0.3, seed=seed).bound() < 1.02 for seed in range(200))
    assert wrong <= 0.3 * 200
    assert all(_filtered(values, 30, seed=seed).bound() >= 1.02 for seed in range(100))


@pytest.mark.parametrize("interval", [(-0.2, 0.9), (-1.0, 0.5), (0.2, 0.4), (-4.0, 2.0)])
def test_a_wrong_interval_costs_sharpness_and_never_truth(interval):
    values = np.concatenate([[0.0], np.linspace(-1, 1, 400)])
    for steps in (1, 5, 40):
        assert _filtered(values, steps, interval=interval).bound() >= 1.0


def test_the_polynomials_are_those_of_chebyshev():
    values = np.concatenate([[0.0], np.linspace(-0.9, 0.95, 50)])
    for steps in (1, 2, 9):
        filter_ = _filtered(values, steps, interval=(-0.9, 0.95))
        start = _filtered(values, 0, interval=(-0.9, 0.95))
        x = (2 * values - 0.05) / 1.85
        expected = np.polynomial.chebyshev.chebval(x, np.eye(steps + 1)[-1])[:, None] * start._now
        np.testing.assert_allclose(filter_._now, expected, atol=1e-12)
        assert filter_.size == pytest.approx(np.linalg.norm(expected, 2), rel=1e-9)


def test_errors_of_products_are_counted():
    """Errors within what is stated may hide the largest eigenvalue from every start: then nothing is proved."""
    values, error = np.concatenate([[0.0], np.linspace(-1, 1, 399), [1.1]]), 0.05

    def hiding(V):
        product = values[:, None] * V
        change = error * np.linalg.norm(V) / np.linalg.norm(product[-1])
        product[-1] *= max(0.0, 1 - change)
        return product

    def bound(stated):
        return _filtered(values, 40, multiply=hiding, rounding=ProductRounding(1.1, stated)).bound()

    assert bound(0.0) < 1.1
    assert bound(error) >= 1.1


def test_a_basis_that_is_not_orthonormal_is_counted():
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((60, 3)))
    for off in (0.0, 1e-9, 1e-4):
        skew = Q @ (np.eye(3) + off * rng.standard_normal((3, 3)))
        deflated = Deflated(_diagonal(np.ones(60)), skew, skew)
        filter_ = ChebyshevFilter(deflated, (-1.0, 1.0), RandomStarts(rng, 1e-9, 4), EXACT)
        assert filter_._left_inside >= np.linalg.norm(Q @ Q.T - skew @ skew.T, 2)
        assert filter_._left_inside < 20 * off + 1e-12


def test_what_a_projection_leaves_behind_returns_by_the_coupling():
    """A basis that is far from orthonormal leaves a part of every vector, which the next product brings back."""
    n, q, top = 200, 1, 1.2
    M = np.diag(np.concatenate([[0.0], np.linspace(-1, 1, n - 2), [top]]))
    M[0, -1] = M[-1, 0] = 0.3
    basis = np.eye(n)[:, :q] * (1 + 1e-3)
    deflated = Deflated(lambda V: M @ V, basis, M @ basis)
    filter_ = ChebyshevFilter(deflated, (-1.0, 1.0), RandomStarts(np.random.default_rng(0), 1e-9, 4), EXACT)
    true, start = filter_._now[-1].copy(), filter_._now[0].copy()
    filter_.step()
    off = np.linalg.norm(filter_._now[-1] - top * true)  # as the row would be without what is left in the span
    assert np.linalg.norm(start) > 0
    assert off > 1e-8
    assert filter_._errors[0] >= off
    assert filter_._coupling == pytest.approx(0.3, rel=0.02)


def _walk(n, seed):
    """Normalised affinities of a random graph of few neighbours, in two parts that hardly touch: an indefinite walk."""
    rng = np.random.default_rng(seed)
    rows, cols = np.repeat(np.arange(n), 6), rng.integers(0, n // 2, 6 * n)
    cols = np.where(rows < n // 2, cols, cols + n // 2)
    across = rng.random(6 * n) < 0.02
    cols[across] = rng.integers(0, n, across.sum())
    graph = scipy.sparse.csr_array((rng.exponential(size=6 * n), (rows, cols)), shape=(n, n))
    return DiffusionOperator(GramOperator(Precomputed(), (graph + graph.T + scipy.sparse.eye_array(n)).tocsr()))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("steps", [0, 10, 400])
def test_a_sparse_walk_against_its_factorisation(seed, steps):
    """At any point, however poor, the bounds enclose the optimum; at the optimum they are as narrow as asked."""
    operator = _walk(300, seed)
    d, rng = operator.diagonal(), np.random.default_rng(seed)
    problem = Elliptope(operator, d, shift=d, removed=operator.stationary)
    best = solve(problem, AcceleratedPower(), problem.random_point(8, rng), goal=Goal(1.0, residual_tol=1e-9)).point.H
    exact = certify_elliptope(problem, best, rng=rng, method="factorisation")
    assert exact.relative_gap < 1e-7
    goal = Goal(1.0, residual_tol=1e-12, max_iter=steps)
    H = solve(problem, AcceleratedPower(), problem.random_point(8, rng), goal=goal).point.H
    for tol in (None, 1e-3, 1e-6):
        ours = certify_elliptope(problem, H, rng=rng, method="chebyshev-filter", tol=tol)
        assert ours.lower <= exact.upper
        assert ours.upper >= exact.lower
        assert 0 < ours.failure_probability <= 1e-9
        if steps == 400:
            assert ours.method == "Chebyshev filter bound"
            assert ours.relative_gap <= (1e-5 if tol is None else tol)
