"""Newton's method with a line search, for a smooth convex problem without constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mercer.solvers.result import Status

Array = np.ndarray[Any, np.dtype[Any]]

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


def minimise_by_newton(problem: SmoothConvex, start: Array, *, tol: float, max_iter: int = 100) -> NewtonResult:
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
    """
    x, value = start, problem.value(start)
    history = [value]
    for _ in range(max_iter):
        gradient = problem.gradient(x)
        step = _newton_step(problem.hessian(x), gradient)
        decrease = -float(gradient @ step)
        if decrease <= tol * abs(value):
            return NewtonResult(x, Status.CONVERGED, tuple(history))
        length = 1.0
        while (there := problem.value(x + length * step)) > value - _ENOUGH * length * decrease:
            length /= 2
            if length < _SHORTEST:
                return NewtonResult(x, Status.STALLED, tuple(history))
        x, value = x + length * step, there
        history.append(value)
    return NewtonResult(x, Status.MAX_ITER, tuple(history))


def _newton_step(hessian: Array, gradient: Array) -> Array:
    """-H⁻¹g; a growing multiple of the identity is added where H is not positive definite."""
    ridge, scale = 0.0, float(np.trace(hessian)) / hessian.shape[0]
    while True:
        try:
            return np.asarray(-cho_solve(cho_factor(hessian + ridge * np.eye(hessian.shape[0])), gradient))
        except np.linalg.LinAlgError:
            ridge = max(10 * ridge, _RIDGE * scale)
