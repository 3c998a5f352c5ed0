"""The kernel of Laplacian eigenmaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.kernels.centre import distinct_points
from mercer.kernels.column_kernel import ColumnKernel, require_switch
from mercer.kernels.properties import Properties

if TYPE_CHECKING:
    from mercer.kernels.linked_points import Links


@final
class GraphLaplacian(ColumnKernel):
    """The pseudo-inverse of the Laplacian D - A of the neighbour graph: its kernel PCA is Laplacian eigenmaps.

    Aᵢⱼ is one where two points are among the nearest of each other, one half where one is among those of the other and
    not the reverse. The components are the eigenvectors of D - A of least eigenvalue, the constant left out (Ham et al.
    2004), each √(1/λ) long; with ``degrees_`` as ``sample_weight`` they are those of (D - A) u = λ D u, scikit-learn's
    ``SpectralEmbedding``. k(x, x) + k(y, y) - 2k(x, y) goes as the time a random walk takes from x to y and back. A new
    point has the mean of the values of its nearest training points, as a harmonic function has.

    Parameters
    ----------
    n_neighbors : int, default=10
        Training points to which each is linked, itself not counted: scikit-learn counts it, so theirs is one more.
    metric : str, default="euclidean"
        A metric of scikit-learn's that needs no parameters, by which neighbours are found.
    connect : bool, default=False
        Join the parts of a graph that falls apart by their shortest edges; otherwise such a graph is refused.

    Notes
    -----
    A column is a solve with a sparse factor of D - A, made once: n log n numbers for a surface, up to n² for data that
    fill many dimensions. A block of s × t entries takes the fewer of s and t solves. Bounds of rounding take the values
    of the solves for those of the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GraphLaplacian
    >>> path = np.array([[0.0], [1.0], [2.1]])
    >>> GraphLaplacian(n_neighbors=1).resolve(path)(path).round(2) + 0.0
    array([[ 0.67,  0.  , -0.67],
           [ 0.  ,  0.33, -0.33],
           [-0.67, -0.33,  1.  ]])
    """

    def __init__(self, n_neighbors: int = 10, metric: str = "euclidean", connect: bool = False) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.connect = connect

    @property
    def properties(self) -> Properties:
        """Positive semi-definite and bounded; rows of the training matrix sum to zero."""
        return Properties(bounded=True, stationary=False, positive=False, universal=False, positive_definite=True)

    @property
    def degrees_(self) -> Array:
        """Σⱼ Aᵢⱼ of the distinct training points, in the order in which they first occur."""
        degrees: Array = self._known.matrix.diagonal()
        return degrees

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_switch(self.connect, "connect")

    def _learned(self, X: Any, sample_weight: Any) -> Any:
        from mercer.kernels.inverse_columns import InverseColumns  # which loads scikit-learn and numba
        from mercer.kernels.linked_points import LinkedPoints, one_part

        linked = LinkedPoints(distinct_points(X, sample_weight).points, self.n_neighbors, self.metric)
        lengths = linked.directed(linked.lengths)
        joined = one_part(lengths.maximum(lengths.T.tocsr()).tocsr(), linked, self, self.connect)
        halves = linked.directed(np.full(linked.numbers.shape, 0.5))
        joined.data[:] = 0.5  # an edge that joins parts counts as one found from one side
        affinities = (halves + halves.T).maximum(joined).tocsr()
        laplacian = -affinities
        laplacian.setdiag(affinities.sum(axis=1))
        return InverseColumns(linked, laplacian, MeanOfLinks(), "The Laplacian of the graph")


@final
@dataclass(frozen=True)
class MeanOfLinks:
    """Equal weights on the nearest training points."""

    def __call__(self, points: Array, links: Links) -> Array:
        """The weights of the links of some points."""
        return np.full(links.numbers.shape, 1.0 / links.numbers.shape[1])
