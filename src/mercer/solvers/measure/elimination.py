"""Fewer nodes with optimal weights: the node that is missed least goes first.

On fixed nodes I the least discrepancy is D(0) - ½ qᵀP q with P = A_II⁻¹, q = (Sω)_I, at v = P q. Without node j it is
larger by v_j²/(2 P_jj): each step takes out the node for which that is least and updates P by one rank-one correction.
With a penalty α dᵀv, q - αd stands for q. Under dᵀv = ϰ, P - Pd dᵀP/dᵀPd stands for P: its columns keep dᵀv as it is.
Merging (QUAD 7.2) moves the weight of a node to one other; here it is shared out among all, which costs as much a step,
m², and leaves a discrepancy several times lower.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np
from scipy.linalg import lapack

from mercer.backends.arrays import Array, copied, is_tensor, like, namespace
from mercer.backends.ordering import among, as_indices, as_integers, places, without
from mercer.backends.rounding import TINY
from mercer.backends.threads import blas_for, single_threaded_blas
from mercer.linalg.deferred_updates import DeferredUpdates
from mercer.linalg.factors import damped_inverse, upper_factor
from mercer.problems import Discrepancy
from mercer.problems.discrepancy import CAPS, RIDGE
from mercer.solvers.measure.active_set import solve_on
from mercer.solvers.run import Goal, Method, Report, solve
from mercer.solvers.solution import Status
from mercer.wording import brief

Sequence = TypeVar("Sequence")

_DEPENDENT = 1e-11  # of its diagonal entry: what a row that is a combination of others may have of its own
_FAR = 1e4  # times that: with pivots above it rows count as independent, whatever the order of the pivots


@dataclass(frozen=True, eq=False)
class EliminationSequence:
    """Nodes in the order in which they went.

    Attributes
    ----------
    nodes : array of int of shape (m,)
        The nodes at the start.
    removed : array of int of shape (s,)
        The nodes taken out, in order.
    values : array of shape (s + 1,)
        The least D (with the ridge, and with the penalty or under the constraint of the programme that nodes were taken
        out of) on the nodes left: at the start, and after each step.
    """

    nodes: Array
    removed: Array
    values: Array

    def __repr__(self) -> str:
        return brief(self, "nodes", "removed", "values")

    @property
    def n_nodes(self) -> Array:
        """Nodes at the start and after each step, s + 1 numbers."""
        return counted_down(self.nodes, self.values)

    def in_rows(self, rows: Array) -> EliminationSequence:
        """The same with nodes named by rows."""
        return EliminationSequence(rows[self.nodes], rows[self.removed], self.values)

    def left(self, stage: int) -> Array:
        """The nodes after so many steps, in the order of the start."""
        return self.nodes[~among(self.nodes, self.removed[:stage])]


def counted_down(nodes: Array, values: Array) -> Array:
    """The number of nodes at the start and after each step that takes one out."""
    return as_indices(range(nodes.shape[0], nodes.shape[0] - values.shape[0], -1), nodes)


def eliminate(
    problem: Discrepancy,
    nodes: Array,
    *,
    n_nodes: int = 1,
    max_increase: float | None = None,
) -> EliminationSequence:
    """Take nodes out one by one, each time as the least discrepancy on those left grows least.

    Parameters
    ----------
    problem : Discrepancy
        Its caps take no part: weights are settled afterwards.
    nodes : array of int of shape (m,)
        Where to start from. Those that get no weight, and those that are combinations of others, go at once.
    n_nodes : int, default=1
        Stop at so many nodes.
    max_increase : float, optional
        Stop before D has grown by more than this part of what it is at the start.

    Returns
    -------
    EliminationSequence
        All steps; those so far on Ctrl-C.

    Notes
    -----
    Cost: m² kernel evaluations, m³ flops for the inverse and m² flops a step; memory 2 m².
    """
    goal = Goal(0.0, max_iter=int(nodes.shape[0]))
    return solve(problem, Elimination(n_nodes, max_increase), nodes, goal=goal).point


class TakingOut(Method[Discrepancy, Sequence], ABC):
    """Nodes go one by one. A step takes out a tenth of those gone so far at most; then it reports."""

    handles = frozenset({CAPS, RIDGE})
    _n_left: int
    _least: int  # nodes, at which to end
    _values: list[float]  # the objective at the start and after each node

    @abstractmethod
    def _take(self) -> bool:
        """Take out one node, unless none may go."""

    @abstractmethod
    def _sequence(self) -> Sequence:
        """What was done so far."""

    @final
    def step(self, problem: Discrepancy, most: int) -> Report[Sequence]:
        """Take out nodes for which the objective grows least."""
        made, wanted = 0, min(most, 1 + len(self._values) // 10, self._n_left - self._least)
        with single_threaded_blas():
            while made < wanted and self._take():
                made, self._n_left = made + 1, self._n_left - 1
        return self._report(made, ended=made < wanted)

    @final
    def _report(self, steps: int, ended: bool = False) -> Report[Sequence]:
        status = Status.CONVERGED if ended or self._n_left <= self._least else None
        return Report(self._sequence(), self._values[-1], size=self._n_left, steps=steps, status=status)


class Elimination(TakingOut[EliminationSequence]):
    """The node that is missed least goes; its weight is shared out among all others.

    Parameters
    ----------
    n_nodes, max_increase
        As of :func:`eliminate`.
    alpha, kappa : float, optional
        The penalty, or the trace, that the weights of those left are to solve the programme with: what a node is missed
        by is then the growth of that objective. At most one of the two.
    weighted : bool, default=False
        Whether it is known that all nodes have weight in the solution of that programme on them.
    """

    name = phase = "elimination"

    def __init__(
        self,
        n_nodes: int = 1,
        max_increase: float | None = None,
        *,
        alpha: float = 0.0,
        kappa: float | None = None,
        weighted: bool = False,
    ) -> None:
        self._least, self._increase, self._alpha, self._kappa = max(n_nodes, 1), max_increase, alpha, kappa
        self._weighted = weighted

    def start(self, problem: Discrepancy, point: Array) -> Report[EliminationSequence]:
        """Without the nodes that get no weight or are combinations of others."""
        with blas_for(int(point.shape[0])):
            return self._begun(problem, point)

    def _begun(self, problem: Discrepancy, point: Array) -> Report[EliminationSequence]:
        self._nodes, self._reference = point, problem.distortion
        level = problem.regularised(self._alpha) if self._kappa is None else problem.constrained(self._kappa)
        useful = point if self._weighted else point[solve_on(level, point) > 0]
        matrix = problem.block(useful, useful)
        independent = _independent(matrix)
        self._left = useful[independent]
        idle = point[~among(point, self._left)]
        matrix = matrix[independent][:, independent]
        q, d = problem.distortion[self._left], problem.penalty[self._left]
        inverse, self._weights = self._on_level(damped_inverse(matrix), q - self._alpha * d, d)
        value = float(self._weights @ (0.5 * (matrix @ self._weights) - q + self._alpha * d))
        value = max(problem.constant + value, 0.0)
        self._ceiling = np.inf if self._increase is None else value * (1 + self._increase)
        self._values, self._removed = [value] * (1 + idle.shape[0]), as_integers(namespace(idle).sort(idle))
        self._shrinking, self._n_left = _Shrinking(inverse), int(self._left.shape[0])
        return self._report(0)

    def _on_level(self, inverse: Array, target: Array, d: Array) -> tuple[Array, Array]:
        """P and the best weights; under dᵀv = ϰ those that keep to it."""
        weights = inverse @ target
        if self._kappa is None:
            return inverse, weights
        along = inverse @ d
        bend = float(d @ along)
        weights = weights - along * ((float(d @ weights) - self._kappa) / bend)
        return inverse - along[:, None] * (along / bend), weights

    def _take(self) -> bool:
        place, increase = _missed_least(self._weights, self._shrinking.diagonal)
        if self._values[-1] + increase > self._ceiling:
            return False
        self._removed.append(int(self._left[place]))
        self._values.append(self._values[-1] + increase)
        self._weights = self._shrinking.drop(place, self._weights)
        self._left = without(self._left, place)
        return True

    def _sequence(self) -> EliminationSequence:
        values = like(np.array(self._values), self._reference)
        return EliminationSequence(self._nodes, as_indices(self._removed, self._nodes), values)


class _Shrinking:
    """P as nodes are taken out: a correction of rank one each, some of which wait; then the places are closed up."""

    def __init__(self, inverse: Array) -> None:
        self._inverse = DeferredUpdates(inverse)
        self.diagonal = copied(namespace(inverse).linalg.diagonal(inverse))
        self._waits = places(int(inverse.shape[0]), inverse)  # where the nodes that are left stand in P

    def drop(self, place: int, weights: Array) -> Array:
        """Take a node out, and return P q without it."""
        if self._inverse.is_full:
            self._inverse.keep(self._waits)
            self._waits = places(int(self._waits.shape[0]), self._waits)
        row = self._inverse.row(int(self._waits[place]))
        share = row / self.diagonal[place]
        self._inverse.add(-share, row)
        mine = share[self._waits]
        self.diagonal = without(self.diagonal - mine * row[self._waits], place)
        weights = without(weights - mine * weights[place], place)
        self._waits = without(self._waits, place)
        return weights


def _independent(matrix: Array) -> Array:
    """Places of rows that are no combinations of one another, to the digits that an inverse would keep of them."""
    xp = namespace(matrix)
    scale = xp.linalg.diagonal(matrix) ** 0.5
    scaled = matrix / (scale[:, None] * scale)
    factor = upper_factor(copied(scaled))
    if factor is not None and float(xp.linalg.diagonal(factor).min()) ** 2 > _FAR * _DEPENDENT:
        return places(int(matrix.shape[0]), matrix)  # the pivots of another order need not be looked for
    if is_tensor(matrix):
        return xp.sort(as_indices(_pivots(scaled), matrix))
    _, order, rank, _ = lapack.dpstrf(scaled, tol=_DEPENDENT, lower=1)
    return np.sort(order[: max(int(rank), 1)] - 1)


def _pivots(matrix: Array) -> list[int]:
    """The pivots of LAPACK's ``pstrf``, one at least: Cholesky's factor by columns, the largest remainder next."""
    xp = namespace(matrix)
    rest, factor, pivots = xp.linalg.diagonal(matrix) + 0.0, matrix[:, :0], list[int]()
    while len(pivots) < matrix.shape[0]:
        pivot = int(xp.argmax(rest))
        largest = float(rest[pivot])
        if pivots and not largest > _DEPENDENT:
            break
        column = (matrix[:, pivot] - factor @ factor[pivot]) / largest**0.5
        factor = xp.concat([factor, column[:, None]], axis=1)
        rest = rest - column * column
        pivots.append(pivot)
        rest[as_indices(pivots, matrix)] = -np.inf
    return pivots


def _missed_least(weights: Array, diagonal: Array) -> tuple[int, float]:
    """A node whose weight is not positive, if there is one, or else the one of least v_j²/(2 P_jj)."""
    xp = namespace(weights)
    cost = weights**2 / (2 * xp.clip(diagonal, min=TINY))
    place = int(xp.argmin(xp.where(weights <= 0, -1.0, cost)))
    return place, float(cost[place])
