"""Every allowance of the embedding's proofs, against an adversary who uses it up: without it the bound is false."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from mercer import DiffusionOperator, Gaussian, GramOperator, Precomputed, config_context, rp_cholesky
from mercer.certificates import certify_elliptope, factorisation
from mercer.certificates import factor_errors as factor_errors_module
from mercer.certificates.factor_errors import factor_errors
from mercer.certificates.krylov import bound_by_lanczos, deflate
from mercer.certificates.low_rank_bound import StandIn, bound_by_leftover_lanczos, bound_by_trace
from mercer.linalg import lanczos
from mercer.operators.base import LinearMap, MapRounding
from mercer.problems import Elliptope

PROOFS = ["factorisation", "deflated-lanczos"]
NOTHING = MapRounding(0.0, 0.0, 0.0, np.zeros(1), nonnegative=False, semidefinite=True)


class Altered(LinearMap):
    """A matrix that floating point shows otherwise than it is: by ``shown`` in its entries, ``added`` in products."""

    def __init__(self, shown, rounding, added=0.0):
        super().__init__(shown.shape, np.float64, symmetric=True)
        self._shown, self._rounding, self._added = shown, rounding, added

    def _multiply(self, v):
        return self._shown @ v + self._added * v

    def _transpose_multiply(self, v):
        return self._multiply(v)

    def diagonal(self):
        return np.diagonal(self._shown).copy()

    def block(self, rows, cols):
        return self._shown[rows][:, cols].copy()

    def rounding(self):
        return self._rounding


A = np.array([1.0, 0.7, 0.4, 1.3, 0.2, 0.9])  # of aaᵀ, whose programme has the optimum (Σ a √d)² at H = 1
SIZE = float(A @ A)


def _rounding(**fields):
    return replace(NOTHING, norm=SIZE, diagonal=np.zeros(A.size), **fields)


def _certified(operator, d, method):
    problem = Elliptope(operator, d)
    return certify_elliptope(problem, np.ones((A.size, 1)), rng=np.random.default_rng(0), method=method, tol=1e-9)


def _optimum(d):
    return float(A @ np.sqrt(d)) ** 2


@pytest.mark.parametrize("method", PROOFS)
def test_without_errors_the_bounds_are_sharp(method):
    certificate = _certified(Altered(np.outer(A, A), _rounding()), np.ones(A.size), method)
    assert certificate.lower <= _optimum(np.ones(A.size)) <= certificate.upper
    assert certificate.relative_gap < 1e-11


@pytest.mark.parametrize("method", PROOFS)
@pytest.mark.parametrize("sign", [-1, 1])
def test_errors_of_entries(method, sign):
    error, d = 1e-4, np.linspace(0.5, 2.0, A.size)
    certificate = _certified(Altered(np.outer(A, A), _rounding(entries=error)), d, method)
    truth = _optimum(d) + sign * error * d.sum()  # of aaᵀ ± error·I
    assert certificate.lower <= truth <= certificate.upper
    assert certificate.relative_gap < 1e-2


@pytest.mark.parametrize("method", PROOFS)
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("part", [1e-5, 0.3])
def test_errors_of_the_prescribed_lengths(method, sign, part):
    d = np.linspace(0.5, 2.0, A.size)
    off = part * d * np.array([1, 0, 1, 1, 0, 1])
    operator = Altered(np.outer(A, A), replace(_rounding(), diagonal=off))
    certificate = _certified(operator, d, method)
    assert certificate.lower <= _optimum(d + sign * off) <= certificate.upper


@pytest.mark.parametrize("method", PROOFS)
def test_an_indefinite_matrix_loses_more_by_lengths(method):
    """Ã = -q(I - 11ᵀ/3): the value of H = 1, the best, is zero to first order and -q times the spread of √d beyond."""
    q, off = 20.0, np.array([0.5, 0.0, 0.0])
    shown = -q * (np.eye(3) - 1 / 3)
    problem = Elliptope(Altered(shown, MapRounding(q, 0.0, 0.0, off)), np.ones(3), shift=q)
    certificate = certify_elliptope(problem, np.ones((3, 1)), rng=np.random.default_rng(0), method=method)
    lengths = np.sqrt(1 + off)
    assert lengths @ shown @ lengths < -0.5
    assert certificate.lower <= lengths @ shown @ lengths


@pytest.mark.parametrize("definite", [True, False])
@pytest.mark.parametrize("method", PROOFS)
def test_rows_that_rounding_cut_off(method, definite):
    d = np.array([1.0, 0.5, 0.0, 2.0, 0.0, 1.0])
    off = np.where(d == 0, 1e-3, 0.0)
    shown = np.outer(A, A)
    rounding = replace(_rounding(), diagonal=off, semidefinite=definite)
    if definite:  # |Ãᵢⱼ|² ≤ dᵢdⱼ: a row of length nearly zero has no large entries
        shown = np.outer(A * np.where(d == 0, 0.03, 1), A * np.where(d == 0, 0.03, 1))
        true = shown + np.diag(np.maximum(off - np.diagonal(shown), 0) * (d == 0))
        truth = float(np.sqrt(np.diagonal(true) * 1.0)[d == 0] @ np.sqrt(off[d == 0]))
        truth = (np.sqrt(np.diagonal(shown))[d > 0] @ np.sqrt(d[d > 0]) + 0.9 * truth) ** 2
    else:
        truth = _optimum(d + off)
    certificate = _certified(Altered(shown, rounding), d, method)
    assert truth <= certificate.upper
    assert certificate.lower <= _optimum(np.where(d > 0, d, 0.0)) * (1 + 1e-12)


def test_errors_of_products_lower():
    """Products that are too large by what they may err: the value claimed is not above the true one."""
    error, d = 1e-5, np.linspace(0.5, 2.0, A.size)
    operator = Altered(np.outer(A, A), _rounding(product=error), added=error * SIZE)
    assert _certified(operator, d, "deflated-lanczos").lower <= _optimum(d)


def test_errors_of_products_upper():
    """Products that are too small by what they may err: λmax(M) is underrated, the bound is not."""
    error, d = 1e-5, np.linspace(0.5, 2.0, A.size)
    operator = Altered(np.outer(A, A), _rounding(product=error), added=-error * SIZE)
    assert _certified(operator, d, "deflated-lanczos").upper >= _optimum(d)


# --- eigenvalues ------------------------------------------------------------------------------------------------


def test_a_factorisation_that_should_not_have_succeeded():
    """Matrices with a negative eigenvalue that LAPACK factors all the same: the rounding bound covers it."""
    found = 0
    for seed in range(400):
        random = np.random.default_rng(seed)
        G = random.standard_normal((6, 5)) * 10.0 ** -np.arange(5)
        S = G @ G.T
        proof = factorisation.prove_below(-S, 0.0)
        least = min(mpmath.mp.eigsy(mpmath.matrix(S.tolist()), eigvals_only=True))
        if proof is not None and least < 0:
            found += 1
            assert proof[0] >= -least
    assert found >= 20


def _leftover_of(values):
    """A stand-in that leaves all of a diagonal matrix out, one direction being taken out of it."""
    n = values.size
    deflated = deflate(lambda V: values[:, None] * V, np.eye(n)[:, :1])
    return StandIn(np.zeros((n, 1)), np.ones(n), values, np.zeros(n), deflated)


def test_the_residual_lanczos_bound_allows_for_an_underestimate(monkeypatch):
    """A Ritz value that is too small by all that the theorem allows: λmax is bounded nevertheless."""
    values = np.linspace(0.1, 1.0, 40)
    monkeypatch.setattr(lanczos, "underestimate", lambda *args: 0.3)
    monkeypatch.setattr(lanczos.BlockLanczos, "ritz_values", lambda self: np.array([0.7, 0.1]))
    starts = lanczos.RandomStarts(np.random.default_rng(0), 1e-9)
    found, _ = bound_by_leftover_lanczos(_leftover_of(values), starts, goal=0.0)
    assert found >= 1.0


def test_the_deflated_lanczos_bound_allows_for_an_underestimate(monkeypatch):
    values = np.concatenate([[0.9], np.linspace(0.1, 1.0, 39)])
    monkeypatch.setattr(lanczos, "underestimate", lambda *args: 0.3)
    monkeypatch.setattr(lanczos.BlockLanczos, "ritz_values", lambda self: np.array([0.7, 0.1]))
    deflated = deflate(lambda V: values[:, None] * V, np.eye(40)[:, :1])
    starts = lanczos.RandomStarts(np.random.default_rng(0), 1e-9)
    found, _ = bound_by_lanczos(deflated, starts, lift=0.0, goal=3.0)
    assert found >= 1.0


def test_the_deflated_lanczos_bound_lifts_what_is_below_zero(monkeypatch):
    """On -1 ≤ λ ≤ 1 the theorem speaks of M + I: a Ritz value of M + I that is too small by three tenths."""
    values = np.concatenate([[0.9], np.linspace(-1.0, 1.0, 39)])
    monkeypatch.setattr(lanczos, "underestimate", lambda *args: 0.3)
    monkeypatch.setattr(lanczos.BlockLanczos, "ritz_values", lambda self: np.array([0.7 * 2 - 1, 0.1]))
    deflated = deflate(lambda V: values[:, None] * V, np.eye(40)[:, :1])
    starts = lanczos.RandomStarts(np.random.default_rng(0), 1e-9)
    found, _ = bound_by_lanczos(deflated, starts, lift=1.0, goal=3.0)
    assert found >= 1.0


def test_the_trace_of_what_a_factor_leaves_out_allows_for_its_errors():
    """A diagonal that seems to be left out by nothing, and is left out by as much as the factor may err."""
    values = np.concatenate([[1e-3], np.full(20, 0.5)])
    deflated = deflate(lambda V: values[:, None] * V, np.eye(21)[:, :1])
    hidden = StandIn(np.zeros((21, 1)), np.ones(21), np.zeros(21), np.zeros(21), deflated, factor_rounding=0.5)
    assert bound_by_trace(hidden, goal=0.0)[0] >= 0.5


@pytest.mark.parametrize("slip", [0.0, 1e-12, 1e-6, 1e-3])
@pytest.mark.parametrize("seed", range(4))
def test_what_a_factor_leaves_out_is_psd_but_for_its_errors(seed, slip):
    random = np.random.default_rng(seed)
    X, D = random.standard_normal((80, 2)), random.uniform(0.5, 2.0, 80)
    gram = GramOperator(Gaussian(1.0), X)
    factored = rp_cholesky(gram, 25, seed)
    F = factored.factor * (1 + slip * random.standard_normal(factored.factor.shape))
    errors = factor_errors(gram, F, factored.landmarks)
    values = np.linalg.eigvalsh(D[:, None] * (gram.to_dense() - F @ F.T) * D)
    allowed = errors.in_units_of(D, 0.0)
    assert -values[0] <= allowed + 1e-14
    assert values[-1] <= np.sum(np.maximum(D**2 * (1 - np.sum(F**2, axis=1)), 0)) + allowed
    assert slip == 0 or values[0] < -1e-2 * slip  # the adversary is one


@pytest.mark.parametrize("noise", [0.0, 1e-10, 1e-3], ids=["triangular", "nearly", "not triangular"])
def test_the_three_parts_of_a_factors_errors_bound_what_they_name(noise, monkeypatch):
    """C is any matrix; R and T follow from it, and no row of theirs is longer than said, by tiles or at once."""
    monkeypatch.setattr(factor_errors_module, "_COLUMNS", 8)
    random = np.random.default_rng(0)
    gram = GramOperator(Gaussian(1.0), random.standard_normal((90, 3)))
    factored = rp_cholesky(gram, 30, 0)
    pivots, F = factored.landmarks, factored.factor.astype(np.longdouble)
    F = (F + noise * random.standard_normal(F.shape)).astype(np.float64)
    errors = factor_errors(gram, F, pivots)
    at, wide = F[pivots], F.astype(np.longdouble)
    triangle = np.tril(at) if noise < 1e-8 else at
    C = (F @ np.linalg.inv(triangle)).astype(np.longdouble)
    T = np.linalg.norm(C @ wide[pivots] - wide, axis=1)
    R = np.linalg.norm(gram.to_dense()[:, pivots] - wide @ wide[pivots].T, axis=1)
    np.testing.assert_allclose(errors.weights, np.linalg.norm(C, axis=1).astype(float), rtol=1e-6)
    assert np.all(errors.disagreement >= R)
    assert np.all(errors.inexact + 1e-13 >= T)  # another C, as good
    assert errors.disagreement.max() <= 20 * R.max() + 1e-11


def test_errors_of_entries_in_what_a_factor_leaves_out():
    """A matrix that is psd but shown with a negative eigenvalue: the allowance of its entries covers it."""
    errors = factor_errors(GramOperator(Precomputed(), np.diag([1.0, 0.5, -1e-6])), np.eye(3)[:, :1], np.array([0]))
    assert errors.in_units_of(np.ones(3), 1e-6) >= 1e-6
    assert errors.in_units_of(np.ones(3), 0.0) < 1e-12


# --- fits of two points, whose optimum is known: (d₁ + d₂)² -------------------------------------------------------


def _two_points(weights, x, sigma, entry=None):
    """The exact optimum of two points with weights, from the exact kernel or from one entry of its matrix."""
    mpmath.mp.dps = 60
    w = [mpmath.mpf(float(v)) for v in weights]
    k = mpmath.exp(-((mpmath.mpf(float(x)) / mpmath.mpf(float(sigma))) ** 2)) if entry is None else mpmath.mpf(entry)
    m = [w[0] + w[1] * k, w[0] * k + w[1]]
    volume = w[0] * m[0] + w[1] * m[1]
    return sum(w[i] * (1 / m[i] - m[i] / volume) for i in range(2)) ** 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", ["factorisation", "pivoted-cholesky", "residual-lanczos", "deflated-lanczos"])
def test_two_points_of_any_weights_and_bandwidth(dtype, method):
    random = np.random.default_rng(5)
    narrow = 0
    with config_context(dtype=dtype):
        for _ in range(60):
            weights = 10.0 ** random.uniform(-12, 0, 2)
            x, sigma = np.dtype(dtype).type(random.uniform(0.1, 3)), float(10.0 ** random.uniform(-0.5, 2.5))
            X = np.array([[0.0], [x]], dtype)
            operator = DiffusionOperator(GramOperator(Gaussian(sigma), X, weights=weights, dtype=np.float64))
            problem = Elliptope(operator, operator.diagonal(), removed=operator.stationary)
            H = np.ones((2, 1)) * [[1.0], [-1.0]]
            certificate = certify_elliptope(problem, H, rng=np.random.default_rng(0), method=method)
            for entry in (None, float(Gaussian(sigma)(X)[0, 1])):
                truth = _two_points(weights, x, sigma, entry)
                assert mpmath.mpf(certificate.lower) <= truth <= mpmath.mpf(certificate.upper), (weights, x, sigma)
            narrow += certificate.relative_gap < 1e-2
    assert narrow > (3 if dtype == "float32" else 15)


def test_rational_optimum_of_a_given_matrix():
    """K = [[1, ½], [½, 1]] and weights of any size: everything is rational, and the bounds hold to the last digit."""
    for power in range(0, 60, 3):
        weights = [Fraction(1), Fraction(1, 2**power)]
        m = [weights[0] + weights[1] / 2, weights[0] / 2 + weights[1]]
        volume = weights[0] * m[0] + weights[1] * m[1]
        truth = sum(weights[i] * (1 / m[i] - m[i] / volume) for i in range(2)) ** 2
        gram = GramOperator(Precomputed(), np.array([[1.0, 0.5], [0.5, 1.0]]), weights=[float(w) for w in weights])
        operator = DiffusionOperator(gram)
        problem = Elliptope(operator, operator.diagonal(), removed=operator.stationary)
        certificate = certify_elliptope(problem, np.array([[1.0], [-1.0]]), rng=np.random.default_rng(0))
        assert Fraction(certificate.lower) <= truth <= Fraction(certificate.upper)
