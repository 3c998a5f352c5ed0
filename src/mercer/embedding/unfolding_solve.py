"""Solve a posed unfolding to a proved gap, in as few coordinates as that allows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mercer.backends.arrays import Array
from mercer.backends.config import require_free_memory, require_memory
from mercer.certificates.unfolding import UnfoldingCertificate, certify_unfolding, connectivity
from mercer.embedding.unfolding_problem import PosedUnfolding
from mercer.problems.unfolding import InfeasibleDistancesError
from mercer.solvers.run import Goal, Run
from mercer.solvers.solution import Iteration, Solution, Status
from mercer.solvers.unfolding.interior_point import Unfolded, UnfoldingInteriorPoint, bytes_needed

_SOLVED = 0.3  # of the tolerance, for the solver: coordinates that are left out take some, rounding the rest
_LEFT_OUT = (0.3, 0.03, 1e-3, 0.0)  # of the tolerance: variance of coordinates left out, if the proof allows it


@dataclass(frozen=True, eq=False)
class SolvedUnfolding:
    """Points in the units of the programme, their proof, and how they came about."""

    points: Array
    multipliers: Array
    certificate: UnfoldingCertificate
    status: Status
    history: tuple[Iteration, ...]


def solve_unfolding(posed: PosedUnfolding, model: Any) -> SolvedUnfolding:
    """Solve the programme as the model's parameters say; :class:`mercer.MaximumVarianceUnfolding` documents them."""
    _require_memory(posed)
    goal = Goal(_SOLVED * model.tol, max_iter=int(model.max_iter))
    run: Run[Unfolded] = Run(goal, callbacks=() if model.callback is None else (model.callback,), shown=model.verbose)
    try:
        solution = run.phase(posed.problem.raised, UnfoldingInteriorPoint())
    except InfeasibleDistancesError as error:
        i, j = posed.named_pairs[error.pair]
        raise ValueError(
            f"No points have all the distances of the graph to distance_tol={model.distance_tol:g}; rows {i} and {j} "
            "are among those too far apart. Raise distance_tol, or pass distances='not exceeded'."
        ) from None
    return _of_few_coordinates(posed, solution, float(model.tol))


def _of_few_coordinates(posed: PosedUnfolding, solution: Solution[Unfolded], tol: float) -> SolvedUnfolding:
    """The points of the solution in as few coordinates as leave the proof as good as it is asked for."""
    problem, (gram, multipliers) = posed.problem, solution.point
    best: SolvedUnfolding | None = None
    whole, level = problem.raised.principal_points(gram), connectivity(problem, multipliers)
    for part in _LEFT_OUT:
        points = problem.raised.of_fewer_coordinates(whole, part * tol)
        certificate = certify_unfolding(problem, points, multipliers, level=level)
        found = SolvedUnfolding(points, multipliers, certificate, solution.status, solution.history)
        if certificate.holds(tol):  # that the solver wanted more of itself is no news for a person
            return found if solution.status is Status.STOPPED else replace(found, status=Status.CONVERGED)
        if best is None or certificate.relative_gap < best.certificate.relative_gap:
            best = found
    assert best is not None
    return best


def _require_memory(posed: PosedUnfolding) -> None:
    n, count = posed.problem.size, posed.problem.pairs.shape[0]
    what = f"The unfolding of {n} points with {count} pairs"
    advice = "pass landmarks, or fewer n_neighbors"
    require_memory(bytes_needed(n, count), what, advice)
    require_free_memory(bytes_needed(n, count), f"{what} takes", advice)
