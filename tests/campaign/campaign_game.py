"""max over (C, a) in a ball of the least ridge objective, bracketed in extended precision.

    g(C, a) = min_β βᵀHβ - 2rᵀβ + c,   H = Q(C) + aH₀ + λI,  r = R(C) + a r₀,  c = S(C) + a c₀
    C ≽ 0,  a ≥ 0,  Tr C + a = 1,  ‖A(C) - (1 - a) b‖ ≤ ε

A barrier method in coordinates in which C and a are one. From below g of an interior point; from above the learner's
best response β with the prices y that the barrier gives: max(λmax(N(β) - A*y), R̂(β) - bᵀy) + bᵀy + ε‖y‖ + λ‖β‖².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from campaign_arithmetic import EPS, LONG, cholesky, lower_inverse, solve

_REDUCTION = LONG(0.15)


@dataclass(frozen=True)
class Game:
    """Q (l, l, s, s), R (l, s, s), S (s, s), H₀ (l, l), r₀ (l,), c₀, A (q, s, s), b (q,), ε, λ: extended precision."""

    Q: Any
    R: Any
    S: Any
    H0: Any
    r0: Any
    c0: Any
    A: Any
    b: Any
    radius: Any
    regularization: Any
    keeps_sample: bool = True

    def response(self, C, a):
        """The best β."""
        H = np.tensordot(self.Q, C, 2) + a * self.H0 + self.regularization * np.eye(len(self.r0), dtype=LONG)
        return H, solve(H, np.tensordot(self.R, C, 2) + a * self.r0)

    def losses(self, beta):
        """N(β) and R̂(β)."""
        N = np.tensordot(np.outer(beta, beta), self.Q, 2) - 2 * np.tensordot(beta, self.R, 1) + self.S
        return (N + N.T) / 2, beta @ self.H0 @ beta - 2 * self.r0 @ beta + self.c0

    def sizes(self, beta):
        """The same with absolute values, by which rounding is bounded."""
        B = np.abs(beta)
        N = np.tensordot(np.outer(B, B), np.abs(self.Q), 2) + 2 * np.tensordot(B, np.abs(self.R), 1) + np.abs(self.S)
        return N, B @ np.abs(self.H0) @ B + 2 * np.abs(self.r0) @ B + abs(self.c0)

    def away(self, C, a):
        return np.tensordot(self.A, C, 2) - (1 - a) * self.b

    def start(self):
        """An interior point, None where the simplest is none."""
        s = self.S.shape[0]
        even = np.eye(s, dtype=LONG) / s
        if not self.keeps_sample:
            return (even, LONG(0)) if self._length(even, 0) < LONG(0.95) * self.radius else None
        moved = min(LONG(0.5), LONG(0.5) * self.radius / max(self._length(even, 0), LONG(1e-30)))
        return moved * even, 1 - moved

    def _length(self, C, a):
        v = self.away(C, a)
        return np.sqrt(v @ v)


def value(game, beta=None):
    """The bracket of the game's value, or, of a given function β, of its worst case plus λ‖β‖²."""
    point = game.start()
    if point is None:
        return None
    C, a = point
    scale = abs(game.c0) + np.max(np.abs(game.S))
    mu, low, high, best = scale, LONG(-np.inf), LONG(np.inf), LONG(np.inf)
    while mu > 1e-20 * scale:
        for _ in range(30):
            C, a, length = _newton(game, C, a, mu, beta)
            if length < 0.3:
                break
        low, high = max(low, _below(game, C, a, beta)), min(high, _above(game, C, a, mu, beta))
        if high - low > 4 * best:
            break
        best = min(best, high - low)
        mu *= _REDUCTION
    return low, high


def _newton(game, C, a, mu, fixed):
    """One damped step, in D with dC = GDGᵀ and δ with da = aδ."""
    G = cholesky(C)
    s = C.shape[0]
    i, j = np.triu_indices(s)
    weight = np.where(i == j, LONG(1), np.sqrt(LONG(2)))

    def packed(M):
        return (G.T @ M @ G)[..., i, j] * weight

    H, beta = game.response(C, a) if fixed is None else (None, fixed)
    N, loss = game.losses(beta)
    v = game.away(C, a)
    room = game.radius**2 - v @ v
    dv = np.column_stack([packed(game.A), a * game.b])  # (q, k + 1)
    pull = v @ dv
    slope = np.append(packed(N), a * loss)
    gradient = -slope - mu * np.append(1.0 * (i == j), 1.0) + mu * 2 * pull / room
    curvature = mu * np.eye(i.size + 1, dtype=LONG) + mu * (2 * dv.T @ dv / room + 4 * np.outer(pull, pull) / room**2)
    if fixed is None:
        of_C = packed(game.R) - np.tensordot(beta, packed(game.Q), 1)
        change = np.column_stack([of_C, a * (game.r0 - game.H0 @ beta)])
        inverse = lower_inverse(cholesky(H))
        curvature = curvature + 2 * (inverse @ change).T @ (inverse @ change)
    trace = np.append(packed(np.eye(s, dtype=LONG)), a)
    if not game.keeps_sample:
        gradient, curvature, trace = gradient[:-1], curvature[:-1, :-1], trace[:-1]
    L = cholesky(curvature)
    if L is None:
        return C, a, LONG(0)
    inverse = lower_inverse(L)
    left, right = inverse.T @ (inverse @ gradient), inverse.T @ (inverse @ trace)
    step = -left + right * (trace @ left) / (trace @ right)
    return _moved(game, C, a, G, step, (i, j, weight))


def _moved(game, C, a, G, step, packing):
    i, j, weight = packing
    D = np.zeros_like(C)
    D[i, j] = step[: i.size] / weight
    D = D + np.triu(D, 1).T
    delta = step[-1] if game.keeps_sample else LONG(0)
    length = np.sqrt(step @ step)
    boundary = max(-np.linalg.eigvalsh(D.astype(np.float64))[0], -float(delta), 1e-30)
    t = min(LONG(1), LONG(0.8) / LONG(boundary))
    for _ in range(60):
        new, share = C + t * (G @ D @ G.T), a * (1 + t * delta)
        total = np.trace(new) + share
        new, share = new / total, share / total
        v = game.away(new, share)
        if v @ v < game.radius**2 and cholesky(new) is not None:
            return new, share, length
        t *= LONG(0.7)
    return C, a, LONG(0)


def _below(game, C, a, fixed):
    """The objective of an interior point, less rounding: for any β near the best by the strong convexity in β."""
    v = game.away(C, a)
    if not np.sqrt(v @ v) * (1 + 64 * EPS) + 64 * EPS * (1 + np.sqrt(game.b @ game.b)) <= game.radius:
        return LONG(-np.inf)
    beta = game.response(C, a)[1] if fixed is None else fixed
    N, loss = game.losses(beta)
    sizes = game.sizes(beta)
    lam = game.regularization
    found = np.sum(N * C) + a * loss + lam * beta @ beta
    error = 64 * C.size * len(beta) * EPS * (np.sum(sizes[0] * np.abs(C)) + a * sizes[1] + lam * beta @ beta)
    if fixed is None:
        H, _ = game.response(C, a)
        rest = H @ beta - np.tensordot(game.R, C, 2) - a * game.r0
        size = np.abs(H) @ np.abs(beta) + np.tensordot(np.abs(game.R), np.abs(C), 2) + a * np.abs(game.r0)
        rest = np.abs(rest) + 64 * C.size * len(beta) * EPS * size
        error += rest @ rest / lam
    return found - error


def _above(game, C, a, mu, fixed):
    """What β risks at most by the barrier's prices, plus the penalty and rounding."""
    beta = game.response(C, a)[1] if fixed is None else fixed
    v = game.away(C, a)
    y = 2 * mu * v / (game.radius**2 - v @ v)
    N, loss = game.losses(beta)
    sizes, size = game.sizes(beta)
    slack = N - np.tensordot(y, game.A, 1)
    unit = 64 * C.size * len(beta) * EPS
    rounding = unit * (np.sum(sizes + np.tensordot(np.abs(y), np.abs(game.A), 1), axis=1))
    top = _largest(slack + np.diag(rounding))
    if game.keeps_sample:
        top = max(top, loss - game.b @ y + unit * (size + np.abs(game.b) @ np.abs(y)))
    length = np.sqrt(y @ y)
    total = top + game.b @ y + game.radius * length + game.regularization * beta @ beta
    return total + unit * (abs(top) + np.abs(game.b) @ np.abs(y) + game.radius * length)


def _largest(S):
    """A number above the largest eigenvalue, proved by a factorisation, and nearly it."""
    unit = np.eye(S.shape[0], dtype=LONG)
    low = np.max(np.diag(S))
    width = max(abs(low), EPS * np.max(np.abs(S)), LONG(1e-300))
    high = low + width
    slack = 8 * (S.shape[0] + 2) * EPS * np.diag(np.abs(np.diag(S)))

    def proved(t):
        return cholesky(t * (1 - 8 * (S.shape[0] + 2) * EPS * np.sign(t)) * unit - S - slack) is not None

    while not proved(high):
        high, width = high + 2 * width, 2 * width
    for _ in range(75):
        middle = (low + high) / 2
        low, high = (low, middle) if proved(middle) else (middle, high)
    return high
