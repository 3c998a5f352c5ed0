"""Better nodes of the same number: a node makes room for a point that does more.

On nodes I with the best weights v = P q, P = A_II⁻¹, q = (Sω)_I, the discrepancy grows by v_j²/(2 P_jj) if node j goes,
and falls by gᵢ²/(2 sᵢ) when point i comes, where g is the gradient and sᵢ = Aᵢᵢ - A_iI P A_Ii what the nodes leave of
the diagonal. One goes, the best one comes, if the two together lower D. Convex programmes say little about the best
choice of few nodes; this local search from their answer halves D and more.
"""

from __future__ import annotations

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import Array, copied, namespace
from mercer.backends.ordering import as_indices, as_integers, flatnonzero, least, places, stable_order
from mercer.backends.threads import single_threaded_blas
from mercer.linalg.dense_products import over_rows, product
from mercer.linalg.factors import damped_inverse
from mercer.problems import Discrepancy
from mercer.problems.discrepancy import CAPS, RIDGE
from mercer.solvers.run import Method, Report
from mercer.solvers.solution import Status

_POOL = 4000
_SHARE = 16  # of the memory limit, for the entries between pool and nodes, of which there are some copies
_WORTH = 1e-3  # of D: a swap that gains less is not made
_DEPENDENT = 1e-9  # of the diagonal, below which a point is a combination of the nodes


class Swapping(Method[Discrepancy, Array]):
    """Exchange nodes for other points while that lowers the least discrepancy on them; a step is a sweep over all.

    It starts from independent nodes, as :func:`mercer.quadrature.eliminate` leaves them. Caps take no part: weights are
    settled afterwards.

    Notes
    -----
    Cost of a sweep: N·m kernel evaluations to choose the pool of at most 4000 points in which partners are looked for,
    then for each node 4 m flops a point of the pool and 4 m² flops. Memory: pool × m, a part of the memory limit.
    """

    name = phase = "swapping"
    handles = frozenset({CAPS, RIDGE})

    def start(self, problem: Discrepancy, point: Array) -> Report[Array]:
        """The nodes given."""
        self._sweep = _Sweep(problem, point)
        return Report(point, self._sweep.value, size=int(point.shape[0]))

    def step(self, problem: Discrepancy, most: int) -> Report[Array]:
        """Try every node once; the search ends when none was exchanged."""
        with single_threaded_blas():
            made = self._sweep.run()
            nodes, value = self._sweep.nodes, self._sweep.value
            if made and most > 1:
                self._sweep = _Sweep(problem, nodes)  # a new pool, and no errors of updates
        return Report(nodes, value, size=int(nodes.shape[0]), status=None if made else Status.CONVERGED)


class _Sweep:
    """The nodes, the inverse of their matrix, and gradient and remaining diagonal on a pool of points."""

    def __init__(self, problem: Discrepancy, nodes: Array) -> None:
        self._problem = problem
        self.nodes = copied(nodes)
        self._inverse = damped_inverse(problem.block(nodes, nodes))
        self._weights = self._inverse @ problem.distortion[nodes]
        self._pool = self._choose_pool()
        self._diagonal = problem.diagonal[self._pool]
        self._columns = problem.block(self._pool, nodes)
        self._gradient = product(self._columns, self._weights) - problem.distortion[self._pool]
        self._rest = self._diagonal - self._explained()
        self.value = max(problem.constant - 0.5 * float(problem.distortion[nodes] @ self._weights), 0.0)

    def _explained(self) -> Array:
        """What the nodes explain of the diagonal: A_iI P A_Ii for every point of the pool."""
        columns, xp = self._columns, namespace(self._columns)
        out = xp.zeros_like(self._diagonal)

        def fill(rows: slice) -> None:
            out[rows] = xp.sum((columns[rows] @ self._inverse) * columns[rows], axis=1)

        over_rows(fill, columns.shape[0], columns.shape[1] ** 2)
        return out

    def _choose_pool(self) -> Array:
        """The nodes, and the points that would gain most if they were independent of them."""
        problem = self._problem
        affordable = get_config().memory_bytes // (_SHARE * 8 * self.nodes.shape[0])
        most = max(min(_POOL, affordable), 2 * self.nodes.shape[0])
        if problem.size <= most:
            return places(problem.size, self.nodes)
        gradient = problem.gradient(self.nodes, self._weights)
        xp = namespace(gradient)
        gain = xp.minimum(gradient, 0.0) ** 2 / problem.diagonal
        gain[self.nodes] = np.inf
        return xp.sort(least(-gain, most))

    def run(self) -> int:
        """Try every node once, the ones that are missed least first; returns how many were exchanged."""
        cost = self._weights**2 / namespace(self._inverse).linalg.diagonal(self._inverse)
        made = 0
        for node in as_integers(self.nodes[stable_order(cost)]):
            made += self._try(node)
        return made

    def _try(self, node: int) -> bool:
        place = int(flatnonzero(self.nodes == node)[0])
        own, weight = float(self._inverse[place, place]), float(self._weights[place])
        share = self._inverse[:, place] / own
        loss = 0.5 * weight**2 / own
        spread = product(self._columns, share)
        gradient = self._gradient - weight * spread
        rest = self._rest + own * spread**2
        gain = _gains(gradient, rest, self._diagonal)
        best = int(namespace(gain).argmax(gain))
        gained = float(gain[best]) - loss
        if int(self._pool[best]) == node or gained <= _WORTH * self.value:
            return False
        self._weights = self._weights - weight * share
        self._inverse = self._inverse - share[:, None] * self._inverse[place]
        self._gradient, self._rest = gradient, rest
        self.value -= gained
        self._replace(place, best)
        return True

    def _replace(self, place: int, best: int) -> None:
        """Give the vacant place to a point of the pool: the inverse grows by its row, gradient and rest follow."""
        point = int(self._pool[best])
        column = self._problem.block(self._pool, as_indices([point], self._pool))[:, 0]
        mine = copied(self._columns[best])
        mine[place] = 0.0
        self._inverse[place] = 0.0
        self._inverse[:, place] = 0.0
        solved = self._inverse @ mine
        left = column - product(self._columns, solved)
        step = -self._gradient[best] / self._rest[best]
        solved[place] = -1.0
        self._inverse += solved[:, None] * solved / self._rest[best]
        self._weights[place] = 0.0
        self._weights -= step * solved
        self._gradient = self._gradient + step * left
        self._rest = self._rest - left**2 / self._rest[best]
        self._columns[:, place] = column
        self.nodes[place] = point


def _gains(gradient: Array, rest: Array, diagonal: Array) -> Array:
    """By how much D falls when a point comes; zero for those that would get no weight or are no news."""
    xp = namespace(gradient)
    able = (gradient < 0) & (rest > _DEPENDENT * diagonal)
    return xp.where(able, 0.5 * gradient**2 / xp.where(able, rest, 1.0), 0.0)
