"""A sum of squares minimised over the spectrahedron by the method of one's choice."""

from __future__ import annotations

from typing import Any

from mercer.backends.arrays import Array
from mercer.problems.sum_of_squares import SumOfSquares
from mercer.solvers.conic import Conic
from mercer.solvers.run import Goal, Method, solve
from mercer.solvers.solution import Solution
from mercer.solvers.spectrahedron.accelerated import AcceleratedGradients
from mercer.solvers.spectrahedron.low_rank import LowRank

_MOST_STEPS = {"low-rank": 200, "accelerated": 10_000, "conic": 1}


def minimise_on_spectrahedron(
    problem: SumOfSquares,
    method: str = "low-rank",
    *,
    tol: float,
    relative: float = 0.0,
    max_iter: int | None = None,
    start: Array | None = None,
    **shared: Any,
) -> Solution[Array]:
    """Minimise f over C ≽ 0 with Tr C = 1 until the linear oracle's gap is small enough.

    Parameters
    ----------
    problem : SumOfSquares
        What to minimise.
    method : {"low-rank", "accelerated", "conic"}, default="low-rank"
        Newton's method on faces, FISTA, or a conic solver.
    tol : float
        The absolute gap to reach.
    relative : float, default=0.0
        A gap that is at most this part of the proved lower bound will do as well.
    max_iter : int, optional
        Steps at most: 200 rounds of ``"low-rank"`` and 10 000 steps of ``"accelerated"`` if left out.
    start : array of shape (s, r), optional
        A first factor, of no use to a conic solver.
    **shared
        Arguments of :class:`mercer.solvers.run.Run`: callbacks, the log, and what certifies.

    Returns
    -------
    Solution
        Its point is a factor F of C = F Fᵀ with ‖F‖ = 1: the one of least gap, or the last of ``"accelerated"``.
    """
    steps = _MOST_STEPS[method] if max_iter is None else max_iter
    goal = Goal(relative / (1.0 + relative), absolute=tol, max_iter=steps)  # that part of the bound in the objective's
    methods: dict[str, Method[SumOfSquares, Array]] = {
        "low-rank": LowRank(goal),
        "accelerated": AcceleratedGradients(),
        "conic": Conic(goal),
    }
    return solve(problem, methods[method], start, goal=goal, **shared)
