"""The regularisation path as a user sees it: solutions anywhere on it, the lemmas of QUAD sections 3 and 6."""

from __future__ import annotations

import halton_oracle as halton
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from mercer import Gaussian, GramOperator, Laplacian, Polynomial, QuadratureSparsifier
from mercer.problems import Discrepancy
from mercer.quadrature.path import QuadraturePath
from mercer.solvers.measure.kinks import PathEnd
from mercer.solvers.measure.regularisation_path import PathLimits, follow

KERNELS = (Gaussian(sigma=0.4), Laplacian(sigma=0.8), Polynomial(degree=3, gamma=0.5, coef0=1.0) + Gaussian(sigma=0.5))


def _problem(seed, kernel=KERNELS[0], *, n=30, caps=False, ridge=False):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    weights = rng.uniform(0.2, 2, n) / n
    return Discrepancy(
        GramOperator(kernel**2, X),
        weights,
        rng.uniform(0.5, 2, n),
        caps=rng.uniform(0.7, 3, n) * weights if caps else None,
        ridge=rng.uniform(0, 0.1, n) if ridge else None,
    )


def _path(problem, **limits):
    return QuadraturePath(problem, follow(problem, PathLimits(**limits)).point, np.arange(problem.size))


def _dense(problem, point):
    v = np.zeros(problem.size)
    v[point.indices] = point.weights
    return v


def _discrepancy(problem, v):
    off = problem.weights - v
    return 0.5 * off @ problem.squared.to_dense() @ off


def _optimum(problem, alpha):
    """By non-negative least squares: no caps."""
    A = problem.squared.to_dense() + np.diag(problem.ridge)
    R = np.linalg.cholesky(A).T
    return nnls(R, np.linalg.solve(R.T, problem.distortion - alpha * problem.penalty), maxiter=10_000)[0]


@pytest.mark.parametrize("ridge", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("seed", range(2))
def test_solutions_anywhere_against_non_negative_least_squares(seed, kernel, ridge):
    problem = _problem(seed, kernel, ridge=ridge)
    path = _path(problem)
    assert path.end is PathEnd.COMPLETE
    for alpha in path.alphas[0] * np.array([0.9, 0.4, 0.1, 0.01, 1e-3]):
        point, oracle = path.at(alpha=alpha), _optimum(problem, alpha)
        np.testing.assert_allclose(_dense(problem, point), oracle, atol=1e-9)
        assert np.all(np.diff(point.indices) > 0)
        assert np.all(point.weights > 0)
        assert point.kappa == pytest.approx(problem.penalty @ oracle, rel=1e-9)
        assert point.discrepancy == pytest.approx(_discrepancy(problem, oracle), rel=1e-7)
        again = path.at(kappa=point.kappa)  # Lemma 3.3: α and ϰ name the same solution
        assert again.alpha == pytest.approx(alpha, rel=1e-8)
        np.testing.assert_allclose(_dense(problem, again), oracle, atol=1e-8)
    kinks = range(1, len(path) - 1, 7)
    for k in kinks:
        oracle = _optimum(problem, path.alphas[k])
        assert path.kappas[k] == pytest.approx(problem.penalty @ oracle, rel=1e-8)
        objective = _discrepancy(problem, oracle) + 0.5 * problem.ridge @ oracle**2
        assert path.discrepancies[k] == pytest.approx(objective, rel=1e-7, abs=1e-14)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from(KERNELS), st.integers(2, 30), st.floats(0.01, 0.99), st.floats(0.01, 0.99)
)
def test_lemma_3_2(seed, kernel, n, first, second):
    problem = _problem(seed, kernel, n=n)
    path, top = _path(problem), problem.largest_alpha
    assert path.at(alpha=top).indices.size == 0  # (ii)
    assert path.at(alpha=2 * top).discrepancy == problem.constant
    low, high = sorted([first, second])
    points = [path.at(alpha=share * top) for share in (low, high)]
    for point in points:
        v = _dense(problem, point)
        spent, total = point.alpha * point.kappa, point.alpha * problem.total
        assert 0 <= spent <= total - 2 * _discrepancy(problem, v) + 1e-10 * total  # (iii)
        hopeless = point.alpha * problem.penalty >= problem.distortion
        assert np.all(v[hopeless] == 0)  # (v)
        oracle = _optimum(problem, point.alpha)
        assert point.kappa == pytest.approx(problem.penalty @ oracle, rel=1e-8)  # (iv)
    assert points[0].discrepancy <= points[1].discrepancy * (1 + 1e-9)  # (vi)
    assert points[0].kappa >= points[1].kappa * (1 - 1e-9)


def test_lemma_3_2_at_zero_the_sample_itself():
    problem = _problem(0, Laplacian(sigma=0.8))
    path = _path(problem)
    assert path.alphas[-1] == 0
    last = path.at(alpha=0.0)
    np.testing.assert_allclose(last.weights, problem.weights, rtol=1e-8)  # (i)
    assert path.kappas[-1] == pytest.approx(problem.total, rel=1e-10)
    assert last.discrepancy <= 1e-18


@pytest.mark.parametrize("theta", [0.25, 0.7])
@pytest.mark.parametrize("caps", [False, True])
def test_lemma_6_1_and_the_quadratic_between_kinks(theta, caps):
    """Between two kinks solutions are linear in α, and D falls by ½ (α₁ + α₂) (ϰ₂ - ϰ₁)."""
    problem = _problem(2, caps=caps)
    path = _path(problem)
    for k in range(1, len(path) - 1, 5):
        ends = [path.alphas[k] * (1 - s) + path.alphas[k + 1] * s for s in (0.1, 0.9)]
        high, low = (path.at(alpha=alpha) for alpha in ends)
        mixed = path.at(alpha=theta * ends[0] + (1 - theta) * ends[1])
        mixture = theta * _dense(problem, high) + (1 - theta) * _dense(problem, low)
        np.testing.assert_allclose(_dense(problem, mixed), mixture, atol=1e-11)
        area = 0.5 * (high.alpha + low.alpha) * (low.kappa - high.kappa)
        assert high.discrepancy - low.discrepancy == pytest.approx(area, rel=1e-6, abs=1e-15)


def test_solutions_with_caps_hold_them():
    problem = _problem(1, caps=True, ridge=True)
    path, touched = _path(problem), False
    A = problem.squared.to_dense() + np.diag(problem.ridge)
    for alpha in path.alphas[0] * np.array([0.5, 0.1, 0.01]):
        v = _dense(problem, path.at(alpha=alpha))
        slack = A @ v - problem.distortion + alpha * problem.penalty
        assert np.all(v <= problem.caps * (1 + 1e-12))
        full, free = v >= problem.caps * (1 - 1e-12), (v > 0) & (v < problem.caps * (1 - 1e-12))
        np.testing.assert_allclose(slack[free], 0, atol=1e-12)
        assert np.all(slack[full] <= 1e-12)
        assert np.all(slack[v == 0] >= -1e-12)
        touched |= bool(full.any())
    assert touched


def test_the_example_of_the_paper_from_the_estimator():
    """QUAD 8.1: the path, the active set and an oracle of the tests agree to nine digits and more."""
    nodes, values = halton.solution()
    best = halton.problem().value(nodes, values)
    model = QuadratureSparsifier(halton.KERNEL, trace_fraction=0.81, solver="path").fit(halton.points())
    np.testing.assert_array_equal(np.sort(model.indices_), nodes)
    assert model.discrepancy_ == pytest.approx(best, rel=1e-9)
    assert f"{model.alpha_:.6e}" == "8.354215e-03"
    assert model.certificate_.holds(2e-10)  # the rounding of entries and sums makes 1.4e-10 of it
    point = model.path_.at(kappa=0.81)
    np.testing.assert_array_equal(point.indices, nodes)
    assert point.discrepancy == pytest.approx(best, rel=1e-9)
    assert len(model.path_) == 4049
    exact = QuadratureSparsifier(halton.KERNEL, trace_fraction=0.81, solver="active-set").fit(halton.points())
    assert exact.discrepancy_ == pytest.approx(best, rel=1e-9)
    np.testing.assert_array_equal(np.sort(exact.indices_), nodes)


def test_points_of_the_path_are_rows_of_the_data():
    rng = np.random.default_rng(0)
    distinct = rng.uniform(-1, 1, (25, 2))
    X = np.vstack([distinct[5:6], distinct, distinct[:10]])
    weights = np.r_[0.0, np.ones(25), np.ones(10)]
    model = QuadratureSparsifier(Gaussian(sigma=0.5), trace_fraction=0.9, solver="path").fit(X, sample_weight=weights)
    point = model.path_.at(kappa=model.kappa_)
    np.testing.assert_array_equal(point.indices, np.sort(model.indices_))
    assert point.indices.min() >= 1  # the row of weight zero is not its point's first
    assert point.indices.max() <= 25
    order = np.argsort(model.indices_)
    np.testing.assert_allclose(point.weights, model.weights_[order], rtol=1e-8)


@pytest.mark.parametrize("count", [1, 4, 11])
def test_a_number_of_nodes(count):
    path = _path(_problem(0))
    point = path.at(n_nodes=count)
    assert point.indices.size == count  # nodes come one by one here
    first = int(np.argmax(path.n_nodes >= count))
    assert path.alphas[first + 1] < point.alpha < path.alphas[first]


def test_a_tie_at_the_first_kink_is_one_kink():
    """Four corners of a square enter together; the nodes of the first stretch are all four."""
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    problem = Discrepancy(GramOperator(Gaussian(sigma=1.0) ** 2, X), np.full(4, 0.25), np.ones(4))
    path = _path(problem)
    assert np.all(np.diff(path.alphas) < 0)
    point = path.at(n_nodes=1)
    np.testing.assert_allclose(point.weights, np.full(4, point.kappa / 4), rtol=1e-12)


def test_precision_ends_a_path_by_name_and_what_it_has_is_right():
    X = np.random.default_rng(0).uniform(-1, 1, (40, 1))
    problem = Discrepancy(GramOperator(Gaussian(sigma=2.0) ** 2, X), np.full(40, 1 / 40), np.ones(40))
    path = _path(problem)
    assert path.end.lost_precision
    for alpha in np.linspace(path.alphas[-1], path.alphas[0], 7)[:-1]:
        point = path.at(alpha=alpha)
        slack = problem.gradient(point.indices, point.weights) + alpha * problem.penalty
        assert np.all(slack >= -1e-9 * path.alphas[0])
        np.testing.assert_allclose(slack[point.indices], 0, atol=1e-9 * path.alphas[0])
    with pytest.raises(ValueError, match="beyond the end of the path.*Precision ended the path"):
        path.at(alpha=0.0)


def test_what_the_path_does_not_have():
    path = _path(_problem(0), kappa=0.3)
    assert path.end is PathEnd.REQUESTED
    assert repr(path).startswith(f"<QuadraturePath of {len(path)} kinks to α = ")
    assert repr(path).endswith("The path was followed as far as was asked.>")
    for wrong in ({}, {"alpha": 0.1, "kappa": 0.1}):
        with pytest.raises(ValueError, match="takes one of alpha, kappa and n_nodes"):
            path.at(**wrong)
    for kappa in (0.9, -0.1, np.nan):
        with pytest.raises(ValueError, match="lies outside the path.*Ask for more of it"):
            path.at(kappa=kappa)
    for alpha in (0.0, np.nan):
        with pytest.raises(ValueError, match="lies beyond the end of the path"):
            path.at(alpha=alpha)
    with pytest.raises(ValueError, match="n_nodes=31: the path has .* nodes at most"):
        path.at(n_nodes=31)


@pytest.mark.filterwarnings("ignore:The iteration budget ran out")
def test_a_path_cut_short_is_optimal_where_it_ended():
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    model = QuadratureSparsifier(Gaussian(sigma=0.5), trace_fraction=0.9, solver="path", max_iter=9).fit(X)
    assert len(model.path_) == 9
    assert model.path_.kappas[-2] <= model.kappa_ <= model.path_.kappas[-1]
    assert model.certificate_.holds(1e-9)
    again = model.set_params(solver="auto").fit(X)
    assert not hasattr(again, "path_")
