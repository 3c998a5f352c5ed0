"""The nearest of a set of distinct points, to each other and to new ones: by Euclidean distance or by a kernel's.

The distance of a kernel is that of its features, ‖φ(x) - φ(y)‖² = k(x, x) + k(y, y) - 2k(x, y). Nothing of the size of
all pairs is stored: a few rows of distances are made at a time. Points that are equally near come in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, as_double, to_numpy
from mercer.backends.chunks import panel_rows, row_chunks, rows_within
from mercer.kernels import Kernel
from mercer.kernels.neighbours import nearest_to, neighbour_tables
from mercer.operators import GramOperator

_TABLE = 2**21  # neighbours that are looked for at a time


class Nearest(NamedTuple):
    """Numbers of the nearest points and their distances, in rising order: two arrays of shape (q, count)."""

    numbers: Array
    lengths: Array


@final
@dataclass(frozen=True)
class EuclideanSearch:
    """Among the rows of an array of shape (m, d), exactly."""

    points: Array

    def others(self, count: int) -> Nearest:
        """The nearest ``count`` others of every point."""
        m = self.points.shape[0]
        numbers, lengths = np.empty((m, count), np.int32), np.empty((m, count))
        for table in neighbour_tables(self.points, count, "euclidean", "exact"):
            numbers[table.rows] = table.numbers[:, 1 : count + 1]
            lengths[table.rows] = np.sqrt(table.squares[:, 1 : count + 1])
        return Nearest(numbers, lengths)

    def nearest(self, queries: Array, count: int) -> Nearest:
        """The nearest ``count`` points to every row of ``queries``."""
        numbers, squares = nearest_to(self.points, queries, count)
        return Nearest(numbers, np.sqrt(squares))


@final
@dataclass(frozen=True)
class KernelSearch:
    """Among the rows of an array, by the distance of a resolved kernel."""

    kernel: Kernel
    points: Any

    def others(self, count: int) -> Nearest:
        """The nearest ``count`` others of every point."""
        gram = GramOperator(self.kernel, self.points)

        def squares(part: slice) -> Array:
            found = _squares(gram.block(part, slice(None)), own[part], own)
            found[np.arange(found.shape[0]), np.arange(part.start, part.stop)] = np.inf
            return found

        own = _diagonal(self.kernel, self.points)
        return _chunked(squares, own.size, own.size, count)

    def nearest(self, queries: Any, count: int) -> Nearest:
        """The nearest ``count`` points to every row of ``queries``."""
        gram = GramOperator(self.kernel, queries, self.points)
        own, others = _diagonal(self.kernel, queries), _diagonal(self.kernel, self.points)
        return _chunked(
            lambda part: _squares(gram.block(part, slice(None)), own[part], others), own.size, others.size, count
        )


def _diagonal(kernel: Kernel, points: Any) -> Array:
    return to_numpy(as_double(kernel.diag(points)))


def _squares(block: Any, rows: Array, columns: Array) -> Array:
    return np.maximum(rows[:, None] + columns - 2 * to_numpy(as_double(block)), 0.0)


def _chunked(squares: Callable[[slice], Array], rows: int, width: int, count: int) -> Nearest:
    """The least ``count`` entries of every row, some rows at a time."""
    parts = []
    for part in row_chunks(rows, panel_rows(3 * width)):
        block = squares(part)
        near = np.argpartition(block, min(count, width) - 1, axis=1)[:, :count]
        parts.append(_in_order(near, np.take_along_axis(block, near, axis=1), count))
    return Nearest(*(np.concatenate(side) for side in zip(*parts, strict=True)))


def _in_order(numbers: Array, squares: Array, count: int) -> Nearest:
    """The first ``count`` by distance, then by number."""
    numbers, squares = np.asarray(numbers, np.int32), np.asarray(squares, np.float64)
    order = np.lexsort((numbers, squares), axis=1)[:, :count]
    return Nearest(np.take_along_axis(numbers, order, axis=1), np.sqrt(np.take_along_axis(squares, order, axis=1)))


def query_chunks(queries: int, count: int) -> list[slice]:
    """Rows of queries whose neighbours fit a table."""
    return row_chunks(queries, rows_within(_TABLE, count))
