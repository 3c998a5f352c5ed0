"""Dense symmetric matrices inside the cone: factors, inverses, products on threads, and how far a step stays inside.

What the interior-point methods of the elliptope and of the kernelised programme share. NumPy's matrices go through
LAPACK in place and on our own threads, tensors through the same factors of their library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas, eigh_tridiagonal, lapack

from mercer.backends.arrays import Array, add_to_diagonal, cholesky, is_tensor, namespace, solve_triangular
from mercer.backends.chunks import row_chunks
from mercer.backends.rounding import EPS, TINY
from mercer.backends.threads import run_chunks

_LANCZOS, _LANCZOS_ERROR = 30, 0.05
_CHUNK = 256
_BACK, _TRIES = 0.7, 40  # shortening a step
_DAMPING, _MORE_DAMPING, _DAMPINGS = 4.0, 100.0, 6  # of a linear system, in units of rounding


def identity_like(J: Array) -> Array:
    """The identity of the order of a matrix, where that lies."""
    xp = namespace(J)
    return xp.eye(J.shape[0], dtype=xp.float64, device=J.device)


def product(left: Array, right: Array) -> Array:
    """The product of two square matrices; NumPy's on our own threads."""
    if is_tensor(left):
        return left @ right
    out = np.empty_like(right)
    run_chunks(lambda rows: np.matmul(left[rows], right, out=out[rows]), row_chunks(len(out), _CHUNK))
    return out


def shortened(part: float, matrix: Callable[[float], Array]) -> tuple[float, Array | None]:
    """The part of a step, shortened until its matrix factors, and the factor; None where nothing helps."""
    for _ in range(_TRIES):
        factor = lower_factor(matrix(part))
        if factor is not None:
            return part, factor
        part *= _BACK
    return part, None


def lower_factor(S: Array) -> Array | None:
    """The lower Cholesky factor, None where there is none; what lies above the diagonal is left over."""
    if is_tensor(S):
        try:
            L = cholesky(S)
        except np.linalg.LinAlgError:
            return None
        return L if bool(L.diagonal().isfinite().all()) else None
    L, info = lapack.dpotrf(S.T, lower=1, clean=0, overwrite_a=1)
    return L if info == 0 and np.all(np.isfinite(np.diagonal(L))) else None


def inverse_of(L: Array) -> Array:
    """The inverse of LLᵀ, both triangles filled."""
    if is_tensor(L):
        half = solve_triangular(L, identity_like(L))
        return half.T @ half
    S = lapack.dpotri(L, lower=1)[0].T
    for lo in range(0, len(S), _CHUNK):  # by panels: a transpose of the whole would take another matrix
        hi = lo + _CHUNK
        S[hi:, lo:hi] = S[lo:hi, hi:].T
        corner = np.triu(S[lo:hi, lo:hi])
        S[lo:hi, lo:hi] = corner + np.triu(corner, 1).T
    return S


def solve_by(L: Array, b: Array) -> Array:
    """(LLᵀ)⁻¹b for a vector."""
    if is_tensor(L):
        return solve_triangular(L, solve_triangular(L, b), transpose=True)
    return lapack.dpotrs(L, b, lower=1)[0].ravel()


def _half(L: Array, v: Array, *, transpose: bool = False) -> Array:
    """L⁻¹v or L⁻ᵀv."""
    if is_tensor(L):
        return solve_triangular(L, v, transpose=transpose)
    return blas.dtrsv(L, v, lower=1, trans=int(transpose))


def least_relative(L: Array, multiply: Callable[[Array], Array], start: Array) -> float:
    """About the least eigenvalue of L⁻¹ΔL⁻ᵀ, rather from below, by Lanczos with full reorthogonalisation."""
    xp, n = namespace(start), start.shape[0]
    steps = min(_LANCZOS, n)
    basis = xp.empty((steps, n), dtype=xp.float64, device=start.device)
    basis[0] = start / xp.linalg.vector_norm(start)
    alpha, beta = np.zeros(steps), np.zeros(steps)
    for k in range(steps):
        v = _half(L, basis[k], transpose=True)
        w = _half(L, multiply(v))
        alpha[k] = float(w @ basis[k])
        for _ in range(2):
            w -= basis[: k + 1].T @ (basis[: k + 1] @ w)
        beta[k] = float(xp.linalg.vector_norm(w))
        done = k + 1 == steps or beta[k] <= EPS * np.abs(alpha[: k + 1]).max()
        if done or k % 5 == 4:
            values, vectors = eigh_tridiagonal(alpha[: k + 1], beta[:k], select="i", select_range=(0, 0))
            error = 0.0 if k + 1 == n else abs(float(beta[k] * vectors[-1, 0]))
            if done or error <= _LANCZOS_ERROR * abs(values[0]):
                break
        basis[k + 1] = w / float(beta[k])
    return float(values[0]) - error


class DampedSystem(NamedTuple):
    """A factor of Diag(c) S Diag(c) + εI, c the inverse roots of the diagonal of S: rows of any scale count alike."""

    factor: Array
    scale: Array

    def solve(self, b: Array) -> Array:
        """About S⁻¹b."""
        return self.scale * solve_by(self.factor, self.scale * b)


def damped_system(S: Array) -> DampedSystem | None:
    """The factor of a positive semi-definite matrix of NumPy's, damped by as much as rounding asks for."""
    scale = 1 / np.sqrt(np.maximum(S.diagonal(), TINY))
    damping = _DAMPING * EPS
    for _ in range(_DAMPINGS):
        damped = scale[:, None] * S * scale
        add_to_diagonal(damped, damping)
        factor = lower_factor(damped)
        if factor is not None:
            return DampedSystem(factor, scale)
        damping *= _MORE_DAMPING
    return None
