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
from mercer.kernels.validation import positive_number
from mercer.problems import Discrepancy
from mercer.quadrature.sections import checked_measure
from mercer.validation import whole_number

Array = np.ndarray[Any, np.dtype[Any]]
_FETCHED = 32  # columns a time


@dataclass(frozen=True, eq=False)
class MergeSequence:
    """A sequence of merges, each of which takes one node away; any stage of it can be had again.

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

    @property
    def n_nodes(self) -> Array:
        """Nodes at the start and after each merge, s + 1 numbers."""
        return self.nodes.size - np.arange(self.values.size)

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
        stage = self.values.size - 1
        if n_nodes is not None:
            least = self.nodes.size - stage
            if whole_number(n_nodes, "n_nodes", 1) < least:
                raise ValueError(f"n_nodes={n_nodes} lies beyond the end of the sequence, which has {least} nodes.")
            stage = max(self.nodes.size - n_nodes, 0)
        if max_increase is not None:
            over = self.values > _ceiling(float(self.values[0]), max_increase)
            stage = min(stage, int(np.argmax(over)) - 1 if over.any() else stage)
        return self._replayed(stage)

    def _replayed(self, stage: int) -> tuple[Array, Array]:
        place = {int(node): k for k, node in enumerate(self.nodes)}
        values, alive = self.start.copy(), np.ones(self.nodes.size, bool)
        for into, absorbed in zip(self.into[:stage].tolist(), self.absorbed[:stage].tolist(), strict=True):
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
        All merges; its method ``at`` gives the measure at any stage, without arguments at the last.

    Notes
    -----
    Cost of strong merging: m² kernel evaluations and a scan of the pairs for each merge, m³/3 in all down to one node;
    memory m². Weak: 2m kernel evaluations a merge; memory some tens of m.
    """
    if strategy not in _STRATEGIES:
        raise ValueError(f"strategy={strategy!r} must be 'strong' or 'weak'.")
    nodes, start = checked_measure(nodes, values, problem.size)
    least = 1 if n_nodes is None else whole_number(n_nodes, "n_nodes", 1)
    gradient = problem.gradient(nodes, start) if gradient is None else gradient
    objective = [problem.value(nodes, start, gradient)]
    ceiling = np.inf if max_increase is None else _ceiling(objective[0], max_increase)
    pairs: list[tuple[int, int]] = []
    exhausted = False
    state = _STRATEGIES[strategy](problem, nodes, start, gradient)
    while state.size > least and not exhausted:
        best = state.best()
        exhausted = not np.isfinite(best.increase)
        if exhausted or objective[-1] + best.increase > ceiling:
            break
        pairs.append(state.absorb(best))
        objective.append(objective[-1] + best.increase)
    into, absorbed = np.array(pairs, np.intp).reshape(-1, 2).T
    return MergeSequence(nodes, start, problem.penalty[nodes], into, absorbed, np.array(objective), exhausted)


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
        self.size = int(nodes.size)
        self.nodes = nodes.copy()
        self.penalty = penalty.copy()
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
        mass = self.masses[j]
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
        size, limit = 8 * nodes.size**2, get_config().memory_bytes
        if size > limit:
            raise ValueError(
                f"Strong merging of {nodes.size} nodes keeps an array of {size / 1e9:.1f} GB, above the limit of "
                f"{limit / 1e9:.1f} GB: use strategy='weak', or raise memory_limit with mercer.config_context."
            )
        self._matrix = problem.block(nodes, nodes)
        self._matrix /= self.penalty[:, None]
        self._matrix /= self.penalty

    def best(self) -> _Merge:
        return _Merge(*_best_pair(self._matrix, self.diagonal, self.slopes, self.masses, self.limits, self.size))

    def _column(self, position: int) -> Array:
        return self._matrix[position, : self.size]

    def _forget(self, position: int) -> None:
        last = self.size - 1
        corner = self._matrix[last, last]
        self._matrix[position, : self.size] = self._matrix[last, : self.size]
        self._matrix[: self.size, position] = self._matrix[: self.size, last]
        self._matrix[position, position] = corner


@final
class _Weak(_State):
    """Columns of B are computed when they are needed, those of the nodes of least mass some at a time."""

    def __init__(self, problem: Discrepancy, nodes: Array, values: Array, gradient: Array) -> None:
        super().__init__(problem, nodes, values, gradient)
        self._problem = problem
        self._kept = np.empty((nodes.size, 0))
        self._where: dict[int, int] = {}

    def best(self) -> _Merge:
        n = self.size
        masses = self.masses[:n]
        room = self.limits[:n] - masses
        candidates = np.where(masses <= _largest_of_others(room), masses, np.inf)
        tied = np.flatnonzero(candidates == candidates.min())
        j = int(tied[np.argmin(self.nodes[tied])])
        if int(self.nodes[j]) not in self._where:
            self._fetch(candidates)
        mass = masses[j]
        distances = self.diagonal[:n] + self.diagonal[j] - 2 * self._column(j)
        increases = mass * (self.slopes[:n] - self.slopes[j] + 0.5 * mass * distances)
        increases[room < mass] = np.inf
        increases[j] = np.inf
        i = int(np.argmin(increases))
        return _Merge(i, j, float(increases[i]))

    def _fetch(self, masses: Array) -> None:
        """Compute the columns of the nodes of least mass: masses only grow, so these are likely to go next."""
        least = np.lexsort((self.nodes[: self.size], masses))[:_FETCHED]
        self._kept = np.asfortranarray(self._columns(least))
        self._where = {int(node): k for k, node in enumerate(self.nodes[least])}

    def _columns(self, positions: Array) -> Array:
        nodes, penalty = self.nodes[: self.size], self.penalty[: self.size]
        return self._problem.block(nodes, nodes[positions]) / np.outer(penalty, penalty[positions])

    def _column(self, position: int) -> Array:
        kept = self._where.get(int(self.nodes[position]))
        return self._columns(np.array([position]))[:, 0] if kept is None else self._kept[: self.size, kept]

    def _forget(self, position: int) -> None:
        self._kept[position] = self._kept[self.size - 1]


_STRATEGIES: dict[str, type[_Strong] | type[_Weak]] = {"strong": _Strong, "weak": _Weak}


def _largest_of_others(values: Array) -> Array:
    """For each entry the largest of the others."""
    top = int(np.argmax(values))
    out = np.full(values.size, values[top])
    out[top] = np.max(np.delete(values, top))
    return out


@njit(cache=True, nogil=True)
def _best_pair(
    matrix: Any, diagonal: Any, slopes: Any, masses: Any, limits: Any, size: int
) -> tuple[int, int, float]:  # one pass over half of the matrix, where array expressions would make five over all of it
    best, into, absorbed = np.inf, 0, 0
    for i in range(1, size):
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
