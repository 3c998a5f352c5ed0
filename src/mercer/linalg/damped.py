"""The inverse of a positive matrix that may be singular to working precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

Array = np.ndarray[Any, np.dtype[Any]]
_FIRST = 1e-11  # of the largest diagonal entry: the inverse then keeps about five digits
_MORE = 10.0
_TRIES = 5


def damped_inverse(matrix: Array) -> Array:
    """(A + εI)⁻¹, symmetric, with the least ε of a few at which A + εI has a Cholesky factor: zero where it can be.

    Where the matrix itself has none, its inverse would be rounding: the first ε tried is large enough for some digits.
    """
    identity = np.eye(matrix.shape[0])
    damping = 0.0
    for _ in range(_TRIES):
        try:
            factor = cho_factor(matrix + damping * identity, lower=True, check_finite=False)
            if damping == 0 and _is_rounding(factor[0]):
                raise np.linalg.LinAlgError
        except np.linalg.LinAlgError:
            damping = max(_FIRST * float(np.max(np.diagonal(matrix))), _MORE * damping)
            continue
        inverse = cho_solve(factor, identity, check_finite=False)
        return np.asarray((inverse + inverse.T) / 2)
    raise np.linalg.LinAlgError("The matrix is far from positive semi-definite: it has no inverse to speak of.")


def _is_rounding(factor: Array) -> bool:
    """Whether a pivot is no larger than rounding, which may leave it positive where the matrix is singular."""
    pivots = np.diagonal(factor) ** 2
    return bool(np.min(pivots) <= pivots.size * np.finfo(np.float64).eps * np.max(pivots))
