"""An interior-point method for max ⟨J, X⟩, X ≽ 0, diag X = 1, that shares no line of code with the library.

Helmberg, Rendl, Vanderbei, Wolkowicz (1996). It returns a primal and a dual feasible point, checked by dense eigenvalues,
so the optimum lies between two numbers about 1e-10 apart: a bracket of its own, in some milliseconds for n ≤ 25.
"""

from __future__ import annotations

import numpy as np


def bracket(J: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Numbers below and above the optimum, and the primal solution X."""
    n = len(J)
    size = max(float(np.abs(J).sum()), np.finfo(float).tiny)
    C = (J + J.T) / (2 * size)
    X, y = np.eye(n), 1.1 * np.abs(C).sum(axis=1) + 1e-3
    mu = float(np.sum((np.diag(y) - C) * X)) / (2 * n)
    for _ in range(60):
        inverse = np.linalg.inv(np.diag(y) - C)
        dy = np.linalg.solve(inverse * X, mu * np.diag(inverse) - 1)
        dX = mu * inverse - X - inverse @ (dy[:, None] * X)
        dX = (dX + dX.T) / 2
        primal, dual = _step(X, dX), _step(np.diag(y) - C, np.diag(dy))
        X, y = X + primal * dX, y + dual * dy
        gap = float(np.sum((np.diag(y) - C) * X))
        if gap < 1e-13:
            break
        mu = gap / (2 * n) / (4 if primal + dual > 1.8 else 1)
    X = X / np.sqrt(np.outer(np.diag(X), np.diag(X)))
    lower = float(np.sum(C * X))
    upper = float(y.sum()) + n * max(0.0, -np.linalg.eigvalsh(np.diag(y) - C)[0])
    slack = 1e-14
    return size * (lower - slack), size * (upper + slack), X


def _step(S: np.ndarray, direction: np.ndarray) -> float:
    alpha = 1.0
    while not _positive(S + alpha * direction):
        alpha *= 0.8
        if alpha < 1e-12:
            return 0.0
    return alpha if alpha == 1.0 else 0.95 * alpha


def _positive(S: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        return False
    return True
