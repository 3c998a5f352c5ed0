"""Kernel matrices of which most entries are zero: products, blocks and algebra that touch the others alone.

The points of a sparse matrix are its rows, so every form on them is made of the same stored entries, and every
operation of the algebra keeps a zero a zero: sums, products, multiples, powers and normalisations change the entries
and leave their places. A product runs over runs of rows without the interpreter's lock, each row summed in double
precision from its first entry to its last: the same bits for any number of threads.

Cost: a product takes 2 r operations an entry stored, a block the entries stored of its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, final

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from mercer.backends import forms
from mercer.backends.arrays import Array
from mercer.backends.cpu.pairings import compile_form
from mercer.backends.cpu.profiles import log_in_place
from mercer.backends.matrix import EntriesMatrix, KernelMatrix
from mercer.backends.sparse_values import sparse_values
from mercer.backends.threads import run_chunks

_RUN = 2**18  # terms that a thread adds at a time: half a millisecond without the interpreter's lock
_MOST_RUNS = 256
_FEW = 4  # columns


@final
class SparseMatrix(EntriesMatrix):
    """A form on the rows of a sparse matrix, as a sparse matrix of its own.

    Parameters
    ----------
    form : Form
        ``Stored``, or what the algebra makes of it.
    rows : sparse CSR array of shape (n, m)
        The entries given, sorted and without duplicates.
    cols : sparse CSR array of shape (m, m) or None
        The matrix of the training points where ``rows`` are those of new points.
    dtype : dtype, optional
        Of the entries, that of ``rows`` if left out.
    """

    def __init__(self, form: forms.Form, rows: Any, cols: Any = None, *, dtype: Any = None) -> None:
        super().__init__(compile_form(form, rows, cols, dtype=dtype))
        self._cols = _with(cols, np.exp(cols.data)) if cols is not None and form.of_logarithms else cols
        self._logs = rows.data if isinstance(form, forms.Stored) and form.logarithms else None
        values = np.exp(rows.data) if form.of_logarithms else rows.data
        given = csr_array((values.astype(self.dtype, copy=False), rows.indices, rows.indptr), shape=rows.shape)

        def diagonal(inner: forms.Form, side: Any) -> Array:
            return compile_form(inner, rows, cols, dtype=dtype).diagonal(side)

        values = sparse_values(form, given.data, _rows_of(given), given.indices, diagonal, symmetric=self.symmetric)
        self.entries = _with(given, values)

    def multiply(self, v: Any, *, transpose: bool = False) -> Array:
        entries = self._transposed if transpose and not self.symmetric else self.entries
        return _product(entries, np.ascontiguousarray(v, dtype=self.dtype), self.dtype)

    def absolute_product(self, v: Any) -> Array:
        """Σⱼ ``abs(k(xᵢ, yⱼ))`` vⱼ for one vector, in double precision."""
        column = np.ascontiguousarray(v, np.float64)[:, None]
        return _product(_with(self.entries, np.abs(self.entries.data)), column, np.float64)[:, 0]

    def dense(self) -> Array:
        return np.asarray(self.entries.toarray())

    def block(self, rows: Any, cols: Any) -> Array:
        i, j = (np.arange(n)[which] for n, which in zip(self.shape, (rows, cols), strict=True))
        if self.symmetric and j.size < i.size:  # a few columns are a few rows
            return np.ascontiguousarray(_part(self.entries, j, i).T)
        return _part(self.entries, i, j)

    def log_block(self, rows: Any, cols: Any) -> Array:
        if self._logs is not None:
            i, j = (np.arange(n)[which] for n, which in zip(self.shape, (rows, cols), strict=True))
            return _log_part(_with(self.entries, self._logs), i, j).astype(self.dtype)
        values = self.block(rows, cols)
        log_in_place(values)
        return values

    def scaled_product(self, v: Any) -> tuple[Array, Array]:
        v = np.ascontiguousarray(v, dtype=np.float64)
        data, top = self.entries.data.astype(np.float64, copy=False), np.ones(self.shape[0])
        if self._logs is not None:
            top = _largest_of_rows(_with(self.entries, self._logs), -np.inf)
            top = np.where(top > -np.inf, top, 0.0)
            data = np.exp(self._logs - np.repeat(top, np.diff(self.entries.indptr)))
            return top, _product(_with(self.entries, data), v, np.float64)
        if self.nonnegative:
            largest = _largest_of_rows(self.entries)
            top = np.where(largest > 0, largest, 1.0)
            data = data / np.repeat(top, np.diff(self.entries.indptr))
        return np.log(top), _product(_with(self.entries, data), v, np.float64)

    @cached_property
    def summation_depth(self) -> int:
        """The most entries of a row (and of a column, where these are other ones), and the last rounding."""
        most = int(np.diff(self.entries.indptr).max(initial=0))
        if not self.symmetric:
            most = max(most, int(np.bincount(self.entries.indices, minlength=1).max()))
        return most + 1

    def entrywise(self, function: Callable[[Any, Any, Any], Any]) -> KernelMatrix:
        data = function(self.entries.data, _rows_of(self.entries), self.entries.indices)
        return SparseMatrix(forms.Stored(), _with(self.entries, data), self._cols, dtype=self.dtype)

    @property
    def row_entries(self) -> float:
        return self.entries.nnz / max(1, self.shape[0])

    @property
    def is_stored(self) -> bool:
        return True

    def worth_storing(self, allowed: int) -> bool:
        """It is stored; adding its zeros never pays."""
        return False

    def stored(self) -> KernelMatrix:
        return self

    @cached_property
    def _transposed(self) -> Any:
        return self.entries.T.tocsr()


def _with(matrix: Any, data: Array) -> Any:
    """The matrix with other values at the same places."""
    return csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _rows_of(matrix: Any) -> Array:
    """The row of every entry stored."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _part(matrix: Any, rows: Array, cols: Array) -> Array:
    """The dense block of some rows and columns; only the entries of these rows are looked at."""
    part = matrix[rows] if rows.size < matrix.shape[0] or np.any(np.diff(rows) != 1) else matrix
    whole = cols.size == matrix.shape[1] and not np.any(np.diff(cols) != 1)
    return np.asarray((part if whole else part[:, cols]).toarray())


def _log_part(matrix: Any, rows: Array, cols: Array) -> Array:
    """The dense block of some rows and columns of logarithms, minus infinity where none is stored."""
    part = matrix[rows][:, cols].tocoo()
    out = np.full(part.shape, -np.inf)
    out[part.row, part.col] = part.data
    return out


def _largest_of_rows(matrix: Any, least: float = 0.0) -> Array:
    """The largest entry of every row that has none below the least; that where nothing is stored."""
    largest = np.full(matrix.shape[0], least)
    np.maximum.at(largest, _rows_of(matrix), matrix.data)
    return largest


def _product(matrix: Any, v: Array, dtype: Any) -> Array:
    """The product with a block of columns, runs of rows dealt to our threads."""
    out = np.empty((matrix.shape[0], v.shape[1]), dtype)
    add = _add_few_columns if v.shape[1] <= _FEW else _add_columns
    runs = _runs(matrix, v.shape[1])
    run_chunks(lambda run: add(*run, matrix.indptr, matrix.indices, matrix.data, v, out), runs)
    return out


def _runs(matrix: Any, columns: int) -> list[tuple[int, int]]:
    """Runs of rows with nearly as many entries each; a row is summed on its own, so that runs leave no trace."""
    count = max(1, min(_MOST_RUNS, matrix.nnz * columns // _RUN))
    bounds = np.searchsorted(matrix.indptr, [matrix.nnz * i // count for i in range(1, count)])
    ends = sorted({0, *map(int, bounds), matrix.shape[0]})
    return list(pairwise(ends))


@njit(nogil=True, cache=True, fastmath={"contract"})
def _add_few_columns(lo: int, hi: int, indptr: Array, indices: Array, data: Array, v: Array, out: Array) -> None:
    """Rows lo to hi of a product with up to four columns, each summed in a register.

    Indices without a sign spare the test for negative ones, which costs as much as the sum.
    """
    width, flat, result = np.uint64(v.shape[1]), v.reshape(-1), out.reshape(-1)
    for i in range(np.uint64(lo), np.uint64(hi)):
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])
        for c in range(width):
            total = 0.0
            for p in range(start, stop):
                total += np.float64(data[p]) * np.float64(flat[np.uint64(indices[p]) * width + c])
            result[i * width + c] = total


@njit(nogil=True, cache=True, fastmath={"contract"})
def _add_columns(lo: int, hi: int, indptr: Array, indices: Array, data: Array, v: Array, out: Array) -> None:
    """Rows lo to hi of a product with many columns, summed in a line of memory."""
    width, flat, result = np.uint64(v.shape[1]), v.reshape(-1), out.reshape(-1)
    sums = np.empty(v.shape[1])
    for i in range(np.uint64(lo), np.uint64(hi)):
        for c in range(width):
            sums[c] = 0.0
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            a, at = np.float64(data[p]), np.uint64(indices[p]) * width
            for c in range(width):
                sums[c] += a * np.float64(flat[at + c])
        for c in range(width):
            result[i * width + c] = sums[c]
