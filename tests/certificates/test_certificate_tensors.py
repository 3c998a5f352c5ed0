"""Certificates on tensors: the bounds of NumPy to rounding, true ones, and no tensor becomes a NumPy array."""

from __future__ import annotations

import numpy as np
import pytest
from elliptope_oracle import bracket

from mercer import DiffusionOperator, Gaussian, GramOperator, Laplacian, Linear, Precomputed, rp_cholesky
from mercer.certificates import certify_elliptope, factorisation
from mercer.certificates import low_rank_bound as stand_in_module
from mercer.certificates.factor_errors import factor_errors
from mercer.certificates.factorisation import bound_largest_eigenvalue, least_eigenvalues
from mercer.problems import Elliptope

torch = pytest.importorskip("torch")
METHODS = ("factorisation", "pivoted-cholesky", "residual-lanczos", "deflated-lanczos")
_rng = np.random.default_rng(0)
_S = _rng.standard_normal((40, 40))
MATRICES = {
    "gaussian": (Gaussian(sigma=1.0), _rng.standard_normal((70, 2)), None),
    "weighted": (Laplacian(sigma=2.0), _rng.standard_normal((50, 3)), _rng.uniform(0.1, 3.0, 50)),
    "rows without room": (Linear(), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.3, 0.9]]), None),
}


def _problem(kernel, points, weights=None) -> Elliptope:
    operator = DiffusionOperator(GramOperator(kernel, points, weights=weights))
    return Elliptope(operator, operator.diagonal(), removed=operator.stationary)


def _points(n, rank=3):
    """A point that is no solution, and the one that a few power steps make of it."""
    H = np.random.default_rng(1).standard_normal((n, rank))
    return H / np.linalg.norm(H, axis=1, keepdims=True)


def _climbed(problem, H, steps=40):
    for _ in range(steps):
        H = problem.project(problem.apply(H), H)
    return H


def _close(theirs, ours):
    size = abs(ours.upper)
    assert theirs.lower == pytest.approx(ours.lower, abs=1e-12 * size)
    assert theirs.upper == pytest.approx(ours.upper, rel=1e-9, abs=1e-12 * size)
    assert theirs.method == ours.method
    assert theirs.n_products == ours.n_products
    assert theirs.failure_probability == ours.failure_probability
    assert theirs.complementarity == pytest.approx(ours.complementarity, rel=1e-6, abs=1e-9)
    assert theirs.conformality_residual == pytest.approx(ours.conformality_residual, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("tol", [None, 1e-6])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", MATRICES)
def test_bounds_are_those_of_numpy(name, method, tol, refuse_numpy):
    kernel, X, weights = MATRICES[name]
    ours = _problem(kernel, X, weights)
    theirs = _problem(kernel, torch.asarray(X), None if weights is None else torch.asarray(weights))
    H = _points(len(X))
    for point in (H, _climbed(ours, H)):
        options = {"method": method, "tol": tol, "block": 3}
        one = certify_elliptope(ours, point, rng=np.random.default_rng(2), **options)
        other = certify_elliptope(theirs, torch.asarray(point), rng=np.random.default_rng(2), **options)
        _close(other, one)
        least = other.least_eigenvalues
        assert isinstance(least, torch.Tensor)
        found = np.array([float(least[i]) for i in range(least.shape[0])])
        np.testing.assert_allclose(found, one.least_eigenvalues, atol=1e-7 * max(1.0, np.abs(found).max()))


@pytest.mark.parametrize("method", ["factorisation", "deflated-lanczos"])
def test_indefinite_matrices(method, refuse_numpy):
    A = _S + _S.T - 0.5 * np.eye(40)
    d = np.random.default_rng(3).uniform(0.1, 2.0, 40)
    J = np.sqrt(np.outer(d, d)) * A
    shift = -1.001 * float(np.linalg.eigvalsh(J)[0])
    lower, upper, _ = bracket(J)
    ours = Elliptope(GramOperator(Precomputed(), A), d, shift=shift)
    theirs = Elliptope(GramOperator(Precomputed(), torch.asarray(A)), torch.asarray(d), shift=shift)
    H = _points(40, 8)
    one = certify_elliptope(ours, H, rng=np.random.default_rng(2), method=method)
    other = certify_elliptope(theirs, torch.asarray(H), rng=np.random.default_rng(2), method=method)
    assert other.lower <= upper
    assert other.upper >= lower
    assert other.upper == pytest.approx(one.upper, rel=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_every_method_brackets_the_optimum(seed, refuse_numpy):
    """Random problems of known optimum, with and without a stand-in of any rank, in both precisions."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((int(rng.integers(4, 14)), 2))
    kernel = Gaussian(sigma=10 ** rng.uniform(-0.5, 0.8))
    K = kernel(X)
    m = K.sum(axis=1)
    A = K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()
    J = np.sqrt(np.outer(np.diag(A), np.diag(A))) * A
    lower, upper, solution = bracket(J)
    noise = 1e-13 * np.abs(J).sum()
    values, U = np.linalg.eigh(solution)
    for points in (torch.asarray(X), torch.asarray(X.astype(np.float32))):
        wide = GramOperator(kernel, points, dtype=torch.float64)
        operator = DiffusionOperator(wide)
        problem = Elliptope(operator, operator.diagonal(), removed=operator.stationary)
        stand_in = rp_cholesky(operator.undeflated(), int(rng.integers(1, len(X) + 1)), rng)
        for H in (U * np.sqrt(np.maximum(values, 0.0)), _points(len(X))):
            for method in METHODS:
                for given in (None, stand_in):
                    found = certify_elliptope(
                        problem, torch.asarray(H), rng=rng, method=method, stand_in=given, spectrum=False
                    )
                    assert found.lower <= upper + noise
                    assert found.upper >= lower - noise


def test_factors_of_many_columns(refuse_numpy, monkeypatch):
    """By Lanczos and a Cholesky factor, as of factors of a thousand columns."""
    monkeypatch.setattr(stand_in_module, "_DENSE_UP_TO", 0)
    kernel, X, _ = MATRICES["gaussian"]
    certificates = []
    for points in (X, torch.asarray(X)):
        problem = _problem(kernel, points)
        stand_in = rp_cholesky(problem.operator.undeflated(), 30, np.random.default_rng(0))
        H = _climbed(problem, problem.random_point(3, np.random.default_rng(0)))
        certificates.append(
            certify_elliptope(problem, H, rng=np.random.default_rng(0), stand_in=stand_in, method="pivoted-cholesky")
        )
    _close(*certificates[::-1])


def test_large_matrices_are_bounded_without_arpack(refuse_numpy, monkeypatch):
    """Beyond the size of dense eigenvalues, our own Lanczos finds what ARPACK finds for NumPy's arrays."""
    monkeypatch.setattr(factorisation, "_DENSE_UP_TO", 10)
    M = np.random.default_rng(0).standard_normal((300, 300))
    M = (M + M.T) / 2
    values = np.linalg.eigvalsh(M)
    T = torch.asarray(M)
    for guess in (values[-1], values[-1] - 3.0):
        assert values[-1] <= bound_largest_eigenvalue(T, guess) <= values[-1] + 0.1
    start = torch.ones(300, dtype=torch.float64)
    assert factorisation.estimate_largest_eigenvalue(T, start) == pytest.approx(values[-1], rel=1e-6)
    least = least_eigenvalues(torch.asarray(M @ M.T), 6, 0.0, np.random.default_rng(0))
    found = np.array([float(least[i]) for i in range(6)])
    np.testing.assert_allclose(found, np.linalg.eigvalsh(M @ M.T)[:6], atol=1e-6 * values[-1] ** 2)


@pytest.mark.parametrize("noise", [0.0, 1e-3], ids=["triangular", "not triangular"])
def test_errors_of_factors(noise, refuse_numpy):
    X = np.random.default_rng(0).standard_normal((60, 2))
    found = []
    for points in (X, torch.asarray(X)):
        gram = GramOperator(Gaussian(1.0), points)
        factored = rp_cholesky(gram, 20, np.random.default_rng(0))
        shaken = noise * np.random.default_rng(1).standard_normal((60, factored.rank))
        F = factored.factor + (shaken if points is X else torch.asarray(shaken))
        errors = factor_errors(gram, F, factored.landmarks)
        D = np.ones(60) if points is X else torch.ones(60, dtype=torch.float64)
        found.append(errors.in_units_of(D, 0.0))
    assert found[1] == pytest.approx(found[0], rel=0.5, abs=1e-12)


def test_a_singular_factor_has_no_bound(refuse_numpy):
    gram = GramOperator(Precomputed(), torch.eye(3, dtype=torch.float64))
    errors = factor_errors(gram, torch.zeros((3, 1), dtype=torch.float64), torch.asarray([1]))
    assert errors.in_units_of(torch.ones(3, dtype=torch.float64), 0.0) == np.inf
