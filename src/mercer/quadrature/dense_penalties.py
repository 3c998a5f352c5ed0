"""Penalties that spare nothing: where every point keeps its weight, a person is told (QUAD 3.4)."""

from __future__ import annotations

from mercer.problems import Discrepancy
from mercer.progress import warn_user
from mercer.quadrature.request import Choice, is_its_own_best

_PROPORTIONAL = 1e-6  # the spread of quotients up to which two vectors are proportional


def warn_of_dense_penalty(problem: Discrepancy, choice: Choice) -> None:
    """Tell of d = θ Sω, where v = (1 - αθ) ω is the solution at every level: no weight is zero (QUAD 3.4)."""
    if _is_to_be_sparse(problem, choice) and _is_multiple_of_distortion(problem):
        warn_user(
            "penalty is a multiple of Sω, so that every point keeps the same part of its weight and the solution is "
            "not sparse (QUAD 3.4): choose another penalty, or ask for n_nodes."
        )


def warn_of_dense_solution(problem: Discrepancy, choice: Choice, found: int) -> None:
    """Tell of other d = Sη, where v = ω - αη is the solution for as long as no weight vanishes (QUAD 3.4)."""
    if found == problem.size and _is_to_be_sparse(problem, choice) and not _is_multiple_of_distortion(problem):
        warn_user(
            f"All {found} points have weight: with this penalty nothing is spared at this level (QUAD 3.4). Raise "
            "alpha or lower trace_fraction, choose another penalty or a wider kernel, or ask for n_nodes."
        )


def _is_to_be_sparse(problem: Discrepancy, choice: Choice) -> bool:
    """Whether the penalty alone, at a level below the whole trace, is to leave points out."""
    level = 1.0 if choice.kappa is None else choice.kappa / problem.total
    penalised = bool(choice.alpha) or level < 1 - _PROPORTIONAL
    return penalised and choice.reduction is None and problem.size > 1 and is_its_own_best(problem)


def _is_multiple_of_distortion(problem: Discrepancy) -> bool:
    ratio = problem.penalty / problem.distortion
    return float(ratio.max() - ratio.min()) <= _PROPORTIONAL * float(ratio.max())
