"""Fewer nodes for a little more discrepancy: nodes of a sparse measure absorb one another (QUAD section 7.2).

With the masses uᵢ = dᵢvᵢ, which are the paper's ṽ times ϰ, node i absorbs node j by v ← v + uⱼ(eᵢ/dᵢ - eⱼ/dⱼ): dᵀv
stays, and the objective grows by

    uⱼ(hᵢ - hⱼ) + ½ uⱼ² (Bᵢᵢ + Bⱼⱼ - 2Bᵢⱼ),   B = Diag(d)⁻¹ A Diag(d)⁻¹,   h = Diag(d)⁻¹(Av - Sω)

Strong merging looks at all ordered pairs, weak merging at all partners of the node of least mass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, final

import numpy as np
from numba import njit

from mercer.backends import get_config
from mercer.backends.arrays import Array, copied, is_tensor, like, namespace
from mercer.backends.ordering import as_indices, as_integers, flatnonzero, lexicographic_order, without
from mercer.kernels.checks import positive_number, whole_number
from mercer.linalg.dense_products import over_rows
from mercer.problems import Discrepancy
from mercer.problems.discrepancy import checked_measure
from mercer.solvers.measure.elimination import TakingOut, counted_down
from mercer.solvers.run import Goal, Report, solve
from mercer.wording import brief, size_in_words

_FETCHED = 32  # columns a time


@dataclass(frozen=True, eq=False)
class MergeSequence:
    """A sequence of merges, each of which takes one node away; any stage of it can be restored.

    Attributes
    ----------
    nodes, start : arrays of shape (m,)
        The measure at the start: its nodes and their values.
    penalty : array of shape (m,)
        d at these nodes.
    into, absorbed : arrays of int of shape (s,)
        The node that absorbed and the node that was absorbed, merge by merge.
    values : array of shape (s + 1,)
        The objective at the start and after each merge: D, and the ridge where there is one. The increments are exact
        but for rounding; nothing is approximated.
    exhausted : bool
        Whether the sequence ends because the caps allow no further merge.
    """

    nodes: Array
    start: Array
    penalty: Array
    into: Array
    absorbed: Array
    values: Array
    exhausted: bool

    def __repr__(self) -> str:
        return brief(self, "nodes", "values")

    @property
    def n_nodes(self) -> Array:
        """Nodes at the start and after each merge, s + 1 numbers."""
        return counted_down(self.nodes, self.values)

    def in_rows(self, rows: Array) -> MergeSequence:
        """The same with nodes named by rows."""
        return replace(self, nodes=rows[self.nodes], into=rows[self.into], absorbed=rows[self.absorbed])

    def at(self, *, n_nodes: int | None = None, max_increase: float | None = None) -> tuple[Array, Array]:
        """The measure at a stage: its nodes, in the order of the start, and their values.

        Parameters
        ----------
        n_nodes : int, optional
            The first stage with no more nodes than this.
        max_increase : float, optional
            The last stage before the objective has grown by more than this part: 0.05 allows 5 %.

        Notes
        -----
        The earlier stage if both are given, the end of the sequence if neither is.
        """
        start, stage = int(self.nodes.shape[0]), int(self.values.shape[0]) - 1
        if n_nodes is not None:
            least = start - stage
            if whole_number(n_nodes, "n_nodes", 1) < least:
                raise ValueError(f"n_nodes={n_nodes} lies beyond the end of the sequence, which has {least} nodes.")
            stage = max(start - n_nodes, 0)
        if max_increase is not None:
            over = flatnonzero(self.values > _ceiling(float(self.values[0]), max_increase))
            stage = min(stage, int(over[0]) - 1 if over.shape[0] else stage)
        return self._replayed(stage)

    def _replayed(self, stage: int) -> tuple[Array, Array]:
        place = {node: k for k, node in enumerate(as_integers(self.nodes))}
        values, alive = copied(self.start), self.start > 0
        for into, absorbed in zip(as_integers(self.into[:stage]), as_integers(self.absorbed[:stage]), strict=True):
            i, j = place[into], place[absorbed]
            values[i] += values[j] * self.penalty[j] / self.penalty[i]
            alive[j] = False
        return self.nodes[alive], values[alive]


def merge(
    problem: Discrepancy,
    nodes: Any,
    values: Any,
    *,
    strategy: Literal["strong", "weak"] = "strong",
    n_nodes: int | None = None,
    max_increase: float | None = None,
    gradient: Array | None = None,
) -> MergeSequence:
    """Merge the nodes of a measure pair by pair, each time as the objective grows least (QUAD section 7.2).

    Parameters
    ----------
    problem : Discrepancy
        The programme: its objective D, with the ridge, its penalty d and its caps. dᵀv is kept, and a merge that would
        take a node over its cap is not made.
    nodes, values : arrays of shape (m,)
        The measure v to start from: distinct nodes and their positive values.
    strategy : {"strong", "weak"}, default="strong"
        Strong: the best of all ordered pairs. Weak: the node of least dᵢvᵢ that another has room for is absorbed by
        the best of the others.
    n_nodes : int, optional
        Stop at so many nodes.
    max_increase : float, optional
        Stop before the objective has grown by more than this part of itself: 0.05 allows 5 %. Where both are given the
        first to be met stops; where neither is, merging goes on to one node.
    gradient : array of shape (N,), optional
        A v - Sω at every point where it is known already; N·m kernel evaluations otherwise.

    Returns
    -------
    MergeSequence
        All merges, those so far on Ctrl-C; its method ``at`` gives the measure at any stage, without arguments at the
        last.

    Notes
    -----
    Cost of strong merging: m² kernel evaluations and a scan of the pairs for each merge, m³/3 in all down to one node;
    memory m². Weak: 2m kernel evaluations a merge; memory some tens of m.
    """
    method = Merging(strategy, n_nodes=n_nodes, max_increase=max_increase)
    start = (nodes, values, gradient)
    return solve(problem, method, start, goal=Goal(0.0, max_iter=problem.size)).point


class Merging(TakingOut[MergeSequence]):
    """The node goes that another absorbs as the objective grows least."""

    name = phase = "merging"

    def __init__(self, strategy: str = "strong", n_nodes: int | None = None, max_increase: float | None = None) -> None:
        if strategy not in _STRATEGIES:
            raise ValueError(f"strategy={strategy!r} must be 'strong' or 'weak'.")
        self._strategy, self._increase = strategy, max_increase
        self._least = 1 if n_nodes is None else whole_number(n_nodes, "n_nodes", 1)

    def start(self, problem: Discrepancy, point: Any) -> Report[MergeSequence]:
        """The measure given: nodes, values, and the gradient where it is known."""
        nodes, values, gradient = point
        self._nodes, self._start = checked_measure(nodes, values, problem.size, problem.distortion)
        self._penalty = problem.penalty[self._nodes]
        gradient = problem.gradient(self._nodes, self._start) if gradient is None else gradient
        self._values = [problem.value(self._nodes, self._start, gradient)]
        self._ceiling = np.inf if self._increase is None else _ceiling(self._values[0], self._increase)
        self._pairs: list[tuple[int, int]] = []
        self._exhausted, self._n_left = False, int(self._nodes.shape[0])
        self._state = _STRATEGIES[self._strategy](problem, self._nodes, self._start, gradient)
        return self._report(0)

    def _take(self) -> bool:
        best = self._state.best()
        self._exhausted = not np.isfinite(best.increase)
        if self._exhausted or self._values[-1] + best.increase > self._ceiling:
            return False
        self._pairs.append(self._state.absorb(best))
        self._values.append(self._values[-1] + best.increase)
        return True

    def _sequence(self) -> MergeSequence:
        into, absorbed = (as_indices([pair[k] for pair in self._pairs], self._nodes) for k in range(2))
        values = like(np.array(self._values), self._penalty)
        return MergeSequence(self._nodes, self._start, self._penalty, into, absorbed, values, self._exhausted)


def _ceiling(value: float, max_increase: float) -> float:
    return value * (1 + positive_number(max_increase, "max_increase", zero=True))


class _Merge(NamedTuple):
    """A merge by the positions of its nodes, and by how much the objective grows; infinite where none is allowed."""

    into: int
    absorbed: int
    increase: float


class _State(ABC):
    """The measure between two merges: masses u, scaled gradient h, diagonal of B, and the masses that caps allow.

    The nodes left are the first ``size`` entries of each array: the last takes the place of the one absorbed.
    """

    def __init__(self, problem: Discrepancy, nodes: Array, values: Array, gradient: Array) -> None:
        penalty = problem.penalty[nodes]
        self.size = int(nodes.shape[0])
        self.nodes = copied(nodes)
        self.penalty = copied(penalty)
        self.masses = penalty * values
        self.slopes = gradient[nodes] / penalty
        self.diagonal = problem.diagonal[nodes] / penalty**2
        self.limits = penalty * problem.caps[nodes]

    @abstractmethod
    def best(self) -> _Merge:
        """The merge to make next."""

    @abstractmethod
    def _column(self, position: int) -> Array:
        """A column of B on the nodes left."""

    @abstractmethod
    def _forget(self, position: int) -> None:
        """Take a node out of what is kept of B."""

    @final
    def absorb(self, merge: _Merge) -> tuple[int, int]:
        """Make a merge; the two nodes."""
        i, j = merge.into, merge.absorbed
        pair = int(self.nodes[i]), int(self.nodes[j])
        mass = float(self.masses[j])
        self.slopes[: self.size] += mass * (self._column(i) - self._column(j))
        self.masses[i] += mass
        self._forget(j)
        self.size -= 1
        for values in (self.nodes, self.penalty, self.masses, self.slopes, self.diagonal, self.limits):
            values[j] = values[self.size]
        return pair


@final
class _Strong(_State):
    """B is kept, m × m."""

    def __init__(self, problem: Discrepancy, nodes: Array, values: Array, gradient: Array) -> None:
        super().__init__(problem, nodes, values, gradient)
        size, limit = 8 * self.size**2, get_config().memory_bytes
        if size > limit:
            raise ValueError(
                f"Strong merging of {self.size} nodes keeps an array of {size_in_words(size)}, above the limit of "
                f"{size_in_words(limit)}: use strategy='weak', or raise memory_limit with mercer.config_context."
            )
        self._matrix = problem.block(nodes, nodes)
        self._matrix /= self.penalty[:, None]
        self._matrix /= self.penalty

    def best(self) -> _Merge:
        scan = _best_of_tensors if is_tensor(self._matrix) else _best_of_arrays
        return _Merge(*scan(self._matrix, self.diagonal, self.slopes, self.masses, self.limits, self.size))

    def _column(self, position: int) -> Array:
        return self._matrix[position, : self.size]

    def _forget(self, position: int) -> None:
        last = self.size - 1
        corner = float(self._matrix[last, last])
        self._matrix[position, : self.size] = self._matrix[last, : self.size]
        self._matrix[: self.size, position] = self._matrix[: self.size, last]
        self._matrix[position, position] = corner


@final
class _Weak(_State):
    """Columns of B are computed when they are needed, those of the nodes of least mass some at a time."""

    def __init__(self, problem: Discrepancy, nodes: Array, values: Array, gradient: Array) -> None:
        super().__init__(problem, nodes, values, gradient)
        self._problem = problem
        self._kept = problem.penalty[:0]  # nothing so far
        self._where: dict[int, int] = {}

    def best(self) -> _Merge:
        n = self.size
        masses = self.masses[:n]
        room = self.limits[:n] - masses
        xp = namespace(masses)
        candidates = xp.where(masses <= _largest_of_others(room), masses, np.inf)
        tied = flatnonzero(candidates == candidates.min())
        j = int(tied[int(xp.argmin(self.nodes[tied]))])
        if int(self.nodes[j]) not in self._where:
            self._fetch(candidates)
        mass = float(masses[j])
        distances = self.diagonal[:n] + self.diagonal[j] - 2 * self._column(j)
        increases = mass * (self.slopes[:n] - self.slopes[j] + 0.5 * mass * distances)
        increases[room < mass] = np.inf
        increases[j] = np.inf
        i = int(xp.argmin(increases))
        return _Merge(i, j, float(increases[i]))

    def _fetch(self, masses: Array) -> None:
        """Compute the columns of the nodes of least mass: masses only grow, so these are likely to go next."""
        least = lexicographic_order((self.nodes[: self.size], masses))[:_FETCHED]
        self._kept = copied(self._columns(least).T)  # a column a row
        self._where = {node: k for k, node in enumerate(as_integers(self.nodes[least]))}

    def _columns(self, positions: Array) -> Array:
        nodes, penalty = self.nodes[: self.size], self.penalty[: self.size]
        return self._problem.block(nodes, nodes[positions]) / (penalty[:, None] * penalty[positions])

    def _column(self, position: int) -> Array:
        kept = self._where.get(int(self.nodes[position]))
        if kept is None:
            return self._columns(as_indices([position], self.nodes))[:, 0]
        return self._kept[kept, : self.size]

    def _forget(self, position: int) -> None:
        self._kept[:, position] = self._kept[:, self.size - 1]


_STRATEGIES: dict[str, type[_Strong] | type[_Weak]] = {"strong": _Strong, "weak": _Weak}


def _largest_of_others(values: Array) -> Array:
    """For each entry the largest of the others."""
    xp = namespace(values)
    top = int(xp.argmax(values))
    out = xp.zeros_like(values) + values[top]
    out[top] = without(values, top).max()
    return out


def _best_of_arrays(
    matrix: Array, diagonal: Array, slopes: Array, masses: Array, limits: Array, size: int
) -> tuple[int, int, float]:
    """The best pair: rows are scanned on our threads, and the first of equal pairs is taken, as one scan would."""
    found = over_rows(
        lambda rows: _best_pair(matrix, diagonal, slopes, masses, limits, rows.start, rows.stop), size, size
    )
    return min(found, key=lambda pair: pair[2])  # the first of the least


def _best_of_tensors(
    matrix: Array, diagonal: Array, slopes: Array, masses: Array, limits: Array, size: int
) -> tuple[int, int, float]:
    xp = namespace(matrix)
    d, h, u = diagonal[:size], slopes[:size], masses[:size]
    half_distance = 0.5 * (d[:, None] + d - 2.0 * matrix[:size, :size])
    gone = u * (u * half_distance + h[:, None] - h)  # if row i absorbs column j
    gone = xp.where(u <= (limits[:size] - u)[:, None], gone, np.inf)
    gone[xp.eye(size, dtype=xp.bool, device=gone.device)] = np.inf
    best = int(xp.argmin(xp.reshape(gone, (-1,))))
    return best // size, best % size, float(gone[best // size, best % size])


@njit(cache=True, nogil=True)
def _best_pair(
    matrix: Any, diagonal: Any, slopes: Any, masses: Any, limits: Any, start: int, stop: int
) -> tuple[int, int, float]:  # one pass over half of the matrix, where array expressions would make five over all of it
    best, into, absorbed = np.inf, 0, 0
    for i in range(start, stop):
        row, u, room = matrix[i], masses[i], limits[i] - masses[i]
        for j in range(i):
            w = masses[j]
            difference = slopes[i] - slopes[j]
            half_distance = 0.5 * (diagonal[i] + diagonal[j] - 2.0 * row[j])
            gone = w * (w * half_distance + difference)  # if i absorbs j
            if gone < best and w <= room:
                best, into, absorbed = gone, i, j
            gone = u * (u * half_distance - difference)  # if j absorbs i
            if gone < best and u <= limits[j] - w:
                best, into, absorbed = gone, j, i
    return into, absorbed, best
