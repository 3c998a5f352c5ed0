"""The active set on the points of a pool: the steps of :func:`mercer.solvers.measure.active_set.solve_exactly`.

Free nodes may depend on one another, as more nodes than the rank of S do, or copies of a point. A node whose row has no
pivot of its own is *damped*: the term ½ ε (v - w)² about its present weight w tells it from the others. The goal of a
step is then too near, but its direction is right, and the step goes on along it for as long as the objective itself
falls; so the damping costs no accuracy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit

from mercer.backends.arrays import Array, copied, is_tensor, namespace
from mercer.backends.chunks import panel_rows
from mercer.backends.ordering import as_indices, as_integers, flatnonzero, stable_order
from mercer.backends.rounding import EPS, TINY
from mercer.linalg.cholesky_update import SingularUpdateError, UpdatedCholesky
from mercer.linalg.column_store import FreeColumns
from mercer.linalg.dense_products import product
from mercer.problems import TraceProblem

NOISE = 16 * EPS  # of α₀: a gradient below that is rounding, for A v is about as large as Sω
_FEW = 8  # new nodes at a time, and a tenth of the nodes at hand beyond
_APART = 0.9  # cosine between the sections of two points, above which they do not join together
_REFINE_ABOVE = 1e-13
_DAMPING = 1e-10  # of its diagonal entry: ε of a point that depends on the free nodes
_NEUTRAL = 1e-6  # of d: what a shift of weight between dependent nodes may change dᵀv by
_FARTHEST = 1e6  # times the way to a damped goal
_ON_LEVEL = 1e-13  # of ϰ: how far dᵀv may drift from it on the way


class ActiveSetPool:
    """The programme on the points of a pool, all others being zero. Indices are places in the pool.

    Parameters
    ----------
    level : TraceProblem
        The whole programme.
    pool : array of int of shape (p,)
        The points that may have weight.
    values : array of shape (p,)
        Their weights to start from; those above their caps are lowered to them.
    alpha : float
        The penalty; where ϰ is given, a first guess of its multiplier.
    tol : float
        No gradient may be below -tol α dᵢ.
    """

    def __init__(self, level: TraceProblem, pool: Array, values: Array, alpha: float, tol: float) -> None:
        problem = self._problem = level.discrepancy
        self._pool, self._tol, self._kappa = pool, tol, level.kappa
        xp = namespace(problem.distortion)
        self._penalty, self._caps = problem.penalty[pool], problem.caps[pool]
        self.values, self.alpha = xp.minimum(values, self._caps), alpha
        self._diagonal = problem.diagonal[pool]
        self._target = copied(problem.distortion[pool])
        self._factor, self._columns = self._empty()
        self._damping = xp.zeros_like(self._target)
        self._noise = NOISE * problem.largest_alpha
        self._rounding = 4 * EPS * problem.constant
        self._refused: set[int] = set()
        self._held = self.values >= self._caps
        held = flatnonzero(self._held)
        self._target -= product(self._block(held), self._caps[held])
        self._start(flatnonzero((self.values > 0) & ~self._held))

    def _empty(self) -> tuple[UpdatedCholesky, FreeColumns]:
        """The factor and the columns of no nodes."""
        columns = FreeColumns(int(self._pool.shape[0]), reference=self._target)
        return UpdatedCholesky(n_sides=2, reference=self._target), columns

    @property
    def _free(self) -> Array:
        return self._columns.nodes

    @property
    def _allowed(self) -> float:
        """The size of a gradient, relative to its penalty, that counts as zero."""
        return max(self._tol * self.alpha, self._noise)

    def _start(self, nodes: Array) -> None:
        """Factor the matrix of the nodes at hand; those that depend on heavier ones hand their weight on."""
        try:
            self._factor.refactor(self._problem.block(self._pool[nodes], self._pool[nodes]), self._sides(nodes))
            for panel, block in self._panels(nodes):
                self._columns.extend(panel, block)
        except SingularUpdateError:
            for place, column in self._each_column(nodes[stable_order(-self.values[nodes])]):
                self._hand_on(place, column)

    def _hand_on(self, place: int, column: Array) -> None:
        """Shift the weight of a node to those it depends on, A v and dᵀv as they are, until it or one of them has none.

        That is Carathéodory's reduction. A node that does not depend on others keeps its weight and becomes free.
        """
        xp = namespace(self.values)
        while self.values[place] > 0 and not self._append(place, column):
            free = self._free
            share = self._factor.solve(column[free])[0]
            if abs(share @ self._penalty[free] - self._penalty[place]) > _NEUTRAL * self._penalty[place]:
                self._append_damped(place, column)
                return
            now, caps = self.values[free], self._caps[free]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                room = xp.where(share < 0, now / -share, xp.where(share > 0, (caps - now) / share, np.inf))
            step = min(float(self.values[place]), float(room.min()))
            self.values[free] = _between(now + step * share, caps)
            self.values[place] -= step
            self._hold(flatnonzero(room <= step), share > 0)

    def solve(self) -> None:
        """Move and let points join until no point of the pool would."""
        xp = namespace(self.values)
        joining, best = as_indices([], self.values), np.inf
        while True:
            before = copied(self.values)
            self._descend()
            total, _ = self._columns.combine(self.values[self._free], self.values[self._free])
            value = self._value(total)
            moved = bool(xp.any(self.values != before))
            if xp.any(self._damping > 0):  # dependent nodes could trade weight for ever
                moved = moved and value < best - self._rounding
            best = min(best, value)
            if not moved and joining.shape[0] == 1:  # what it would gain is lost in rounding
                self._refused.add(int(joining[0]))
            joining = self._joining(total, together=moved or joining.shape[0] <= 1)
            if joining.shape[0] == 0:
                return
            for place, column in self._each_column(joining):
                self._join(place, column)

    def _value(self, total: Array) -> float:
        """The objective less D(0), from the product of A with the free weights."""
        value = 0.5 * float(self.values @ (total - self._target - self._problem.distortion[self._pool]))
        return value + self.alpha * float(self._penalty @ self.values) if self._kappa is None else value

    def _block(self, places: Array) -> Array:
        return self._problem.block(self._pool, self._pool[places])

    def _each_column(self, places: Array) -> Iterator[tuple[int, Array]]:
        for panel, block in self._panels(places):
            for k, place in enumerate(as_integers(panel)):
                yield place, block[:, k]

    def _panels(self, places: Array) -> Iterator[tuple[Array, Array]]:
        """Some points and their columns of A on the pool, as many at a time as memory suggests."""
        width = panel_rows(int(self._pool.shape[0]))
        for lo in range(0, places.shape[0], width):
            panel = places[lo : lo + width]
            yield panel, self._block(panel)

    def _sides(self, places: Any) -> Array:
        pull = self._damping[places] * self.values[places]
        return namespace(self._target).stack([self._target[places] + pull, self._penalty[places]])

    def _descend(self) -> None:
        """Move to the least value over the free nodes; hold those that meet a bound on the way."""
        xp = namespace(self.values)
        while self._free.shape[0]:
            free, goal = self._free, self._goal()
            now, caps = self.values[free], self._caps[free]
            way = goal - now
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                share = xp.where(way < 0, now / -way, xp.where(way > 0, (caps - now) / way, np.inf))
            theta, reach = float(share.min()), self._reach(way)
            self.values[free] = _between(goal if reach == 1 <= theta else now + min(theta, reach) * way, caps)
            if theta < reach:
                self._hold(flatnonzero(share <= theta), way > 0)
            elif self._held_back(way, reach):
                self._damp_anew()
            else:
                return

    def _goal(self) -> Array:
        """The solution of the optimality conditions on the free nodes, refined where rounding shows."""
        free, now = self._free, self.values[self._free]
        damping, d = self._damping[free], self._penalty[free]
        damped = bool(namespace(damping).any(damping > 0))
        if damped:
            self._factor.set_sides(self._sides(free))  # damped about the weights as they are now
        a, b = self._factor.solve_sides()
        self.alpha = self.alpha if self._kappa is None else 0.0
        goal = self._on_level(a - self.alpha * b, b)
        for _ in range(3 if damped else 1):
            total, _ = self._columns.combine(goal, b)
            error = self._target[free] - self.alpha * d - total[free] - damping * (goal - now)
            if float((abs(error) / d).max()) <= _REFINE_ABOVE * self.alpha:
                break
            goal = self._on_level(goal + self._factor.solve(error)[0], b)
        return goal

    def _reach(self, way: Array) -> float:
        """How far along the way to the goal the objective falls: one, or more where damping made the way short."""
        damping = self._damping[self._free]
        if not namespace(damping).any(damping > 0):
            return 1.0
        bent = float(self._columns.combine(way, way)[0][self._free] @ way)
        reach = 1.0 + (min(float(damping @ way**2) / bent, _FARTHEST) if bent > 0 else _FARTHEST)
        drift = 0.0 if self._kappa is None else abs(float(self._penalty[self._free] @ way)) / self._kappa
        return max(1.0, min(reach, _ON_LEVEL / drift)) if drift > 0 else reach

    def _held_back(self, way: Array, reach: float) -> bool:
        """Whether damping stood between a move and the least value, by more than rounding."""
        damping, d = self._damping[self._free], self._penalty[self._free]
        far = bool(namespace(damping).any(damping * abs(way) > self._allowed * d))
        return far and reach * float(damping @ way**2) > self._rounding

    def _on_level(self, goal: Array, b: Array) -> Array:
        """Change α, where ϰ is given, so that the goal meets dᵀv = ϰ."""
        if self._kappa is None:
            return goal
        level = self._kappa - float(self._penalty[self._held] @ self._caps[self._held])
        d = self._penalty[self._free]
        for _ in range(2):  # the second time for what rounding left of the first
            change = (float(d @ goal) - level) / float(d @ b)
            goal = goal - change * b
            self.alpha += change
        return goal

    def _hold(self, blocking: Array, high: Array) -> None:
        """Let free nodes that met a bound stay there."""
        places = as_integers(blocking)
        filled = [bool(high[place]) for place in places]
        for place, full in zip(places[::-1], filled[::-1], strict=True):
            node = int(self._free[place])
            self.values[node] = self._caps[node] if full else 0.0
            self._columns.remove(place)
            self._factor.remove(place)
            self._held[node] = full
            self._damping[node] = 0.0
            if full:
                self._target -= self._caps[node] * self._block(as_indices([node], self._pool))[:, 0]
        if any(filled):
            self._factor.set_sides(self._sides(self._free))

    def _joining(self, total: Array, *, together: bool) -> Array:
        """The points that should become free: the worst one, and others that are bad and lie apart from it."""
        price = (total - self._target) / self._penalty + self.alpha
        price = namespace(price).where(self._held, -price, price)
        price[self._free] = 0.0
        price[as_indices(sorted(self._refused), self._pool)] = 0.0
        bad = flatnonzero(price < -self._allowed)
        most = _FEW + self._free.shape[0] // 10 if together else 1
        bad = bad[stable_order(price[bad])][: 8 * most]
        return self._apart(bad, most)

    def _apart(self, places: Array, most: int) -> Array:
        if most == 1 or places.shape[0] <= 1:
            return places[:1]
        block = self._problem.block(self._pool[places], self._pool[places])
        return places[first_apart(block, self._diagonal[places] ** 0.5, most, _APART)]

    def _join(self, place: int, column: Array) -> None:
        if self._held[place]:
            self._held[place] = False
            self._target += self._caps[place] * column
            self._factor.set_sides(self._sides(self._free))
        if not self._append(place, column):
            self._append_damped(place, column)

    def _append(self, place: int, column: Array, damping: float = 0.0) -> bool:
        """Make a point free, unless it depends on the free nodes to working precision."""
        self._damping[place] = damping
        try:
            self._factor.append(column[self._free], self._diagonal[place] + damping, self._sides(place))
        except SingularUpdateError:
            return False
        self._columns.append(place, column)
        return True

    def _append_damped(self, place: int, column: Array) -> None:
        """Make a point free that depends on others: the term ½ ε (v - its present value)² tells them apart."""
        damping = max(_DAMPING * float(self._diagonal[place]), TINY)
        while not self._append(place, column, damping):
            damping *= 10

    def _damp_anew(self) -> None:
        """Factor again, since nodes that were damped may not depend on those that are left."""
        nodes = self._free
        self._factor, self._columns = self._empty()
        for place, column in self._each_column(nodes):
            if not self._append(place, column):
                self._append_damped(place, column)


def _between(values: Array, caps: Array) -> Array:
    """The values, none below zero or above its cap."""
    xp = namespace(values)
    return xp.minimum(xp.maximum(values, 0.0), caps)


def first_apart(block: Array, lengths: Array, wanted: int, alike: float) -> Array:
    """Positions of the first ``wanted`` points of which none is a near-copy of one taken before it.

    Parameters
    ----------
    block : array of shape (m, m)
        The inner products of the points, in the order in which they are offered.
    lengths : array of shape (m,)
        The roots of its diagonal.
    wanted : int
        How many to take at most.
    alike : float
        The cosine above which two points are alike.
    """
    if not is_tensor(block):
        return _first_apart(block, lengths, wanted, alike)
    near = block > alike * lengths[:, None] * lengths
    taken: list[int] = []
    barred = near[0] & False if block.shape[0] else near
    for k in range(block.shape[0]):
        if len(taken) == wanted:
            break
        if not barred[k]:
            taken.append(k)
            barred = barred | near[k]
    return as_indices(taken, block)


@njit(cache=True, nogil=True)
def _first_apart(block: Any, length: Any, wanted: int, alike: float) -> Any:
    taken = np.empty(min(wanted, length.size), np.int64)
    count = 0
    for a in range(length.size):
        apart = True
        for b in range(count):
            if block[a, taken[b]] > alike * length[a] * length[taken[b]]:
                apart = False
                break
        if apart:
            taken[count] = a
            count += 1
            if count == taken.size:
                break
    return taken[:count]
