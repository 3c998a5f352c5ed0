"""Lanczos on the complement of a known subspace, with full reorthogonalisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal

Array = np.ndarray[Any, np.dtype[Any]]


def largest_ritz_value(
    multiply: Callable[[Array], Array], basis: Array, steps: int, rng: np.random.Generator
) -> tuple[float, int]:
    """The largest Ritz value of (I - QQᵀ) M (I - QQᵀ) from a random start in the complement of Q.

    Parameters
    ----------
    multiply : callable
        v ↦ M v for a symmetric M.
    basis : array of shape (n, q)
        Q, with orthonormal columns; q may be 0.
    steps : int
        Dimension of the Krylov space at most.
    rng : numpy.random.Generator
        The start is Gaussian, hence uniform in direction and independent of M and Q.

    Returns
    -------
    value : float
        The Ritz value; minus infinity if the complement is empty.
    dimension : int
        The dimension k of the Krylov space, which is also the number of products. It is smaller than ``steps`` where
        the space closed, and then the value is an eigenvalue.
    """
    n, q = basis.shape
    steps = min(steps, n - q)
    if steps < 1:
        return -np.inf, 0
    V = np.empty((n, steps))
    v = _orthogonal(_orthogonal(rng.standard_normal(n), basis), basis)
    alpha, beta = np.empty(steps), np.empty(steps)
    for k in range(steps):
        V[:, k] = v / np.linalg.norm(v)
        w = _orthogonal(multiply(V[:, k]), basis)
        alpha[k] = V[:, k] @ w
        for _ in range(2):  # twice is enough (Kahan, Parlett)
            w = _orthogonal(_orthogonal(w, V[:, : k + 1]), basis)
        beta[k] = np.linalg.norm(w)
        if beta[k] <= 1e-14 * max(np.abs(alpha[: k + 1]).max(), np.finfo(np.float64).tiny):
            steps = k + 1
            break
        v = w
    ritz = eigh_tridiagonal(alpha[:steps], beta[: steps - 1], eigvals_only=True)
    return float(ritz[-1]), steps


def _orthogonal(v: Array, basis: Array) -> Array:
    return v - basis @ (basis.T @ v)
