"""Slack variables, penalties without sparsity, solutions that are not unique, and the maximum mean discrepancy."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import nnls

from mercer import Box, Gaussian, Laplacian, Linear, Polynomial, Precomputed, QuadratureSparsifier, mmd, verify
from mercer.quadrature.sample import make_problem, make_sample
from mercer.solvers import exchange
from mercer.solvers.measure.active_set import solve_exactly

KERNEL = Gaussian(sigma=0.7)
N = 80


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).uniform(-1, 1, (N, 2))


def _dense(model, n=N):
    v = np.zeros(n)
    v[model.indices_] = model.weights_
    return v


# --- slack variables (QUAD 5.3) ----------------------------------------------------------------------------------


def _slacks(model, n=N):
    xi = np.zeros(n)
    xi[model.indices_] = model.slacks_
    return xi


def test_slacks_of_capped_weights_solve_the_machine_with_a_hinge_loss(X):
    """Strong duality of (5.4) and (5.5): the primal value is minus the dual one."""
    S, omega = KERNEL(X) ** 2, np.full(N, 1 / N)
    caps = np.full(N, 1.5 / N)
    model = QuadratureSparsifier(KERNEL, alpha=0.02, max_weight=caps).fit(X)
    v, xi = _dense(model), _slacks(model)
    assert (xi >= 0).all()
    assert (model.witness(X) >= -0.02 - xi - 1e-12).all()
    full = v >= caps * (1 - 1e-12)
    assert 3 < full.sum() < 0.9 * N
    assert xi[full].max() > 1e-4
    assert xi[~full].max() < 1e-12
    dual = 0.5 * (omega - v) @ S @ (omega - v) + 0.02 * v.sum()
    primal = 0.5 * (v - omega) @ S @ (v - omega) + (v - omega) @ S @ omega + caps @ xi
    assert primal == pytest.approx(-dual, rel=1e-9)


def test_slacks_of_a_ridge_solve_the_machine_with_a_square_loss(X):
    """(5.6) and (5.7): ξ = Σv, and no other g has a lower primal value."""
    S, omega, ridge = KERNEL(X) ** 2, np.full(N, 1 / N), np.linspace(0.5, 2.0, N)
    model = QuadratureSparsifier(KERNEL, alpha=0.02, ridge=ridge).fit(X)
    v, xi = _dense(model), _slacks(model)
    np.testing.assert_allclose(xi, ridge * v, atol=1e-12)
    dual = 0.5 * (omega - v) @ S @ (omega - v) + 0.5 * v @ (ridge * v) + 0.02 * v.sum()
    primal = 0.5 * (v - omega) @ S @ (v - omega) + (v - omega) @ S @ omega + 0.5 * xi @ (xi / ridge)
    assert primal == pytest.approx(-dual, rel=1e-9)
    rng = np.random.default_rng(1)
    for _ in range(20):
        beta = v - omega + 0.01 * rng.standard_normal(N)
        needed = np.maximum(-0.02 - S @ beta, 0)
        other = 0.5 * beta @ S @ beta + beta @ S @ omega + 0.5 * needed @ (needed / ridge)
        assert other >= primal - 1e-12


def test_slacks_of_a_given_trace_and_repeated_rows(X):
    again, wish = np.concatenate([X, X[:20]]), {"trace_fraction": 0.8, "max_weight": 0.03, "ridge": 0.1}
    model = QuadratureSparsifier(KERNEL, **wish).fit(again)
    single = QuadratureSparsifier(KERNEL, **wish).fit(X, sample_weight=1.0 + (np.arange(N) < 20))
    np.testing.assert_allclose(_slacks(model, N + 20)[:N], _slacks(single), atol=1e-9)
    expected = -model.alpha_ - model.witness(again)
    np.testing.assert_allclose(model.slacks_, expected[model.indices_], atol=1e-10)
    assert model.slacks_.max() > 1e-4
    verify(model, again)
    for damaged in (model.slacks_ + 1e-3, None):
        model.slacks_ = damaged
        with pytest.raises(ValueError, match="slacks_"):
            verify(model, again)


def test_slacks_of_settled_weights_and_a_model_without_any(X):
    model = QuadratureSparsifier(KERNEL, n_nodes=10, max_weight=0.08).fit(X)
    full = model.weights_ >= 0.08 * (1 - 1e-12)
    assert full.any()
    assert model.slacks_[full].max() > 0
    assert model.slacks_[~full].max(initial=0.0) < 1e-10
    assert QuadratureSparsifier(KERNEL, trace_fraction=0.8).fit(X).slacks_ is None


# --- penalties without sparsity, and solutions that are not unique -----------------------------------------------


@pytest.mark.parametrize("theta", [1.0, 30.0])
def test_a_multiple_of_the_distortion_is_a_penalty_without_sparsity(X, theta):
    """QUAD 3.4: for d = θSω the solution is (1 - αθ) ω."""
    omega = np.arange(1.0, N + 1)
    omega /= omega.sum()
    penalty = theta * KERNEL(X) ** 2 @ omega
    model = QuadratureSparsifier(Gaussian(sigma=0.3), alpha=0.4 / theta, penalty=theta * Gaussian(0.3)(X) ** 2 @ omega)
    with pytest.warns(UserWarning, match="multiple of Sω"):
        model.fit(X, sample_weight=omega)
    np.testing.assert_allclose(_dense(model), 0.6 * omega, rtol=1e-6)
    QuadratureSparsifier(KERNEL, n_nodes=10, penalty=penalty).fit(X, sample_weight=omega)  # which is sparse


def test_a_penalty_in_the_range_of_the_matrix_keeps_every_point_for_a_while(X):
    """QUAD 3.4: for d = Sη the solution is ω - αη while that is not negative, and sparse beyond."""
    kernel, eta = Gaussian(sigma=0.3), np.random.default_rng(2).uniform(0.5, 1.5, N)
    S, omega = kernel(X) ** 2, np.full(N, 1 / N)
    last = (omega / eta).min()
    model = QuadratureSparsifier(kernel, alpha=0.7 * last, penalty=S @ eta)
    with pytest.warns(UserWarning, match="All 80 points have weight"):
        model.fit(X)
    np.testing.assert_allclose(_dense(model), omega - 0.7 * last * eta, rtol=1e-6)
    assert QuadratureSparsifier(kernel, alpha=1.3 * last, penalty=S @ eta).fit(X).indices_.size < N


def test_two_solutions_of_a_singular_programme_have_the_same_products(X):
    """QUAD Remark 3.2: S(v - u) = 0, and dᵀv = dᵀu (Lemma 3.2), where S has rank 6 of 80."""
    kernel = Polynomial(degree=1, gamma=1.0, coef0=1.0)
    problem = make_problem(X, kernel, make_sample(X, kernel))
    alpha = 0.2 * problem.largest_alpha
    v = solve_exactly(problem.regularised(alpha)).point
    kappa = problem.trace(v.nodes, v.values)
    u = exchange(problem.constrained(kappa), (np.arange(N)[::-1], np.ones(N)), tol=1e-12).point
    a, b = np.zeros(N), np.zeros(N)
    a[v.nodes], b[u.nodes] = v.values, u.values
    S = kernel(X) ** 2
    assert np.abs(a - b).max() > 0.01 * a.max()
    assert np.abs(S @ (a - b)).max() < 1e-5 * np.abs(S @ a).max()
    assert problem.multiplier(u.nodes, u.values, u.gradient) == pytest.approx(alpha, rel=1e-4)


# --- the maximum mean discrepancy (QUAD 10) ----------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [KERNEL, Laplacian(sigma=0.8)])
def test_a_quadrature_for_the_mean_against_non_negative_least_squares(X, kernel):
    K, omega, alpha = kernel(X), np.full(N, 1 / N), 0.05
    model = QuadratureSparsifier(kernel, alpha=alpha, discrepancy="mmd").fit(X)
    R = np.linalg.cholesky(K + 1e-13 * np.eye(N)).T
    oracle = nnls(R, R @ omega - np.linalg.solve(R.T, np.full(N, alpha)), maxiter=10_000)[0]
    values = [0.5 * (omega - w) @ K @ (omega - w) + alpha * w.sum() for w in (_dense(model), oracle)]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert model.certificate_.holds(1e-9)
    assert verify(model, X).holds(1e-9)
    assert model.discrepancy_ == pytest.approx(0.5 * mmd(X, model.components_, kernel, y_weights=model.weights_))
    g = model.witness(X)
    np.testing.assert_allclose(g, K @ (_dense(model) - omega), atol=1e-12)
    assert (g >= -alpha - 1e-9).all()


def test_the_discrepancy_of_a_kernel_is_that_of_the_root_of_it_squared(X):
    """k_σ² is k_{σ/√2}: both names of one programme give the same measure, whatever is asked for."""
    root = Gaussian(sigma=0.7 * 2**0.5)
    for wish in ({"n_nodes": 12}, {"trace_fraction": 0.8, "solver": "path"}, {"trace_fraction": 0.6, "ridge": 0.1}):
        one = QuadratureSparsifier(KERNEL, discrepancy="mmd", **wish).fit(X)
        other = QuadratureSparsifier(root, **wish).fit(X)
        np.testing.assert_array_equal(np.sort(one.indices_), np.sort(other.indices_))
        np.testing.assert_allclose(_dense(one), _dense(other), atol=1e-9)
        assert one.discrepancy_ == pytest.approx(other.discrepancy_, rel=1e-6)
        verify(pickle.loads(pickle.dumps(one)), X)


def test_matrices_and_single_precision_have_a_maximum_mean_discrepancy(X):
    model = QuadratureSparsifier(KERNEL, n_nodes=8, discrepancy="mmd").fit(X)
    given = QuadratureSparsifier(Precomputed(), n_nodes=8, discrepancy="mmd").fit(KERNEL(X))
    single = QuadratureSparsifier(KERNEL, n_nodes=8, discrepancy="mmd").fit(X.astype(np.float32))
    np.testing.assert_array_equal(given.indices_, model.indices_)
    np.testing.assert_allclose(given.witness(KERNEL(X)), model.witness(X), atol=1e-12)
    assert single.discrepancy_ == pytest.approx(model.discrepancy_, rel=1e-2)
    assert single.certificate_.holds(1e-6)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(degree=3), Precomputed()])
def test_a_kernel_with_negative_values_has_no_bound_for_its_mean(X, kernel):
    data = X @ X.T if isinstance(kernel, Precomputed) else X
    with pytest.raises(ValueError, match="discrepancy='mmd' needs a kernel that has none"):
        QuadratureSparsifier(kernel, n_nodes=3, discrepancy="mmd").fit(data)
    with pytest.raises(ValueError, match=r"discrepancy='kernel' must be one of 'squared', 'mmd'|'squared' or 'mmd'"):
        QuadratureSparsifier(kernel, discrepancy="kernel").fit(data)


def test_a_law_has_means_and_slack_variables(X):
    """The mean of exp(-(x - y)²/σ²) over [-1, 1]² by a rule of 40 × 40 nodes, which is exact to rounding."""
    law = Box(lower=[-1.0, -1.0], upper=[1.0, 1.0])
    model = QuadratureSparsifier(KERNEL, alpha=0.02, max_weight=0.05, measure=law, discrepancy="mmd").fit(X)
    x, w = np.polynomial.legendre.leggauss(40)
    grid, weights = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2), np.outer(w, w).ravel() / 4
    v, means = _dense(model), KERNEL(X, grid) @ weights
    np.testing.assert_allclose(model.witness(X), KERNEL(X) @ v - means, atol=1e-12)
    value = 0.5 * (v @ KERNEL(X) @ v - 2 * v @ means + weights @ KERNEL(grid) @ weights)
    assert model.discrepancy_ == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(model.slacks_, np.maximum(0, -0.02 - model.witness(X))[model.indices_], atol=1e-12)
    assert verify(model, X).holds(1e-8)
