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

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, namespace
from mercer.backends.ordering import flatnonzero, least, places
from mercer.backends.rounding import EPS
from mercer.backends.threads import single_threaded_blas
from mercer.problems import Discrepancy
from mercer.solvers.measure.active_set_pool import NOISE, ActiveSetPool
from mercer.solvers.measure.sparse_measure import ExchangeStep, SparseMeasure
from mercer.solvers.solution import Status

_LEAST_POOL = 1000
_POOL_PER_NODE = 4
_POOL_SHARE = 0.5  # of the memory limit, for the entries of A between pool and nodes
_FEW = 256
_MET = 1e-12  # of ϰ: a start that misses it by less is left as it is
_ZERO = 4 * EPS  # of D(0): no objective is negative, and less than this is rounding
_NO_GAP = 1e-12  # of the objective: nothing is left to gain


def solve_exactly(
    problem: Discrepancy,
    *,
    alpha: float | None = None,
    kappa: float | None = None,
    start: tuple[Array, Array] | None = None,
    tol: float = 1e-9,
    gap_tol: float = _NO_GAP,
    max_passes: int = 200,
    callback: Callable[[ExchangeStep], Any] | None = None,
) -> SparseMeasure:
    """Minimise D (and ridge) + α dᵀv over 0 ≤ v ≤ c, or D under dᵀv = ϰ.

    Parameters
    ----------
    problem : Discrepancy
        The programme.
    alpha, kappa : float
        One of the two.
    start : (nodes, values), optional
        Where to begin, for instance what an exchange method left. For ϰ it is scaled down, or filled up with the
        points of largest (Sω)ₖ/dₖ, to dᵀv = ϰ.
    tol : float, default=1e-9
        No gradient may be below -tol α dᵢ: a fraction of the penalty.
    gap_tol : float, default=1e-12
        Or the Frank-Wolfe bound is this part of the objective.
    max_passes : int, default=200
        Passes over the whole sample.
    callback : callable, optional
        Called after each pass; a true return value stops.

    Notes
    -----
    Cost: a pass takes N kernel evaluations a node; a step inside the pool n² flops for the factor and 4 n for each of
    its points. Memory: n² for the factor, and the entries of A between pool and nodes.
    """
    if (alpha is None) == (kappa is None):
        raise ValueError("solve_exactly takes either alpha or kappa.")
    run = _Passes(problem, alpha, kappa, tol, gap_tol)
    with single_threaded_blas():
        return run.solve(start, max_passes, callback)


def solve_on(problem: Discrepancy, nodes: Array, *, alpha: float | None = None, kappa: float | None = None) -> Array:
    """The weights of the same programme when only these nodes may have any; some may be zero.

    Where the caps of the nodes do not allow dᵀv = ϰ, all are at their caps.
    """
    caps, penalty = problem.caps[nodes], problem.penalty[nodes]
    start = namespace(caps).zeros_like(caps) if kappa is None else _spread(caps, penalty, kappa)
    with single_threaded_blas():
        pool = ActiveSetPool(problem, nodes, start, 0.0 if alpha is None else alpha, kappa, 1e-12)
        pool.solve()
    return pool.values


def _spread(caps: Array, penalty: Array, kappa: float) -> Array:
    """Equal weights with dᵀv = ϰ, but for those that their caps keep lower."""
    xp = namespace(caps)
    order = xp.argsort(caps)
    filled = xp.concat([xp.zeros_like(caps[:1]), xp.cumulative_sum((caps * penalty)[order])[:-1]])
    rest = xp.flip(xp.cumulative_sum(xp.flip(penalty[order])))
    level = (kappa - filled) / rest  # where the caps before are reached, and no others
    fits = flatnonzero(level <= caps[order])
    return xp.clip(caps, max=level[fits[0]]) if fits.shape[0] else caps


class _Passes:
    """The iterate over all points, and the passes over them."""

    def __init__(
        self, problem: Discrepancy, alpha: float | None, kappa: float | None, tol: float, gap_tol: float
    ) -> None:
        self._problem, self._kappa, self._tol, self._gap_tol = problem, kappa, tol, gap_tol
        self._alpha = problem.largest_alpha if alpha is None else alpha
        self._values = namespace(problem.distortion).zeros_like(problem.distortion)
        self._started = time.monotonic()
        self._history: list[ExchangeStep] = []

    def solve(self, start: Any, max_passes: int, callback: Callable[[ExchangeStep], Any] | None) -> SparseMeasure:
        if start is not None:
            self._values[start[0]] = namespace(self._values).minimum(start[1], self._problem.caps[start[0]])
        if self._kappa is not None:
            self._meet(self._kappa)
        status = Status.MAX_ITER
        try:
            for number in range(max_passes):
                slack = self._slack()
                step = self._note(number, slack)
                verdict = self._verdict(slack, step)
                if verdict is not None or (callback is not None and callback(step)):
                    status = verdict or Status.STOPPED
                    break
                self._solve_pool(self._choose_pool(slack))
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        nodes = flatnonzero(self._values)
        gradient = self._problem.gradient(nodes, self._values[nodes])
        return SparseMeasure(nodes, self._values[nodes], gradient, status, tuple(self._history))

    def _meet(self, kappa: float) -> None:
        """Scale a start down to dᵀv = ϰ, or fill the points of largest gain up to it."""
        problem = self._problem
        missing = kappa - float(problem.penalty @ self._values)
        if missing < -_MET * kappa:
            self._values *= kappa / (kappa - missing)
        elif missing > _MET * kappa:
            gain = problem.distortion / problem.penalty
            nodes, values = problem.filled(gain, missing, problem.caps - self._values)
            self._values[nodes] += values

    def _slack(self) -> Array:
        """The gradient with its penalty, A v - Sω + α d, signed so that it must not be negative off the free nodes."""
        nodes = flatnonzero(self._values)
        gradient = self._problem.gradient(nodes, self._values[nodes])
        if self._kappa is not None and nodes.shape[0]:
            self._alpha = self._problem.multiplier(nodes, self._values[nodes], gradient)
        slack = gradient + self._alpha * self._problem.penalty
        return namespace(slack).where(self._values >= self._problem.caps, -slack, slack)

    def _note(self, number: int, slack: Array) -> ExchangeStep:
        problem, nodes = self._problem, flatnonzero(self._values)
        values = self._values[nodes]
        xp = namespace(slack)
        signed = xp.where(self._values >= problem.caps, -slack, slack)
        value = problem.value(nodes, values, signed - self._alpha * problem.penalty)
        level = self._kappa
        if level is None:
            value += self._alpha * float(problem.penalty[nodes] @ values)
            level = value / self._alpha if self._alpha > 0 else np.inf  # no better measure has a larger dᵀv
        below = xp.where(self._values < problem.caps, signed, xp.maximum(signed, 0.0))  # at its cap a node cannot grow
        lowest = float((below / problem.penalty).min())
        gap = float(below[nodes] @ values) - (level * lowest if lowest < 0 else 0.0)
        self._history.append(ExchangeStep(number, value, gap, int(nodes.shape[0]), time.monotonic() - self._started))
        return self._history[-1]

    def _verdict(self, slack: Array, step: ExchangeStep) -> Status | None:
        free = (self._values > 0) & (self._values < self._problem.caps)
        allowed = max(self._tol * self._alpha, NOISE * self._problem.largest_alpha) * self._problem.penalty
        xp = namespace(slack)
        optimal = bool(xp.all(xp.where(free, -abs(slack), slack) >= -allowed))
        if optimal or min(step.gap, step.value - _ZERO * self._problem.constant) <= self._gap_tol * step.value:
            return Status.CONVERGED
        values = [step.value for step in self._history]
        return Status.STALLED if len(values) > 2 and not values[-1] < values[-3] else None

    def _choose_pool(self, slack: Array) -> Array:
        """All nodes, and the points of least gradient."""
        problem = self._problem
        nodes = flatnonzero(self._values)
        count = min(problem.size, nodes.shape[0] + max(_LEAST_POOL, _POOL_PER_NODE * nodes.shape[0]))
        affordable = int(get_config().memory_bytes * _POOL_SHARE) // (2 * 8 * max(nodes.shape[0], _FEW))
        count = min(count, max(affordable, nodes.shape[0] + _FEW))
        price = slack / problem.penalty
        price[nodes] = -np.inf
        if count == problem.size:
            return places(problem.size, price)
        return namespace(price).sort(least(price, count))

    def _solve_pool(self, pool: Array) -> None:
        solver = ActiveSetPool(self._problem, pool, self._values[pool], self._alpha, self._kappa, self._tol)
        try:
            solver.solve()
        finally:
            self._values[pool], self._alpha = solver.values, solver.alpha
