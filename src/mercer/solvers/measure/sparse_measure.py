"""The point of every solver of :class:`mercer.problems.Discrepancy`: a sparse measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.backends.arrays import Array, dtype_name, like, namespace
from mercer.backends.ordering import as_indices
from mercer.kernels.checks import checked_weights


@dataclass(frozen=True, eq=False)
class SparseMeasure:
    """A measure v by its nodes and their positive weights, with its gradient A v - Sω at every point."""

    nodes: Array
    values: Array
    gradient: Array


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
