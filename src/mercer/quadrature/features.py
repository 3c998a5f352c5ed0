"""The Nyström features of the nodes of a sparse measure."""

from __future__ import annotations

from typing import Any, final

from mercer.backends.arrays import Array, as_double
from mercer.backends.rounding import unit_of
from mercer.backends.threads import single_threaded_blas
from mercer.kernels import Kernel
from mercer.linalg.eigen import positive_eigenpairs
from mercer.operators.sections import KernelSections


@final
class NystromFeatures:
    """Features whose inner products complete the kernel from the nodes: ⟨f(x), f(y)⟩ = k(x, I) K_II⁺ k(I, y).

    They are f(x) = k(x, I) K_II^(-1/2), one for each node, as those of :class:`sklearn.kernel_approximation.Nystroem`
    with the nodes for components. On the nodes the inner products are those of the kernel.

    Parameters
    ----------
    kernel : Kernel
        A resolved kernel.
    X : array of shape (N, d)
        The sample. For ``Precomputed()`` its kernel matrix.
    nodes : array of int of shape (m,)
        I. The sample itself is not kept.

    Attributes
    ----------
    components : array of shape (m, d)
        The points of the nodes; for ``Precomputed()`` the kernel matrix of the nodes.
    normalization : array of shape (m, m)
        K_II^(-1/2), symmetric; eigenvalues of K_II at rounding level are dropped rather than inverted.
    rank : int
        How many are kept.

    Notes
    -----
    Cost: m³ flops when a feature is first asked for, then m kernel evaluations and 2m² flops a point.
    """

    components: Any
    rank: int
    normalization: Array
    _sections: KernelSections

    def __init__(self, kernel: Kernel, X: Any, nodes: Any) -> None:
        self._sections = KernelSections(kernel, X, nodes)
        self.components = self._sections.components
        if not bool((self._sections.gram().diagonal() > 0).any()):
            raise ValueError("The kernel vanishes on every node: choose others.")

    def __getattr__(self, name: str) -> Any:
        """The root and its rank, made when one of them is first asked for: who takes the nodes alone needs neither."""
        if name not in ("normalization", "rank"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        gram = self._sections.gram()
        matrix = as_double(gram.to_dense())
        with single_threaded_blas():
            values, vectors = positive_eigenpairs(matrix, 2 * unit_of(gram.dtype))
            self.normalization = (vectors / values**0.5) @ vectors.T
        self.rank = int(values.shape[0])
        return self.__dict__[name]

    def transform(self, X: Any) -> Array:
        """The features of points X, n × m; for ``Precomputed()`` from their kernel values with the whole sample."""
        return self._sections.against(X) @ self.normalization
