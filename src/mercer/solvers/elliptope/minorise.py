"""Climb by lower models of low rank, so that nearly all products are with a cheap stand-in.

Let J̃ ≼ J, as a partial Cholesky factor gives it. Since ⟨J - J̃, H Hᵀ⟩ is convex in H, it lies above its linearisation at
any point Y, so

    ⟨J, H Hᵀ⟩ ≥ ⟨J̃, H Hᵀ⟩ + 2⟨(J - J̃) Y, H⟩ + constant,        with equality at H = Y.

Maximising the right-hand side can only raise the left: one exact product a step, the rest with the stand-in. With J̃ = 0
the maximiser is rownormalise(J Y), the papers' power step; with J̃ = J it is the solution. In between the error falls by
about the largest eigenvalue that the stand-in leaves out, in units where the solution's are one. Steps are extrapolated
as in :mod:`mercer.solvers.elliptope.power`.
"""

from __future__ import annotations

from typing import final

from mercer.backends.arrays import Array
from mercer.backends.rounding import UNIT
from mercer.operators import LinearMap
from mercer.problems import Elliptope
from mercer.solvers.elliptope.method import ElliptopeMethod, Iterate, evaluated
from mercer.solvers.elliptope.power import Momentum
from mercer.solvers.elliptope.trust_region import TrustRegion
from mercer.solvers.run import Goal, solve
from mercer.solvers.solution import Status

_INNER_ACCURACY = 0.02  # of the residual of the exact problem: what a lower model is solved to
_INNER_STEPS, _INNER_COLUMNS = 20, 2000


@final
class Minorise(ElliptopeMethod):
    """Maximise a lower model of the objective a step; one exact product a step.

    Parameters
    ----------
    stand_in : LinearMap
        Of the problem's size, with a positive semi-definite difference to its operator.

    Attributes
    ----------
    n_stand_in_columns : int
        Columns the stand-in was applied to.
    """

    name = "lower models"
    asked_afterwards = ("n_stand_in_columns",)

    def __init__(self, stand_in: LinearMap) -> None:
        self._stand_in = stand_in
        self.n_stand_in_columns = 0

    def begin(self, problem: Elliptope, at: Iterate) -> None:
        self._momentum = Momentum(at.H)

    def moved(self, problem: Elliptope, at: Iterate) -> Iterate:
        return evaluated(problem, self._momentum.extrapolate(problem, at.H, self._best_of_model(problem, *at)))

    def _best_of_model(self, problem: Elliptope, Y: Array, G: Array) -> Array:
        model = Elliptope(self._stand_in, problem.diagonal, lengths=problem.lengths)
        model.linear = G - model.curvature(Y)
        accuracy = max(_INNER_ACCURACY * problem.row_residual(Y, G), 8 * UNIT)
        goal = Goal(1.0, residual_tol=accuracy, max_iter=_INNER_STEPS, max_products=_INNER_COLUMNS)
        solution = solve(model, TrustRegion(), Y, goal=goal)
        self.n_stand_in_columns += model.n_columns
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return solution.point.H
