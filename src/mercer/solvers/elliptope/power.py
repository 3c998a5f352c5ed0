"""The papers' projected power method: H ← rows of (J + cI) H brought to unit length (PSD22 Algorithm 1)."""

from __future__ import annotations

from typing import final

from mercer.backends.arrays import Array
from mercer.problems import Elliptope
from mercer.solvers.elliptope.method import ElliptopeMethod, Iterate, evaluated


@final
class ProjectedPower(ElliptopeMethod):
    """One product a step; the objective never falls where J + cI is positive semi-definite."""

    name = "power"

    def begin(self, problem: Elliptope, at: Iterate) -> None:
        pass

    def moved(self, problem: Elliptope, at: Iterate) -> Iterate:
        return evaluated(problem, power_step(problem, at))


def power_step(problem: Elliptope, at: Iterate) -> Array:
    """The rows of (J + cI) H, of unit length."""
    ascent = at.G if problem.shift == 0 else at.G + problem.shift * at.H
    return problem.project(ascent, at.H)
