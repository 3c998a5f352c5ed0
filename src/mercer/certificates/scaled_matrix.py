"""The problem's matrix scaled by multipliers: what every bound without the dense matrix is a bound of."""

from __future__ import annotations

from typing import final

import numpy as np

from mercer.backends.arrays import Array, as_double, dtype_name, namespace
from mercer.backends.rounding import UNIT
from mercer.certificates.allowances import Allowances
from mercer.certificates.krylov import Deflated, deflate
from mercer.certificates.multipliers import removed_vector
from mercer.problems import Elliptope


@final
class ScaledMatrix:
    """M = Diag(y)^-½ J Diag(y)^-½ for multipliers y > 0, with the space of Diag(y)^½ H taken out; no product is needed.

    ``y`` are the multipliers of the rows that take part, ``G`` is J H; ``root`` and ``inverse_root`` are √(d/y) and
    y^-½, ``lift`` is a number t ≥ 0 with M + tI ≽ 0, and ``rounding`` is how far rounding may take a bound on λmax(M)
    from products, relative to the larger of that and one.
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
        self.lift = problem.shift * float((self.inverse_root**2).max()) + allowed.lift(self.root)
        product_error = allowed.product_error(self.root, removed_vector(problem), self.lift)
        self.rounding = space_error(self.deflated) * product_error

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
