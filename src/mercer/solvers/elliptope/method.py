"""What the methods for the elliptope share: the iterate that they report, and when they can no longer move."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple, final

from mercer.backends.arrays import Array
from mercer.backends.rounding import unit_of
from mercer.problems.elliptope import INDEFINITE, LINEAR, Elliptope
from mercer.solvers.run import Method, Report
from mercer.solvers.solution import Status

_STALL_STEPS, _STALLED = 200, 1e3  # steps without progress, once the residual is below so many roundings
_PROGRESS = 0.99
_SAME = 1e4  # objectives this many roundings apart are equal, and then the later iterate is the better one


class Iterate(NamedTuple):
    """A point H with unit rows and its product G = J H + C."""

    H: Array
    G: Array


class ElliptopeMethod(Method[Elliptope, Iterate]):
    """A rule that turns an iterate into the next, one or more products a step."""

    handles = frozenset({INDEFINITE, LINEAR})

    @final
    def start(self, problem: Elliptope, point: Array) -> Report[Iterate]:
        self._best_residual, self._idle = math.inf, 0
        self._at = evaluated(problem, point)
        self.begin(problem, self._at)
        return self._report(problem, self._at)

    @final
    def step(self, problem: Elliptope, most: int) -> Report[Iterate]:
        self._at = self.moved(problem, self._at)
        return self._report(problem, self._at)

    def begin(self, problem: Elliptope, at: Iterate) -> None:
        """Forget an earlier run, and be ready to move from here; a method that remembers nothing has nothing to do."""

    @abstractmethod
    def moved(self, problem: Elliptope, at: Iterate) -> Iterate:
        """Return the next iterate."""

    def _report(self, problem: Elliptope, iterate: Iterate) -> Report[Iterate]:
        objective, residual = problem.objective(*iterate), problem.row_residual(*iterate)
        rounding = 2 * unit_of(problem.operator.dtype)
        moves = residual < _PROGRESS * self._best_residual
        self._best_residual, self._idle = (residual, 0) if moves else (self._best_residual, self._idle + 1)
        stalled = self._idle > _STALL_STEPS and residual < _STALLED * rounding
        return Report(
            iterate,
            objective,
            residual=residual,
            size=iterate.H.shape[1],
            merit=objective,
            noise=_SAME * rounding * abs(objective),
            status=Status.STALLED if stalled else None,
        )


def evaluated(problem: Elliptope, H: Array) -> Iterate:
    """A point with its product."""
    return Iterate(H, problem.apply(H))
