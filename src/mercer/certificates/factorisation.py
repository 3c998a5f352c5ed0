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
_RESTARTS, _SWEEPS = 10, 20
_INSIDE = 0.99  # the inverse of the least distance is found from below, to about a thousandth


def bound_largest_eigenvalue(M: Array, guess: float, *, slack: float = 0.0) -> float:
    """A number that λmax of the symmetric matrix M provably does not exceed.

    ``guess`` is where to try first, and may be wrong: each failed factorisation raises it, by ``slack`` relative to the
    guess at least. A factor that was found in this way then tells by Lanczos on its inverse where λmax lies, and the
    proof is made once more just above it.
    """
    n = M.shape[0]
    size = max(abs(guess), float(np.max(np.abs(np.diagonal(M)), initial=0.0)), np.finfo(np.float64).tiny)
    least = margin = max(4 * n * _UNIT, 1e-14) * size
    for attempt in range(_TRIES):
        value = guess + margin
        proof = _proof(M, value)
        if proof is not None:
            bound, R = proof
            return value + bound if attempt == 0 else min(value + bound, _sharpened(M, value, R, least))
        margin = max(4 * margin, slack * size)
    raise ArithmeticError("No factorisation succeeded: the matrix is not symmetric or not finite.")


def _sharpened(M: Array, value: float, R: Array, least: float) -> float:
    """The bound just above λmax, found by inverse iteration from a factor of value·I - M; infinite if that fails."""
    n = M.shape[0]
    solve = LinearOperator((n, n), matvec=lambda v: lapack.dpotrs(R, v, lower=0)[0].ravel(), dtype=np.float64)
    if n <= 2:
        return np.inf
    start, basis = np.random.default_rng(0).standard_normal(n), min(n, _BASIS)
    try:
        values = eigsh(
            solve, k=1, which="LA", v0=start, ncv=basis, maxiter=_RESTARTS, tol=1e-3, return_eigenvectors=False
        )
    except ArpackNoConvergence:
        return np.inf
    guess = value - _INSIDE / float(values[0])
    for margin in (least, 16 * least, 256 * least):
        proof = _proof(M, guess + margin) if guess + margin < value else None
        if proof is not None:
            return guess + margin + proof[0]
    return np.inf


def _proof(M: Array, value: float) -> tuple[float, Array] | None:
    """If value·I - M factors: a bound on how far below zero its least eigenvalue can lie, and the factor; else None."""
    S = -M
    S[np.diag_indices_from(S)] += value
    formed = _UNIT * float(np.max(np.abs(np.diagonal(S)), initial=0.0))  # of the subtraction on the diagonal
    R, info = lapack.dpotrf(S.T, lower=0, clean=0, overwrite_a=1)
    if info != 0:
        return None
    bound = _componentwise_bound(R) + formed
    return (bound, R) if np.isfinite(bound) else None  # some LAPACKs factor NaN without complaint


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
        try:
            return float(eigh(M, eigvals_only=True, subset_by_index=[n - 1, n - 1], driver="evx")[0])  # evr may fail
        except np.linalg.LinAlgError:  # bisection gives up on some matrices with an eigenvalue of high multiplicity
            return float(np.linalg.eigvalsh(M)[-1])
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
    start = rng.standard_normal(n)
    try:
        values = eigsh(
            solve, k=count, which="LA", v0=start, ncv=_BASIS, maxiter=_RESTARTS, tol=1e-8, return_eigenvectors=False
        )
    except ArpackNoConvergence:  # many eigenvalues close to zero, as where points are nearly isolated
        Q = rng.standard_normal((n, 4 * count))
        for _ in range(_SWEEPS):
            Q, _ = np.linalg.qr(lapack.dpotrs(R, Q, lower=0)[0])
        values = np.linalg.eigvalsh(Q.T @ lapack.dpotrs(R, Q, lower=0)[0])[-count:]
    return np.sort(1 / values - shift)
