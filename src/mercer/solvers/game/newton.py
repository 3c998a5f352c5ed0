"""Newton's method with a line search, for a smooth convex problem without constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mercer.backends.arrays import Array, add_to_diagonal, cholesky_factor, cholesky_solve, copied, namespace
from mercer.solvers.solution import Status

_ENOUGH = 1e-4  # part of the predicted decrease that a step must achieve
_SHORTEST = 1e-10
_RIDGE = 1e-12  # of the Hessian's trace, added where rounding made it indefinite


class SmoothConvex(Protocol):
    """What the method asks of a problem."""

    def value(self, x: Array, /) -> float:
        """The objective."""

    def gradient(self, x: Array, /) -> Array:
        """Its gradient."""

    def hessian(self, x: Array, /) -> Array:
        """Its Hessian."""


@dataclass(frozen=True)
class NewtonResult:
    """The last iterate, why the method ended, and the objective after every step."""

    x: Array
    status: Status
    history: tuple[float, ...]

    @property
    def n_iter(self) -> int:
        """Steps taken."""
        return len(self.history) - 1


def minimise_by_newton(
    problem: SmoothConvex,
    start: Array,
    *,
    tol: float,
    max_iter: int = 100,
    callback: Callable[[float], Any] | None = None,
) -> NewtonResult:
    """Minimise until the predicted decrease of a step is at most tol times the objective.

    Parameters
    ----------
    problem : SmoothConvex
        Value, gradient and Hessian.
    start : array of shape (l,)
        The first iterate.
    tol : float
        Relative to the objective.
    max_iter : int, default=100
        Steps at most; each takes a Hessian and a Cholesky factorisation.
    callback : callable, optional
        Receives the objective at the start and after every step; a true value ends the run.

    Returns
    -------
    NewtonResult
        The last iterate; on Ctrl-C too, with the status ``INTERRUPTED``.
    """
    x, value = start, problem.value(start)
    history = [value]
    try:
        for number in range(max_iter + 1):
            if callback is not None and callback(value):
                return NewtonResult(x, Status.STOPPED, tuple(history))
            gradient = problem.gradient(x)
            step = _newton_step(problem.hessian(x), gradient)
            decrease = -float(gradient @ step)
            if decrease <= tol * abs(value):
                return NewtonResult(x, Status.CONVERGED, tuple(history))
            if number == max_iter:
                break
            moved = _lower(problem, x, step, value, decrease)
            if moved is None:
                return NewtonResult(x, Status.STALLED, tuple(history))
            x, value = moved
            history.append(value)
    except KeyboardInterrupt:
        return NewtonResult(x, Status.INTERRUPTED, tuple(history))
    return NewtonResult(x, Status.MAX_ITER, tuple(history))


def _lower(problem: SmoothConvex, x: Array, step: Array, value: float, decrease: float) -> tuple[Array, float] | None:
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
