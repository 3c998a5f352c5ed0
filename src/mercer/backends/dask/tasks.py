"""What the workers of a cluster do: each task is a pair of row groups of a kernel matrix, on one thread of a worker.

A worker runs as many tasks at once as Dask says it has threads, so that a task uses one; the loops it spends its time
in do not take the interpreter's lock. What a task returns is added up on the workers too, group by group of rows and in
the order of the groups, in double precision: a sum is the same whichever worker made its terms, and whenever.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.chunks import THREAD_ENTRIES, row_chunks, rows_within
from mercer.backends.config import config_context, free_memory
from mercer.backends.cpu.matrix import TiledMatrix, cpu_matrix
from mercer.backends.cpu.tasks import add_scaled_product
from mercer.backends.forms import Form
from mercer.backends.matrix import KernelMatrix
from mercer.backends.rounding import EntryError

Task = Callable[..., Any]
_SHARE = 4  # tasks take that part of a worker's memory, all of them together


class Accuracy(NamedTuple):
    """What is proved of the rounding of a block."""

    entries: EntryError
    depth: int


def loaded(content: bytes) -> Any:
    """What was sent as bytes."""
    return pickle.loads(content)  # of the client's own making, which may run anything on its workers as it is


def same(value: Any) -> Any:
    """What was sent."""
    return value


def of_all(make: Callable[..., Any], groups: list[Array], arguments: list[Any]) -> Any:
    """What is made of all points, on one thread."""
    with _on_one_thread():
        return make(np.concatenate(groups), *arguments)


def asked(made: Callable[..., Any], *arguments: Any) -> Any:
    """What something that was made answers, on one thread."""
    with _on_one_thread():
        return made(*arguments)


def of_matrices(
    points: Array, forms: list[tuple[Form, str]], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Callable[..., Any]:
    """A function of kernel matrices of all points, which are made when it is asked; so the whole can be pickled."""
    return partial(_of_matrices, points, forms, function, arguments)


def _of_matrices(
    points: Array, forms: list[tuple[Form, str]], function: Callable[..., Any], arguments: tuple[Any, ...], *asked: Any
) -> Any:
    return function([cpu_matrix(form, points, dtype=np.dtype(name)) for form, name in forms], *arguments, *asked)


def products(
    form: Form, rows: Array, cols: Array | None, v_rows: Array | None, v_cols: Array | None, dtype: str
) -> tuple[Array | None, Array | None]:
    """K v of the columns, for the rows, and Kᵀ v of the rows, for the columns, where these are given."""
    with _on_one_thread():
        matrix = _block(form, rows, cols, dtype)
        if v_rows is not None and v_cols is not None and isinstance(matrix, TiledMatrix):
            return matrix.multiply_both(v_rows, v_cols)
        down = None if v_cols is None else _doubled(matrix.multiply(v_cols))
        across = None if v_rows is None else _doubled(matrix.multiply(v_rows, transpose=True))
    return down, across


def absolute_products(
    form: Form, rows: Array, cols: Array | None, v_rows: Array | None, v_cols: Array | None, dtype: str
) -> tuple[Array | None, Array | None]:
    """The same of the absolute values of K, for one vector: entries a few rows at a time, each made once."""
    with _on_one_thread():
        matrix = _block(form, rows, cols, dtype)
        down = None if v_cols is None else np.zeros(matrix.shape[0])
        across = None if v_rows is None else np.zeros(matrix.shape[1])
        for part in row_chunks(matrix.shape[0], rows_within(THREAD_ENTRIES, matrix.shape[1])):
            entries = abs(_doubled(matrix.block(part, slice(None))))
            if down is not None:
                down[part] = entries @ v_cols
            if across is not None and v_rows is not None:
                across += entries.T @ v_rows[part]
    return down, across


def scaled_products(form: Form, rows: Array, cols: Array | None, v: Array, dtype: str) -> tuple[Array, Array]:
    """K v = exp(s) P, row by row."""
    with _on_one_thread():
        return _block(form, rows, cols, dtype).scaled_product(v)


def accuracy(form: Form, rows: Array, cols: Array | None, dtype: str) -> Accuracy:
    """What is known of the rounding of a block."""
    with _on_one_thread():
        matrix = _block(form, rows, cols, dtype)
        return Accuracy(matrix.entry_error, matrix.summation_depth)


def summed(parts: list[tuple[tuple[Array, Array], int]]) -> Array:
    """The sum, in this order, of the halves of pairs of arrays."""
    total = np.array(parts[0][0][parts[0][1]], np.float64)
    for pair, half in parts[1:]:
        total += pair[half]
    return total


def summed_scaled(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Σ exp(sᵢ) Pᵢ, row by row and in this order, as exp(s) P with s the largest of them."""
    scale, total = np.full(parts[0][0].shape, -np.inf), np.zeros(parts[0][1].shape)
    for s, P in parts:
        add_scaled_product(scale, total, s, P)
    scale[scale == -np.inf] = 0.0
    return scale, total


def worst(parts: list[Accuracy]) -> Accuracy:
    """What holds of all blocks."""
    return Accuracy(reduce(EntryError.worse, (part.entries for part in parts)), max(part.depth for part in parts))


def _block(form: Form, rows: Array, cols: Array | None, dtype: str) -> KernelMatrix:
    """A block of a kernel matrix: of a group of rows with another, or with itself where ``cols`` is None."""
    return cpu_matrix(form, rows, cols, dtype=np.dtype(dtype))


def _doubled(values: Array) -> Array:
    return np.asarray(values, np.float64)


def _on_one_thread() -> Any:
    """One thread, and this task's part of the memory that Dask gives the worker: not of what is free at the moment.

    Where memory is short it decides how many rows are multiplied at a time, and so how sums are rounded.
    """
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit or free_memory()
    return config_context(n_threads=1, memory_limit=limit // (_SHARE * worker.state.nthreads))
