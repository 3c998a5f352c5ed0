"""What the solvers of :class:`mercer.problems.Discrepancy` return: a sparse measure, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.solvers.result import Status

Array = Any  # of the library of the problem


@dataclass(frozen=True)
class ExchangeStep:
    """One line of the history.

    Attributes
    ----------
    number : int
        Steps taken.
    value : float
        The objective: D(v), with the ridge where there is one, and with α dᵀv where α is given.
    gap : float
        The Frank-Wolfe bound: value less the optimum is at most this.
    n_nodes : int
        Positive components of v.
    seconds : float
        Since the start.
    """

    number: int
    value: float
    gap: float
    n_nodes: int
    seconds: float


@dataclass(frozen=True)
class SparseMeasure:
    """A measure v by its nodes and their positive weights, with its gradient A v - Sω at every point."""

    nodes: Array
    values: Array
    gradient: Array
    status: Status
    history: tuple[ExchangeStep, ...] = ()
