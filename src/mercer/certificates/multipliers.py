"""Admissible multipliers, from which every upper bound is made."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.problems import Elliptope

Array = np.ndarray[Any, np.dtype[Any]]
_TURNED = 0.5  # a row whose multiplier is below this part of what it would be in its best direction
_LEAST = 1e-3  # of |Jᵢᵢ| + ‖Gᵢ - JᵢᵢHᵢ‖; without effect unless Jᵢᵢ < 0
_FREE = 1e-2  # of the tolerance: what larger multipliers may cost in all


def positive_multipliers(H: Array, G: Array, z: Array, diagonal: Array, tol: float) -> Array:
    """Multipliers y > 0: z, but larger where that costs nothing or z says nothing.

    Turned into its best direction with the others held, row i has the multiplier Jᵢᵢ + ‖Gᵢ - JᵢᵢHᵢ‖ ≥ zᵢ, with equality
    where it lies in that direction already. Rows of hardly any weight may be far from it, and may even have zᵢ < 0,
    when the objective is right to all digits; λmax(M) with y = z would be as wrong as these rows. So the larger
    multiplier is taken where the sum rises by no more than a small part of the tolerance, and for rows that are turned
    away altogether. Where Jᵢᵢ < 0, which takes an indefinite J, no multiplier is let come near zero.
    """
    best = diagonal + np.linalg.norm(G - diagonal[:, None] * H, axis=1)
    free = _FREE * tol * abs(float(z.sum())) / max(z.size, 1)
    y = np.where((best - z <= free) | (z < _TURNED * best), np.maximum(best, z), z)
    sizes = np.abs(diagonal) + (best - diagonal)
    least = np.finfo(np.float64).eps * float(np.max(sizes, initial=0.0))
    return np.maximum(y, np.maximum(_LEAST * sizes, max(least, np.finfo(np.float64).tiny)))


def raised_on_isolated_rows(y: Array, diagonal: Array, allowance: float) -> Array:
    """Multipliers max(y, Jᵢᵢ/c) with the least c for which their sum grows by no more than the allowance.

    A point with hardly a neighbour has Jᵢᵢ/yᵢ just below one, and so M has an eigenvalue there just below one: the
    worst case of a bound by Lanczos. There are few of them, so that raising their multipliers, which is always
    admissible, costs little and takes these eigenvalues down.
    """
    low, high = 1e-3, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if float(np.sum(np.maximum(diagonal / middle - y, 0.0))) <= allowance:
            high = middle
        else:
            low = middle
    return np.maximum(y, diagonal / high)


def removed_vector(problem: Elliptope) -> Array:
    """The vector v of Ã = A - vvᵀ, whose subtraction rounds; zero if there is none."""
    return np.zeros(problem.size) if problem.removed is None else np.asarray(problem.removed, np.float64)
