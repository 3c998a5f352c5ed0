"""What every bound needs: admissible multipliers, and how far rounding can move a sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.problems import Elliptope

Array = np.ndarray[Any, np.dtype[Any]]
UNIT = float(np.finfo(np.float64).eps) / 2


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


def multiplicative_upper(top: float, y: Array) -> float:
    """λmax(M) Σy, rounded up."""
    return max(top, 0.0) * float(y.sum()) * (1 + 2 * y.size * UNIT)


def additive_upper(z: Array, excess: float, weights: Array) -> float:
    """Σz + δ Σw for J ≼ Diag(z + δ w), rounded up."""
    size = float(np.abs(z).sum()) + max(excess, 0.0) * float(weights.sum())
    return float(z.sum()) + max(excess, 0.0) * float(weights.sum()) + 4 * z.size * UNIT * size


def product_rounding(size: float, n: int, unit: float) -> float:
    """How far rounding can move a quadratic form of this absolute size: a unit for every entry and every sum."""
    return (n + 8) * unit * size
