"""Climb by lower models of low rank, so that nearly all products are with a cheap stand-in.

Let J̃ ≼ J, as a partial Cholesky factor gives it. Since ⟨J - J̃, H Hᵀ⟩ is convex in H, it lies above its linearisation at
any point Y, so

    ⟨J, H Hᵀ⟩ ≥ ⟨J̃, H Hᵀ⟩ + 2⟨(J - J̃) Y, H⟩ + constant,        with equality at H = Y.

Maximising the right-hand side can only raise the left: one exact product a step, the rest with the stand-in. With J̃ = 0
the maximiser is rownormalise(J Y), the papers' power step; with J̃ = J it is the solution. In between the error falls by
about the largest eigenvalue that the stand-in leaves out, in units where the solution's are one. Steps are extrapolated
as in :mod:`mercer.solvers.elliptope.accelerated`.
"""

from __future__ import annotations

from typing import final

from mercer.backends.arrays import Array
from mercer.backends.rounding import unit_of
from mercer.operators import LinearMap
from mercer.problems import Elliptope
from mercer.solvers.elliptope.accelerated import Momentum
from mercer.solvers.elliptope.loop import maximise
from mercer.solvers.elliptope.trust_region import TrustRegion
from mercer.solvers.solution import Status

_INNER_ACCURACY = 0.02  # of the residual of the exact problem: what a lower model is solved to
_UNIT = unit_of("float64")
_INNER_STEPS, _INNER_COLUMNS = 20, 2000


@final
class Minorise:
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

    def __init__(self, stand_in: LinearMap) -> None:
        self._stand_in = stand_in
        self.n_stand_in_columns = 0

    def start(self, problem: Elliptope, H: Array) -> tuple[Array, Array]:
        self._Y, self._G = H, problem.apply(H)
        self._momentum = Momentum(H)
        return self._Y, self._G

    def step(self, problem: Elliptope) -> tuple[Array, Array]:
        H = self._maximise_model(problem)
        self._Y = self._momentum.extrapolate(problem, self._Y, H)
        self._G = problem.apply(self._Y)
        return self._Y, self._G

    def _maximise_model(self, problem: Elliptope) -> Array:
        model = Elliptope(self._stand_in, problem.diagonal, lengths=problem.lengths)
        model.linear = self._G - model.curvature(self._Y)
        accuracy = max(_INNER_ACCURACY * problem.row_residual(self._Y, self._G), 8 * _UNIT)
        result = maximise(
            model,
            TrustRegion(),
            self._Y,
            certify=None,
            tol=1.0,
            residual_tol=accuracy,
            max_iter=_INNER_STEPS,
            max_products=_INNER_COLUMNS,
        )
        self.n_stand_in_columns += model.n_columns
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return result.H
