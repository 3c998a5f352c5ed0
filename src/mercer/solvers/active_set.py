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
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mercer.backends.threads import single_threaded_blas
from mercer.linalg.cholesky_update import SingularUpdateError, UpdatedCholesky
from mercer.linalg.free_columns import FreeColumns
from mercer.problems import Discrepancy
from mercer.solvers.measure import ExchangeStep, SparseMeasure
from mercer.solvers.result import Status

Array = np.ndarray[Any, np.dtype[Any]]

_LEAST_POOL = 1000
_POOL_PER_NODE = 4
_FEW = 8  # new nodes at a time, and a tenth of the nodes at hand beyond
_APART = 0.9  # cosine between the sections of two points, above which they do not join together
_NOISE = 16 * float(np.finfo(float).eps)  # of α₀: a gradient below that is rounding, for A v is about as large as Sω
_REFINE_ABOVE = 1e-13
_PANEL = 64
_NO_GAP = 1e-12  # of the objective: nothing is left to gain


def solve_exactly(
    problem: Discrepancy,
    *,
    alpha: float | None = None,
    kappa: float | None = None,
    start: tuple[Array, Array] | None = None,
    tol: float = 1e-9,
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
        Where to begin, for instance what an exchange method left. For ϰ it must satisfy dᵀv = ϰ; if it is left out,
        the points of least gradient are filled up.
    tol : float, default=1e-9
        No gradient may be below -tol α dᵢ: a fraction of the penalty.
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
    run = _Passes(problem, alpha, kappa, tol)
    with single_threaded_blas():
        return run.solve(start, max_passes, callback)


def solve_on(problem: Discrepancy, nodes: Array, *, alpha: float | None = None, kappa: float | None = None) -> Array:
    """The weights of the same programme when only these nodes may have any; some may be zero."""
    start = np.zeros(nodes.size)
    if kappa is not None:
        start[:] = kappa / float(np.sum(problem.penalty[nodes]))
    with single_threaded_blas():
        pool = _Pool(problem, nodes, start, 0.0 if alpha is None else alpha, kappa, 1e-12)
        pool.solve()
    return pool.values


class _Passes:
    """The iterate over all points, and the passes over them."""

    def __init__(self, problem: Discrepancy, alpha: float | None, kappa: float | None, tol: float) -> None:
        self._problem, self._kappa, self._tol = problem, kappa, tol
        self._alpha = problem.largest_alpha if alpha is None else alpha
        self._values = np.zeros(problem.size)
        self._started = time.monotonic()
        self._history: list[ExchangeStep] = []

    def solve(self, start: Any, max_passes: int, callback: Callable[[ExchangeStep], Any] | None) -> SparseMeasure:
        if start is None and self._kappa is not None:
            start = self._problem.filled(self._problem.distortion / self._problem.penalty, self._kappa)
        if start is not None:
            self._values[start[0]] = start[1]
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
        nodes = np.flatnonzero(self._values)
        gradient = self._problem.gradient(nodes, self._values[nodes])
        return SparseMeasure(nodes, self._values[nodes], gradient, status, tuple(self._history))

    def _slack(self) -> Array:
        """The gradient with its penalty, A v - Sω + α d, signed so that it must not be negative off the free nodes."""
        nodes = np.flatnonzero(self._values)
        gradient = self._problem.gradient(nodes, self._values[nodes])
        if self._kappa is not None and nodes.size:
            self._alpha = self._problem.multiplier(nodes, self._values[nodes], gradient)
        slack = gradient + self._alpha * self._problem.penalty
        return np.where(self._values >= self._problem.caps, -slack, slack)

    def _note(self, number: int, slack: Array) -> ExchangeStep:
        problem, nodes = self._problem, np.flatnonzero(self._values)
        values = self._values[nodes]
        signed = np.where(self._values >= problem.caps, -slack, slack)
        value = problem.value(nodes, values, signed - self._alpha * problem.penalty)
        level = self._kappa
        if level is None:
            value += self._alpha * float(problem.penalty[nodes] @ values)
            level = value / self._alpha if self._alpha > 0 else np.inf  # no better measure has a larger dᵀv
        least = float(np.min(signed / problem.penalty))
        gap = float(signed[nodes] @ values) - (level * least if least < 0 else 0.0)
        self._history.append(ExchangeStep(number, value, gap, nodes.size, time.monotonic() - self._started))
        return self._history[-1]

    def _verdict(self, slack: Array, step: ExchangeStep) -> Status | None:
        free = (self._values > 0) & (self._values < self._problem.caps)
        allowed = max(self._tol * self._alpha, _NOISE * self._problem.largest_alpha) * self._problem.penalty
        optimal = np.all(np.where(free, -np.abs(slack), slack) >= -allowed)
        if optimal or step.gap <= _NO_GAP * step.value:
            return Status.CONVERGED
        values = [step.value for step in self._history]
        return Status.STALLED if len(values) > 2 and not values[-1] < values[-3] else None

    def _choose_pool(self, slack: Array) -> Array:
        """All nodes, and the points of least gradient."""
        problem = self._problem
        nodes = np.flatnonzero(self._values)
        count = min(problem.size, nodes.size + max(_LEAST_POOL, _POOL_PER_NODE * nodes.size))
        price = slack / problem.penalty
        price[nodes] = -np.inf
        if count == problem.size:
            return np.arange(problem.size)
        return np.sort(np.argpartition(price, count)[:count])

    def _solve_pool(self, pool: Array) -> None:
        solver = _Pool(self._problem, pool, self._values[pool], self._alpha, self._kappa, self._tol)
        try:
            solver.solve()
        finally:
            self._values[pool], self._alpha = solver.values, solver.alpha


class _Pool:
    """The programme on the points of a pool, all others being zero. Indices are places in the pool."""

    def __init__(
        self, problem: Discrepancy, pool: Array, values: Array, alpha: float, kappa: float | None, tol: float
    ) -> None:
        self._problem, self._pool, self._tol = problem, pool, tol
        self.values, self.alpha, self._kappa = values.copy(), alpha, kappa
        self._penalty, self._caps = problem.penalty[pool], problem.caps[pool]
        self._diagonal = problem.diagonal[pool]
        self._target = problem.distortion[pool].copy()
        self._factor = UpdatedCholesky(n_sides=2)
        self._columns = FreeColumns(pool.size)
        self._refused: set[int] = set()
        self._held = self.values >= self._caps
        self._target -= self._block(np.flatnonzero(self._held)) @ self._caps[self._held]
        self._start(np.flatnonzero((self.values > 0) & ~self._held))

    @property
    def _free(self) -> Array:
        return self._columns.nodes

    def _start(self, nodes: Array) -> None:
        """Factor the matrix of the nodes at hand; those that depend on heavier ones hand their weight on."""
        try:
            self._factor.refactor(self._problem.block(self._pool[nodes], self._pool[nodes]), self._sides(nodes))
            for place, column in self._each_column(nodes):
                self._columns.append(place, column)
        except SingularUpdateError:
            for place, column in self._each_column(nodes[np.argsort(-self.values[nodes], kind="stable")]):
                self._join(place, column)
                if place in self._refused:
                    closest = column[self._free] / np.sqrt(self._diagonal[self._free])
                    heir = self._free[int(np.argmax(closest))]
                    self.values[heir] += self.values[place] * self._penalty[place] / self._penalty[heir]
                    self.values[place] = 0.0

    def solve(self) -> None:
        """Move and let points join until no point of the pool would."""
        joining = np.empty(0, np.intp)
        while True:
            before = self.values.copy()
            self._descend()
            moved = bool(np.any(self.values != before))
            if not moved and joining.size == 1:  # what it would gain is lost in rounding
                self._refused.add(int(joining[0]))
            joining = self._joining(together=moved or joining.size <= 1)
            if joining.size == 0:
                return
            for place, column in self._each_column(joining):
                self._join(place, column)

    def _block(self, places: Array) -> Array:
        return self._problem.block(self._pool, self._pool[places])

    def _each_column(self, places: Array) -> Iterator[tuple[int, Array]]:
        for lo in range(0, places.size, _PANEL):
            panel = places[lo : lo + _PANEL]
            yield from zip(panel.tolist(), self._block(panel).T, strict=True)

    def _sides(self, places: Any) -> Array:
        return np.stack([self._target[places], self._penalty[places]])

    def _descend(self) -> None:
        """Move to the least value over the free nodes; hold those that meet a bound on the way."""
        while self._free.size:
            free = self._free
            goal = self._goal()
            now, caps = self.values[free], self._caps[free]
            low, high = goal <= 0, goal >= caps
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(low, now / (now - goal), np.where(high, (caps - now) / (goal - now), np.inf))
            theta = float(np.min(share))
            if theta >= 1:
                self.values[free] = goal
                return
            self.values[free] = now + theta * (goal - now)
            self._hold(np.flatnonzero(share <= theta), high)

    def _goal(self) -> Array:
        """The solution of the optimality conditions on the free nodes, refined once where rounding shows."""
        a, b = self._factor.solve_sides()
        goal = self._balanced(a, b)
        total, _ = self._columns.combine(goal, b)
        error = self._target[self._free] - self.alpha * self._penalty[self._free] - total[self._free]
        if np.max(np.abs(error) / self._penalty[self._free]) > _REFINE_ABOVE * self.alpha:
            goal = self._balanced(goal + self.alpha * b + self._factor.solve(error)[0], b)
        return goal

    def _balanced(self, a: Array, b: Array) -> Array:
        """a - α b, with the α that makes dᵀv = ϰ where ϰ is given."""
        if self._kappa is not None:
            level = self._kappa - float(self._penalty[self._held] @ self._caps[self._held])
            d = self._penalty[self._free]
            self.alpha = (float(d @ a) - level) / float(d @ b)
        return a - self.alpha * b

    def _hold(self, blocking: Array, high: Array) -> None:
        """Let free nodes that met a bound stay there."""
        for place in blocking[::-1]:
            node = int(self._free[place])
            self.values[node] = self._caps[node] if high[place] else 0.0
            self._columns.remove(int(place))
            self._factor.remove(int(place))
            self._held[node] = high[place]
            if high[place]:
                self._target -= self._caps[node] * self._block(np.array([node]))[:, 0]
        if np.any(high[blocking]):
            self._factor.set_sides(self._sides(self._free))

    def _joining(self, together: bool) -> Array:
        """The points that should become free: the worst one, and others that are bad and lie apart from it."""
        total, _ = self._columns.combine(self.values[self._free], self.values[self._free])
        price = (total - self._target) / self._penalty + self.alpha
        price = np.where(self._held, -price, price)
        price[self._free] = 0.0
        price[list(self._refused)] = 0.0
        bad = np.flatnonzero(price < -max(self._tol * self.alpha, _NOISE * self._problem.largest_alpha))
        most = _FEW + self._free.size // 10 if together else 1
        bad = bad[np.argsort(price[bad], kind="stable")][: 8 * most]
        return self._apart(bad, most)

    def _apart(self, places: Array, most: int) -> Array:
        if most == 1 or places.size <= 1:
            return places[:1]
        block = self._problem.block(self._pool[places], self._pool[places])
        size = np.sqrt(self._diagonal[places])
        near = block / np.outer(size, size) > _APART
        chosen: list[int] = []
        for k in range(places.size):
            if len(chosen) < most and not np.any(near[k, chosen]):
                chosen.append(k)
        return places[chosen]

    def _join(self, place: int, column: Array) -> None:
        if self._held[place]:
            self._held[place] = False
            self._target += self._caps[place] * column
            self._factor.set_sides(self._sides(self._free))
        try:
            self._factor.append(column[self._free], self._diagonal[place], self._sides(place))
        except SingularUpdateError:  # the nodes at hand do its work already
            self._refused.add(place)
            return
        self._columns.append(place, column)
