"""The exact solution of a discrepancy programme by an active set (non-negative least squares with a pool).

On the free nodes J the optimality conditions are linear: A_JJ v_J = q_J - α d_J, with α given (QUAD 3.1) or fixed by
dᵀv = ϰ (QUAD 3.2), and q what Sω leaves to them beside the nodes at their caps. The iterate moves towards that solution
until a weight reaches zero or its cap, and is then held there; when none does, points of negative gradient join J.
Every move lowers the objective, so no set comes twice.

Most points never matter. New nodes are therefore looked for in a *pool*, the points of least gradient, whose entries of
A are all that is evaluated; only when the pool is solved are the gradients of all points computed again and the pool
chosen anew. A handful of these passes over the sample is all.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, copied, namespace
from mercer.backends.ordering import flatnonzero, least, places
from mercer.backends.rounding import EPS
from mercer.backends.threads import single_threaded_blas
from mercer.linalg.factors import solve_by_factor, upper_factor
from mercer.problems import SparseMeasure, TraceProblem
from mercer.problems.discrepancy import CAPS, CONSTRAINT, PENALTY, RIDGE
from mercer.solvers.measure.active_set_pool import NOISE, ActiveSetPool
from mercer.solvers.run import Goal, Limits, Method, Report, Run
from mercer.solvers.solution import Solution, Status

_NO_GAP = 1e-12  # of the objective: nothing is left to gain
_MOST_PASSES = 200
_LEAST_POOL = 1000
_POOL_PER_NODE = 4
_POOL_SHARE = 0.5  # of the memory limit, for the entries of A between pool and nodes
_FEW = 256
_INDEPENDENT = 1e-8  # of its diagonal entry: the pivot of a node that does not depend on the others
_MET = 1e-12  # of ϰ: a start that misses it by less is left as it is
_ZERO = 4 * EPS  # of D(0): no objective is negative, and less than this is rounding


def solve_exactly(
    problem: TraceProblem,
    start: SparseMeasure | tuple[Array, Array] | None = None,
    *,
    tol: float = 1e-9,
    gap_tol: float | None = None,
    max_nodes: int | None = None,
    max_passes: int | None = None,
    run: Run[SparseMeasure] | None = None,
) -> Solution[SparseMeasure]:
    """Minimise D (and ridge) + α dᵀv over 0 ≤ v ≤ c, or D under dᵀv = ϰ.

    Parameters
    ----------
    problem : TraceProblem
        The programme: ``discrepancy.regularised(alpha)`` or ``discrepancy.constrained(kappa)``.
    start : SparseMeasure or (nodes, values), optional
        Where to begin, for instance what an exchange method left. For ϰ it is scaled down, or filled up with the
        points of largest (Sω)ₖ/dₖ, to dᵀv = ϰ.
    tol : float, default=1e-9
        No gradient may be below -tol α dᵢ: a fraction of the penalty.
    gap_tol : float, optional
        Or the Frank-Wolfe bound is this part of the objective; 1e-12 if left out.
    max_nodes : int, optional
        With more nodes than this the status is ``SLOW``: another method should take over.
    max_passes : int, optional
        Passes over the whole sample, 200 at most if left out.
    run : Run, optional
        Callbacks and history that the solve shares with others; its goal is replaced by ``gap_tol``.

    Notes
    -----
    Cost: a pass takes N kernel evaluations a node; a step inside the pool n² flops for the factor and 4 n for each of
    its points. Memory: n² for the factor, and the entries of A between pool and nodes.
    """
    goal = Goal(_NO_GAP if gap_tol is None else gap_tol)
    shared = Run(goal) if run is None else replace(run, goal=goal)
    limits = Limits(max_iter=_MOST_PASSES if max_passes is None else max_passes)
    with single_threaded_blas():
        return shared.phase(problem, ActiveSet(tol, max_nodes), start, limits)


def solve_on(problem: TraceProblem, nodes: Array) -> Array:
    """The weights of the same programme when only these nodes may have any; some may be zero.

    Where the caps of the nodes do not allow dᵀv = ϰ, all are at their caps.
    """
    caps, penalty = problem.discrepancy.caps[nodes], problem.discrepancy.penalty[nodes]
    with single_threaded_blas():
        start = _signed(problem, nodes) if problem.kappa is None else _spread(caps, penalty, problem.kappa)
        if problem.kappa is None and bool(((start > 0) & (start <= caps)).all()):
            return start  # the best weights of any sign keep to all bounds
        pool = ActiveSetPool(problem, nodes, start, problem.alpha or 0.0, 1e-12)
        pool.solve()
    return pool.values


def _signed(problem: TraceProblem, nodes: Array) -> Array:
    """The best weights of any sign, those below zero left out: most nodes keep theirs, which need not be built up.

    Zero where the nodes depend on one another so much that such weights are rounding.
    """
    base = problem.discrepancy
    target = base.distortion[nodes] - (problem.alpha or 0.0) * base.penalty[nodes]
    matrix, xp = base.block(nodes, nodes), namespace(target)
    factor = upper_factor(copied(matrix))
    if factor is None or not target.shape[0]:
        return xp.zeros_like(target)
    pivots = xp.linalg.diagonal(factor) ** 2
    if not float((pivots / xp.linalg.diagonal(matrix)).min()) > _INDEPENDENT:
        return xp.zeros_like(target)
    weights = solve_by_factor(factor, target[:, None])[:, 0]
    return xp.clip(weights + solve_by_factor(factor, (target - matrix @ weights)[:, None])[:, 0], min=0.0)


def _spread(caps: Array, penalty: Array, kappa: float) -> Array:
    """Equal weights with dᵀv = ϰ, but for those that their caps keep lower."""
    xp = namespace(caps)
    order = xp.argsort(caps)
    filled = xp.concat([xp.zeros_like(caps[:1]), xp.cumulative_sum((caps * penalty)[order])[:-1]])
    rest = xp.flip(xp.cumulative_sum(xp.flip(penalty[order])))
    level = (kappa - filled) / rest  # where the caps before are reached, and no others
    fits = flatnonzero(level <= caps[order])
    return xp.clip(caps, max=level[fits[0]]) if fits.shape[0] else caps


class ActiveSet(Method[TraceProblem, SparseMeasure]):
    """One step solves the programme on a pool of points, then computes the gradient of all."""

    name = phase = "active set"
    handles = frozenset({CAPS, RIDGE, PENALTY, CONSTRAINT})

    def __init__(self, tol: float = 1e-9, max_nodes: int | None = None) -> None:
        self._tol, self._most = tol, math.inf if max_nodes is None else max_nodes

    def start(self, problem: TraceProblem, point: Any) -> Report[SparseMeasure]:
        """The measure given, within its caps and with dᵀv = ϰ where that is asked."""
        base = problem.discrepancy
        values = namespace(base.distortion).zeros_like(base.distortion)
        gradient = None
        if point is not None:
            known = isinstance(point, SparseMeasure)
            nodes, given = (point.nodes, point.values) if known else point
            values[nodes] = namespace(values).minimum(given, base.caps[nodes])
            gradient = point.gradient if known and bool((values[nodes] == given).all()) else None
        if problem.kappa is not None and _meet(problem, values):
            gradient = None
        self._values, self._objectives = values, list[float]()
        return self._looked(problem, gradient)

    def step(self, problem: TraceProblem, most: int) -> Report[SparseMeasure]:
        """Solve the programme on the nodes and the points of least gradient."""
        pool = self._choose_pool(problem)
        solver = ActiveSetPool(problem, pool, self._values[pool], self._alpha, self._tol)
        solver.solve()
        self._values[pool] = solver.values
        return self._looked(problem, None)

    def _looked(self, problem: TraceProblem, gradient: Array | None) -> Report[SparseMeasure]:
        """A pass over the sample: the gradient at every point, and what it says of the measure."""
        base, nodes = problem.discrepancy, flatnonzero(self._values)
        values = self._values[nodes]
        gradient = base.gradient(nodes, values) if gradient is None else gradient
        self._alpha = problem.multiplier(nodes, values, gradient)
        penalised, xp = gradient + self._alpha * base.penalty, namespace(gradient)
        full = self._values >= base.caps
        self._slack = xp.where(full, -penalised, penalised)  # which must not be negative off the free nodes
        value = problem.value(nodes, values, gradient)
        growing = xp.where(full, xp.maximum(penalised, 0.0), penalised)  # at its cap a node cannot grow
        lowest = float((growing / base.penalty).min())
        most = problem.kappa  # of dᵀu, for a measure u that is no worse
        if most is None:
            most = value / problem.alpha if problem.alpha else math.inf
        gap = float(growing[nodes] @ values) - (most * lowest if lowest < 0 else 0.0)
        self._objectives.append(value)
        return Report(
            SparseMeasure(nodes, values, gradient),
            value,
            gap,
            size=int(nodes.shape[0]),
            status=self._verdict(problem, int(nodes.shape[0])),
        )

    def _verdict(self, problem: TraceProblem, n_nodes: int) -> Status | None:
        base, slack, xp = problem.discrepancy, self._slack, namespace(self._slack)
        free = (self._values > 0) & (self._values < base.caps)
        allowed = max(self._tol * self._alpha, NOISE * base.largest_alpha) * base.penalty
        optimal = bool(xp.all(xp.where(free, -abs(slack), slack) >= -allowed))
        values = self._objectives
        if optimal or values[-1] <= _ZERO * base.constant:
            return Status.CONVERGED
        if len(values) > 2 and not values[-1] < values[-3]:
            return Status.STALLED
        return Status.SLOW if n_nodes > self._most else None

    def _choose_pool(self, problem: TraceProblem) -> Array:
        """All nodes, and the points of least gradient."""
        size, nodes = problem.discrepancy.size, flatnonzero(self._values)
        count = min(size, nodes.shape[0] + max(_LEAST_POOL, _POOL_PER_NODE * nodes.shape[0]))
        affordable = int(get_config().memory_bytes * _POOL_SHARE) // (2 * 8 * max(nodes.shape[0], _FEW))
        count = min(count, max(affordable, nodes.shape[0] + _FEW))
        price = self._slack / problem.discrepancy.penalty
        price[nodes] = -np.inf
        if count == size:
            return places(size, price)
        return namespace(price).sort(least(price, count))


def _meet(problem: TraceProblem, values: Array) -> bool:
    """Scale weights down to dᵀv = ϰ, or fill the points of largest gain up to it; whether they changed."""
    base, kappa = problem.discrepancy, problem.kappa
    assert kappa is not None
    missing = kappa - float(base.penalty @ values)
    if abs(missing) <= _MET * kappa:
        return False
    if missing < 0:
        values *= kappa / (kappa - missing)
    else:
        nodes, more = base.filled(base.distortion / base.penalty, missing, base.caps - values)
        values[nodes] += more
    return True
