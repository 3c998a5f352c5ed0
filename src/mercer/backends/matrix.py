"""What a kernel matrix can do, wherever it lies: the seam between the operators and the devices.

An operator asks for products, row sums, blocks and the diagonal of a matrix that it never sees; a folder beside this
file gives them on one kind of device (:mod:`mercer.backends.cpu` for NumPy arrays and SciPy's sparse matrices,
:mod:`mercer.backends.torch` for tensors, :mod:`mercer.backends.dask` for large matrices where a client is given).
:func:`kernel_matrix` chooses by the array that comes in, and by the configuration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from mercer.backends.arrays import as_double, is_source, is_tensor, namespace
from mercer.backends.chunks import panel_rows, row_chunks
from mercer.backends.config import get_config
from mercer.backends.entries import Side
from mercer.backends.forms import Form
from mercer.backends.rounding import EntryError

_IN_CACHE = 32 * 2**20  # a stored matrix of this size is read from cache, faster than any kernel is evaluated
_STORE_FROM_COST = 40.0  # beyond, evaluating an entry costs more than reading it from memory


class KernelMatrix(ABC):
    """The n × m matrix k(xᵢ, yⱼ) of a form on given points.

    Attributes
    ----------
    shape : tuple of int
        (n, m).
    dtype : dtype
        Of its entries, in the library of the points.
    symmetric : bool
        Whether it is the matrix of one set of points with itself.
    n_features : int
        Coordinates of a point.
    """

    shape: tuple[int, int]
    dtype: Any
    symmetric: bool
    n_features: int

    @abstractmethod
    def multiply(self, v: Any, *, transpose: bool = False) -> Any:
        """K v (or Kᵀ v) for a block v of columns."""

    @abstractmethod
    def row_sums(self, *, transpose: bool = False) -> Any:
        """K 1 (or Kᵀ 1)."""

    @abstractmethod
    def dense(self) -> Any:
        """K itself; symmetric to the last bit where it is symmetric."""

    @abstractmethod
    def block(self, rows: Any, cols: Any) -> Any:
        """Some rows and columns of K, given by slices or index arrays."""

    @abstractmethod
    def log_block(self, rows: Any, cols: Any) -> Any:
        """Logarithms of some rows and columns, finite where k underflows; minus infinity where k is not positive."""

    @abstractmethod
    def diagonal(self, side: Side = "rows") -> Any:
        """k(x, x) of every point of one side."""

    @abstractmethod
    def scaled_product(self, v: Any) -> tuple[Any, Any]:
        """K v = exp(s) P, row by row, in double precision: the logarithm s of the scale and the scaled product P.

        With s the largest log k(xᵢ, yⱼ) of a row, P is of the size of v however far the point is from all others.
        Where the sign of k is not known, s is zero. A row without a positive entry has s = 0 and P = 0.
        """

    def absolute_product(self, v: Any) -> Any:
        """Σⱼ ``abs(k(xᵢ, yⱼ))`` vⱼ for one vector, in double precision: entries a few rows at a time."""
        column = as_double(v)
        chunks = row_chunks(self.shape[0], panel_rows(self.shape[1]))
        parts = [as_double(abs(self.block(rows, slice(None)))) @ column for rows in chunks]
        return namespace(column).concat([column[:0], *parts])

    @property
    @abstractmethod
    def nonnegative(self) -> bool:
        """Whether k ≥ 0 is known, so that logarithms tell all of it."""

    @property
    @abstractmethod
    def entry_error(self) -> EntryError:
        """How far an entry, the diagonal's too, can be from the kernel's value at the points given."""

    @property
    @abstractmethod
    def summation_depth(self) -> int:
        """The most roundings that a term of a product goes through."""

    def entrywise(self, function: Callable[[Any, Any, Any], Any]) -> KernelMatrix | None:
        """The matrix of f(kᵢⱼ, i, j), a function of arrays with f(0, i, j) = 0, where most entries are zero; else None.

        A map that changes every entry can then multiply by entries that are stored, and has to make them otherwise.
        """
        return None

    @property
    def row_entries(self) -> float:
        """Entries of a row that a product meets, on average: all of them unless most are zero and not stored."""
        return float(self.shape[1])

    @property
    def is_stored(self) -> bool:
        """Whether the entries lie in memory."""
        return False

    @abstractmethod
    def worth_storing(self, allowed: int) -> bool:
        """Whether reading the entries from memory beats making them again, and they take no more bytes than allowed."""

    @abstractmethod
    def stored(self) -> KernelMatrix:
        """The same matrix with its entries in memory; itself if they are there."""


class EntriesMatrix(KernelMatrix):
    """The matrix of a form, known by what makes its entries; :meth:`multiply` and its like are the device's.

    Parameters
    ----------
    entries : FormEntries
        The form on its points.
    """

    def __init__(self, entries: Any) -> None:
        self._entries = entries
        self.shape, self.dtype, self.symmetric = entries.shape, entries.dtype, entries.symmetric
        self.n_features = entries.n_features

    def row_sums(self, *, transpose: bool = False) -> Any:
        ones = self._entries.full((self.shape[0 if transpose else 1], 1), 1.0)
        return self.multiply(ones, transpose=transpose)[:, 0]

    def dense(self) -> Any:
        return self.block(slice(None), slice(None))

    def diagonal(self, side: Side = "rows") -> Any:
        return self._entries.diagonal(side)

    @property
    def nonnegative(self) -> bool:
        return bool(self._entries.nonnegative)

    @property
    def entry_error(self) -> EntryError:
        error: EntryError = self._entries.entry_error
        return error

    def worth_storing(self, allowed: int) -> bool:
        if self.is_stored:
            return True
        size = self.shape[0] * self.shape[1] * self.dtype.itemsize
        return size <= allowed and (size <= _IN_CACHE or self._entries.cost >= _STORE_FROM_COST)


def kernel_matrix(form: Form, rows: Any, cols: Any = None, *, dtype: Any = None) -> KernelMatrix:
    """The matrix of a form on points; ``cols=None`` means the symmetric matrix of ``rows`` with itself.

    Entries have the dtype of the points, or a wider one that is asked for: points are then widened a few at a time.
    """
    if is_source(rows) or is_source(cols):
        from mercer.backends.cpu.streamed import StreamedMatrix

        return StreamedMatrix(form, rows, cols, dtype=dtype)
    if is_tensor(rows):
        from mercer.backends.torch import torch_matrix

        return torch_matrix(form, rows, cols, dtype=dtype)
    cluster = get_config().cluster
    if cluster is not None:
        from mercer.backends.dask.matrix import ClusterMatrix, belongs_on_cluster

        if belongs_on_cluster(form, rows, cols):
            return ClusterMatrix(cluster, form, rows, cols, dtype=dtype)
    if get_config().device != "cpu":
        from mercer.backends.moved import moved_matrix

        moved = moved_matrix(form, rows, cols, dtype)
        if moved is not None:
            return moved
    from mercer.backends.cpu.matrix import cpu_matrix

    return cpu_matrix(form, rows, cols, dtype=dtype)
