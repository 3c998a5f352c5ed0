"""The numbers that a person reads of a sparse measure."""

from __future__ import annotations

from typing import NamedTuple

from mercer.backends.arrays import Array
from mercer.problems import Discrepancy


class MeasureSummary(NamedTuple):
    """What :class:`mercer.QuadratureSparsifier` says of its measure, from the programme and the measure alone.

    Attributes
    ----------
    discrepancy : float
        D(v).
    kappa, trace_fraction : float
        dᵀv, and its part of dᵀω.
    alpha : float
        The penalty that v is optimal for.
    margin : float
        γ = vᵀS(v - ω).
    """

    discrepancy: float
    kappa: float
    trace_fraction: float
    alpha: float
    margin: float

    @classmethod
    def of(cls, problem: Discrepancy, nodes: Array, values: Array, alpha: float | None) -> MeasureSummary:
        """Compute them: N kernel evaluations a node. ``alpha`` is the penalty where the programme has one."""
        gradient = problem.gradient(nodes, values)
        kappa = float(problem.penalty[nodes] @ values)
        margin = float((gradient[nodes] - problem.ridge[nodes] * values) @ values)
        return cls(
            discrepancy=problem.discrepancy(nodes, values, gradient),
            kappa=kappa,
            trace_fraction=kappa / problem.total,
            alpha=problem.multiplier(nodes, values, gradient) if alpha is None else alpha,
            margin=margin,
        )
