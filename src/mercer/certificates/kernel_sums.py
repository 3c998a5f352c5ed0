"""Functions Σ cⱼ k(·, xⱼ) of a kernel's space with bounds of what floating point does to their values and norms.

Every computed entry obeys |K̂ᵢⱼ - kᵢⱼ| ≤ ε|kᵢⱼ| + η√(kᵢᵢkⱼⱼ) + absolute, and |kᵢⱼ| ≤ √(kᵢᵢkⱼⱼ): a value Σ cⱼkᵢⱼ is wrong
by (ε + η + γ) √kᵢᵢ Σ|cⱼ|√kⱼⱼ + absolute Σ|cⱼ| at most, γ the rounding of a sum.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import TINY, UNIT, exact_sum, gamma
from mercer.kernels.base import Kernel
from mercer.operators import GramOperator

_MORE = 1.05  # for products of errors, and for the rounding of these bounds


class Bounded(NamedTuple):
    """A number, and how far it can be from what it stands for."""

    value: float
    error: float

    @property
    def lower(self) -> float:
        """No larger than what it stands for."""
        return math.nextafter(self.value - self.error * (1 + 4 * UNIT), -math.inf)

    @property
    def upper(self) -> float:
        """No smaller than what it stands for."""
        return math.nextafter(self.value + self.error * (1 + 4 * UNIT), math.inf)


@final
class KernelSum:
    """h = Σ cⱼ k(·, xⱼ), NumPy arrays.

    Parameters
    ----------
    kernel : Kernel
        A resolved positive semi-definite kernel.
    points, coefficients : arrays of shape (n, d) and (n,)
        x and c, taken as exact.
    slips : array of shape (n,), optional
        How far each coefficient may be from what it stands for.
    """

    def __init__(self, kernel: Kernel, points: Array, coefficients: Array, slips: Array | None = None) -> None:
        self.kernel = kernel
        kept = (coefficients != 0) if slips is None else (coefficients != 0) | (slips > 0)
        if not kept.any():
            kept[:1] = True  # the zero function has a point, too
        self.points, self.coefficients = points[kept], coefficients[kept]
        self._slips = np.zeros(self.coefficients.size) if slips is None else slips[kept]

    def values(self, Y: Array) -> tuple[Array, Array]:
        """h at the rows of Y, and errors of shape (n,)."""
        gram = GramOperator(self.kernel, Y, self.points, dtype=np.float64)
        entry = gram.entry_error
        computed = np.asarray(gram @ self.coefficients, np.float64)
        mine, theirs = self._roots(Y, entry.relative + entry.scaled, entry.absolute), self._own_roots
        part = entry.relative + entry.scaled + gamma(gram.product_depth + gram.summation_depth + 4, UNIT)
        sizes = np.abs(self.coefficients)
        weight = _MORE * (part * float(sizes @ theirs) + float(self._slips @ theirs))
        return computed, mine * weight + _MORE * entry.absolute * float(np.sum(sizes + self._slips)) + TINY

    def mean(self, shares: Array, points: Array, slip: float) -> Bounded:
        """Σ pᵢ h(yᵢ) for weights whose relative error is at most ``slip``."""
        values, errors = self.values(points)
        terms = shares * values
        rounding = (4 * UNIT + slip) * float(np.sum(np.abs(terms)))
        return Bounded(exact_sum(terms), _MORE * (rounding + float(np.sum(shares * errors))) + TINY)

    @cached_property
    def squared_norm(self) -> Bounded:
        """‖h‖²."""
        values, errors = self.values(self.points)
        terms = self.coefficients * values
        error = 4 * UNIT * float(np.sum(np.abs(terms))) + float(np.abs(self.coefficients) @ errors)
        error += float(self._slips @ (np.abs(values) + errors))
        return Bounded(exact_sum(terms), _MORE * error + TINY)

    @property
    def norm_above(self) -> float:
        """A number no smaller than ‖h‖."""
        return math.nextafter(math.sqrt(max(self.squared_norm.upper, 0.0)) * (1 + 4 * UNIT), math.inf)

    @property
    def norm_below(self) -> float:
        """A number no larger than ‖h‖."""
        return math.sqrt(max(self.squared_norm.lower, 0.0)) * (1 - 4 * UNIT)

    @cached_property
    def _own_roots(self) -> Array:
        entry = self.kernel.matrix(self.points).entry_error
        return self._roots(self.points, entry.relative + entry.scaled, entry.absolute)

    def _roots(self, X: Array, relative: float, absolute: float) -> Array:
        """Upper bounds of √k(x, x)."""
        diagonal = np.maximum(np.asarray(self.kernel.diag(X), np.float64), 0.0)
        return np.sqrt(diagonal * (1 + 4 * relative) + 2 * absolute) * (1 + 4 * UNIT)
