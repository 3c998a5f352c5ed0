"""Better nodes of the same number: a node makes room for a point that does more.

On nodes I with the best weights v = P q, P = A_II⁻¹, q = (Sω)_I, the discrepancy grows by v_j²/(2 P_jj) if node j goes,
and falls by gᵢ²/(2 sᵢ) when point i comes, where g is the gradient and sᵢ = Aᵢᵢ - A_iI P A_Ii what the nodes leave of
the diagonal. One goes, the best one comes, if the two together lower D. Convex programmes say little about the best
choice of few nodes; this local search from their answer halves D and more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mercer.backends.arrays import Array, copied, is_tensor, namespace
from mercer.backends.chunks import KEPT_BYTES, panel_bytes
from mercer.backends.ordering import as_indices, as_integers, least, place_of, places, stable_order
from mercer.backends.rounding import unit_of
from mercer.backends.threads import single_threaded_blas
from mercer.linalg.deferred_updates import DeferredUpdates
from mercer.linalg.dense_products import product
from mercer.linalg.factors import damped_inverse
from mercer.problems import Discrepancy
from mercer.problems.discrepancy import CAPS, RIDGE
from mercer.problems.pool_entries import PoolEntries
from mercer.solvers.measure.pursuit import least_rest, pool_size
from mercer.solvers.run import Method, Report
from mercer.solvers.solution import Status

_POOL = 2500
_ENTRIES = 500_000  # between pool and nodes: where the nodes are few, the pool may be larger
_SHARE = 16  # of the memory limit, for rows of the nodes at all points
_NOISE = 256  # units of roundoff of D(0): what gains less is not made either
_WORTH = 5e-4  # of D: a swap that gains less is not made


class Swapping(Method[Discrepancy, Array]):
    """Exchange nodes for other points while that lowers the least discrepancy on them.

    A step is two sweeps over all nodes, or one that changes nothing. It starts from independent nodes, as
    :func:`mercer.quadrature.eliminate` leaves them. Caps take no part: weights are settled afterwards.

    Notes
    -----
    Cost of a step: N·m kernel evaluations to choose the pool of some thousand points in which partners are looked for,
    2 m² flops for each of them, and a few more for each node; then 4 m flops a point of the pool for each swap that is
    made, and 8 m². Memory: pool × m, a part of the memory limit.
    """

    name = phase = "swapping"
    handles = frozenset({CAPS, RIDGE})

    def start(self, problem: Discrepancy, point: Array) -> Report[Array]:
        """The nodes given."""
        with single_threaded_blas():
            self._sweep = _Sweep(problem, point)
        return Report(point, self._sweep.value, size=int(point.shape[0]))

    def step(self, problem: Discrepancy, most: int) -> Report[Array]:
        """Try every node, twice where some were exchanged; the search ends when none was."""
        with single_threaded_blas():
            made = self._sweep.run()
            if made:
                self._sweep.run()
            nodes, value = self._sweep.nodes, self._sweep.value
            if made and most > 1 and not self._sweep.holds_all:
                self._sweep = _Sweep(problem, nodes)  # a new pool, and no errors of updates
        return Report(nodes, value, size=int(nodes.shape[0]), status=None if made else Status.CONVERGED)


class _Sweep:
    """The nodes, the inverse of their matrix, and gradient and remaining diagonal on a pool of points.

    Beside them the *shares* P A_I·, a row for each node: what a node would have to take over of each point. All that is
    asked of a node that may go is its row, so that most of a sweep is reading; a swap adds two terms of rank one.
    """

    def __init__(self, problem: Discrepancy, nodes: Array) -> None:
        self._problem = problem
        self.nodes = copied(nodes)
        self._inverse = damped_inverse(problem.block(nodes, nodes))
        self._weights = self._inverse @ problem.distortion[nodes]
        self._pool, columns = self._choose_pool()
        self._places = place_of(nodes, self._pool)
        self._diagonal = problem.diagonal[self._pool]
        self._entries = PoolEntries(problem, self._pool)
        columns = self._entries.rows(self._places) if columns is None else columns
        shares = product(self._inverse, columns)
        self._gradient = product(columns.T, self._weights) - problem.distortion[self._pool]
        self._rest = self._diagonal - _column_sums(columns, shares)
        self._shares = DeferredUpdates(shares)
        self._dependent = least_rest(problem)
        self._noise = _NOISE * unit_of(problem.squared.dtype) * problem.constant
        self.value = max(problem.constant - 0.5 * float(problem.distortion[nodes] @ self._weights), 0.0)

    @property
    def holds_all(self) -> bool:
        """Whether the pool is the whole sample, so that another would be the same."""
        return int(self._pool.shape[0]) == self._problem.size

    def _choose_pool(self) -> tuple[Array, Array | None]:
        """The nodes, and the points that would gain most if they were independent of them, in rising order.

        With them rows of A, one for each node, where those of all points were made at once.
        """
        problem, nodes, xp = self._problem, self.nodes, namespace(self._weights)
        most = max(pool_size(problem, int(nodes.shape[0]), _ENTRIES, _POOL), 2 * int(nodes.shape[0]))
        if problem.size <= most:
            return places(problem.size, nodes), None
        if 8 * problem.size * int(nodes.shape[0]) <= panel_bytes(KEPT_BYTES, 1 / _SHARE):
            columns = problem.columns(nodes)
            gradient = product(columns, self._weights) - problem.distortion
        else:
            columns, gradient = None, problem.gradient(nodes, self._weights)
        gain = xp.minimum(gradient, 0.0) ** 2 / problem.diagonal
        gain[nodes] = np.inf
        pool = xp.sort(least(-gain, most))
        return pool, None if columns is None else columns.T[:, pool]

    def run(self) -> int:
        """Try every node once, the ones that are missed least first; returns how many were exchanged."""
        cost = self._weights**2 / namespace(self._inverse).linalg.diagonal(self._inverse)
        made = 0
        for place in as_integers(stable_order(cost)):
            made += self._try(place)
        return made

    def _try(self, place: int) -> bool:
        own, weight = float(self._inverse[place, place]), float(self._weights[place])
        row = self._shares.row(place)
        best, gain = self._best_in_place(row, weight, own)
        loss = 0.5 * weight**2 / own
        idle = weight <= 0  # it will have no weight at all, so that nothing is lost with it
        gained = gain - (0.0 if idle else loss)
        if best == int(self._places[place]) or gained <= max(_WORTH * self.value, self._noise):
            return False
        self._vacate(place, row, weight, own)
        self.value -= gain - loss
        self._fill(place, best)
        return True

    def _best_in_place(self, row: Array, weight: float, own: float) -> tuple[int, float]:
        """The point that does most when a node has gone, and by how much D falls when it comes."""
        if not is_tensor(row):
            return _best(row / own, self._gradient, self._rest, self._diagonal, weight, own, self._dependent)
        spread = row / own
        gain = _gains(self._gradient - weight * spread, self._rest + own * spread**2, self._diagonal, self._dependent)
        best = int(namespace(gain).argmax(gain))
        return best, float(gain[best])

    def _vacate(self, place: int, row: Array, weight: float, own: float) -> None:
        """Take a node out: weights, gradient and rest are those of the others."""
        share = self._inverse[:, place] / own
        self._weights = self._weights - weight * share
        self._gradient = self._gradient - (weight / own) * row
        self._rest = self._rest + row**2 / own
        self._shares.add(-share, row)

    def _fill(self, place: int, best: int) -> None:
        """Give the vacant place to a point of the pool: the inverse changes by its row, gradient and rest follow."""
        column = self._entries.rows(as_indices([best], self._pool))[0]
        mine = column[self._places]
        mine[place] = 0.0
        solved = self._shares.column(best)
        left = column - self._shares.combined(mine)
        rest = self._rest[best]
        step = -self._gradient[best] / rest
        solved[place] = -1.0
        _replace(self._inverse, place, solved, rest)
        self._weights[place] = 0.0
        self._weights = self._weights - step * solved
        self._gradient = self._gradient + step * left
        self._rest = self._rest - left**2 / rest
        self._shares.add(-solved / rest, left)
        self.nodes[place], self._places[place] = self._pool[best], best


def _replace(inverse: Array, place: int, solved: Array, rest: Array) -> None:
    """The inverse with another row and column in one place, in the place of the old ones."""
    row = copied(inverse[place])
    if not is_tensor(inverse):
        _add_two_terms(inverse, place, row, solved, float(rest))
        return
    inverse -= row[:, None] * (row / row[place])
    inverse[place] = inverse[:, place] = 0.0
    inverse += solved[:, None] * (solved / rest)


@njit(cache=True, nogil=True)
def _add_two_terms(inverse: Any, place: int, row: Any, solved: Any, rest: float) -> None:
    for i in range(row.size):
        share, gained = row[i] / row[place], solved[i] / rest
        if i == place:
            for j in range(row.size):
                inverse[i, j] = gained * solved[j]
            continue
        for j in range(row.size):
            inverse[i, j] += gained * solved[j] - share * row[j]
        inverse[i, place] = gained * solved[place]


def _column_sums(left: Array, right: Array) -> Array:
    """The sum of the products of two matrices over each of their columns."""
    xp = namespace(left)
    total = xp.zeros_like(left[0])
    for a, b in zip(left, right, strict=True):
        total += a * b
    return total


def _gains(gradient: Array, rest: Array, diagonal: Array, dependent: float) -> Array:
    """By how much D falls when a point comes; zero for those that would get no weight or are no news."""
    xp = namespace(gradient)
    able = (gradient < 0) & (rest > dependent * diagonal)
    return xp.where(able, 0.5 * gradient**2 / xp.where(able, rest, 1.0), 0.0)


@njit(cache=True, nogil=True)
def _best(spread: Any, gradient: Any, rest: Any, diagonal: Any, weight: float, own: float, dependent: float) -> Any:
    best, most = 0, 0.0
    for i in range(spread.size):
        slope = gradient[i] - weight * spread[i]
        left = rest[i] + own * spread[i] * spread[i]
        if slope < 0 and left > dependent * diagonal[i]:
            gain = 0.5 * slope * slope / left
            if gain > most:
                best, most = i, gain
    return best, most
