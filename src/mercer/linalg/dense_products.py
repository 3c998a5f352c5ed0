"""Products with a tall matrix in memory, its rows dealt to our threads.

BLAS runs one thread a worker, and chunks depend on the matrix alone, so a product is the same for any number of
threads. Tensors are multiplied by their own library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.backends.arrays import Array, is_tensor
from mercer.backends.chunks import call_chunks
from mercer.backends.threads import run_chunks


def add_product(total: Array, matrix: Array, right: Array) -> None:
    """Add ``matrix @ right`` to a total, in place."""
    if is_tensor(matrix):
        total += matrix @ right
        return

    def add(rows: slice) -> None:
        total[rows] += matrix[rows] @ right

    over_rows(add, *matrix.shape)


def product(matrix: Array, right: Array) -> Array:
    """``matrix @ right`` for an n × m matrix and a vector or a block of columns."""
    if is_tensor(matrix):
        return matrix @ right
    out = np.empty((matrix.shape[0], *right.shape[1:]))

    def fill(rows: slice) -> None:
        np.matmul(matrix[rows], right, out=out[rows])

    over_rows(fill, matrix.shape[0], matrix.shape[1] * (1 if right.ndim == 1 else right.shape[1]))
    return out


def inner_products(left: Array, right: Array) -> Array:
    """``left.T @ right`` for two tall blocks: sums over chunks of rows, added in order."""
    if is_tensor(left):
        return left.T @ right
    parts = over_rows(lambda rows: left[rows].T @ right[rows], left.shape[0], left.shape[1] * right.shape[1])
    return sum(parts[1:], parts[0])


def over_rows(function: Callable[[slice], Any], rows: int, cost: int, unit: int = 64) -> list[Any]:
    """Call a function with ranges of rows on our threads, where a row costs so many multiplications."""
    chunks = call_chunks(rows, cost, unit)
    return [function(chunks[0])] if len(chunks) == 1 else run_chunks(function, chunks)
