"""Cholesky factors of dense symmetric matrices that may have none, on any array library."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mercer.backends.arrays import Array, cholesky, is_tensor, solve_triangular


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
