"""The kernel of locally linear embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.chunks import row_chunks, rows_within
from mercer.kernels.centre import distinct_points
from mercer.kernels.checks import positive_number
from mercer.kernels.column_kernel import ColumnKernel
from mercer.kernels.properties import Properties

if TYPE_CHECKING:
    from mercer.kernels.linked_points import LinkedPoints, Links

_BLOCK = 2**20  # coordinates of neighbours in hand


@final
class LocallyLinear(ColumnKernel):
    """The pseudo-inverse of M = (I - W)ᵀ(I - W), W what rebuilds points from neighbours: its kernel PCA is LLE.

    The weights W of a point on its nearest ones sum to one and minimise ‖x - Σⱼwⱼxⱼ‖² + r Σⱼwⱼ² (Roweis and Saul 2000).
    The components of the kernel are the eigenvectors of M of least eigenvalue, the constant left out (Ham et al. 2004),
    each √(1/λ) long. A new point has k(x, ·) = Σⱼwⱼ(x) k(xⱼ, ·), so it is embedded as it is rebuilt.

    Parameters
    ----------
    n_neighbors : int, default=10
        Training points from which each is rebuilt, itself not counted.
    reg : float, default=1e-3
        r as a part of the trace of the local Gram matrix, as in scikit-learn.

    Notes
    -----
    A column is a solve with a sparse factor of M, made once: n log n numbers for a surface, up to n² for data that fill
    many dimensions. A block of s × t entries takes the fewer of s and t solves. Bounds of rounding take the values of
    the solves for those of the kernel: M is nearly singular by its nature.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LocallyLinear
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> LocallyLinear(8).resolve(X)(X).shape
    (200, 200)
    """

    def __init__(self, n_neighbors: int = 10, reg: float = 1e-3) -> None:
        self.n_neighbors = n_neighbors
        self.reg = reg

    @property
    def properties(self) -> Properties:
        """Positive semi-definite; rows of the training matrix sum to zero."""
        return Properties(stationary=False, positive=False, universal=False, positive_definite=True)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        positive_number(self.reg, "reg", zero=True)

    def _learned(self, X: Any, sample_weight: Any) -> Any:
        from mercer.kernels.inverse_columns import InverseColumns  # which loads scikit-learn and numba
        from mercer.kernels.linked_points import LinkedPoints, require_one_class

        linked = LinkedPoints(distinct_points(X, sample_weight).points, self.n_neighbors, "euclidean")
        residual = -linked.directed(_rebuilding(linked.positions, linked.positions, linked.numbers, self.reg))
        require_one_class(residual, self)
        residual.setdiag(1.0)
        return InverseColumns(linked, residual.T @ residual, Rebuilding(linked, float(self.reg)), "(I - W)ᵀ(I - W)")


@final
@dataclass(frozen=True, eq=False)
class Rebuilding:
    """Weights on the nearest training points that rebuild a point from them, regularised, and sum to one."""

    linked: LinkedPoints
    reg: float

    def __call__(self, points: Array, links: Links) -> Array:
        """The weights of the links of some points."""
        return _rebuilding(points, self.linked.positions, links.numbers, self.reg)


def _rebuilding(points: Array, positions: Array, numbers: Array, reg: float) -> Array:
    """Weights that rebuild points from the positions of these numbers, and sum to one; a few points at a time."""
    weights = np.empty(numbers.shape)
    k = numbers.shape[1]
    for part in row_chunks(points.shape[0], rows_within(_BLOCK, k * points.shape[1])):
        towards = positions[numbers[part]].astype(np.float64) - points[part][:, None]
        powers = np.frexp(np.abs(towards).max(axis=(1, 2), initial=0.0, keepdims=True))[1]
        towards = np.ldexp(towards, -powers)  # weights have no unit: in this one, squares are numbers
        gram = towards @ towards.swapaxes(1, 2)
        trace = np.trace(gram, axis1=1, axis2=2)
        gram[:, np.arange(k), np.arange(k)] += np.where(trace > 0, reg * trace, reg or 1.0)[:, None]
        try:
            solved = np.linalg.solve(gram, np.ones((gram.shape[0], k, 1)))[:, :, 0]
        except np.linalg.LinAlgError:
            raise ValueError(f"reg={reg} leaves the weights of neighbours undetermined: give reg=1e-3.") from None
        weights[part] = solved / solved.sum(axis=1, keepdims=True)
    return weights
