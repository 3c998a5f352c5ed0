"""A diffusion operator on a complement: its matrix, and every term of what its proofs allow for rounding.

The truth of P M P is that of exact fractions, for Q with the entries it has. Errors of M that floating point would
hardly make are made by an adversary who uses up what the inner map allows; those of the projection are real ones.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mercer import DiffusionOperator, Gaussian, GramOperator, Precomputed
from mercer.backends.rounding import UNIT, gamma, unit_of
from mercer.operators import ProjectedOperator
from mercer.operators.base import LinearMap, MapRounding

DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])
NOTHING = MapRounding(0.0, 0.0, 0.0, np.zeros(1), apart=0.0)


class Inner(LinearMap):
    """A matrix that floating point shows otherwise than it is: to ``block``, to products, and on the diagonal."""

    def __init__(self, shown, rounding=None, *, met=None, added=0.0, diagonal=None):
        super().__init__(shown.shape, shown.dtype, symmetric=True)
        n = shown.shape[0]
        self._shown, self._met, self._added = shown, shown if met is None else met, added
        self._diagonal = np.diagonal(shown).copy() if diagonal is None else diagonal
        own = MapRounding(np.linalg.norm(abs(shown.astype(float)), 2), gamma(n + 3, unit_of(self.dtype)), 0.0, 0.0)
        self._rounding = own if rounding is None else rounding
        if np.ndim(self._rounding.diagonal) == 0 or self._rounding.diagonal.size != n:
            self._rounding = replace(self._rounding, diagonal=np.zeros(n), apart=min(self._rounding.apart, 1e300))
        self.stationary, self.weights, self.gram = np.full(n, n**-0.5, self.dtype), self.ones(n), None

    def _multiply(self, v):
        return self._met @ v + np.asarray(self._added, self.dtype) * v

    def diagonal(self):
        return np.maximum(self._diagonal, 0)

    def signed_diagonal(self):
        return self._diagonal

    def block(self, rows, cols):
        return self._shown[rows][:, cols].copy()

    def rounding(self):
        return self._rounding


def exact(values):
    return np.vectorize(lambda x: Fraction(float(x)), otypes=[object])(np.asarray(values))


def projected(M, Q):
    """P M P in fractions, P = I - QQᵀ as the entries of Q make it."""
    Q = exact(Q)
    P = exact(np.eye(len(Q))) - Q.dot(Q.T)
    return P.dot(exact(M)).dot(P)


def floats(values):
    return np.vectorize(float, otypes=[float])(values)


def spectral(values):
    return float(np.linalg.norm(floats(values), 2))


# --- the matrix -------------------------------------------------------------------------------------------------

rng = np.random.default_rng(3)
X = rng.normal(size=(40, 2))
WEIGHTS = rng.uniform(0.2, 3.0, 40)
ORTHONORMAL = np.linalg.qr(rng.normal(size=(40, 3)))[0]
BASES = {
    "orthonormal": ORTHONORMAL,
    "of any lengths": ORTHONORMAL @ rng.normal(size=(3, 3)),
    "none": ORTHONORMAL[:, :0],
}


def _dense(Q, deflate=True):
    """P M P from the formulas of the papers."""
    K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2))
    m = K @ WEIGHTS
    v = np.sqrt(WEIGHTS * m / (WEIGHTS @ m))
    M = np.sqrt(np.outer(WEIGHTS / m, WEIGHTS / m)) * K - deflate * np.outer(v, v)
    P = np.eye(40) - Q @ Q.T
    return P @ M @ P, P @ v


def _operator(Q, to=np.asarray, dtype="float64"):
    points = to(X.astype(dtype))
    return ProjectedOperator(DiffusionOperator(GramOperator(Gaussian(1.0), points, weights=to(WEIGHTS))), to(Q))


def _library(name):
    return np.asarray if name == "numpy" else pytest.importorskip("torch").as_tensor


@DTYPES
@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_products_blocks_and_diagonal_are_those_of_the_dense_matrix(dtype, basis, library):
    Q, to = BASES[basis], _library(library)
    operator, (matrix, moved) = _operator(Q, to, dtype), _dense(Q)
    close = {"rtol": 0, "atol": (1e-14 if dtype == "float64" else 1e-6) * max(1.0, np.linalg.norm(Q) ** 4)}
    V = np.random.default_rng(1).normal(size=(40, 5))
    np.testing.assert_allclose(np.asarray(operator @ to(V)), matrix @ V, **close | {"atol": 20 * close["atol"]})
    np.testing.assert_allclose(
        np.asarray(operator @ to(V[:, 0])), matrix @ V[:, 0], **close | {"atol": 20 * close["atol"]}
    )
    np.testing.assert_allclose(np.asarray(operator.to_dense()), matrix, **close)
    some = np.array([3, 0, 17])
    np.testing.assert_allclose(np.asarray(operator.block(to(some), slice(5, 9))), matrix[some][:, 5:9], **close)
    np.testing.assert_allclose(np.asarray(operator.block(slice(30, None), to(some))), matrix[30:][:, some], **close)
    np.testing.assert_allclose(np.asarray(operator.diagonal()), np.diagonal(matrix), **close)
    np.testing.assert_allclose(np.asarray(operator.room()), np.diagonal(matrix), **close)
    np.testing.assert_allclose(np.asarray(operator.stationary), moved, **close)
    np.testing.assert_allclose(np.asarray(operator.undeflated().to_dense()), _dense(Q, deflate=False)[0], **close)
    assert operator.to_dense().dtype == operator.dtype == (operator @ to(V)).dtype


def test_a_row_has_no_room_where_an_indefinite_matrix_leaves_none():
    K = np.array([[0.1, 1.0, 0.2], [1.0, 0.3, 0.5], [0.2, 0.5, 2.0]])
    operator = ProjectedOperator(DiffusionOperator(GramOperator(Precomputed(), K)), np.array([[0.0], [0.6], [0.8]]))
    diagonal = operator.diagonal()
    assert diagonal.min() < -0.01
    np.testing.assert_array_equal(operator.room(), np.maximum(diagonal, 0))
    assert np.all(operator.rounding().diagonal[diagonal < 0] == 0)  # nothing of such a row can take part


# --- rounding: what it says is enough ---------------------------------------------------------------------------


def _hostile(seed, dtype):
    """A symmetric matrix and a basis: wide ranges, unit vectors in the span, lengths that are not one, dependence."""
    random = np.random.default_rng(seed)
    n, q = int(random.integers(3, 12)), int(random.integers(1, 5))
    q = min(q, n - 1)
    G = random.normal(size=(n, n)) * 10.0 ** random.uniform(-4, 0, n)
    M = G @ G.T if seed % 2 else G + G.T
    M = (M / np.linalg.norm(M, 2)).astype(dtype)
    Q = np.linalg.qr(random.normal(size=(n, q)))[0]
    if seed % 5 == 1:  # a row whose diagonal vanishes
        Q[0], Q[:, 0] = 0, 0
        Q[0, 0] = 1
    elif seed % 5 == 2:
        Q = Q * random.uniform(0.5, 2.0, q)
    elif seed % 5 == 3:  # nearly a row of the unit matrix
        Q = np.linalg.qr(
            np.column_stack([np.eye(n)[0] + 1e-7 * random.normal(size=n), random.normal(size=(n, q - 1))])
        )[0]
    elif seed % 5 == 4 and q > 1:
        Q[:, 1] = Q[:, 0]
    return np.maximum(M, M.T), Q


@DTYPES
def test_rounding_bounds_products_entries_and_room_of_hostile_matrices(dtype):
    unit = unit_of(dtype)
    for seed in range(30):
        M, Q = _hostile(seed, dtype)
        operator = ProjectedOperator(Inner(M, replace(Inner(M).rounding(), apart=0.0)), Q)
        truth, allowed = projected(M, Q), operator.rounding()
        V = np.random.default_rng(seed).normal(size=(len(M), 3)).astype(dtype)
        off = np.linalg.norm(floats(exact(operator @ V) - truth.dot(exact(V))), axis=0)
        assert np.all(off <= allowed.product * allowed.norm * np.linalg.norm(V.astype(float), axis=0)), seed
        assert spectral(exact(operator.to_dense()) - truth) <= allowed.entries, seed
        assert spectral(abs(truth)) <= allowed.norm, seed
        d = np.maximum(np.diagonal(truth), 0)
        assert np.all(floats(abs(exact(operator.room()) - d)) <= allowed.diagonal), seed
        stretch = (1 + np.linalg.norm(Q) ** 2) ** 2
        assert allowed.entries <= 300 * unit * stretch  # and it is not much more
        assert allowed.product * allowed.norm <= 300 * unit * stretch


@DTYPES
def test_the_rounding_of_the_two_projections_is_counted(dtype):
    """Products with M that err in nothing: what is left is the rounding of P."""
    M, Q = (
        np.diag(np.array([1.0, 0.5, 0.25, 2.0], dtype)),
        np.linalg.qr(np.random.default_rng(0).normal(size=(4, 2)))[0],
    )
    operator = ProjectedOperator(Inner(M, replace(NOTHING, norm=2.0)), Q)
    V = np.random.default_rng(1).normal(size=(4, 40)).astype(dtype)
    off = np.linalg.norm(floats(exact(operator @ V) - projected(M, Q).dot(exact(V))), axis=0) / np.linalg.norm(
        V, axis=0
    )
    allowed = operator.rounding()
    assert 0.1 * unit_of(dtype) < off.max() <= allowed.product * allowed.norm


@DTYPES
def test_the_rounding_of_an_entry_is_counted(dtype):
    """Q is so short that hardly anything is subtracted: entries round all the same."""
    M, Q = np.diag(np.array([1.0, 0.5, 0.0], dtype)), np.array([[2.0**-12 / 3], [2.0**-14], [0.0]])
    operator = ProjectedOperator(Inner(M, replace(NOTHING, norm=1.0)), Q)
    off = spectral(exact(operator.to_dense()) - projected(M, Q))
    allowed = operator.rounding()
    assert 0.01 * unit_of(dtype) < off <= allowed.entries
    truth = np.diagonal(projected(M, Q))
    assert np.all(floats(abs(exact(operator.room()) - truth)) <= allowed.diagonal)


def test_the_sums_over_all_points_are_counted():
    """QᵀMQ of one large entry and many that are each rounded up: γₙ, where γ of a few roundings would not do."""
    n = 2**16
    Q = np.full((n, 1), (0.6 * UNIT) ** 0.5)
    Q[0] = 0.75**0.5

    class Identity(Inner):
        def __init__(self):
            LinearMap.__init__(self, (n, n), np.float64, symmetric=True)
            self.stationary, self.weights, self.gram = np.zeros(n), np.ones(n), None

        def _multiply(self, v):
            return v.copy()

        def signed_diagonal(self):
            return np.ones(n)

        def rounding(self):
            return replace(NOTHING, norm=1.0, diagonal=np.zeros(n))

    operator = ProjectedOperator(Identity(), Q)
    squares = sum((Fraction(x) ** 2 for x in Q[:, 0].tolist()[:2]), Fraction(0))
    squares += (n - 2) * Fraction(float(Q[1, 0])) ** 2
    off = abs(Fraction(float(operator.middle[0, 0])) - squares)
    own = Fraction(float(Q[0, 0])) ** 2
    truth = 1 - 2 * own + own * squares
    allowed = operator.rounding()
    assert float(off) > 60 * UNIT  # more than the few roundings of an entry
    assert float(abs(Fraction(float(operator.diagonal()[0])) - truth)) <= allowed.diagonal[0]
    assert float(off * squares) <= allowed.entries  # the norm of Q(S - QᵀMQ)Qᵀ


# --- rounding: what the inner map allows is used up -------------------------------------------------------------

E = 1e-4
UNIT_Q = np.array([[0.6], [0.8], [0.0], [0.0]])
BASE = np.diag([0.5, 0.25, 0.125, 0.5])
STRETCHED = 1.9 * UNIT_Q  # P is -2.61 along it


def _bounds(shown, Q, *, true=BASE, **kwargs):
    given = {name: kwargs.pop(name) for name in ("product", "entries", "diagonal", "apart") if name in kwargs}
    given.setdefault("diagonal", np.zeros(4))
    operator = ProjectedOperator(Inner(shown, replace(NOTHING, norm=1.0, **given), **kwargs), Q)
    return operator, operator.rounding(), projected(true, Q)


@pytest.mark.parametrize("Q", [UNIT_Q, STRETCHED, 0.5 * UNIT_Q], ids=["orthonormal", "long", "short"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_errors_of_inner_products(Q, sign):
    operator, allowed, truth = _bounds(BASE, Q, product=E, added=sign * E)
    for V in (np.eye(4), Q / np.linalg.norm(Q)):
        off = np.linalg.norm(operator @ V - floats(truth) @ V, axis=0)
        assert np.all(off <= allowed.product * allowed.norm)
    assert spectral(exact(operator.to_dense()) - truth) <= allowed.entries
    assert np.all(abs(operator.diagonal() - floats(np.diagonal(truth))) <= allowed.diagonal)


def test_errors_of_inner_products_elsewhere():
    """A row of the image that is right, in a diagonal that the others make wrong: QᵢᵀQᵀD Qᵢ."""
    Q, added = np.array([[2.0], [2.0], [0.0], [0.0]]), np.array([[0.0], [E], [0.0], [0.0]])
    operator, allowed, truth = _bounds(BASE, Q, product=E, added=added)
    assert abs(operator.diagonal()[0] - float(truth[0, 0])) <= allowed.diagonal[0]


def test_large_errors_of_both_projections(monkeypatch):
    """Where γₙ is no small number, the square of it counts: each projection errs by all that it may, in one direction."""
    part, v = 0.1, np.array([0.0, 0.0, 0.0, 1.0])
    monkeypatch.setattr("mercer.operators.projected.gamma", lambda count, unit: part)
    operator = ProjectedOperator(Inner(np.eye(4), replace(NOTHING, norm=1.0, diagonal=np.zeros(4))), UNIT_Q)
    exact_complement = operator._complement
    monkeypatch.setattr(operator, "_complement", lambda V: exact_complement(V) + 2 * part * V)
    allowed = operator.rounding()
    assert np.linalg.norm(operator @ v - v) <= allowed.product * allowed.norm


@pytest.mark.parametrize("Q", [UNIT_Q, STRETCHED, 0.5 * UNIT_Q], ids=["orthonormal", "long", "short"])
@pytest.mark.parametrize("signs", [(1, 1), (-1, -1), (1, -1), (-1, 1), (1, 0), (0, 1)])
@pytest.mark.parametrize("direction", [UNIT_Q[:, 0], np.array([0.6, 0.0, 0.8, 0.0]), np.array([0.0, 0.0, 0.6, 0.8])])
def test_errors_of_inner_entries(Q, signs, direction):
    """Entries that block shows and those that products meet, each as far from M as they may, along Q and across."""
    off = E * np.outer(direction, direction)
    apart = abs(signs[0] - signs[1]) * E
    shown, met = BASE + signs[0] * off, BASE + signs[1] * off
    own = np.diagonal(shown)
    operator, allowed, truth = _bounds(
        shown, Q, met=met, entries=E, apart=apart, diagonal=abs(own - np.diagonal(BASE)) * (1 + 1e-9)
    )
    assert spectral(exact(operator.to_dense()) - truth) <= allowed.entries
    assert np.all(abs(operator.diagonal() - floats(np.diagonal(truth))) <= allowed.diagonal)
    V = np.eye(4)
    slack = allowed.entries + allowed.product * allowed.norm
    assert spectral(exact(operator @ V) - truth) <= slack
    unknown = replace(operator.inner._rounding, apart=np.inf)
    assert ProjectedOperator(Inner(shown, unknown, met=met), Q).rounding().entries >= allowed.entries


@pytest.mark.parametrize("sign", [-1, 1])
def test_errors_of_the_inner_diagonal(sign):
    """Also where they take room from a row, and where a row seems to have none: it may have as much as they err."""
    Q = np.array([[1.0], [0.0], [0.0], [0.0]])
    true = np.diag([0.5, 0.25, E / 2, -E])
    shown = np.diagonal(true) + sign * E * np.ones(4)
    rounding = replace(NOTHING, norm=1.0, diagonal=np.full(4, E * (1 + 1e-9)))
    operator = ProjectedOperator(Inner(true, rounding, diagonal=shown), Q)
    allowed, truth = operator.rounding(), projected(true, Q)
    d = np.maximum(floats(np.diagonal(truth)), 0)
    assert np.all(abs(operator.room() - d) <= allowed.diagonal)
    assert allowed.entries >= E  # what a low-rank proof takes for the entry on the diagonal
