"""Kernel matrices on the CPU: made tile by tile when they are multiplied with, or lying in memory."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends import forms
from mercer.backends.arrays import Array
from mercer.backends.chunks import STORED_ROWS, row_chunks
from mercer.backends.cpu import products
from mercer.backends.cpu.pairings import StoredEvaluator, compile_form
from mercer.backends.cpu.profiles import log_in_place
from mercer.backends.cpu.program import Evaluator
from mercer.backends.matrix import EntriesMatrix, KernelMatrix
from mercer.backends.threads import run_chunks


def cpu_matrix(form: forms.Form, rows: Any, cols: Any = None, *, dtype: Any = None) -> KernelMatrix:
    """The matrix of a form on points in this machine's memory."""
    if hasattr(rows, "toarray"):
        from mercer.backends.cpu.sparse import SparseMatrix

        return SparseMatrix(form, rows, cols, dtype=dtype)
    evaluator = compile_form(form, rows, cols, dtype=dtype)
    given = isinstance(evaluator, StoredEvaluator)
    return StoredMatrix(evaluator, evaluator.matrix) if given else TiledMatrix(evaluator)


class _CpuMatrix(EntriesMatrix):
    """What a tiled matrix and a stored one have in common."""

    def log_block(self, rows: Any, cols: Any) -> Array:
        return products.block(self._entries, rows, cols, log=True)

    def scaled_product(self, v: Any) -> tuple[Array, Array]:
        return products.scaled_product(self._entries, np.asarray(v, np.float64))


@final
class TiledMatrix(_CpuMatrix):
    """Entries are made tile by tile, used and forgotten."""

    def multiply(self, v: Any, *, transpose: bool = False) -> Array:
        return products.multiply(self._entries, v, transpose=transpose)

    def multiply_both(self, v_rows: Array, v_cols: Array) -> tuple[Array, Array]:
        """K v for columns of v and Kᵀ v for rows of it, in double precision: half the entries of two products."""
        return products.multiply_both(self._entries, v_rows, v_cols)

    def block(self, rows: Any, cols: Any) -> Array:
        return products.block(self._entries, rows, cols)

    @property
    def summation_depth(self) -> int:
        return products.summation_depth(self._entries)

    def stored(self) -> KernelMatrix:
        return StoredMatrix(self._entries, self.dense())


@final
class StoredMatrix(_CpuMatrix):
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

    def block(self, rows: Any, cols: Any) -> Array:
        return np.array(self.entries[rows][:, cols], self.dtype)

    def log_block(self, rows: Any, cols: Any) -> Array:
        if not isinstance(self._entries, StoredEvaluator):  # the kernel knows logarithms of what underflows
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

    def stored(self) -> KernelMatrix:
        return self
