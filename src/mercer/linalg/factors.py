"""Cholesky factors of dense symmetric matrices that may have none, and inverses by them, on any array library."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from scipy.linalg import lapack

from mercer.backends.arrays import Array, cholesky, is_tensor, namespace, solve_triangular
from mercer.backends.rounding import EPS
from mercer.backends.threads import blas_for

_FIRST = 1e-11  # of the largest diagonal entry: the inverse then keeps about five digits
_MORE = 10.0
_TRIES = 5


def upper_factor(S: Array) -> Array | None:
    """R with RᵀR = S, None where there is none; NumPy's S is used up, and what lies below R's diagonal is left over."""
    if is_tensor(S):
        try:
            return cholesky(S).T
        except np.linalg.LinAlgError:
            return None
    R, info = lapack.dpotrf(S.T, lower=0, clean=0, overwrite_a=1)
    return R if info == 0 else None


def solve_by_factor(R: Array, B: Array) -> Array:
    """(RᵀR)⁻¹B for a block of columns."""
    if is_tensor(R):
        return solve_triangular(R.T, solve_triangular(R.T, B), transpose=True)
    return lapack.dpotrs(R, B, lower=0)[0]


def damped_inverse(matrix: Array) -> Array:
    """(A + εI)⁻¹, symmetric, with the least ε of a few at which A + εI has a Cholesky factor: zero where it can be.

    Where the matrix itself has none, its inverse would be rounding: the first ε tried is large enough for some digits.
    """
    xp = namespace(matrix)
    identity = xp.eye(matrix.shape[0], dtype=xp.float64, device=matrix.device)
    damping = 0.0
    for _ in range(_TRIES):
        try:
            with blas_for(int(matrix.shape[0])):
                return _inverse(matrix + damping * identity, identity, strict=damping == 0)
        except np.linalg.LinAlgError:
            damping = max(_FIRST * float(xp.max(matrix.diagonal())), _MORE * damping)
    raise np.linalg.LinAlgError("The matrix is far from positive semi-definite: it has no inverse to speak of.")


def _inverse(matrix: Array, identity: Array, *, strict: bool) -> Array:
    """The inverse by a Cholesky factor; LinAlgError where there is none or, if strict, where a pivot is rounding."""
    if is_tensor(matrix):
        factor = cholesky(matrix)
    else:
        factor = upper_factor(matrix)
        if factor is None:
            raise np.linalg.LinAlgError
    if strict and _is_rounding(factor):
        raise np.linalg.LinAlgError
    if is_tensor(matrix):
        inverse = solve_triangular(factor, solve_triangular(factor, identity), transpose=True)
        return (inverse + inverse.T) / 2
    inverse, info = lapack.dpotri(factor, lower=0, overwrite_c=1)
    if info != 0:
        raise np.linalg.LinAlgError
    _mirror(inverse.T)
    return inverse.T


@njit(cache=True, nogil=True)
def _mirror(matrix: Any) -> None:
    """What lies below the diagonal, above it too."""
    n, side = matrix.shape[0], 32
    for top in range(0, n, side):
        for left in range(0, top + 1, side):
            for i in range(top, min(top + side, n)):
                for j in range(left, min(left + side, i)):
                    matrix[j, i] = matrix[i, j]


def _is_rounding(factor: Array) -> bool:
    """Whether a pivot is no larger than rounding, which may leave it positive where the matrix is singular."""
    pivots = factor.diagonal() ** 2
    return float(pivots.min()) <= pivots.shape[0] * EPS * float(pivots.max())
