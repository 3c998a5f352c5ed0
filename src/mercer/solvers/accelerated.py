"""Projected power steps with Nesterov extrapolation and restart."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.problems import Elliptope

Array = np.ndarray[Any, np.dtype[Any]]


@final
class AcceleratedPower:
    """Power steps from extrapolated points Y = project(H + β (H - H_before)), β growing towards one.

    Momentum starts afresh when the step H - Y turns against the momentum H - H_before (O'Donoghue, Candès 2015), a test
    that rounding of the objective cannot fool. One product a step. The iterate reported is Y, whose product is at hand.
    """

    def start(self, problem: Elliptope, H: Array) -> tuple[Array, Array]:
        self._H, self._Y, self._t = H, H, 1.0
        self._G = problem.apply(H)
        return self._Y, self._G

    def step(self, problem: Elliptope) -> tuple[Array, Array]:
        ascent = self._G if problem.shift == 0 else self._G + problem.shift * self._Y
        H = problem.project(ascent, self._Y)
        if np.vdot(self._Y - H, H - self._H) > 0:
            self._t = 1.0
        t = (1 + np.sqrt(1 + 4 * self._t**2)) / 2
        self._Y = problem.project(H + (self._t - 1) / t * (H - self._H), H)
        self._H, self._t = H, t
        self._G = problem.apply(self._Y)
        return self._Y, self._G
