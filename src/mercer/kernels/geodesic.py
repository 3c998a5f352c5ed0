"""The kernel of distances along the data: lengths of shortest paths between neighbours."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends.arrays import like
from mercer.kernels.centre import centre_rows, check_n_center, distinct_points
from mercer.kernels.column_kernel import ColumnKernel, require_switch
from mercer.kernels.properties import Properties


@final
class Geodesic(ColumnKernel):
    """-½d(x, y)², centred, d the length of the shortest path on the neighbour graph: its kernel PCA is Isomap.

    The survey's (52). Training points are joined to their nearest ones by edges as long as their distance; a new point
    is joined to its own nearest training points. The kernel has negative eigenvalues but where the data are a flat and
    convex sheet; ``KernelPCA`` tells how much.

    Parameters
    ----------
    n_neighbors : int, default=10
        Training points to which each point is joined, itself not counted.
    metric : str, default="euclidean"
        A metric of scikit-learn's that needs no parameters: the length of an edge.
    connect : bool, default=False
        Join the parts of a graph that falls apart by their shortest edges; otherwise such a graph is refused.
    n_center : int or None, default=200
        The most training points that the kernel is centred on, as in :class:`mercer.FromDistance`.

    Notes
    -----
    A block of s rows and t columns takes the fewer of the two searches by Dijkstra's method, of n log n operations each
    for n training points, and memory s × t: with m landmarks, m searches and m × n numbers. The matrix of all n points
    with themselves is made when a product with it is asked for. scikit-learn's ``Isomap`` makes it always.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Geodesic
    >>> corner = np.array([[0.0, 2.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    >>> Geodesic(n_neighbors=2).resolve(corner).distances(corner[:1], corner)
    array([[0., 1., 2., 3., 4.]])
    """

    def __init__(
        self, n_neighbors: int = 10, metric: str = "euclidean", connect: bool = False, n_center: int | None = 200
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.connect = connect
        self.n_center = n_center

    @property
    def properties(self) -> Properties:
        """Lengths of paths are no distances of a Hilbert space: four points on a circle show it."""
        return Properties(stationary=False, positive=False, positive_definite=False)

    def distances(self, X: Any, Y: Any = None) -> Any:
        """Lengths of the shortest paths between points, of shape (n, m); Y None means X."""
        sample, sides = self._known, self._checked(X, Y)
        x, y = self._require_features(sides)
        rows = sample.read(x)
        cols = rows if y is None else sample.read(y)
        out = np.empty((rows.shape[0], cols.shape[0]))
        sample.lengths(rows, cols, out)
        return like(out, sides[0])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_n_center(self.n_center)
        require_switch(self.connect, "connect")

    def _learned(self, X: Any, sample_weight: Any) -> Any:
        from mercer.kernels.geodesic_columns import GeodesicColumns  # which loads scikit-learn and numba
        from mercer.kernels.linked_points import LinkedPoints, one_part

        points, weights = distinct_points(X, sample_weight)
        linked = LinkedPoints(points, self.n_neighbors, self.metric)
        directed = linked.directed(linked.lengths)
        graph = one_part(directed.maximum(directed.T.tocsr()).tocsr(), linked, self, self.connect)
        graph.sort_indices()
        return GeodesicColumns(linked, graph, centre_rows(weights, self.n_center))
