"""Products with a tall matrix in memory, its rows dealt to our threads.

BLAS runs one thread a worker, and chunks depend on the matrix alone, so a product is the same for any number of
threads. Tensors are multiplied by their own library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.backends.arrays import is_tensor
from mercer.backends.threads import run_chunks

Array = Any

_CHUNK = 2**19  # entries a call: about a millisecond
_ALONE = 2**18  # entries, up to which waking threads costs more than it saves
_ROWS = 64  # a chunk has a multiple of so many


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


def over_rows(function: Callable[[slice], Any], rows: int, cost: int) -> list[Any]:
    """Call a function with ranges of rows, each of about a millisecond where a row costs so many multiplications."""
    step = rows if rows * cost <= _ALONE else _ROWS * max(1, _CHUNK // (_ROWS * max(1, cost)))
    ranges = [slice(lo, min(lo + step, rows)) for lo in range(0, rows, max(1, step))] or [slice(0, 0)]
    return [function(ranges[0])] if len(ranges) == 1 else run_chunks(function, ranges)
