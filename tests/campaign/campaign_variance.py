"""max Σ mᵢ‖yᵢ - ȳ‖² over points whose pairs have squared distances between bounds, bracketed in extended precision.

In an orthonormal basis P of the complement of the constant, B = P X Pᵀ up to a translation, and the variance is
⟨C, X⟩ with C = RᵀR. With X' = R X Rᵀ the programme is max Tr X' subject to sₑ⟨Aₑ, X'⟩ ≤ cₑ, Aₑ = vₑvₑᵀ, an upper bound
having s = 1 and a lower one s = -1; its dual is min cᵀw subject to Σ sₑwₑAₑ ≽ I and w ≥ 0. The bracket believes nothing
of how it was found: X' is brought inside the bounds, Σ sₑwₑAₑ - I is factored.
"""

from __future__ import annotations

import numpy as np
from campaign_arithmetic import EPS, LONG, cholesky, lower_inverse, solve, to_long
from campaign_elliptope import Bracket, step_length

_STEPS = 80


def optimum(edges, lower, upper, masses):
    """The bracket for pairs of rows, bounds and masses, these as object arrays of mpf."""
    unit = max(upper)
    V, s, c = _constraints(edges, to_long(lower / unit), to_long(upper / unit), to_long(masses / max(masses)))
    found = _iterates(V, s, c)
    low, high = max(_primal(V, s, c, X) for X, _ in found), min(_dual(V, s, c, w) for _, w in found)
    scale = to_long(np.array([unit * max(masses)], object))[0]
    return Bracket(low * scale * (1 - 8 * EPS), high * scale * (1 + 8 * EPS))


def _constraints(edges, lower, upper, masses):
    """The vectors vₑ, signs and right-hand sides of all bounds."""
    n = len(masses)
    P = np.zeros((n, n - 1), LONG)
    for k in range(1, n):
        P[:k, k - 1], P[k, k - 1] = 1, -k
        P[:, k - 1] /= np.sqrt(LONG(k * (k + 1)))
    C = (P.T * masses) @ P - np.outer(P.T @ masses, P.T @ masses) / np.sum(masses)
    inverse = lower_inverse(cholesky(C))  # C = LLᵀ, R = Lᵀ, and ⟨A, X⟩ = ⟨R⁻ᵀAR⁻¹, X'⟩
    V = np.array([inverse @ (P[i] - P[j]) for i, j in edges])
    held = lower > 0
    return (
        np.vstack([V, V[held]]),
        np.r_[np.ones(len(V)), -np.ones(held.sum())].astype(LONG),
        np.r_[upper, -lower[held]],
    )


def _iterates(V, s, c):
    """Pairs of X ≻ 0 and w on the way to the optimum, by the direction of Helmberg, Kojima and Monteiro."""
    m, p = V.shape
    X = np.eye(p, dtype=LONG)
    w = np.where(s > 0, LONG(4), LONG(1)) / np.min(np.linalg.eigvalsh((V[s > 0].T @ V[s > 0]).astype(float)))
    slack = np.ones(m, LONG)
    found = []
    for _ in range(_STEPS):
        Z = (V.T * (s * w)) @ V - np.eye(p, dtype=LONG)
        factor = cholesky(Z)
        if factor is None:
            break
        inverse = lower_inverse(factor)
        inverse = inverse.T @ inverse
        short = c - s * np.sum((V @ X) * V, axis=1) - slack
        gap = np.sum(Z * X) + np.sum(slack * w)
        found.append((X, w))
        if gap + np.sum(np.abs(short)) < 1e-17 * np.sum(np.abs(c) * w):
            break
        moved = _step(V, s, X, w, slack, Z, inverse, gap / ((p + m) * 5), short)
        if moved is None:
            break
        X, w, slack = moved
    return found


def _step(V, s, X, w, slack, Z, inverse, mu, short):
    """One step to the centre of parameter mu: dX = mu Z⁻¹ - X - X dZ Z⁻¹, and slack · w = mu."""
    G, F = V @ inverse @ V.T, V @ X @ V.T
    system = s[:, None] * G * F * s + np.diag(slack / w)
    right = s * (mu * np.diag(G) - np.diag(F)) - short + (mu / w - slack)
    system = (system + system.T) / 2
    lift = LONG(1e-19) * np.max(np.diag(system)) * np.eye(len(system), dtype=LONG)
    if cholesky(system + lift) is None:
        return None
    dw = solve(system + lift, right)
    dZ = (V.T * (s * dw)) @ V
    moved = X @ dZ @ inverse
    dX = mu * inverse - X - (moved + moved.T) / 2
    ds = mu / w - slack - slack / w * dw
    primal = min(step_length(X, dX), _ratio(slack, ds))
    dual = min(step_length(Z, dZ), _ratio(w, dw))
    if max(primal, dual) < 1e-6:
        return None
    return X + primal * dX, w + dual * dw, slack + primal * ds


def _ratio(values, change):
    falling = change < 0
    return min(LONG(1), LONG(0.9) * np.min(-values[falling] / change[falling])) if np.any(falling) else LONG(1)


def _primal(V, s, c, X):
    """Tr X of a point inside the bounds, less what rounding can make of it; minus infinity without one."""
    squares = np.sum((V @ X) * V, axis=1)
    error = 20 * len(X) * EPS * np.sum((np.abs(V) @ np.abs(X)) * np.abs(V), axis=1)
    above = s > 0
    scale = np.min(c[above] / (squares[above] + error[above]))
    scale = min(scale, 1 + LONG(1e-9))
    if np.any(scale * (squares[~above] - error[~above]) < -c[~above]):
        return -LONG(np.inf)
    return np.trace(X) * scale * (1 - 100 * len(X) * EPS)


def _dual(V, s, c, w):
    """cᵀw / λ for the λ that Σ sₑwₑAₑ - λI is positive definite with, less what rounding can hide."""
    if np.any(w < 0):
        return LONG(np.inf)
    S = (V.T * (s * w)) @ V
    error = 50 * len(S) * EPS * np.sum((np.abs(V).T * w) @ np.abs(V))
    lam = LONG(1) - 2 * error
    if lam <= 0 or cholesky(S - (lam + error) * np.eye(len(S), dtype=LONG)) is None:
        return LONG(np.inf)
    return np.sum(c * w) / lam + 20 * EPS * np.sum(np.abs(c) * w)
