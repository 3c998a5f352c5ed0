"""Nodes one after another, each where it does most beside those before it: orthogonal matching pursuit.

On nodes I with the best weights v = P q, P = A_II⁻¹, q = (Sω)_I, the discrepancy falls by rᵢ²/(2 sᵢ) when point i
comes, where r = Sω - A_·I v is what the nodes leave of Sω and sᵢ = Aᵢᵢ - A_iI P A_Ii what they leave of the diagonal.
Both are kept up to date by the rows of the factor of A_II, extended to the points that are looked at:

    F_k = (A_k· - Σ_{j<k} F_jk F_j) / √s_k,   r ← r - (r_k/√s_k) F_k,   s ← s - F_k².

Points come in groups, each chosen among the best of the moment with the ones of its group taken into account, so that
what costs is matrix products. Sω being known, one row of A a node is all that is evaluated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mercer.backends import get_config
from mercer.backends.arrays import Array, cholesky, copied, is_tensor, namespace, solve_triangular
from mercer.backends.ordering import appended, as_indices, flatnonzero, least, places, stable_order
from mercer.backends.rounding import unit_of
from mercer.backends.threads import single_threaded_blas
from mercer.linalg.dense_products import over_rows
from mercer.problems import Discrepancy
from mercer.problems.discrepancy import CAPS, RIDGE
from mercer.problems.pool_entries import PoolEntries
from mercer.solvers.run import Method, Report
from mercer.solvers.solution import Status

_POOL = 3000
_ENTRIES = 2_000_000  # between pool and nodes: where the nodes are few, the pool may be larger
_NUMBERS = 2**22  # coordinates of the pool: more would not stay ready for the kernel
_SHARE = 16  # of the memory limit, for the entries between pool and nodes, of which there are some copies
_GROUP = 0.25  # of the nodes at hand, that may come together
_OFFERED, _OFFERED_FEW, _OFFERED_MORE = 8, 2, 64  # times as many are looked at, or fewer times and some more
_FALLS_TO = 0.3  # of the gain of the first of a group: less than that is left to the next group
_COLUMNS = 1024  # of the factor, that are made at a time
_DEPENDENT = 1e-9  # of the diagonal, below which a point is a combination of the nodes
_DIGITS = 64  # units of roundoff, for entries that have fewer digits than that
_NOISE = 16  # units of roundoff of the largest (Sω)ᵢ: what is left below that is rounding


def least_rest(problem: Discrepancy) -> float:
    """The part of its diagonal entry below which what the nodes leave of a point is rounding."""
    return max(_DEPENDENT, _DIGITS * unit_of(problem.squared.dtype))


def pool_size(problem: Discrepancy, n_nodes: int, entries: int, fewest: int) -> int:
    """The points to look at beside so many nodes: as many as the work and a part of the memory limit allow."""
    points = getattr(problem.squared, "points", None)
    width = 1 if points is None else int(points.shape[1])
    affordable = get_config().memory_bytes // (_SHARE * 8 * n_nodes)
    return int(min(max(fewest, min(entries // n_nodes, _NUMBERS // width)), affordable))


class Pursuit(Method[Discrepancy, Array]):
    """Add nodes until there are so many, or until nothing is left that can be told from rounding.

    Caps take no part: weights are settled afterwards. Weights may have any sign here; a point only comes where its own
    would be positive.

    Parameters
    ----------
    n_nodes : int
        How many.

    Notes
    -----
    Cost: n rows of A on a pool of p points, and n² p flops. Memory: n × p, a part of the memory limit.
    """

    name = phase = "pursuit"
    handles = frozenset({CAPS, RIDGE})

    def __init__(self, n_nodes: int) -> None:
        self._wanted = n_nodes

    def start(self, problem: Discrepancy, point: Array | None) -> Report[Array]:
        """No nodes, or those given."""
        none = as_indices([], problem.distortion)
        with single_threaded_blas():
            self._state = _Pursued(problem, none if point is None else point, self._wanted)
        return self._report(0)

    def step(self, problem: Discrepancy, most: int) -> Report[Array]:
        """Let a group of points come."""
        before = self._state.count
        with single_threaded_blas():
            self._state.grow()
        return self._report(1, ended=self._state.count == before)

    def _report(self, steps: int, *, ended: bool = False) -> Report[Array]:
        state = self._state
        status = Status.CONVERGED if ended or state.count >= self._wanted else None
        return Report(state.nodes, state.value, size=state.count, steps=steps, status=status)


class _Pursued:
    """The nodes, the factor of their matrix on the pool, and what they leave of Sω and of the diagonal there."""

    def __init__(self, problem: Discrepancy, nodes: Array, wanted: int) -> None:
        self._wanted = wanted
        self._pool = _spread(problem, nodes, max(pool_size(problem, wanted, _ENTRIES, _POOL), 2 * wanted))
        xp, pool = namespace(problem.distortion), self._pool
        self._left, self._diagonal = copied(problem.distortion[pool]), problem.diagonal[pool]
        self._entries, self._rest = PoolEntries(problem, pool), copied(self._diagonal)
        self._noise = _NOISE * unit_of(problem.squared.dtype) * float(problem.distortion.max())
        self._dependent = least_rest(problem)
        self._factor = xp.empty((wanted, pool.shape[0]), dtype=self._left.dtype, device=self._left.device)
        self._taken = as_indices([], pool)  # places in the pool
        self.value = problem.constant
        if nodes.shape[0]:
            self._extend(xp.searchsorted(pool, nodes))

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return int(self._taken.shape[0])

    @property
    def nodes(self) -> Array:
        """In the order in which they came."""
        return self._pool[self._taken]

    def grow(self) -> None:
        """Let the best points come that lie apart from one another; none where nothing is left to gain."""
        wanted = min(1 + int(_GROUP * self.count), self._wanted - self.count)
        gain = self._gains()
        most = min(_OFFERED * wanted, _OFFERED_FEW * wanted + _OFFERED_MORE)
        offered = least(-gain, min(most, int(gain.shape[0])))
        offered = offered[gain[offered] > 0]
        if not offered.shape[0]:
            return
        offered = offered[stable_order(-gain[offered])]
        if wanted == 1:
            self._extend(offered[:1])
            return
        mine = self._factor[: self.count][:, offered]
        matrix = self._entries.block(offered) - mine.T @ mine
        floor = self._dependent * self._diagonal[offered]
        self._extend(offered[_group(matrix, self._left[offered], floor, self._noise, wanted)])

    def _gains(self) -> Array:
        """Twice what D falls by when a point comes; zero for those that would get no weight or are no news."""
        left, rest, xp = self._left, self._rest, namespace(self._left)
        able = (left > self._noise) & (rest > self._dependent * self._diagonal)
        able[self._taken] = False
        return xp.where(able, left**2 / xp.where(able, rest, 1.0), 0.0)

    def _extend(self, new: Array) -> None:
        """Rows of the factor for some points of the pool, some columns at a time."""
        k, count, xp = self.count, int(new.shape[0]), namespace(self._left)
        rows, before, found = self._entries.rows(new), self._factor[:k], self._factor[k : k + count]
        mine = copied(before[:, new].T)
        factor = self._damped_factor(rows[:, new] - mine @ mine.T)
        inverse = solve_triangular(factor, xp.eye(count, dtype=rows.dtype, device=rows.device))
        gained = inverse @ self._left[new]

        def extend(part: slice) -> None:
            found[:, part] = inverse @ (rows[:, part] - mine @ before[:, part])
            self._left[part] -= gained @ found[:, part]
            self._rest[part] -= xp.sum(found[:, part] ** 2, axis=0)

        if is_tensor(rows):
            extend(slice(None))
        else:
            over_rows(extend, int(rows.shape[1]), count * (k + count), _COLUMNS)
        self.value = max(self.value - 0.5 * float(gained @ gained), 0.0)
        self._taken = appended(self._taken, new)

    def _damped_factor(self, inner: Array) -> Array:
        """The Cholesky factor of what is left of some points, which may be rounding where they were given."""
        xp = namespace(inner)
        identity = xp.eye(inner.shape[0], dtype=inner.dtype, device=inner.device)
        damping = 0.0
        while True:
            try:
                return cholesky(inner + damping * identity)
            except np.linalg.LinAlgError:
                damping = max(self._dependent * float(self._diagonal.max()), 100 * damping)


def _spread(problem: Discrepancy, nodes: Array, most: int) -> Array:
    """The nodes and other points, in rising order: every so many-th in the order of Sω, so dense places and thin."""
    if problem.size <= most:
        return places(problem.size, problem.distortion)
    height = problem.distortion / problem.diagonal**0.5
    order = stable_order(height)
    step = places(most - int(nodes.shape[0]), order) * problem.size // (most - int(nodes.shape[0]))
    chosen = height < -1
    chosen[order[step]] = True
    chosen[nodes] = True
    return flatnonzero(chosen)


def _group(matrix: Array, left: Array, floor: Array, noise: float, wanted: int) -> Array:
    """Places of points that do most one after another, among those of which all inner products are known."""
    if not is_tensor(matrix):
        return _taken_together(np.ascontiguousarray(matrix), left, floor, noise, wanted)
    xp, rest = namespace(matrix), copied(matrix.diagonal())
    left, rows, taken, first = copied(left), matrix[:0], list[int](), 0.0
    while len(taken) < wanted:
        able = (left > noise) & (rest > floor)
        gain = xp.where(able, left**2 / xp.where(able, rest, 1.0), 0.0)
        best = int(xp.argmax(gain))
        if not float(gain[best]) > 0 or float(gain[best]) < _FALLS_TO * first:
            break
        first = max(first, float(gain[best]))
        row = (matrix[best] - rows[:, best] @ rows) / rest[best] ** 0.5
        left, rest = left - (left[best] / rest[best] ** 0.5) * row, rest - row**2
        left[best] = rest[best] = 0.0
        rows, taken = xp.concat([rows, row[None]]), [*taken, best]
    return as_indices(taken, left)


@njit(cache=True, nogil=True)
def _taken_together(matrix: Any, left: Any, floor: Any, noise: float, wanted: int) -> Any:
    n = left.size
    left, rest = left.copy(), np.diag(matrix).copy()
    rows, taken = np.empty((wanted, n)), np.empty(wanted, np.int64)
    first, count = 0.0, 0
    while count < wanted:
        best, most = -1, 0.0
        for i in range(n):
            if left[i] > noise and rest[i] > floor[i] and left[i] * left[i] > most * rest[i]:
                best, most = i, left[i] * left[i] / rest[i]
        if best < 0 or most < _FALLS_TO * first:
            break
        first = max(first, most)
        pivot, taken[count] = np.sqrt(rest[best]), best
        share = left[best] / pivot
        for i in range(n):
            total = matrix[best, i]
            for k in range(count):
                total -= rows[k, best] * rows[k, i]
            rows[count, i] = total / pivot
            left[i] -= share * rows[count, i]
            rest[i] -= rows[count, i] ** 2
        left[best], rest[best] = 0.0, 0.0
        count += 1
    return taken[:count]
