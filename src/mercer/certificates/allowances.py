"""What floating point may have done to the bounds of an embedding's programme, counted in one place.

**What is proved.** The programme max ⟨Ã, B⟩, B ≽ 0, diag B = d, of the kernel at the points and weights as they are
given. Its matrix is known by entries that floating point evaluated, so every statement is made for all matrices within
the error of those entries: for the exact kernel, for the matrix of its rounded values, and for any other evaluation of
them. Let Â, d̂ be what was computed, ‖Ã - Â‖ ≤ e and |d - d̂| ≤ Δ. Both come from
:meth:`mercer.operators.base.LinearMap.rounding`: errors of entries, of row sums, of degrees and of their difference d,
in the arithmetic of the operator. A diagonal that a user prescribes has no such errors but those of its product with
the weights and of its arithmetic: the problem states them as ``diagonal_error``.

**Upper.** If Ĵ = Diag(ŝ) Â Diag(ŝ) ≼ Diag(Y), ŝ = √d̂, then Ã ≼ Diag(Y/d̂ + e) and

    p* ≤ Σ d (Y/d̂ + e) ≤ Σ Y + Σ (Δ/d̂) |Y| + e Σ (d̂ + Δ).

Rows with d̂ = 0 take no part in Ĵ but may have d up to Δ. Since √p* is a norm of s = √d where Ã + eI ≽ 0, they add no
more than Σ √(Δ(Δ + e)) to the root; for an indefinite matrix their part is bounded by norms.

**Lower.** B = Diag(s) H Hᵀ Diag(s) with exact unit rows is feasible. Its value differs from the computed Σ z by the
errors of the product, by e Σ d̂, by 2 Σ |Δs| |z|/ŝ ≤ 2 Σ (Δ/d̂) |z|, and by Σ Δsᵢ Δsⱼ Ãᵢⱼ Hᵢ·Hⱼ, no loss if Ã ≽ 0. Rows
with d̂ = 0 are given signs at random: on average they add nothing but their diagonal, so some signs lose nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple, final

from mercer.backends.arrays import Array, as_double, namespace
from mercer.backends.rounding import UNIT, gamma, unit_of
from mercer.problems import Elliptope

_ROWS = 8  # roundings of a row of H that is brought to unit length, and of s
_FORMED = 4  # of an entry that is scaled on both sides
_MORE = 1.01


class ProductRounding(NamedTuple):
    """A bound ``norm`` on ‖M‖, and how far a product with a unit vector may be from the true one."""

    norm: float
    error: float


@final
class Allowances:
    """The bounds of a problem from what was computed, with everything that rounding may have changed.

    Parameters
    ----------
    problem : Elliptope
        The problem.
    """

    def __init__(self, problem: Elliptope) -> None:
        rounding = problem.operator.rounding()
        unit = unit_of(problem.operator.dtype)
        self._unit = unit
        self.norm, self.semidefinite, self.nonnegative = rounding.norm, rounding.semidefinite, rounding.nonnegative
        self.product = rounding.product + gamma(_ROWS, unit)
        self.entries = rounding.entries + gamma(_FORMED, unit) * rounding.norm
        xp, d = namespace(problem.diagonal), as_double(problem.diagonal)
        given = rounding.diagonal if problem.diagonal_error is None else as_double(problem.diagonal_error)
        slack = given + gamma(_FORMED, unit) * d
        self._d, self._slack = d[problem.active], slack[problem.active]
        self._cut = slack[~problem.active]
        self._relative = self._slack / self._d
        self._total = float(xp.sum(self._d + self._slack)) * (1 + 2 * d.shape[0] * UNIT)

    def lower(self, z: Array, rank: int) -> float:
        """A value that is attained, from the multipliers z of the rows that take part, H having ``rank`` columns."""
        xp = namespace(z)
        changes = float(xp.sum(xp.clip(self._relative, None, 1.0) * self._slack))  # at least Σ Δs²
        lost = ((self.product + 3 * gamma(rank + _ROWS, self._unit)) * self.norm + self.entries) * self._total
        lost += 2 * float(self._relative @ abs(z))
        lost += (self.entries if self.semidefinite else self.norm + self.entries) * changes
        lost += float(xp.sum(self._cut**2)) + 2 * z.shape[0] * UNIT * float(xp.sum(abs(z)))
        return float(xp.sum(z)) - _MORE * lost

    def upper(self, Y: Array) -> float:
        """What no value exceeds, given Ĵ ≼ Diag(Y) on the rows that take part."""
        xp, size = namespace(Y), float(abs(Y).sum())
        bound = float(xp.sum(Y)) + 4 * Y.shape[0] * UNIT * size
        bound += _MORE * (float(self._relative @ abs(Y)) + self.entries * self._total)
        if not (self._cut > 0).any():
            return bound
        if self.semidefinite:
            rest = float(xp.sum(xp.sqrt(self._cut * (self._cut + self.entries))))
            root = math.sqrt(max(bound, 0.0) + self.entries * self._total) + _MORE * rest
            return root**2 * (1 + 8 * UNIT)
        rest, size = float(xp.sum(self._cut)), self.norm + self.entries
        return bound + _MORE * size * (2 * math.sqrt(self._total * rest) + rest)

    def width(self, z: Array, rank: int) -> float:
        """How far apart rounding keeps the two bounds of a solution with these multipliers, were it the best."""
        sizes = abs(z)
        return max(float(z.sum()) - self.lower(z, rank), 0.0) + max(self.upper(sizes) - float(sizes.sum()), 0.0)

    def product_error(self, root: Array, vector: Array, lift: float) -> float:
        """How far a product with M = Diag(r) Â Diag(r) can be from the true one, for unit vectors.

        |M| is below Diag(r)(|A| + vvᵀ)Diag(r), whose norm is at most λmax(M) + 2‖rv‖² where A has no negative entry,
        λmax(M) being about one; and at most max r² times that of |A| + vvᵀ.
        """
        size = self.norm * _largest_square(root)
        if self.nonnegative:
            size = min(size, 1.0 + lift + 2 * float(((root * vector) ** 2).sum()))
        return self.product * size

    def product_rounding(self, root: Array) -> ProductRounding:
        """The same for whatever λmax(M) is, with a bound on the norm of M."""
        norm = _MORE * self.norm * _largest_square(root)
        return ProductRounding(norm, self.product * norm)

    def lift(self, root: Array) -> float:
        """How far below zero rounding can take the eigenvalues of Diag(r) Â Diag(r), if Ã is semi-definite."""
        return (self.entries + self.product * self.norm) * _largest_square(root)


def _largest_square(root: Array) -> float:
    return float((root**2).max()) if root.shape[0] else 0.0
