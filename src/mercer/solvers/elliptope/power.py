"""Projected power steps (PSD22 Algorithm 1), H ← rows of (J + Diag(c)) H of unit length, plain and with momentum."""

from __future__ import annotations

import math
from typing import final

from mercer.backends.arrays import Array
from mercer.linalg.tall import inner_product
from mercer.problems import Elliptope
from mercer.solvers.elliptope.method import ElliptopeMethod, Iterate, evaluated


@final
class ProjectedPower(ElliptopeMethod):
    """One product a step; the objective never falls where J + Diag(c) is positive semi-definite."""

    name = "power"

    def moved(self, problem: Elliptope, at: Iterate) -> Iterate:
        return evaluated(problem, power_step(problem, at))


def power_step(problem: Elliptope, at: Iterate) -> Array:
    """The rows of (J + Diag(c)) H, of unit length."""
    ascent = at.G + problem.shift[:, None] * at.H if problem.indefinite else at.G
    return problem.project(ascent, at.H)


@final
class Momentum:
    """Nesterov's extrapolation Y = project(H + β (H - H_before)), β growing towards one.

    It starts afresh when the step H - Y turns against the momentum H - H_before (O'Donoghue, Candès 2015), a test that
    rounding of the objective cannot fool.
    """

    def __init__(self, H: Array) -> None:
        self._before, self._t = H, 1.0

    def extrapolate(self, problem: Elliptope, Y: Array, H: Array) -> Array:
        """The next point, given the last extrapolated point Y and the step H taken from it."""
        if inner_product(Y - H, H - self._before) > 0:
            self._t = 1.0
        t = (1 + math.sqrt(1 + 4 * self._t**2)) / 2
        following = problem.project(H + (self._t - 1) / t * (H - self._before), H)
        self._before, self._t = H, t
        return following


@final
class AcceleratedPower(ElliptopeMethod):
    """Power steps from extrapolated points. One product a step.

    The iterate reported is the extrapolated one, whose product is at hand.
    """

    name = "accelerated"

    def begin(self, problem: Elliptope, at: Iterate) -> None:
        self._momentum = Momentum(at.H)

    def moved(self, problem: Elliptope, at: Iterate) -> Iterate:
        return evaluated(problem, self._momentum.extrapolate(problem, at.H, power_step(problem, at)))
