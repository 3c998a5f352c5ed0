"""max ⟨J, X⟩ over X ≽ 0 with diag X = 1, bracketed by a primal and a dual point in extended precision.

The interior-point method of Helmberg, Rendl, Vanderbei and Wolkowicz (1996): X and y with Z = Diag(y) - J ≻ 0. The
bracket believes nothing of how it went: X is factored and its rows brought to unit length, Z is factored.
"""

from __future__ import annotations

from typing import NamedTuple

import mpmath
import numpy as np
from campaign_arithmetic import EPS, LONG, cholesky, lower_inverse, solve, to_long

_STEPS = 80
_ENOUGH = 1e-18
_NOTHING = mpmath.mpf(10) ** -60  # of k(x, x)/m(x): what seventy digits make of a length that is zero


class Bracket(NamedTuple):
    """t_lo ≤ optimum ≤ t_hi."""

    low: float
    high: float


def diffusion_matrix(K, w):
    """W^½ (A - v₀v₀ᵀ) W^½ from K and w to seventy digits."""
    n = len(w)
    m = [sum(K[i, j] * w[j] for j in range(n)) for i in range(n)]
    volume = sum(w[i] * m[i] for i in range(n))
    outer, inner = (np.array([mpmath.sqrt(x) for x in part], object) for part in _roots(w, m, volume))
    return outer[:, None] * K * outer - inner[:, None] * inner


def _roots(w, m, volume):
    return [w[i] / m[i] for i in range(len(w))], [w[i] * m[i] / volume for i in range(len(w))]


def complement(M, Q):
    """P M P with P = I - QQᵀ as the entries of Q make it, to seventy digits."""
    P = -Q.dot(Q.T)
    P[np.diag_indices(len(P))] += 1
    return P.dot(M).dot(P)


def programme(M, size):
    """J = Diag(√d) M Diag(√d), d = diag M, of the rows with d > 0, and which they are.

    Rows to which an indefinite matrix gives a negative d take no part, as the library documents it; ``size`` is what
    the differences in d are of.
    """
    rows = np.array([i for i in range(len(M)) if M[i, i] > _NOTHING * size[i]], int)
    s = np.array([mpmath.sqrt(M[i, i]) for i in rows], object)
    return s[:, None] * M[np.ix_(rows, rows)] * s, rows


def embedding_matrix(K, w):
    """J of the embedding, and its rows, from K and w."""
    M = diffusion_matrix(K, w)
    size = [K[i, i] * w[i] / sum(K[i, j] * w[j] for j in range(len(w))) for i in range(len(w))]
    return programme(M, size)


def optimum(J):
    """The bracket of the optimum of J, an object array of mpf."""
    scale = max((abs(x) for x in np.ravel(J)), default=0)
    if scale == 0:
        return Bracket(LONG(0), LONG(0))
    unit = mpmath.mpf(2) ** mpmath.floor(mpmath.log(scale, 2))  # exactly, so that no digit is lost to it
    J = to_long(J / unit)
    X, y = _interior_point(J)
    back = LONG(2) ** int(mpmath.log(unit, 2))
    return Bracket(_primal(J, X) * back, _dual(J, y) * back)


def value(J, H):
    """⟨J, HHᵀ⟩ for rows of H brought to unit length, and a bound on what extended precision makes of it.

    A row of zeros has the first axis for its direction, as in the library.
    """
    H = np.array(H, LONG)
    H[~np.any(H, axis=1), 0] = 1
    H = H / np.sqrt(np.sum(H * H, axis=1))[:, None]
    J = to_long(J)
    return np.sum(J * (H @ H.T)), 8 * (H.shape[1] + H.shape[0] + 4) * EPS * np.sum(np.abs(J))


def _interior_point(J):
    n = J.shape[0]
    X = np.eye(n, dtype=LONG)
    y = LONG(1.1) * np.sum(np.abs(J), axis=1)
    y = np.maximum(y, LONG(1e-30))
    best = None
    for _ in range(_STEPS):
        Z = np.diag(y) - J
        factor = cholesky(Z)
        if factor is None:  # at the end of what extended precision can tell
            break
        inverse = lower_inverse(factor)
        inverse = inverse.T @ inverse
        gap = np.sum(Z * X)
        if best is None or gap < best[0]:
            best = gap, X, y
        if gap <= _ENOUGH * abs(np.sum(y)):
            break
        moved = _step(J, X, y, Z, inverse, gap / n / 4)
        if moved is None:
            break
        X, y = moved
    return best[1:]


def _step(J, X, y, Z, inverse, mu):
    n = J.shape[0]
    system = inverse * X
    if cholesky(system) is None:
        return None
    dy = solve(system, mu * np.diag(inverse) - 1)
    moved = (inverse * dy) @ X
    dX = -(moved + moved.T) / 2 + mu * inverse - X
    primal, dual = step_length(X, dX), step_length(Z, np.diag(dy))
    if min(primal, dual) < 1e-6:
        return None
    X = X + primal * dX
    X[np.diag_indices(n)] = 1
    return X, y + dual * dy


def step_length(S, D):
    """A step that keeps S + tD positive definite: nearly the longest, at most one."""
    t = LONG(1)
    for _ in range(60):
        if cholesky(S + t * D) is not None:
            return t if t == 1 else LONG(0.9) * t
        t *= LONG(0.8)
    return LONG(0)


def _primal(J, X):
    """The best value of some feasible points near X, less what rounding can make of it."""
    n = J.shape[0]
    best = np.trace(J)
    for H in (*_rooted(X), _principal(X)):
        for _ in range(3):
            H = H / np.sqrt(np.sum(H * H, axis=1))[:, None]
            best = max(best, np.sum(J * (H @ H.T)))
            H = _turned(J, H)
    return best - 8 * (2 * n + 4) * EPS * np.sum(np.abs(J))


def _rooted(X):
    """Cholesky factors of X with hardly anything added to its diagonal."""
    for power in range(4):
        L = cholesky(X + LONG(10) ** (power - 19) * np.eye(X.shape[0], dtype=LONG))
        if L is not None:
            yield L
            return


def _principal(X):
    values, vectors = np.linalg.eigh(X.astype(np.float64))
    kept = values > 1e-12 * values[-1]
    return vectors[:, kept].astype(LONG) * np.sqrt(values[kept])


def _turned(J, H):
    """Every row in turn brought into its best direction."""
    H = H.copy()
    for i in range(H.shape[0]):
        g = J[i] @ H - J[i, i] * H[i]
        length = np.sqrt(np.sum(g * g))
        if length > 0:
            H[i] = g / length
    return H


def _dual(J, y):
    """Σy, made larger by what rounding of J (relative, entry by entry) and of the factorisation can hide."""
    n = J.shape[0]
    slack = 4 * (n + 2) * EPS
    raised = y + slack * (np.abs(y) + np.abs(np.diag(J))) + 2 * EPS * np.sum(np.abs(J), axis=1)
    if cholesky(np.diag(y) - J) is None:
        return LONG(np.inf)
    return np.sum(raised) * (1 + 4 * n * EPS)
