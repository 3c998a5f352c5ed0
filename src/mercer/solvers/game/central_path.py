"""What barrier methods share: Newton steps to a point of the central path, its bounds, and a larger weight.

For a barrier weight w the minimiser of w (objective) + barrier is followed while w grows. A point is central enough
where the Newton step predicts a small decrease; there the multipliers bound the game, whatever the problem is.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from mercer.backends.arrays import Array, namespace
from mercer.solvers.run import AnyProblem, Method, Report
from mercer.solvers.solution import Point, Status

_CENTRED = 0.5  # Newton decrement below which a point counts as central
_ENOUGH = 0.1  # part of the predicted decrease that a step must achieve
_SHORTEST = 1e-8
_STUCK = 0.5  # a raised weight that leaves more of the gap than this, and more than theory says, has met rounding
_NOISE = 1e-12  # of the barrier function, by which rounding may raise it


class CentralPath(Method[AnyProblem, Point]):
    """Newton steps along the central path; a line of the history is a point of it, or the end of the steps allowed.

    A subclass sets ``_problem``, ``_point`` and ``_weight`` in ``start`` and calls :meth:`_begin`. ``growth`` is that
    of the weight, ``patience`` the Newton steps for one, and ``stuck_for`` how many weights in a row may meet rounding.
    """

    name = phase = "barrier"
    growth: ClassVar[float]
    patience: ClassVar[int]
    stuck_for: ClassVar[int]
    _point: Any
    _parts: Any
    _weight: float

    @abstractmethod
    def _derivatives(self) -> Any:
        """What the Newton steps of the point are made of, for every weight."""

    @abstractmethod
    def _newton_step(self) -> tuple[Array, float] | None:
        """The Newton step for the weight at hand, and the root of the decrease that it predicts; None for rounding."""

    @abstractmethod
    def _terms(self, point: Any) -> tuple[float, float]:
        """The objective and the barrier; infinite outside."""

    @abstractmethod
    def _moved(self, step: Array, length: float) -> Any:
        """The point so far along a step."""

    @abstractmethod
    def _bound(self, step: Array) -> None:
        """Bounds from this point and its next step; the best ones are kept."""

    @abstractmethod
    def _report(self, steps: int, status: Status | None = None) -> Report[Point]:
        """The best bounds so far."""

    def step(self, problem: AnyProblem, most: int) -> Report[Point]:
        for taken in range(1, most + 1):
            if not self._walked():
                return self._given_up(taken - 1)
            if self._arrive():
                return self._report(taken, Status.STALLED if self._stuck == self.stuck_for else None)
            if self._newton is None:
                return self._given_up(taken)
        return self._report(most)

    def _begin(self) -> Report[Point]:
        """Bounds from the first point."""
        self._value = self._terms(self._point)
        self._narrowest, self._at_weight, self._stuck = np.inf, 0, 0
        self._arrive()
        return self._report(0)

    def _given_up(self, steps: int) -> Report[Point]:
        """Rounding leaves no direction of descent: the bounds of this point are the last."""
        self._bound(namespace(self._parts.gradient).zeros_like(self._parts.gradient))
        return self._report(steps, Status.STALLED)

    def _arrive(self) -> bool:
        """Find the next step from here; a central point is bounded first, and its weight raised. Whether it is one."""
        self._parts = self._derivatives()
        self._newton = self._newton_step()
        self._at_weight += 1
        if self._newton is None or (self._newton[1] >= _CENTRED and self._at_weight <= self.patience):
            return False
        self._bound(self._newton[0])
        self._weight *= self.growth
        self._at_weight = 0
        self._newton = self._newton_step()
        return True

    def _walked(self) -> bool:
        """Move along the step as far as the barrier allows; whether that was possible."""
        if self._newton is None:
            return False
        step, decrement = self._newton
        here, length = self._weight * self._value[0] + self._value[1], 1.0
        noise = _NOISE * abs(here)
        while length > _SHORTEST:
            point = self._moved(step, length)
            value, barrier = self._terms(point)
            if self._weight * value + barrier <= here - _ENOUGH * length * decrement**2 + noise:
                self._point, self._value = point, (value, barrier)
                return True
            length /= 2
        return False

    def _narrowed(self, gap: float, promised: float = 0.0) -> None:
        """Count the weights in a row that left too much of the gap, and more than was promised."""
        self._stuck = self._stuck + 1 if gap > max(_STUCK * self._narrowest, promised) else 0
        self._narrowest = min(self._narrowest, gap)
