"""A quasi-Newton method on {U : UᵀU = I}: steps of limited memory (Nocedal 1980), carried along by projection.

A step solves Hδ = -g for the H that explains the last changes of the gradient, goes along δ, and returns to the
manifold by a QR factorisation. Earlier steps and changes are projected to the tangent space of the new point, which is
a vector transport (Absil, Mahony, Sepulchre 2008, section 8.1.3); pairs whose curvature is not positive are left out.
"""

from __future__ import annotations

from collections import deque
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.problems.stiefel import StiefelProblem, ValueAndGradient, tangent
from mercer.solvers.run import Method, Report

_PAIRS = 10
_DECREASE = 1e-4  # of what the slope promises
_FIRST = 0.3  # radians of the first step
_LONGEST = 1.0  # radians of any step
_TRIES = 25
_CURVED = 1e-10
_NOISE = 1e-14
_EQUAL, _FLATTER = 1e-12, 0.9


@final
class StiefelQuasiNewton(Method[StiefelProblem, Array]):
    """Minimise a smooth function of a matrix with orthonormal columns.

    Notes
    -----
    Cost a step: one or two evaluations of the function with its gradient, and 40 d m flops.
    """

    name = phase = "quasi-Newton"

    def start(self, problem: StiefelProblem, point: Any) -> Report[Array]:
        self._point = point
        self._pairs: deque[tuple[Array, Array]] = deque(maxlen=_PAIRS)
        problem.spend(1)
        self._at = problem.evaluate(point)
        self._slope = tangent(point, self._at.gradient)
        return self._report()

    def step(self, problem: StiefelProblem, most: int) -> Report[Array] | None:
        direction = self._direction()
        moved = self._searched(problem, direction)
        if moved is None and self._pairs:  # what was learned of the curvature misleads: begin anew, steepest descent
            self._pairs.clear()
            direction = self._direction()
            moved = self._searched(problem, direction)
        if moved is None:
            return None
        self._accept(*moved, direction)
        return self._report()

    def _report(self) -> Report[Array]:
        value = self._at.value
        residual = float(np.linalg.norm(self._slope))
        return Report(self._point, value, residual=residual, size=self._point.shape[1], merit=-value, noise=_NOISE)

    def _direction(self) -> Array:
        """-H⁻¹g by the two loops over the pairs; along -g where that is no descent."""
        g = self._slope
        q, weights = g.copy(), []
        for s, y in reversed(self._pairs):
            weight = np.vdot(s, q) / np.vdot(s, y)
            weights.append(weight)
            q -= weight * y
        if self._pairs:
            s, y = self._pairs[-1]
            q *= np.vdot(s, y) / np.vdot(y, y)
        else:
            q *= _FIRST / max(float(np.linalg.norm(q)), np.finfo(float).tiny)
        for (s, y), weight in zip(self._pairs, reversed(weights), strict=True):
            q += (weight - np.vdot(y, q) / np.vdot(s, y)) * s
        direction = -tangent(self._point, q)
        if np.vdot(direction, g) >= 0:
            self._pairs.clear()
            return self._direction()
        length = float(np.linalg.norm(direction))
        return direction * min(1.0, _LONGEST / length) if length > 0 else direction

    def _searched(self, problem: StiefelProblem, direction: Array) -> tuple[Array, ValueAndGradient, float] | None:
        """The first of ever shorter steps that lowers the value by a part of what the slope promises."""
        promised, size = float(np.vdot(direction, self._slope)), 1.0
        if promised == 0:
            return None
        for _ in range(_TRIES):
            point = retracted(self._point + size * direction)
            problem.spend(1)
            there = problem.evaluate(point)
            if there.value <= self._at.value + _DECREASE * size * promised or self._is_flatter(point, there):
                return point, there, size
            better = -promised * size / (2 * ((there.value - self._at.value) / size - promised))
            size = float(np.clip(better, 0.1 * size, 0.5 * size))
        return None

    def _is_flatter(self, point: Array, there: ValueAndGradient) -> bool:
        """Whether values are equal to rounding, and the gradient says that the point is better."""
        if abs(there.value - self._at.value) > _EQUAL * abs(self._at.value):
            return False
        return bool(np.linalg.norm(tangent(point, there.gradient)) < _FLATTER * np.linalg.norm(self._slope))

    def _accept(self, point: Array, there: ValueAndGradient, size: float, direction: Array) -> None:
        slope = tangent(point, there.gradient)
        step = tangent(point, size * direction)
        change = slope - tangent(point, self._slope)
        pairs = [(tangent(point, s), tangent(point, y)) for s, y in self._pairs] + [(step, change)]
        self._pairs = deque((pair for pair in pairs if _is_curved(*pair)), maxlen=_PAIRS)
        self._point, self._at, self._slope = point, there, slope


def _is_curved(s: Array, y: Array) -> bool:
    return float(np.vdot(s, y)) > _CURVED * float(np.linalg.norm(s) * np.linalg.norm(y))


def retracted(V: Array) -> Array:
    """The orthonormal factor of V, with the signs that leave an orthonormal V as it is."""
    Q, R = np.linalg.qr(V)
    signed: Array = Q * np.where(np.diagonal(R) < 0, -1.0, 1.0)
    return signed
