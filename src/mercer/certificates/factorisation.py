"""Bounds on eigenvalues of dense symmetric matrices that hold in floating point.

A Cholesky factorisation that runs to completion computes R with RᵀR = S + ΔS and |ΔS| ≤ γ |Rᵀ||R| entry by entry,
γ = (n+1)u/(1-(n+1)u) (Higham 2002, Theorem 10.3), so λmin(S) ≥ -γ ‖|Rᵀ||R|‖∞. The bound is componentwise: about 5e-12
at n = 2000, a hundred times below the one by traces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh, lapack
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

Array = np.ndarray[Any, np.dtype[Any]]

_UNIT = float(np.finfo(np.float64).eps) / 2
_TRIES = 60
_CHUNK = 512
_DENSE_UP_TO = 500
_BASIS = 60


def bound_largest_eigenvalue(M: Array, guess: float, *, entry_error: float, slack: float = 0.0) -> float:
    """A number that λmax of the symmetric matrix M provably does not exceed.

    ``guess`` is where to try first, and may be wrong: each failed factorisation raises it. ``entry_error`` bounds the
    norm of the rounding errors with which M was formed; ``slack`` is by how much, relative to the guess, the bound is
    raised at least once the guess has failed.
    """
    n = M.shape[0]
    size = max(abs(guess), float(np.max(np.abs(np.diagonal(M)), initial=0.0)), np.finfo(np.float64).tiny)
    margin = max(4 * n * _UNIT, 1e-14) * size
    for _ in range(_TRIES):
        proved = _rounding_of_proof(M, guess + margin)
        if proved is not None:
            return guess + margin + proved + entry_error
        margin = max(4 * margin, slack * size)
    raise ArithmeticError("No factorisation succeeded: the matrix is not symmetric or not finite.")


def _rounding_of_proof(M: Array, value: float) -> float | None:
    """If value·I - M factors: a bound on how far below zero its least eigenvalue can lie. None if it does not."""
    S = -M
    S[np.diag_indices_from(S)] += value
    R, info = lapack.dpotrf(S.T, lower=0, clean=0, overwrite_a=1)
    if info != 0:
        return None
    bound = _componentwise_bound(R)
    return bound if np.isfinite(bound) else None  # some LAPACKs factor NaN without complaint


def _componentwise_bound(R: Array) -> float:
    """γ ‖|Rᵀ||R|‖∞ for an upper triangular R, whose lower triangle is not looked at."""
    n = R.shape[0]
    row_sums = np.empty(n)
    for lo in range(0, n, _CHUNK):
        row_sums[lo : lo + _CHUNK] = np.abs(np.triu(R[lo : lo + _CHUNK], lo)).sum(axis=1)
    products = np.zeros(n)
    for lo in range(0, n, _CHUNK):
        products += row_sums[lo : lo + _CHUNK] @ np.abs(np.triu(R[lo : lo + _CHUNK], lo))
    gamma = (n + 1) * _UNIT / (1 - (n + 1) * _UNIT)
    return 1.01 * gamma * float(products.max(initial=0.0))


def estimate_largest_eigenvalue(M: Array, start: Array) -> float:
    """About λmax(M), from below and with no promise: dense for small matrices, else Lanczos from a start near it."""
    n = M.shape[0]
    if n <= _DENSE_UP_TO:
        return float(eigh(M, eigvals_only=True, subset_by_index=[n - 1, n - 1], driver="evx")[0])  # evr may fail
    try:
        return float(
            eigsh(M, k=1, which="LA", v0=start, ncv=_BASIS, maxiter=20, tol=1e-10, return_eigenvectors=False)[0]
        )
    except ArpackNoConvergence:
        return float(start @ (M @ start) / (start @ start))


def least_eigenvalues(S: Array, count: int, shift: float, rng: np.random.Generator) -> Array:
    """The least eigenvalues of a symmetric matrix S, by Lanczos on the inverse of S + shift·I; dense for small ones.

    ``shift`` should make S + shift·I positive definite; it is raised where it does not. The values are estimates.
    """
    n = S.shape[0]
    if n <= 256:
        return np.linalg.eigvalsh(S)[:count]
    shift = max(shift, 1e-9 * float(np.max(np.abs(np.diagonal(S)))))
    info = 1
    while info != 0:
        shifted = S.copy()
        shifted[np.diag_indices_from(shifted)] += shift
        R, info = lapack.dpotrf(shifted.T, lower=0, clean=0, overwrite_a=1)
        shift *= 1 if info == 0 else 4
    solve = LinearOperator((n, n), matvec=lambda v: lapack.dpotrs(R, v, lower=0)[0].ravel(), dtype=np.float64)
    values = eigsh(solve, k=count, which="LA", v0=rng.standard_normal(n), tol=1e-8, return_eigenvectors=False)
    return np.sort(1 / values - shift)
