"""The bracket of a certificate against an interior-point solver that shares no line of code with us."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from mercer import DiffusionOperator, Gaussian, GramOperator, Laplacian, Matern, Precomputed, SDPEmbedding, SelfTuning
from mercer.certificates import certify_elliptope
from mercer.operators import LinearMap
from mercer.problems import Elliptope

cvxpy = pytest.importorskip("cvxpy")

_CONIC = 2e-8  # relative accuracy that the interior-point method is trusted with

_KERNELS = {
    "gaussian": Gaussian(sigma=1.0),
    "narrow gaussian": Gaussian(sigma=0.6),
    "laplacian": Laplacian(sigma=1.5),
    "matern": Matern(nu=1.5, length_scale=0.8),
    "composite": Gaussian(sigma=0.7) + 0.5 * Laplacian(sigma=2.0),
}
_SIZES = (2, 7, 15, 24)
_CASES = [(name, n) for name in _KERNELS for n in _SIZES] + [("gaussian", 40), ("matern", 40)]


def _points(name: str, n: int) -> np.ndarray:
    return np.random.default_rng(1000 * n + list(_KERNELS).index(name)).standard_normal((n, 2))


def _dense(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ā and its diagonal from a kernel matrix, by the formulas of the papers."""
    m = K.sum(axis=1)
    A = K / np.sqrt(np.outer(m, m)) - np.sqrt(np.outer(m, m)) / m.sum()
    return A, np.diag(A).copy()


def _conic_optimum(A: np.ndarray, d: np.ndarray) -> float:
    """max ⟨A, B⟩ subject to B ≽ 0, diag B = d, brought to unit diagonal and unit trace first."""
    s = np.sqrt(d)
    J = s[:, None] * A * s
    size = float(np.trace(np.abs(J)))
    B = cvxpy.Variable(J.shape, PSD=True)
    problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.multiply((J + J.T) / (2 * size), B))), [cvxpy.diag(B) == 1])
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert problem.status == "optimal"
    return size * float(problem.value)


@functools.cache
def _optimum(name: str, n: int) -> float:
    return _conic_optimum(*_dense(_KERNELS[name](_points(name, n))))


def _problem(name: str, n: int) -> Elliptope:
    operator = DiffusionOperator(GramOperator(_KERNELS[name], _points(name, n)))
    return Elliptope(operator, operator.diagonal(), removed=operator.stationary)


def _assert_brackets(certificate, optimum):
    assert certificate.lower <= optimum + _CONIC * abs(optimum)
    assert certificate.upper >= optimum - _CONIC * abs(optimum)


@pytest.mark.parametrize(("name", "n"), _CASES)
def test_fit_agrees_with_conic_solver(name, n, method):
    model = SDPEmbedding(_KERNELS[name], random_state=0, max_iter=20_000).fit(_points(name, n))
    certificate, optimum = model.certificate_, _optimum(name, n)
    _assert_brackets(certificate, optimum)
    assert certificate.holds(1e-6)
    assert certificate.lower == pytest.approx(optimum, rel=1e-6)
    assert certificate.upper == pytest.approx(optimum, rel=1e-6)
    assert certificate.method.startswith("deflated Lanczos" if method == "lanczos" else "factorisation")


def _suspects(problem: Elliptope, optimal: np.ndarray) -> dict[str, np.ndarray]:
    """Points that a careless certificate would pass: far off, slightly off, saddles, of the wrong rank."""
    rng = np.random.default_rng(7)
    n, r = optimal.shape
    signs = np.sign(rng.standard_normal((n, 1)))
    stationary = signs
    for _ in range(100):
        stationary = np.sign(problem.apply(stationary))
    return {
        "random": rng.standard_normal((n, 6)),
        "random of rank one": signs,
        "stationary signs": stationary,
        "all ones": np.ones((n, 1)),
        "all rows orthogonal": np.eye(n),
        "zero": np.zeros((n, 3)),
        "optimal, one row turned round": np.vstack([-optimal[:1], optimal[1:]]),
        "optimal, shaken by 1e-1": optimal + 1e-1 * rng.standard_normal((n, r)),
        "optimal, shaken by 1e-2": optimal + 1e-2 * rng.standard_normal((n, r)),
        "optimal, shaken by 1e-3": optimal + 1e-3 * rng.standard_normal((n, r)),
        "optimal, cut to one dimension": np.where(optimal[:, :1] >= 0, 1.0, -1.0),
    }


@pytest.mark.parametrize(("name", "n"), [("gaussian", 24), ("laplacian", 15), ("matern", 24), ("composite", 7)])
def test_no_point_passes_that_is_not_optimal(name, n, method):
    problem, optimum = _problem(name, n), _optimum(name, n)
    model = SDPEmbedding(_KERNELS[name], random_state=0, max_iter=20_000).fit(_points(name, n))
    caught = 0
    for what, H in _suspects(problem, model.embedding_).items():
        certificate = certify_elliptope(problem, H, rng=np.random.default_rng(3))
        _assert_brackets(certificate, optimum)
        unit = problem.project(H, np.eye(1, H.shape[1]).repeat(n, axis=0))
        objective = float(np.sum(unit * problem.apply(unit)))
        assert certificate.lower == pytest.approx(objective, rel=1e-9), what
        for tol in (1e-1, 1e-3, 1e-6):
            if (optimum - objective) / abs(objective) > tol + _CONIC:
                assert not certificate.holds(tol), what
                caught += 1
    assert caught > 15  # the suspects are what they are called


@pytest.mark.parametrize("solver", ["power", "accelerated"])
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_early_stop_is_bracketed(steps, solver, method):
    name, n = "gaussian", 40
    with pytest.warns(UserWarning, match="budget ran out"):
        model = SDPEmbedding(_KERNELS[name], solver=solver, max_iter=steps, random_state=0).fit(_points(name, n))
    certificate = model.certificate_
    _assert_brackets(certificate, _optimum(name, n))
    suboptimality = _optimum(name, n) / certificate.lower - 1
    assert suboptimality > 1e-5
    assert not certificate.holds(0.99 * suboptimality)


def test_rank_one_solution_of_a_rank_two_problem_is_refused(method):
    """A sign vector that no single flip improves: the end of every ascent in rank one, and a saddle above it."""
    name, n = "gaussian", 40
    problem = _problem(name, n)
    J = problem.scale[:, None] * problem.operator.to_dense() * problem.scale
    signs = np.sign(np.random.default_rng(0).standard_normal(n))
    while np.any(worse := signs * (J @ signs) < np.diag(J)):
        i = int(np.argmax(worse))
        signs[i] *= -1
    certificate = certify_elliptope(problem, signs[:, None], rng=np.random.default_rng(0))
    _assert_brackets(certificate, _optimum(name, n))
    assert not certificate.holds(1e-3)


def _indefinite(n: int, seed: int) -> np.ndarray:
    """A Gaussian cut at a threshold: positive row sums, a dominant diagonal, negative eigenvalues."""
    K = Gaussian(sigma=1.5)(np.random.default_rng(seed).standard_normal((n, 2)))
    return np.where(K > 0.2, K, 0.0)


@pytest.mark.parametrize("n", [12, 30])
def test_indefinite_matrix_is_bracketed(n, method):
    K = _indefinite(n, seed=n)
    A, d = _dense(K)
    assert np.linalg.eigvalsh(A)[0] < -1e-2
    assert d.min() > 0
    optimum = _conic_optimum(A, d)
    model = SDPEmbedding(Precomputed(), random_state=0, max_iter=20_000).fit(K)
    _assert_brackets(model.certificate_, optimum)
    assert model.certificate_.lower == pytest.approx(optimum, rel=1e-6)
    assert model.certificate_.upper == pytest.approx(optimum, rel=1e-6)


def test_indefinite_matrix_with_a_poor_point_is_bracketed(method):
    K = _indefinite(30, seed=30)
    optimum = _conic_optimum(*_dense(K))
    with pytest.warns(UserWarning, match="budget ran out"):
        model = SDPEmbedding(Precomputed(), random_state=0, max_iter=3).fit(K)
    _assert_brackets(model.certificate_, optimum)
    assert not model.certificate_.holds(1e-4)


def test_negative_optimum_is_bracketed(method):
    """All of -Ā: the optimum is zero or below, and the additive bounds are below zero too where it is."""
    operator = DiffusionOperator(GramOperator(Gaussian(sigma=1.0), _points("gaussian", 7)))
    problem = Elliptope(_Negated(operator), operator.diagonal(), shift=1.0)
    H = problem.random_point(3, np.random.default_rng(0))
    certificate = certify_elliptope(problem, H, rng=np.random.default_rng(0))
    A, d = _dense(_KERNELS["gaussian"](_points("gaussian", 7)))
    optimum = _conic_optimum(-A, d)
    assert optimum <= 1e-9
    assert certificate.lower < 0
    assert certificate.lower <= optimum <= certificate.upper
    assert not certificate.holds(0.5)


class _Negated(LinearMap):
    def __init__(self, inner: LinearMap) -> None:
        super().__init__(inner.shape, inner.dtype, symmetric=True)
        self._inner = inner

    def _multiply(self, v):
        return -(self._inner @ v)

    _transpose_multiply = _multiply

    def diagonal(self):
        return -self._inner.diagonal()

    def block(self, rows, cols):
        return -self._inner.block(rows, cols)


# --- further levels -----------------------------------------------------------------------------------------------


def _level_problem(kind: str, seed: int) -> tuple:
    """A kernel, what it is fitted to, and its matrix."""
    rng = np.random.default_rng([7, seed])
    n = 30 if seed == 0 else int(rng.integers(8, 17))
    X = rng.standard_normal((n, 2))
    if kind == "gaussian":
        return Gaussian(1.0), X, Gaussian(1.0)(X)
    if kind == "neighbours":
        kernel = SelfTuning(4, 2, connect=True).resolve(X)
        return kernel, X, kernel(X)
    K = np.where(rng.random((n, n)) < 0.3, rng.uniform(0.2, 1.0, (n, n)), 0.0)  # some rows have no room at all
    K = np.maximum(K, K.T) + np.diag(np.full(n - 1, 0.5), 1) + np.diag(np.full(n - 1, 0.5), -1)
    np.fill_diagonal(K, rng.uniform(0.3, 1.2, n))
    return Precomputed(), K, K


@pytest.mark.filterwarnings("ignore:.* have no room:UserWarning")
@pytest.mark.parametrize("n_levels", [2, 3])
@pytest.mark.parametrize("kind", ["gaussian", "neighbours", "sparse indefinite"])
@pytest.mark.parametrize("seed", range(4))
def test_every_level_agrees_with_conic_solver(kind, seed, n_levels):
    """Bounds of each, lengths ‖Ξᵢ‖² = dᵢ, and Diag(y)Ξ orthogonal to all coordinates before where no row is cut off."""
    kernel, data, K = _level_problem(kind, seed)
    model = SDPEmbedding(kernel, n_levels=n_levels, tol=1e-8, max_iter=20_000, random_state=0).fit(data)
    A, found = _dense(K)[0], np.empty((len(K), 0))
    assert len(model.levels_) == n_levels
    for number, level in enumerate(model.levels_):
        Q = np.linalg.qr(found)[0]
        P = np.eye(len(K)) - Q @ Q.T
        L, Xi = P @ A @ P, level.coordinates
        d = np.maximum(np.diagonal(L), 0.0)
        on = d > 0
        if number and number == n_levels - 1:  # the levels before are those of fewer
            optimum = _conic_optimum(L[np.ix_(on, on)], d[on])
            _assert_brackets(level.certificate, optimum)
            assert level.certificate.upper == pytest.approx(optimum, rel=1e-6)
        assert level.certificate.holds(1e-7)
        np.testing.assert_allclose(np.sum(Xi**2, axis=1), d, atol=1e-14)
        y = np.sum(Xi * (L @ Xi), axis=1)[on] / d[on]
        np.testing.assert_allclose(y[:, None] * Xi[on], (L @ Xi)[on], atol=1e-6)
        assert np.linalg.eigvalsh(np.diag(y) - L[np.ix_(on, on)])[0] > -1e-6
        if on.all():
            np.testing.assert_allclose(Q.T @ (y[:, None] * Xi), 0, atol=1e-6)
        found = np.hstack([found, Xi])
