"""The inverse of a positive matrix that may be singular to working precision."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mercer.backends.arrays import Array, cholesky, is_tensor, namespace, solve_triangular
from mercer.backends.rounding import EPS

_FIRST = 1e-11  # of the largest diagonal entry: the inverse then keeps about five digits
_MORE = 10.0
_TRIES = 5


def damped_inverse(matrix: Array) -> Array:
    """(A + εI)⁻¹, symmetric, with the least ε of a few at which A + εI has a Cholesky factor: zero where it can be.

    Where the matrix itself has none, its inverse would be rounding: the first ε tried is large enough for some digits.
    """
    xp = namespace(matrix)
    identity = xp.eye(matrix.shape[0], dtype=xp.float64, device=matrix.device)
    damping = 0.0
    for _ in range(_TRIES):
        try:
            inverse = _inverse(matrix + damping * identity, identity, strict=damping == 0)
        except np.linalg.LinAlgError:
            damping = max(_FIRST * float(xp.max(matrix.diagonal())), _MORE * damping)
            continue
        return (inverse + inverse.T) / 2
    raise np.linalg.LinAlgError("The matrix is far from positive semi-definite: it has no inverse to speak of.")


def _inverse(matrix: Array, identity: Array, *, strict: bool) -> Array:
    """The inverse by a Cholesky factor; LinAlgError where there is none or, if strict, where a pivot is rounding."""
    if is_tensor(matrix):
        factor = cholesky(matrix)
    else:
        factor, _ = cho_factor(matrix, lower=True, check_finite=False)
    if strict and _is_rounding(factor):
        raise np.linalg.LinAlgError
    if is_tensor(matrix):
        return solve_triangular(factor, solve_triangular(factor, identity), transpose=True)
    return np.asarray(cho_solve((factor, True), identity, check_finite=False))


def _is_rounding(factor: Array) -> bool:
    """Whether a pivot is no larger than rounding, which may leave it positive where the matrix is singular."""
    pivots = factor.diagonal() ** 2
    return float(pivots.min()) <= pivots.shape[0] * EPS * float(pivots.max())
