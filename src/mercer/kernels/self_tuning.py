"""The Gaussian kernel of a neighbour graph whose scale follows the density of the training points."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends import forms
from mercer.backends.arrays import distinct_rows, is_tensor, like, namespace, to_numpy
from mercer.backends.matrix import KernelMatrix, kernel_matrix
from mercer.backends.rounding import UNIT, EntryError
from mercer.kernels.base import Kernel
from mercer.kernels.checks import as_points, whole_number
from mercer.kernels.neighbour_sample import Sample
from mercer.kernels.neighbours import neighbour_tables
from mercer.kernels.properties import Properties


@final
class SelfTuning(Kernel):
    """exp(-d(x, y)² / (s(x) s(y))) between neighbours, zero elsewhere: a scale of its own for every point.

    s(x) is the distance from x to its 7th neighbour in the training set, so that the kernel is as wide where points are
    sparse as it is narrow where they are dense (Zelnik-Manor and Perona 2004).
    """

    def __init__(
        self,
        n_neighbors: int | None = 15,
        scale_neighbor: int = 7,
        metric: str = "euclidean",
        algorithm: Any = "auto",
    ) -> None:
        self.n_neighbors = n_neighbors
        self.scale_neighbor = scale_neighbor
        self.metric = metric
        self.algorithm = algorithm
        self._sample: Sample | None = None

    @property
    def is_resolved(self) -> bool:
        """Whether the training points are known."""
        return self._sample is not None

    @property
    def is_local(self) -> bool:
        """Whether the kernel is a neighbour graph."""
        return self.n_neighbors is not None

    def resolve(self, X: Any, sample_weight: Any = None) -> SelfTuning:
        """Return the kernel of these training points; one that has its training points stays as it is."""
        if self.is_resolved:
            return self
        points = to_numpy(as_points(X))
        if sample_weight is not None:
            points = points[to_numpy(sample_weight) > 0]
        first, _ = distinct_rows(points)
        positions = points if first.size == points.shape[0] else np.ascontiguousarray(points[first])
        most = positions.shape[0] - 1
        orders = min(whole_number(self.scale_neighbor, "scale_neighbor", 1), most), min(self.n_neighbors, most)
        tables = neighbour_tables(positions, max(orders), self.metric, self.algorithm)
        fixed = type(self)(**self._own_params())
        fixed._sample = Sample.of(positions, self.metric, orders, tables)
        return fixed

    def __sklearn_clone__(self) -> SelfTuning:
        """A copy that has the same training points, if any."""
        copy = type(self)(**self._own_params())
        copy._sample = self._sample
        return copy

    def _form(self, n_features: int) -> forms.Form:
        return forms.Stored(new_diagonal=1.0, error=_entry_error(n_features), logarithms=True)

    def matrix(self, X: Any, Y: Any = None, *, dtype: Any = None) -> KernelMatrix:
        """The sparse matrix of points X (and Y) where they lie."""
        form = self.form(X.shape[1])
        wanted = (X.dtype if Y is None else namespace(X).result_type(X.dtype, Y.dtype)) if dtype is None else dtype
        logs = self._sample.log_affinities(to_numpy(X), None if Y is None else to_numpy(Y))
        cols = None if Y is None else _zero_diagonal(Y.shape[0])
        if is_tensor(X):
            logs, cols = _tensor(logs, X), None if cols is None else _tensor(cols, X)
        return kernel_matrix(form, logs, cols, dtype=wanted)

    @property
    def properties(self) -> Properties:
        """Bounded and not negative; a matrix of it can have negative eigenvalues."""
        return Properties(bounded=True, positive=True, stationary=False)

    def __repr__(self) -> str:
        """Return the constructor call, and what tells one training set from another."""
        call = super().__repr__()
        if self._sample is None:
            return call
        return f"{call} on {self._sample.positions.shape[0]} points [{self._sample.digest}]"


def _entry_error(n_features: int) -> EntryError:
    return EntryError(40 * (3 * n_features + 20) * UNIT)


def _zero_diagonal(n: int) -> Any:
    from scipy.sparse import csr_array

    return csr_array((np.zeros(n), np.arange(n), np.arange(n + 1)), shape=(n, n))


def _tensor(matrix: Any, reference: Any) -> Any:
    import torch

    parts = (like(part, reference) for part in (matrix.indptr, matrix.indices, matrix.data))
    return torch.sparse_csr_tensor(*parts, matrix.shape, check_invariants=False)
