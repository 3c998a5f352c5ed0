"""Matrices of kernels whose columns are expensive and come whole: one search or one solve on a graph a column.

A block of s rows and t columns costs the fewer of the two. A block of two sets of points is made at once and travels
as the points of a form, so that sums and multiples of the kernel, tensors and tiles work as for any other kernel. The
symmetric matrix of all points is not made before a product asks for it: until then its blocks are made on demand.
"""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import Any, Protocol, final

import numpy as np

from mercer.backends import forms
from mercer.backends.arrays import Array, like, to_numpy
from mercer.backends.chunks import KEPT_BYTES, panel_bytes, row_chunks
from mercer.backends.config import require_free_memory
from mercer.backends.entries import Side
from mercer.backends.matrix import KernelMatrix, kernel_matrix
from mercer.backends.rounding import EntryError, unit_of

_MIRRORED = 512  # rows of a block that is made symmetric


class Columns(Protocol):
    """What a kernel of columns can do with points that it has read."""

    def read(self, points: Array) -> Array:
        """What the kernel makes of points, a row each: their identity."""

    def block(self, rows: Array, cols: Array, out: Array) -> None:
        """Write k of all pairs of two sets of identities."""

    def own(self, identity: Array) -> Array:
        """k(x, x) of every identity."""

    def roundings(self, *identities: Array) -> EntryError:
        """How far an entry between such points can be from the kernel's value, in roundings; of any points if none."""

    @property
    def width(self) -> int:
        """Columns of an identity."""


def packed(columns: Columns, X: Array, Y: Array | None) -> tuple[Array, Array | None]:
    """The block k(X, Y) as points: rows of entries, a number and the identity; columns are a number and the identity.

    Y None means the symmetric matrix, symmetric to the last bit.
    """
    rows = columns.read(X)
    cols = rows if Y is None else columns.read(Y)
    n, m = rows.shape[0], cols.shape[0]
    require_free_memory(
        8.0 * n * (m + 1 + columns.width),
        f"The {n} × {m} matrix of a kernel that is made of whole columns takes",
        "pass landmarks, whose columns alone are made",
        MemoryError,
    )
    points = np.empty((n, m + 1 + columns.width))
    columns.block(rows, cols, points[:, :m])
    points[:, m + 1 :] = rows
    if Y is not None:
        points[:, m] = -1.0
        return points, np.column_stack([np.arange(m), cols])
    points[:, m] = np.arange(n)
    _mirror(points[:, :n])
    points[np.arange(n), np.arange(n)] = columns.own(rows)
    return points, None


def packed_form(columns: Columns, roundings: EntryError) -> forms.TileFunction:
    """The form of such points."""
    width = columns.width

    def tile(rows: Any, cols: Any) -> Any:
        at = to_numpy(cols[:, -1 - width]).astype(np.int64)
        first, last = (int(at[0]), int(at[-1])) if at.size else (0, -1)
        if at.size == last - first + 1 and np.array_equal(at, np.arange(first, last + 1)):
            return rows[:, first : last + 1]
        return rows[:, like(at, rows)]

    def diagonal(points: Any) -> Any:
        at = to_numpy(points[:, -1 - width]).astype(np.int64)
        if points.shape[1] > 1 + width and at.size and at[0] >= 0:  # rows of a symmetric matrix, which have it
            return points[like(np.arange(at.size), points), like(at, points)]
        return like(columns.own(to_numpy(points[:, -width:]).astype(np.float64)), points, dtype=points.dtype)

    return forms.TileFunction(tile, diagonal, roundings, cost=1.0)


def _mirror(block: Array) -> None:
    """Replace both of two entries that rounding made differ by their mean, in place."""
    for i in row_chunks(block.shape[0], _MIRRORED):
        for j in row_chunks(i.stop, _MIRRORED):
            mean = 0.5 * (block[i, j] + block[j, i].T)
            block[i, j], block[j, i] = mean, mean.T


@final
class ColumnMatrix(KernelMatrix):
    """The symmetric matrix of points, whose blocks are made on demand and which is stored for its first product.

    Parameters
    ----------
    columns : Columns
        What makes entries.
    X : array of shape (n, d)
        Points, an array or a tensor.
    dtype : dtype
        Of the entries.
    """

    def __init__(self, columns: Columns, X: Any, dtype: Any) -> None:
        self.shape, self.symmetric, self.n_features = (X.shape[0], X.shape[0]), True, X.shape[1]
        self._columns, self._points = columns, X
        self._identity = columns.read(to_numpy(X))
        self.dtype = like(np.zeros(0), X, dtype=dtype).dtype
        self._kept: tuple[Array, Array] = np.zeros(0, np.int64), np.zeros((X.shape[0], 0))
        self._lock = Lock()

    @cached_property
    def _whole(self) -> KernelMatrix:
        points, _ = packed(self._columns, to_numpy(self._points), None)
        form = packed_form(self._columns, self._columns.roundings(self._identity))
        return kernel_matrix(form, like(points, self._points), dtype=self.dtype)

    def multiply(self, v: Any, *, transpose: bool = False) -> Any:
        return self._whole.multiply(v, transpose=transpose)

    def row_sums(self, *, transpose: bool = False) -> Any:
        return self._whole.row_sums(transpose=transpose)

    def dense(self) -> Any:
        return self._whole.dense()

    def block(self, rows: Any, cols: Any) -> Any:
        if "_whole" in self.__dict__:
            return self._whole.block(rows, cols)
        i, j = (which if isinstance(which, slice) else np.asarray(to_numpy(which)) for which in (rows, cols))
        x, y = self._identity[i], self._identity[j]
        keep = y.shape[0] <= x.shape[0] and 8 * self.shape[0] * y.shape[0] <= panel_bytes(KEPT_BYTES)
        if keep and not isinstance(j, slice) and j.dtype.kind in "iu":
            return like(self._some_columns(j % max(self.shape[0], 1))[i], self._points, dtype=self.dtype)
        values = np.empty((x.shape[0], y.shape[0]))
        self._columns.block(x, y, values)
        return like(values, self._points, dtype=self.dtype)

    def _some_columns(self, numbers: Array) -> Array:
        """Whole columns by their numbers; the last ones stay, for a caller goes through their rows a few at a time."""
        with self._lock:
            kept, values = self._kept
            order = np.argsort(kept, kind="stable")
            at = np.minimum(np.searchsorted(kept, numbers, sorter=order), max(kept.size - 1, 0))
            if not kept.size or not np.array_equal(kept[order[at]], numbers):
                values = np.empty((self.shape[0], numbers.size))
                self._columns.block(self._identity, self._identity[numbers], values)
                self._kept = numbers.copy(), values
                return values
        return values[:, order[at]]

    def log_block(self, rows: Any, cols: Any) -> Any:
        return self._whole.log_block(rows, cols)

    def diagonal(self, side: Side = "rows") -> Any:
        return like(self._columns.own(self._identity), self._points, dtype=self.dtype)

    def scaled_product(self, v: Any) -> tuple[Any, Any]:
        return self._whole.scaled_product(v)

    @property
    def nonnegative(self) -> bool:
        return False

    @property
    def entry_error(self) -> EntryError:
        return self._columns.roundings(self._identity).in_units(unit_of(self.dtype))

    @property
    def summation_depth(self) -> int:
        return self.shape[1]

    def worth_storing(self, allowed: int) -> bool:
        return False

    def stored(self) -> KernelMatrix:
        return self._whole.stored()
