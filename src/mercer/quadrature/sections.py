"""The kernel sections k(·, xᵢ) of some nodes of a sample: features and eigenfunctions on them are made of these."""

from __future__ import annotations

from typing import Any, final

from mercer.backends.arrays import dtype_name, like, namespace
from mercer.backends.ordering import as_indices
from mercer.kernels import Kernel, Precomputed
from mercer.operators import GramOperator
from mercer.quadrature.sample import rows_and_columns
from mercer.validation import checked_weights

Array = Any


@final
class KernelSections:
    """The functions k(·, xᵢ), i ∈ I.

    Only the nodes are kept, so that what is built on them does not hold the sample.

    Parameters
    ----------
    kernel : Kernel
        A resolved kernel.
    X : array of shape (N, d)
        The sample. For ``Precomputed()`` its kernel matrix, dense or sparse.
    nodes : array of int of shape (m,)
        I.

    Attributes
    ----------
    components : array of shape (m, d)
        The points of the nodes; for ``Precomputed()`` the kernel matrix of the nodes.
    nodes : array of int of shape (m,)
        I.
    """

    def __init__(self, kernel: Kernel, X: Any, nodes: Any) -> None:
        self.kernel = kernel
        self.nodes = checked_nodes(nodes, X.shape[0], X)
        self._size = int(X.shape[0])
        stored = isinstance(kernel, Precomputed)
        self.components = rows_and_columns(X, self.nodes, self.nodes) if stored else X[self.nodes]

    def gram(self) -> GramOperator:
        """K_II."""
        return GramOperator(self.kernel, self.components)

    def against(self, X: Any) -> GramOperator:
        """K_XI of any points X; for ``Precomputed()`` of their kernel values with the whole sample."""
        if not isinstance(self.kernel, Precomputed):
            return GramOperator(self.kernel, X, self.components)
        if X.shape[1] != self._size:
            raise ValueError(
                f"A precomputed block must have a column for each of {self._size} training points, not {X.shape[1]}."
            )
        return GramOperator(self.kernel, rows_and_columns(X, None, self.nodes), self.components)


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
