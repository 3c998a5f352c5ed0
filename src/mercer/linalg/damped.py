"""The inverse of a positive matrix that may be singular to working precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

Array = np.ndarray[Any, np.dtype[Any]]
_FIRST = 4.0
_MORE = 8.0
_TRIES = 12


def damped_inverse(matrix: Array) -> Array:
    """(A + εI)⁻¹, symmetric, with the least ε of a few at which A + εI has a Cholesky factor: zero where it can be.

    The first ε tried is four roundings of the largest diagonal entry, each next one eight times as large.
    """
    identity = np.eye(matrix.shape[0])
    damping = 0.0
    for _ in range(_TRIES):
        try:
            factor = cho_factor(matrix + damping * identity, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            least = _FIRST * np.finfo(float).eps * float(np.max(np.diagonal(matrix)))
            damping = max(least, _MORE * damping)
            continue
        inverse = cho_solve(factor, identity, check_finite=False)
        return np.asarray((inverse + inverse.T) / 2)
    raise np.linalg.LinAlgError("The matrix is far from positive semi-definite: it has no inverse to speak of.")
