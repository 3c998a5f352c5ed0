"""Projected power steps with Nesterov extrapolation and restart."""

from __future__ import annotations

import math
from typing import final

from mercer.backends.arrays import Array
from mercer.linalg.tall import inner_product
from mercer.problems import Elliptope


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
class AcceleratedPower:
    """Power steps from extrapolated points. One product a step.

    The iterate reported is the extrapolated one, whose product is at hand.
    """

    def start(self, problem: Elliptope, H: Array) -> tuple[Array, Array]:
        self._Y, self._G = H, problem.apply(H)
        self._momentum = Momentum(H)
        return self._Y, self._G

    def step(self, problem: Elliptope) -> tuple[Array, Array]:
        ascent = self._G if problem.shift == 0 else self._G + problem.shift * self._Y
        self._Y = self._momentum.extrapolate(problem, self._Y, problem.project(ascent, self._Y))
        self._G = problem.apply(self._Y)
        return self._Y, self._G
