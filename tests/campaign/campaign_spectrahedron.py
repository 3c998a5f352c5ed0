"""min ‖A(C) - b‖² + ⟨R, C⟩ over C ≽ 0 with Tr C = 1, bracketed in extended precision.

A barrier method: Newton steps in the coordinates in which C is the identity, so that a rank-deficient optimum does no
harm. The bracket is the value at C and the least of the tangent over the spectrahedron, an eigenvalue that is proved by
a factorisation.
"""

from __future__ import annotations

import numpy as np
from campaign_arithmetic import EPS, LONG, cholesky, lower_inverse

_REDUCTION = 0.15


def minimum(A, b, R):
    """(t_lo, t_hi) for A of shape (q, s, s), b of shape (q,), R of shape (s, s), all in extended precision."""
    s = R.shape[0]
    scale = np.sum(b * b) + np.max(np.abs(R)) + np.max(np.abs(A)) ** 2
    C, mu = np.eye(s, dtype=LONG) / s, scale
    low, high = LONG(-np.inf), LONG(np.inf)
    best = LONG(np.inf)
    while mu > 1e-21 * scale:
        for _ in range(25):
            C, size = _newton(A, b, R, C, mu)
            if size < 0.3:
                break
        tangent, value, error = _bounds(A, b, R, C)
        low, high = max(low, tangent - error), min(high, value + error)
        if high - low > 4 * best:
            break
        best = min(best, high - low)
        mu *= LONG(_REDUCTION)
    return low, high


def _newton(A, b, R, C, mu):
    """One damped step of f(C) - μ log det C on Tr C = 1, and its length."""
    s = R.shape[0]
    G = cholesky(C)
    if G is None:
        return C, LONG(0)
    i, j = np.triu_indices(s)
    weight = np.where(i == j, LONG(1), np.sqrt(LONG(2)))
    inside = np.array([G.T @ each @ G for each in A])[:, i, j] * weight
    residual = np.tensordot(A, C, 2) - b
    gradient = (G.T @ (2 * np.tensordot(residual, A, 1) + R) @ G)[i, j] * weight - mu * (i == j)
    H = 2 * inside.T @ inside + mu * np.eye(i.size, dtype=LONG)
    trace = (G.T @ G)[i, j] * weight
    L = cholesky(H)
    if L is None:
        return C, LONG(0)
    inverse = lower_inverse(L)
    left, right = inverse.T @ (inverse @ gradient), inverse.T @ (inverse @ trace)
    step = -left + right * (trace @ left) / (trace @ right)
    D = np.zeros((s, s), LONG)
    D[i, j] = step / weight
    D = D + np.triu(D, 1).T
    length = np.sqrt(np.sum(step * step))
    towards_boundary = -np.linalg.eigvalsh(D.astype(np.float64))[0]
    D = D * min(LONG(1), LONG(0.8) / LONG(max(towards_boundary, 1e-30)))
    C = C + G @ D @ G.T
    C = (C + C.T) / 2
    return C / np.trace(C), length


def _bounds(A, b, R, C):
    """The tangent's least value, f(C), and a bound on the rounding of both.

    What rounding does to an entry of the gradient is taken off its diagonal, row by row, before it is factored, and so
    is the backward error of the factorisation, relative to the diagonal: a large entry of R costs nothing elsewhere.
    """
    s, unit = R.shape[0], 8 * (R.shape[0] ** 2 + len(b) + 4) * EPS
    residual = np.tensordot(A, C, 2) - b
    sizes = np.tensordot(np.abs(A), np.abs(C), 2) + np.abs(b)
    value = np.sum(residual * residual) + np.sum(R * C)
    gradient = 2 * np.tensordot(residual, A, 1) + R
    entries = 2 * np.tensordot(sizes, np.abs(A), 1) + np.abs(R)
    slack = unit * (np.sum(entries, axis=1) + np.abs(np.diag(gradient)))
    theta = _least(gradient - np.diag(slack), s)
    error = unit * (np.sum(sizes * sizes) + np.sum(entries * np.abs(C)) + abs(theta))
    return value - np.sum(gradient * C) + theta, value, error


def _least(S, n):
    """A number that a factorisation proves to be below the least eigenvalue, by bisection nearly that."""
    unit = np.eye(n, dtype=LONG)
    high = np.min(np.diag(S))
    width = max(abs(high), EPS * np.max(np.abs(S)), LONG(1e-300))
    low = high - width
    while cholesky(S - low * unit) is None:
        low, width = low - 2 * width, 2 * width
    for _ in range(75):
        middle = (low + high) / 2
        low, high = (middle, high) if cholesky(S - middle * unit) is not None else (low, middle)
    return low
