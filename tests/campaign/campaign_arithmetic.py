"""Arithmetic of the truth: kernel values to seventy digits, and dense algebra in ``numpy.longdouble``.

Nothing here looks into the library but for the parameters that a kernel states. A number that the library takes as
float64 is that number exactly.
"""

from __future__ import annotations

import mpmath
import numpy as np
from mpmath import mp, mpf

from mercer import Gaussian, Laplacian, Linear, Matern, Polynomial, Precomputed, SelfTuning
from mercer.kernels.algebra import Product, Scaled, Sum

mp.dps = 70
LONG = np.longdouble
EPS = float(np.finfo(LONG).eps)


def exact(values):
    """An array of numbers as an object array of mpf, each exactly what it was."""
    return np.vectorize(lambda x: mpf(float(x)), otypes=[object])(np.asarray(values))


def to_long(values):
    """An object array of mpf in extended precision, each entry to its last bit."""

    def one(x):
        high = float(x)
        return LONG(high) + LONG(float(x - mpf(high)))

    flat = [one(x) for x in np.ravel(values)]
    return np.array(flat, LONG).reshape(np.shape(values))


def kernel_value(kernel, x, y):
    """k(x, y) to seventy digits for two points given as sequences of mpf."""
    if isinstance(kernel, Sum):
        return kernel_value(kernel.left, x, y) + kernel_value(kernel.right, x, y)
    if isinstance(kernel, Product):
        return kernel_value(kernel.left, x, y) * kernel_value(kernel.right, x, y)
    if isinstance(kernel, Scaled):
        return mpf(float(kernel.factor)) * kernel_value(kernel.kernel, x, y)
    if isinstance(kernel, Laplacian):
        return mpmath.exp(-sum(abs(a - b) for a, b in zip(x, y, strict=True)) / mpf(float(kernel.sigma)))
    if isinstance(kernel, Linear | Polynomial):
        return _dot_value(kernel, sum(a * b for a, b in zip(x, y, strict=True)), len(x))
    squared = sum((a - b) ** 2 for a, b in zip(x, y, strict=True))
    if isinstance(kernel, Gaussian):
        return mpmath.exp(-squared / mpf(float(kernel.sigma)) ** 2)
    assert isinstance(kernel, Matern), kernel
    return _matern(float(kernel.nu), mpmath.sqrt(squared) / mpf(float(kernel.length_scale)))


def _dot_value(kernel, dot, n_features):
    if isinstance(kernel, Linear):
        return dot
    return (mpf(float(kernel.gamma)) * dot + mpf(float(kernel.coef0))) ** int(kernel.degree)


def _matern(nu, r):
    s = mpmath.sqrt(2 * mpf(nu)) * r
    polynomial = {0.5: mpf(1), 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[nu]
    return polynomial * mpmath.exp(-s)


def kernel_matrix(kernel, X):
    """K as an object array of mpf; of a precomputed kernel X itself, symmetrised."""
    if isinstance(kernel, SelfTuning):
        return _self_tuned(kernel, X)
    X = exact(X)
    if isinstance(kernel, Precomputed):
        return (X + X.T) / 2
    n = X.shape[0]
    K = np.empty((n, n), object)
    for i in range(n):
        for j in range(i, n):
            K[i, j] = K[j, i] = kernel_value(kernel, X[i], X[j])
    return K


def _self_tuned(kernel, X):
    """exp(-d²/(s s')), or of the smaller scale alone, where the kernel has an edge.

    Scales are by the order of exact distances to its training points; an edge that joins two parts has 1/e.
    """
    shown = np.asarray(kernel(X), np.float64)
    sample = kernel._sample
    training = exact(np.ldexp(np.asarray(sample.positions, np.float64), sample.power))
    X = exact(X)
    s = [mpmath.sqrt(sorted(_squared(x, y) for y in training)[sample.orders[0]]) for x in X]
    K = np.full(shown.shape, mpf(0), object)
    for i, j in zip(*np.nonzero(shown), strict=True):
        least, most = sorted((s[i], s[j]))
        log = -_squared(X[i], X[j]) / (least * (least if kernel.pair_scale == "smaller" else most))
        joins = kernel.connect and abs(log + 1) > 1e-3 and abs(shown[i, j] - np.exp(-1)) < 1e-6
        K[i, j] = mpmath.exp(-1 if joins else log) if i != j else mpf(1)
    return K


def _squared(x, y):
    return sum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def cholesky(S):
    """The lower factor of a symmetric matrix in extended precision, None where a pivot is not positive."""
    n = S.shape[0]
    L = np.zeros_like(S)
    for j in range(n):
        column = S[j:, j] - L[j:, :j] @ L[j, :j]
        if not column[0] > 0:
            return None
        L[j:, j] = column / np.sqrt(column[0])
    return L


def lower_inverse(L):
    """The inverse of a lower triangular matrix."""
    n = L.shape[0]
    inverse = np.zeros_like(L)
    for i in range(n):
        row = -(L[i, :i] @ inverse[:i])
        row[i] += 1
        inverse[i] = row / L[i, i]
    return inverse


def solve(S, b):
    """S⁻¹ b of a positive definite matrix by its Cholesky factor."""
    inverse = lower_inverse(cholesky(S))
    return inverse.T @ (inverse @ b)


def eliminated(rows):
    """The solution of a linear system, given as the rows [M | b] of mpf; None if it is singular."""
    n = len(rows)
    for k in range(n):
        sizes = [max((abs(x) for x in rows[i][:n]), default=0) or mpf(1) for i in range(k, n)]
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]) / sizes[i - k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        head = rows[k]
        if abs(head[k]) <= mpf(10) ** (10 - mp.dps) * sizes[pivot - k]:
            return None
        for i in range(k + 1, n):
            if rows[i][k]:
                ratio = rows[i][k] / head[k]
                rows[i] = [0] * (k + 1) + [x - ratio * y for x, y in zip(rows[i][k + 1 :], head[k + 1 :], strict=True)]
    x = [mpf(0)] * n
    for k in reversed(range(n)):
        x[k] = (rows[k][n] - sum(rows[k][j] * x[j] for j in range(k + 1, n))) / rows[k][k]
    return x
