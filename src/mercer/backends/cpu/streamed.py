"""Kernel matrices whose points come from a source, block by block: a file that is larger than the memory allowed.

A block of rows is read, meets all columns, and is forgotten. Where the columns come from a source too, they are read
once for every block of rows, which is therefore as large as the memory limit lets it be. Sums over blocks are taken in
double precision and in the order of the rows; sizes of blocks depend on the memory limit alone.

Cost: the kernel evaluations of the same product in memory (twice those of a symmetric one, of which both halves are
made here), and n·itemsize/block passes over the columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property, reduce
from typing import Any, final

import numpy as np

from mercer.backends import forms
from mercer.backends.arrays import Array, is_source
from mercer.backends.chunks import panel_rows, row_chunks, source_rows
from mercer.backends.cpu.tasks import add_scaled_product
from mercer.backends.entries import Side
from mercer.backends.matrix import KernelMatrix, kernel_matrix
from mercer.backends.pairings import of_any_block
from mercer.backends.rounding import EntryError

_OUTER_BYTES, _OUTER_SHARE = 2**30, 1 / 5  # of the rows that stay while all columns go by
_CENTRES = 4.1  # times the error, about a centre twice as far
_COPIES = 3  # of a block in memory: as read, as checked, as prepared for products


@final
class StreamedMatrix(KernelMatrix):
    """A form on points of which one side, or both, is a :class:`mercer.backends.row_source.RowSource`.

    Parameters
    ----------
    form : Form
        Of points; rows of a matrix that is given are none.
    rows, cols : source or array
        ``cols=None`` means the symmetric matrix of the rows.
    dtype : dtype, optional
        Of the entries.
    """

    def __init__(self, form: forms.Form, rows: Any, cols: Any = None, *, dtype: Any = None) -> None:
        self._form, self._rows, self._cols = form, rows, rows if cols is None else cols
        self.symmetric = cols is None
        self.shape = (int(rows.shape[0]), int(self._cols.shape[0]))
        self.n_features = int(rows.shape[1])
        self.dtype = np.dtype(np.result_type(rows.dtype, self._cols.dtype) if dtype is None else dtype)

    def multiply(self, v: Any, *, transpose: bool = False) -> Array:
        v = np.asarray(v, self.dtype)
        out = np.zeros((self.shape[1 if transpose else 0], v.shape[1]))
        for i, j, part in self._parts():
            if transpose and not self.symmetric:
                out[j] += part.multiply(np.ascontiguousarray(v[i]), transpose=True)
            else:
                out[i] += part.multiply(np.ascontiguousarray(v[j]))
        return out.astype(self.dtype, copy=False)

    def row_sums(self, *, transpose: bool = False) -> Array:
        return self.multiply(np.ones((self.shape[0 if transpose else 1], 1)), transpose=transpose)[:, 0]

    def dense(self) -> Array:
        """K by blocks; both halves of a symmetric one from the same entries."""
        out = np.empty(self.shape, self.dtype)
        for i, j, part in self._parts():
            if not self.symmetric or i.start <= j.start:
                out[i, j] = part.dense()
                if self.symmetric and i != j:
                    out[j, i] = out[i, j].T
        return out

    def block(self, rows: Any, cols: Any) -> Array:
        return self._block(rows, cols, log=False)

    def log_block(self, rows: Any, cols: Any) -> Array:
        return self._block(rows, cols, log=True)

    def _block(self, rows: Any, cols: Any, *, log: bool) -> Array:
        """Entries of a choice, some rows at a time, with the exact diagonal where a symmetric matrix is crossed."""
        i, j = (np.arange(n)[which] for n, which in zip(self.shape, (rows, cols), strict=True))
        columns, everything = _taken(self._cols, j), slice(None)
        out = np.empty((i.size, j.size), self.dtype)
        for run in row_chunks(i.size, self._inner_height(j.size)):
            part = kernel_matrix(self._form, _taken(self._rows, i[run]), columns, dtype=self.dtype)
            out[run] = part.log_block(everything, everything) if log else part.block(everything, everything)
        if self.symmetric:
            _, at, crossed = np.intersect1d(i, j, return_indices=True)
            own = kernel_matrix(self._form, columns[crossed], dtype=self.dtype).diagonal()
            if log:  # where k(x, x) underflows, the block knows its logarithm
                at, crossed, own = at[own > 0], crossed[own > 0], np.log(own[own > 0])
            out[at, crossed] = own
        return out

    def diagonal(self, side: Side = "rows") -> Array:
        points = self._rows if side == "rows" else self._cols
        out = np.empty(int(points.shape[0]), self.dtype)
        for part, block in _blocks(points, self._inner_height()):
            out[part] = kernel_matrix(self._form, block, dtype=self.dtype).diagonal()
        return out

    def scaled_product(self, v: Any) -> tuple[Array, Array]:
        """K v = exp(s) P; where columns come by blocks, products are brought to the larger of two scales."""
        v = np.asarray(v, np.float64)
        scale, product = np.full(self.shape[0], -np.inf), np.zeros((self.shape[0], v.shape[1]))
        for i, j, part in self._parts():
            add_scaled_product(scale[i], product[i], *part.scaled_product(np.ascontiguousarray(v[j])))
        return np.where(scale > -np.inf, scale, 0.0), product

    @cached_property
    def nonnegative(self) -> bool:
        return self._sample.nonnegative

    @cached_property
    def entry_error(self) -> EntryError:
        """The largest of all pairs of blocks. Cost: a pass.

        Inner products lose digits by the square of the distance from a centre. Entries that are asked for in other
        blocks have another centre among the points, twice as far at most, or are made by inner products where these
        are differences. In single precision other blocks may have another arithmetic inside, so that nothing is stated.
        """
        if self.dtype != np.float64:
            return EntryError(math.inf)
        with of_any_block():
            worst = reduce(EntryError.worse, (part.entry_error for _, _, part in self._parts()))
        return EntryError(_CENTRES * worst.relative, _CENTRES * worst.scaled, _CENTRES * worst.absolute)

    @property
    def summation_depth(self) -> int:
        """At most the entries of a block; then one for each block, and a last rounding to the dtype."""
        lengths = [(n, min(n, self._tall) if is_source(points) else n) for points, n in self._points_and_numbers]
        return min(max(self.shape), max(each for _, each in lengths) + max(-(-n // each) for n, each in lengths)) + 1

    @property
    def _points_and_numbers(self) -> tuple[tuple[Any, int], tuple[Any, int]]:
        return (self._rows, self.shape[0]), (self._cols, self.shape[1])

    def worth_storing(self, allowed: int) -> bool:
        return False

    def stored(self) -> KernelMatrix:
        return self

    @cached_property
    def _sample(self) -> KernelMatrix:
        """The matrix of a few points, which knows what does not depend on them."""
        rows, cols = (side[slice(0, 2)] for side in (self._rows, self._cols))
        return kernel_matrix(self._form, rows, None if self.symmetric else cols, dtype=self.dtype)

    def _parts(self) -> Iterator[tuple[slice, slice, KernelMatrix]]:
        """The matrix by pairs of blocks, row by row; blocks on the diagonal of a symmetric one are symmetric."""
        for i, rows in _blocks(self._rows, self._tall):
            for j, cols in _blocks(self._cols, self._tall):
                own = self.symmetric and i == j
                yield i, j, kernel_matrix(self._form, rows, None if own else cols, dtype=self.dtype)

    @property
    def _tall(self) -> int:
        """Rows of a block: many where the columns are read again for each of them."""
        if not (is_source(self._rows) and is_source(self._cols)):
            return self._inner_height()
        width = 2 * _COPIES * self.n_features
        return panel_rows(width, self.dtype.itemsize, most=_OUTER_BYTES, share=_OUTER_SHARE)

    def _inner_height(self, width: int = 1) -> int:
        return source_rows(_COPIES * self.n_features + width, self.dtype.itemsize)


def _taken(points: Any, numbers: Array) -> Array:
    """Some rows of a source or of an array; a run of them as a slice."""
    if numbers.size and (np.diff(numbers) == 1).all():
        return points[slice(int(numbers[0]), int(numbers[-1]) + 1)]
    return points[numbers]


def _blocks(points: Any, most: int) -> Iterator[tuple[slice, Array]]:
    """All points in their order; an array that is in memory is one block."""
    if is_source(points):
        yield from points.blocks(most)
    else:
        yield slice(0, int(points.shape[0])), points
