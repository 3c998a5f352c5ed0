"""Admissible multipliers, and the problem's matrix scaled by them: what every bound is a bound of."""

from __future__ import annotations

from typing import final

import numpy as np

from mercer.backends.arrays import Array, as_double, dtype_name, namespace
from mercer.backends.rounding import EPS, TINY, UNIT
from mercer.certificates.allowances import Allowances
from mercer.certificates.krylov import Deflated, deflate
from mercer.linalg.tall import row_lengths
from mercer.problems import Elliptope

_TURNED = 0.5  # a row whose multiplier is below this part of what it would be in its best direction
_LEAST = 1e-3  # of |Jᵢᵢ| + ‖Gᵢ - JᵢᵢHᵢ‖; without effect unless Jᵢᵢ < 0
_MOST_RAISED = 1e-3  # of Jᵢᵢ: no multiplier is raised beyond Jᵢᵢ divided by this
_FREE = 1e-2  # of the tolerance: what larger multipliers may cost in all


@final
class ScaledMatrix:
    """M = Diag(y)^-½ J Diag(y)^-½ for multipliers y > 0, with the space of Diag(y)^½ H taken out; no product is needed.

    ``y`` are the multipliers of the rows that take part, ``G`` is J H; ``root`` and ``inverse_root`` are √(d/y) and
    y^-½, ``lift`` is a number t ≥ 0 with M + tI ≽ 0, ``rounding`` is how far rounding may take a bound on λmax(M) from
    products, relative to the larger of that and one, and ``product_rounding`` that of a product, whatever λmax(M) is.
    """

    def __init__(self, problem: Elliptope, allowed: Allowances, y: Array, H: Array, G: Array) -> None:
        self.problem, self.allowed = problem, allowed
        active, scale = problem.active, as_double(problem.scale)
        xp = namespace(scale)
        self.y = xp.ones_like(scale)
        self.y[active] = y
        self.inverse_root = active / xp.sqrt(self.y)
        self.root = scale * self.inverse_root
        double = dtype_name(problem.operator.dtype) == "float64"
        known = self.inverse_root[:, None] * G if double else None
        self.deflated = deflate(self.multiply, xp.sqrt(self.y)[:, None] * H, known)
        self.lift = float((as_double(problem.shift) * self.inverse_root**2).max()) + allowed.lift(self.root)
        product_error = allowed.product_error(self.root, removed_vector(problem), self.lift)
        self.rounding = space_error(self.deflated) * product_error
        self.product_rounding = allowed.product_rounding(self.root)

    def multiply(self, V: Array) -> Array:
        """M V for a block of columns."""
        return self.inverse_root[:, None] * as_double(self.problem.apply(self.inverse_root[:, None] * V))

    @property
    def multipliers(self) -> Array:
        """The multipliers of the rows that take part."""
        return self.y[self.problem.active]

    def upper(self, top: float) -> float:
        """The upper bound on the optimum that follows from λmax(M) ≤ top."""
        rounding = self.rounding * max(1.0, top)
        return self.allowed.upper(max(top + rounding, 0.0) * self.multipliers * (1 + 8 * UNIT))

    def top_for(self, wanted: float) -> float:
        """The bound on λmax(M) from which an upper bound of about ``wanted`` follows."""
        y = self.multipliers
        beside = self.allowed.upper(y) - float(y.sum())  # what rounding adds whatever λmax(M) is
        return (wanted - beside) / float(y.sum()) - self.rounding


def space_error(deflated: Deflated) -> float:
    """By how much the errors of products with unit vectors grow in a bound from q of them and a Krylov space."""
    return deflated.amplification * (4 + 2 * float(np.sqrt(deflated.Q.shape[1])))


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
    high = _least_divisor(y, diagonal, allowance)
    return namespace(y).maximum(y, diagonal / high)


def _least_divisor(y: Array, diagonal: Array, allowance: float) -> float:
    """The least c in [10⁻³, 1] with Σ max(Jᵢᵢ/c - yᵢ, 0) ≤ allowance; one where there is none.

    The sum is linear in 1/c between the values yᵢ/Jᵢᵢ, from each of which on another row counts. So with these in order
    and sums along them its root is known: one sort, where a search by halves would wait for forty sums.
    """
    xp, counts = namespace(y), diagonal > 0
    y, diagonal = y[counts], diagonal[counts]
    if not y.shape[0]:
        return _MOST_RAISED
    ends = y / diagonal
    order = xp.argsort(ends)
    ends, rising, taken = ends[order], xp.cumulative_sum(diagonal[order]), xp.cumulative_sum(y[order])
    passed = int(xp.sum(xp.astype(ends * rising - taken <= allowance, xp.int64)))
    if not passed:
        return 1.0
    root = (allowance + float(taken[passed - 1])) / float(rising[passed - 1])  # of 1/c
    return min(1.0, max(_MOST_RAISED, 1 / root if root > 0 else 1.0))


def removed_vector(problem: Elliptope) -> Array:
    """The vector v of Ã = A - vvᵀ, whose subtraction rounds; zero if there is none."""
    scale = as_double(problem.scale)
    return namespace(scale).zeros_like(scale) if problem.removed is None else as_double(problem.removed)
