"""Admissible multipliers, from which every upper bound is made."""

from __future__ import annotations

from mercer.backends.arrays import Array, as_double, namespace
from mercer.backends.rounding import EPS, TINY
from mercer.linalg.tall import row_lengths
from mercer.problems import Elliptope

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
    xp = namespace(z)
    best = diagonal + row_lengths(G - diagonal[:, None] * H)
    free = _FREE * tol * abs(float(z.sum())) / max(z.shape[0], 1)
    y = xp.where((best - z <= free) | (z < _TURNED * best), xp.maximum(best, z), z)
    sizes = abs(diagonal) + (best - diagonal)
    least = EPS * float(sizes.max()) if sizes.shape[0] else 0.0
    return xp.maximum(y, xp.clip(_LEAST * sizes, max(least, TINY), None))


def raised_on_isolated_rows(y: Array, diagonal: Array, allowance: float) -> Array:
    """Multipliers max(y, Jᵢᵢ/c) with the least c for which their sum grows by no more than the allowance.

    A point with hardly a neighbour has Jᵢᵢ/yᵢ just below one, and so M has an eigenvalue there just below one: the
    worst case of a bound by Lanczos. There are few of them, so that raising their multipliers, which is always
    admissible, costs little and takes these eigenvalues down.
    """
    xp, low, high = namespace(y), 1e-3, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if float(xp.sum(xp.clip(diagonal / middle - y, 0.0, None))) <= allowance:
            high = middle
        else:
            low = middle
    return xp.maximum(y, diagonal / high)


def removed_vector(problem: Elliptope) -> Array:
    """The vector v of Ã = A - vvᵀ, whose subtraction rounds; zero if there is none."""
    scale = as_double(problem.scale)
    return namespace(scale).zeros_like(scale) if problem.removed is None else as_double(problem.removed)
