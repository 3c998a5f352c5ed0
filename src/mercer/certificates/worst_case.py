"""Bounds from both sides for the largest expectation in an MMD ball around a sample (SOS 3), and its relaxation (5).

From below: a distribution that is proved to lie in the ball. From above: for every h of the kernel's space and every
distribution μ of the ball that lives on a set S,

    E_μ f ≤ sup_S (f - h) + ⟨h, v⟩ + ε‖h‖,   v the sample's embedding.

On finitely many points the supremum is a maximum of computed numbers. On a box it is bounded by
:func:`mercer.certificates.supremum.bound_supremum`, where it is known how fast f changes. Kernel values, sums and norms
are counted with their rounding; values of f that a person's function returned are taken as exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import TINY, UNIT, exact_sum
from mercer.certificates.kernel_sums import Bounded, KernelSum
from mercer.kernels.base import Kernel

SLIP = 4 * UNIT  # the relative error of a weight that was divided by an exact sum
_SHRINKING = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)


class Values(NamedTuple):
    """f at the points, and how far each number can be from what it stands for."""

    numbers: Array
    errors: Array


@final
class BallAround:
    """The distributions on some points within ε of a sample.

    Parameters
    ----------
    kernel : Kernel
        Resolved, positive semi-definite.
    points, shares : arrays of shape (N, d) and (N,)
        z and the sample's weights p on them, to a relative error of ``SLIP``.
    radius : float
        ε ≥ 0.
    """

    def __init__(self, kernel: Kernel, points: Array, shares: Array, radius: float) -> None:
        self.kernel, self.points, self.shares, self.radius = kernel, points, shares, radius

    def distance_above(self, weights: Array) -> float:
        """A number no smaller than the MMD between weights, to a relative error of ``SLIP``, and the sample."""
        if np.array_equal(weights, self.shares):
            return 0.0
        signed = weights - self.shares
        slips = UNIT * np.abs(signed) + SLIP * (weights + self.shares)
        return KernelSum(self.kernel, self.points, signed, slips).norm_above

    def brought_inside(self, weights: Array) -> tuple[Array, float]:
        """Weights moved towards the sample until they are proved to lie in the ball, and the distance so proved."""
        distance = self.distance_above(weights)
        if distance <= self.radius:
            return weights, distance
        for less in _SHRINKING:
            part = self.radius / distance * (1 - less)
            moved = normalised(np.maximum(self.shares + part * (weights - self.shares), 0.0))
            reached = self.distance_above(moved)
            if reached <= self.radius:
                return moved, reached
        return self.shares, 0.0

    def expectation(self, values: Values, weights: Array) -> Bounded:
        """Σ aᵢ f(zᵢ)."""
        terms = weights * values.numbers
        rounding = (4 * UNIT + SLIP) * float(np.sum(np.abs(terms)))
        return Bounded(exact_sum(terms), 1.01 * (rounding + float(weights @ values.errors)) + TINY)

    def price_of(self, h: KernelSum) -> float:
        """A number no smaller than ⟨h, v⟩ + ε‖h‖."""
        present = self.shares > 0
        inner = h.mean(self.shares[present], self.points[present], SLIP).upper
        return math.nextafter(inner + self.radius * h.norm_above * (1 + 4 * UNIT), math.inf)

    def bound(self, values: Values, h: KernelSum) -> float:
        """A number no smaller than max (f - h) + ⟨h, v⟩ + ε‖h‖ over the points."""
        return math.nextafter(self.largest_rest(values, h) + self.price_of(h), math.inf)

    def largest_rest(self, values: Values, h: KernelSum) -> float:
        """A number no smaller than max (f - h) over the points."""
        taken, errors = h.values(self.points)
        rest = values.numbers - taken
        slack = values.errors + errors + 4 * UNIT * (np.abs(values.numbers) + np.abs(taken))
        return float(np.nextafter(np.max(rest + 1.01 * slack), np.inf))


def normalised(weights: Array) -> Array:
    """Weights over their sum, each to a relative error of ``SLIP``."""
    return np.asarray(weights / exact_sum(weights))


def relaxed_bounds(ball: BallAround, f: KernelSum) -> tuple[float, float]:
    """⟨f, v⟩ + ε‖f‖, the largest ⟨f, v'⟩ over all vectors with ‖v' - v‖ ≤ ε (SOS 5), from below and above."""
    present = ball.shares > 0
    inner = f.mean(ball.shares[present], ball.points[present], SLIP)
    above = math.nextafter(inner.upper + ball.radius * f.norm_above * (1 + 4 * UNIT), math.inf)
    return math.nextafter(inner.lower + ball.radius * f.norm_below * (1 - 4 * UNIT), -math.inf), above
