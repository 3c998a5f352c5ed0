"""Newton's method with a line search, for a smooth and strongly convex problem without constraints."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, add_to_diagonal, cholesky_factor, cholesky_solve, copied, namespace
from mercer.problems.hilbert_ball_regression import HilbertBallRegression
from mercer.solvers.run import Method, Report

_ENOUGH = 1e-4  # part of the predicted decrease that a step must achieve
_SHORTEST = 1e-10
_RIDGE = 1e-12  # of the Hessian's trace, added where rounding made it indefinite


@final
class Newton(Method[HilbertBallRegression, Array]):
    """A step takes a Hessian and a Cholesky factorisation; the gap of a point is that of strong convexity.

    It ends where neither the value nor the gap falls any more: rounding hides what is left of them.
    """

    name = phase = "newton"
    handles = frozenset({"a penalty in place of an adversary"})

    def start(self, problem: HilbertBallRegression, point: Any) -> Report[Array]:
        x = problem.start() if point is None else point
        return self._at(problem, x, problem.value(x))

    def step(self, problem: HilbertBallRegression, most: int) -> Report[Array] | None:
        value, gap = self._value, problem.gap(self._gradient)
        step = _newton_step(problem.hessian(self._x), self._gradient)
        moved = _lower(problem, self._x, step, value, -float(self._gradient @ step))
        if moved is None:
            return None
        report = self._at(problem, *moved)
        return report if self._value < value or problem.gap(self._gradient) < gap else None

    def _at(self, problem: HilbertBallRegression, x: Array, value: float) -> Report[Array]:
        self._x, self._value, self._gradient = x, value, problem.gradient(x)
        return Report(x, value, gap=problem.gap(self._gradient))


def _lower(
    problem: HilbertBallRegression, x: Array, step: Array, value: float, decrease: float
) -> tuple[Array, float] | None:
    """The first point along a halved step that is low enough, and its value; None where rounding leaves none."""
    length = 1.0
    while length >= _SHORTEST:
        there = problem.value(x + length * step)
        if there <= value - _ENOUGH * length * decrease:
            return x + length * step, there
        length /= 2
    return None


def _newton_step(hessian: Array, gradient: Array) -> Array:
    """-H⁻¹g; a growing multiple of the identity is added where H is not positive definite."""
    xp, ridge = namespace(hessian), 0.0
    scale = float(xp.linalg.trace(hessian)) / hessian.shape[0]
    if not (bool(xp.isfinite(hessian).all()) and bool(xp.isfinite(gradient).all())):
        raise ArithmeticError("The objective leaves the range of double precision: bring the data to a scale near one.")
    while True:
        matrix = copied(hessian)
        add_to_diagonal(matrix, ridge)
        try:
            return -cholesky_solve(cholesky_factor(matrix), gradient)
        except np.linalg.LinAlgError:
            ridge = max(10 * ridge, _RIDGE * scale)
