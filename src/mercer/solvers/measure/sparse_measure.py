"""What the solvers of :class:`mercer.problems.Discrepancy` return: a sparse measure, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.backends.arrays import Array, dtype_name, like, namespace
from mercer.backends.ordering import as_indices
from mercer.kernels.checks import checked_weights
from mercer.solvers.solution import Status


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


def checked_measure(nodes: Any, values: Any, size: int, reference: Any = None) -> tuple[Array, Array]:
    """Distinct nodes among ``size`` points, and their positive values, in the library of another array."""
    chosen = checked_nodes(nodes, size, reference)
    weights = like(checked_weights(values, chosen.shape[0], "values"), reference)
    if (weights == 0).any():
        raise ValueError(f"values is zero at index {int(weights.argmin())}: a node of a measure has positive weight.")
    return chosen, weights


def checked_nodes(nodes: Any, size: int, reference: Any = None) -> Array:
    """Distinct row numbers among ``size`` rows, in the library of another array."""
    chosen = like(nodes, reference)
    whole = dtype_name(chosen.dtype).startswith(("int", "uint"))
    if chosen.ndim != 1 or chosen.shape[0] == 0 or not whole:
        raise ValueError("nodes must be row numbers: a non-empty one-dimensional array of whole numbers.")
    if int(chosen.min()) < 0 or int(chosen.max()) >= size:
        raise ValueError(f"nodes must lie between 0 and {size - 1}.")
    if namespace(chosen).unique_values(chosen).shape[0] != chosen.shape[0]:
        raise ValueError("nodes names a row twice: give it once, with the sum of its values.")
    return as_indices(chosen, chosen)
