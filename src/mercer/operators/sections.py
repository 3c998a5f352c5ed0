"""The kernel sections of some points of a sample: what Nyström features and approximate eigenfunctions are made of."""

from __future__ import annotations

from typing import Any, final

from mercer.backends.arrays import Array, taken
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.checks import checked_nodes
from mercer.operators.gram import GramOperator


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

    kernel: Kernel
    nodes: Array
    components: Any
    _size: int

    def __init__(self, kernel: Kernel, X: Any, nodes: Any) -> None:
        self.kernel = kernel
        self.nodes = checked_nodes(nodes, X.shape[0], X)
        self._size = int(X.shape[0])
        stored = isinstance(kernel, Precomputed)
        self.components = taken(taken(X, self.nodes), self.nodes, axis=1) if stored else X[self.nodes]

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
        return GramOperator(self.kernel, taken(X, self.nodes, axis=1), self.components)
