"""Fewer nodes with optimal weights: the node that is missed least goes first.

On fixed nodes I the least discrepancy is D(0) - ½ qᵀP q with P = A_II⁻¹, q = (Sω)_I, at v = P q. Without node j it is
larger by v_j²/(2 P_jj): each step takes out the node for which that is least and updates P by one rank-one correction.
Merging (QUAD 7.2) moves the weight of a node to one other; here it is shared out among all, which costs as much a step,
m², and leaves a discrepancy several times lower.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from mercer.linalg.damped import damped_inverse
from mercer.problems import Discrepancy
from mercer.solvers.active_set import solve_on

Array = np.ndarray[Any, np.dtype[Any]]
_DEPENDENT = 1e-11  # of its diagonal entry: what a row that is a combination of others may have of its own


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
        The least D (with the ridge) on the nodes left: at the start, and after each step.
    """

    nodes: Array
    removed: Array
    values: Array

    @property
    def n_nodes(self) -> Array:
        """Nodes at the start and after each step, s + 1 numbers."""
        return self.nodes.size - np.arange(self.values.size)

    def in_rows(self, rows: Array) -> EliminationSequence:
        """The same with nodes named by rows."""
        return EliminationSequence(rows[self.nodes], rows[self.removed], self.values)

    def left(self, stage: int) -> Array:
        """The nodes after so many steps, in the order of the start."""
        return self.nodes[~np.isin(self.nodes, self.removed[:stage])]


def eliminate(
    problem: Discrepancy, nodes: Array, *, n_nodes: int = 1, max_increase: float | None = None
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

    Notes
    -----
    Cost: m² kernel evaluations, m³ flops for the inverse and m² flops a step; memory 2 m².
    """
    start = nodes[solve_on(problem, nodes, alpha=0.0) > 0]
    start = start[_independent(problem.block(start, start))]
    idle = np.setdiff1d(nodes, start)
    inverse = damped_inverse(problem.block(start, start))
    weights = inverse @ problem.distortion[start]
    value = max(problem.constant - 0.5 * float(problem.distortion[start] @ weights), 0.0)
    ceiling = np.inf if max_increase is None else value * (1 + max_increase)
    values, removed = [value] * (1 + idle.size), list(idle)
    left = start.copy()
    while left.size > max(n_nodes, 1):
        place, increase = _missed_least(weights, np.diagonal(inverse))
        if values[-1] + increase > ceiling:
            break
        removed.append(left[place])
        values.append(values[-1] + increase)
        inverse, weights = _without(inverse, weights, place)
        left = np.delete(left, place)
    return EliminationSequence(nodes, np.array(removed, dtype=np.intp), np.array(values))


def _independent(matrix: Array) -> Array:
    """Places of rows that are no combinations of one another, to the digits that an inverse would keep of them."""
    scale = np.sqrt(np.diagonal(matrix))
    _, order, rank, _ = lapack.dpstrf(matrix / np.outer(scale, scale), tol=_DEPENDENT, lower=1)
    return np.sort(order[: max(int(rank), 1)] - 1)


def _missed_least(weights: Array, diagonal: Array) -> tuple[int, float]:
    """A node whose weight is not positive, if there is one, or else the one of least v_j²/(2 P_jj)."""
    cost = weights**2 / (2 * diagonal)
    place = int(np.argmin(np.where(weights <= 0, -1.0, cost)))
    return place, float(cost[place])


def _without(inverse: Array, weights: Array, place: int) -> tuple[Array, Array]:
    """P and P q when a node is taken out."""
    share = inverse[:, place] / inverse[place, place]
    kept = np.delete(np.arange(weights.size), place)
    weights = weights - share * weights[place]
    inverse = inverse - np.outer(share, inverse[place])
    return inverse[np.ix_(kept, kept)], weights[kept]
