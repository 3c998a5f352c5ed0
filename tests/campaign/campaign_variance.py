"""max Tr B over centred B ≽ 0 with prescribed or bounded distances, bracketed in extended precision.

In an orthonormal basis P of the complement of the constant, B = P X Pᵀ, and the programme is max Tr X subject to
⟨Aₑ, X⟩ = cₑ (or ≤), Aₑ = (Pᵀbₑ)(Pᵀbₑ)ᵀ; its dual is min cᵀw subject to Σ wₑAₑ ≽ I (and w ≥ 0). The bracket believes
nothing of how it was found: X is brought onto the constraints and factored, Σ wₑAₑ - I is factored.
"""

from __future__ import annotations

import numpy as np
from campaign_arithmetic import EPS, LONG, cholesky, lower_inverse, solve
from campaign_elliptope import Bracket

_STEPS = 60


def optimum(n, edges, squares, *, equal):
    """The bracket for n points, pairs of rows and squared distances, each exactly the float that is given."""
    c = np.array(squares, LONG)
    unit = np.max(c)
    c, V = c / unit, _edge_vectors(n, edges)
    found = _iterates(V, c, equal)
    low, high = max(_primal(V, c, X, equal) for X, _ in found), min(_dual(V, c, w, equal) for _, w in found)
    return Bracket(low * unit, high * unit)


def _edge_vectors(n, edges):
    """The rows Pᵀbₑ: P the Helmert basis, which is exactly orthonormal but for the rounding of its roots."""
    P = np.zeros((n, n - 1), LONG)
    for k in range(1, n):
        P[:k, k - 1], P[k, k - 1] = 1, -k
        P[:, k - 1] /= np.sqrt(LONG(k * (k + 1)))
    return np.array([P[i] - P[j] for i, j in edges])


def _iterates(V, c, equal):
    """Pairs of X ≻ 0 and w on the way to the optimum, by the direction of Helmberg, Kojima and Monteiro."""
    m, p = V.shape
    X = np.eye(p, dtype=LONG)
    w = np.full(m, LONG(2)) / np.min(np.linalg.eigvalsh((V.T @ V).astype(float)))
    s = np.ones(m, LONG)
    found = []
    for _ in range(_STEPS):
        Z = (V.T * w) @ V - np.eye(p, dtype=LONG)
        factor = cholesky(Z)
        if factor is None:
            break
        inverse = lower_inverse(factor)
        inverse = inverse.T @ inverse
        short = c - np.sum((V @ X) * V, axis=1) - (0 if equal else s)
        gap = np.sum(Z * X) + (0 if equal else np.sum(s * w))
        found.append((X, w))
        if gap + np.sum(np.abs(short)) < 1e-17 * np.sum(c * np.abs(w)):
            break
        moved = _step(V, c, X, w, s, Z, inverse, gap / ((p + (0 if equal else m)) * 5), short, equal)
        if moved is None:
            break
        X, w, s = moved
    return found


def _step(V, c, X, w, s, Z, inverse, mu, short, equal):
    """One step to the centre of parameter mu: ⟨Aₑ, X + dX⟩ + s + ds = c, with dX = mu Z⁻¹ - X - X dZ Z⁻¹."""
    G, F = V @ inverse @ V.T, V @ X @ V.T
    system = G * F
    right = mu * np.diag(G) - np.diag(F) - short
    if not equal:  # s w = mu: ds = mu/w - s - (s/w) dw
        system = system + np.diag(s / w)
        right = right + (mu / w - s)
    system = (system + system.T) / 2
    lift = LONG(1e-19) * np.max(np.diag(system)) * np.eye(len(system), dtype=LONG)
    if cholesky(system + lift) is None:
        return None
    dw = solve(system + lift, right)
    dZ = (V.T * dw) @ V
    moved = X @ dZ @ inverse
    dX = mu * inverse - X - (moved + moved.T) / 2
    primal, dual = _length(X, dX), _length(Z, dZ)
    if not equal:
        ds = mu / w - s - s / w * dw
        primal, dual = min(primal, _ratio(s, ds)), min(dual, _ratio(w, dw))
        s = s + primal * ds
    if max(primal, dual) < 1e-6:
        return None
    return X + primal * dX, w + dual * dw, s


def _length(S, D):
    t = LONG(1)
    for _ in range(60):
        if cholesky(S + t * D) is not None:
            return t if t == 1 else LONG(0.9) * t
        t *= LONG(0.8)
    return LONG(0)


def _ratio(s, ds):
    falling = ds < 0
    return min(LONG(1), LONG(0.9) * np.min(-s[falling] / ds[falling])) if np.any(falling) else LONG(1)


def _primal(V, c, X, equal):
    """Tr X of a point that meets the constraints, less what rounding can make of it; minus infinity without one."""
    if not equal:
        most = np.max(np.sum((V @ X) * V, axis=1) / c)
        return np.trace(X) / most * (1 - 100 * len(X) ** 2 * EPS)
    gram = (V @ V.T) ** 2  # ⟨Aₑ, A_f⟩
    for _ in range(3):
        short = c - np.sum((V @ X) * V, axis=1)
        lam = np.linalg.lstsq(gram.astype(float), short.astype(float), rcond=1e-10)[0].astype(LONG)
        X = X + (V.T * lam) @ V
    short = np.max(np.abs(c - np.sum((V @ X) * V, axis=1)))
    enough = 1e4 * EPS * np.sum(np.abs(X)) + short
    if cholesky(X) is None or short > 1e-16 * np.max(c):
        return -LONG(np.inf)
    return np.trace(X) - 10 * len(X) * enough


def _dual(V, c, w, equal):
    """cᵀw / λ for the λ that Σ wₑAₑ - λI is positive definite with, less what rounding can hide."""
    if not equal and np.any(w < 0):
        return LONG(np.inf)
    S = (V.T * w) @ V
    error = 50 * len(S) * EPS * np.sum((np.abs(V).T * np.abs(w)) @ np.abs(V))
    lam = LONG(1) - 2 * error
    if cholesky(S - (lam + error) * np.eye(len(S), dtype=LONG)) is None:
        return LONG(np.inf)
    return np.sum(c * w) / lam * (1 + 1e-17) + 10 * EPS * np.sum(np.abs(c * w))
