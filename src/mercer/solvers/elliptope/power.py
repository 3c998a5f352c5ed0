"""The papers' projected power method: H ← rows of (J + cI) H brought to unit length (PSD22 Algorithm 1)."""

from __future__ import annotations

from typing import final

from mercer.backends.arrays import Array
from mercer.problems import Elliptope


@final
class ProjectedPower:
    """One product a step; the objective never falls where J + cI is positive semi-definite."""

    def start(self, problem: Elliptope, H: Array) -> tuple[Array, Array]:
        self._H, self._G = H, problem.apply(H)
        return self._H, self._G

    def step(self, problem: Elliptope) -> tuple[Array, Array]:
        ascent = self._G if problem.shift == 0 else self._G + problem.shift * self._H
        self._H = problem.project(ascent, self._H)
        self._G = problem.apply(self._H)
        return self._H, self._G
