"""Kernel matrices on the CPU: made tile by tile when they are multiplied with, or lying in memory."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends import forms
from mercer.backends.arrays import Array
from mercer.backends.chunks import STORED_ROWS, row_chunks
from mercer.backends.cpu import products
from mercer.backends.cpu.evaluator import Evaluator
from mercer.backends.cpu.pairings import StoredEvaluator, compile_form
from mercer.backends.cpu.profiles import log_in_place
from mercer.backends.matrix import KernelMatrix, Side
from mercer.backends.rounding import EntryError
from mercer.backends.threads import run_chunks

_IN_CACHE = 32 * 2**20  # a stored matrix of this size is read from cache, faster than any kernel is evaluated
_STORE_FROM_COST = 40.0  # beyond, evaluating an entry costs more than reading it from memory


def cpu_matrix(form: forms.Form, rows: Any, cols: Any = None, *, dtype: Any = None) -> KernelMatrix:
    """The matrix of a form on points in this machine's memory."""
    if hasattr(rows, "toarray"):
        from mercer.backends.cpu.sparse import SparseMatrix

        return SparseMatrix(form, rows, cols, dtype=dtype)
    evaluator = compile_form(form, rows, cols, dtype=dtype)
    return (
        StoredMatrix(evaluator, evaluator.matrix) if isinstance(evaluator, StoredEvaluator) else TiledMatrix(evaluator)
    )


class _EvaluatedMatrix(KernelMatrix):
    """What a tiled matrix and a stored one have in common: the evaluator of their entries."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.shape, self.dtype, self.symmetric = evaluator.shape, evaluator.dtype, evaluator.symmetric
        self.n_features = evaluator.n_features

    def diagonal(self, side: Side = "rows") -> Array:
        return self._evaluator.diagonal(side)

    def log_block(self, rows: Any, cols: Any) -> Array:
        return products.block(self._evaluator, rows, cols, log=True)

    def scaled_product(self, v: Any) -> tuple[Array, Array]:
        return products.scaled_product(self._evaluator, np.asarray(v, np.float64))

    @property
    def nonnegative(self) -> bool:
        return self._evaluator.nonnegative

    @property
    def entry_error(self) -> EntryError:
        return self._evaluator.entry_error


@final
class TiledMatrix(_EvaluatedMatrix):
    """Entries are made tile by tile, used and forgotten."""

    def multiply(self, v: Any, *, transpose: bool = False) -> Array:
        return products.multiply(self._evaluator, v, transpose=transpose)

    def row_sums(self, *, transpose: bool = False) -> Array:
        return products.row_sums(self._evaluator, transpose=transpose)

    def dense(self) -> Array:
        return products.dense(self._evaluator)

    def block(self, rows: Any, cols: Any) -> Array:
        return products.block(self._evaluator, rows, cols)

    @property
    def summation_depth(self) -> int:
        return products.summation_depth(self._evaluator)

    def worth_storing(self, allowed: int) -> bool:
        size = self.shape[0] * self.shape[1] * self.dtype.itemsize
        return size <= allowed and (size <= _IN_CACHE or self._evaluator.cost >= _STORE_FROM_COST)

    def stored(self) -> KernelMatrix:
        return StoredMatrix(self._evaluator, self.dense())


@final
class StoredMatrix(_EvaluatedMatrix):
    """Entries lie in memory, every one of them."""

    def __init__(self, evaluator: Evaluator, entries: Any) -> None:
        super().__init__(evaluator)
        self.entries = entries

    def multiply(self, v: Any, *, transpose: bool = False) -> Array:
        matrix = self.entries.T if transpose and not self.symmetric else self.entries
        out = np.empty((matrix.shape[0], v.shape[1]), self.dtype)

        def fill(rows: slice) -> None:
            np.matmul(matrix[rows], v, out=out[rows])

        run_chunks(fill, row_chunks(matrix.shape[0], STORED_ROWS))
        return out

    def row_sums(self, *, transpose: bool = False) -> Array:
        ones = np.ones((self.shape[0 if transpose else 1], 1), self.dtype)
        return self.multiply(ones, transpose=transpose)[:, 0]

    def dense(self) -> Array:
        return self.block(slice(None), slice(None))

    def block(self, rows: Any, cols: Any) -> Array:
        return np.array(self.entries[rows][:, cols], self.dtype)

    def log_block(self, rows: Any, cols: Any) -> Array:
        if not isinstance(self._evaluator, StoredEvaluator):  # the kernel knows logarithms of what underflows
            return super().log_block(rows, cols)
        values = self.block(rows, cols)
        log_in_place(values)
        return values

    @property
    def summation_depth(self) -> int:
        """A row is summed by BLAS, in any order."""
        return self.shape[1]

    @property
    def is_stored(self) -> bool:
        return True

    def worth_storing(self, allowed: int) -> bool:
        return True

    def stored(self) -> KernelMatrix:
        return self
