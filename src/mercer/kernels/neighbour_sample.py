"""What a self-tuning kernel knows of its training points: scales, radii and the neighbour graph."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.sparse import coo_array, csr_array, vstack

from mercer.backends.arrays import Array
from mercer.backends.chunks import row_chunks, rows_within
from mercer.backends.cpu.neighbours import MEASURED, find_rows, near_pairs, row_keys, squared_distances
from mercer.backends.rounding import TINY
from mercer.backends.threads import run_chunks
from mercer.kernels.neighbours import Table

_BLOCK = 2**20  # distances that a thread has in hand


@final
@dataclass(frozen=True)
class Sample:
    """Distinct training points with their scales s, squared radii r² and log k between neighbours.

    Attributes
    ----------
    positions : array of shape (m, f)
        The distinct training points.
    metric : str
        Of their distances.
    orders : tuple of int
        Which neighbour's distance is s(x), and which r(x); at most m - 1.
    scales, squared_radii : arrays of shape (m,)
        s and r² of the training points.
    graph : sparse CSR array of shape (m, m)
        log k of every pair that the kernel does not set to zero; its diagonal is stored, and zero.
    """

    positions: Array
    metric: str
    orders: tuple[int, int]
    scales: Array
    squared_radii: Array
    graph: Any

    @classmethod
    def of(cls, positions: Array, metric: str, orders: tuple[int, int], tables: list[Table]) -> Sample:
        """The sample of points whose nearest others were found."""
        m = positions.shape[0]
        scales, radii = np.empty(m), np.empty(m)
        for table in tables:
            scales[table.rows] = np.sqrt(table.squares[:, orders[0]])
            radii[table.rows] = table.squares[:, orders[1]]
        if m == 1:
            scales[:] = 1.0
        return cls(positions, metric, orders, scales, radii, _graph(tables, scales, radii))

    @property
    def digest(self) -> str:
        """What tells this sample from others: some digits of a hash of its points and their graph."""
        whole = hashlib.blake2b(digest_size=4)
        for part in (self.positions, self.scales, self.squared_radii, self.graph.indptr, self.graph.indices):
            whole.update(np.ascontiguousarray(part).data)
        return whole.hexdigest()

    def find(self, points: Array) -> Array:
        """Which training point every point is, to the last bit; -1 where it is none."""
        points = np.ascontiguousarray(points, np.float64)
        keys, order = self._index
        return find_rows(points, row_keys(points), self.positions, keys, order)

    @cached_property
    def _index(self) -> tuple[Array, Array]:
        keys = row_keys(self.positions)
        return keys, np.argsort(keys, kind="stable")

    def log_affinities(self, X: Array, Y: Array | None) -> Any:
        """log k(X, Y) as a sparse CSR array of the pairs where k is not set to zero; Y None means X.

        A training point has the neighbours of the graph, whatever found them; other points are compared with all.
        """
        left = self._seen(X)
        right = left if Y is None else self._seen(Y)
        shape = (X.shape[0], right.known.shape[0])
        if right.all_known and np.array_equal(right.known, np.arange(self.positions.shape[0])):
            return left.rows
        parts = [_placed(left.rows[:, right.known[right.is_known]], None, np.flatnonzero(right.is_known), shape)]
        if not right.all_known:
            fresh, old = np.flatnonzero(~right.is_known), np.flatnonzero(left.is_known)
            back = right.rows[fresh][:, left.known[old]].T
            parts.append(_placed(back, old, fresh, shape))
            parts.append(self._between(left, right, X, X if Y is None else Y, shape, symmetric=Y is None))
        whole = [np.concatenate(piece) for piece in zip(*parts, strict=True)]
        return _sorted_csr(*whole, shape)

    def _seen(self, points: Array) -> Seen:
        """The points with their scales and radii, and log k between them and the training points."""
        known = self.find(points)
        fresh = np.flatnonzero(known < 0)
        if not fresh.size:
            return Seen(known, self.scales[known], self.squared_radii[known], self.graph[known])
        scales, radii = np.empty(known.size), np.empty(known.size)
        old = np.flatnonzero(known >= 0)
        scales[old], radii[old] = self.scales[known[old]], self.squared_radii[known[old]]
        chunks = [fresh[part] for part in row_chunks(fresh.size, rows_within(_BLOCK, self.positions.shape[0]))]
        pieces = run_chunks(lambda rows: self._compared(points[rows]), chunks)
        scales[fresh] = np.concatenate([piece[0] for piece in pieces])
        radii[fresh] = np.concatenate([piece[1] for piece in pieces])
        stacked = vstack([self.graph[known[old]], *(piece[2] for piece in pieces)], format="csr")
        order = np.empty(known.size, np.int64)
        order[np.concatenate([old, fresh])] = np.arange(known.size)
        return Seen(known, scales, radii, csr_array(stacked[order]))

    def _compared(self, points: Array) -> tuple[Array, Array, Any]:
        """Scales, squared radii and log k with the training points, of points that are none of them."""
        squares = self._squares(points, self.positions)
        nearest = np.partition(squares, sorted(set(self.orders)), axis=1)
        scales, radii = np.sqrt(nearest[:, self.orders[0]]), nearest[:, self.orders[1]].copy()
        return scales, radii, _near(squares, scales, self.scales, radii, self.squared_radii)

    def _between(self, left: Seen, right: Seen, X: Array, Y: Array, shape: Any, *, symmetric: bool) -> Any:
        """log k of the pairs of which neither is a training point, as places and values."""
        rows, cols = np.flatnonzero(~left.is_known), np.flatnonzero(~right.is_known)

        def piece(part: slice) -> Any:
            i = rows[part]
            squares = self._squares(X[i], Y[cols])
            return _near(squares, left.scales[i], right.scales[cols], left.squared_radii[i], right.squared_radii[cols])

        chunks = row_chunks(rows.size, rows_within(_BLOCK, cols.size))
        if not chunks:
            return _placed(csr_array((0, cols.size)), rows, cols, shape)
        block = vstack(run_chunks(piece, chunks), format="csr")
        if symmetric:
            block = _mirrored(block)
        return _placed(block, rows, cols, shape)

    def _squares(self, rows: Array, cols: Array) -> Array:
        if self.metric in MEASURED:
            return squared_distances(rows, cols, self.metric)
        from sklearn.metrics import pairwise_distances

        return np.asarray(pairwise_distances(rows, cols, metric=self.metric), np.float64) ** 2


@dataclass(frozen=True)
class Seen:
    """Points beside a sample: which training points they are (-1: none), s, r², and log k with all of these."""

    known: Array
    scales: Array
    squared_radii: Array
    rows: Any

    @cached_property
    def is_known(self) -> Array:
        return self.known >= 0

    @cached_property
    def all_known(self) -> bool:
        return bool(self.is_known.all())


def _graph(tables: list[Table], scales: Array, radii: Array) -> Any:
    """log k of every training point and those within its radius, and of these and it."""
    rows, cols, squares = [], [], []
    for table in tables:
        near = table.squares <= radii[table.rows][:, None]
        rows.append(np.repeat(table.rows, near.sum(axis=1)))
        cols.append(table.numbers[near])
        squares.append(np.maximum(table.squares[near], TINY))  # a zero would not be stored
    m = scales.shape[0]
    places = np.concatenate(rows), np.concatenate(cols)
    directed = csr_array(coo_array((np.concatenate(squares), places), shape=(m, m)))
    graph = csr_array(directed.maximum(directed.T.tocsr()))
    graph.sort_indices()
    at = np.repeat(np.arange(m), np.diff(graph.indptr))
    logs = -graph.data / (scales[at] * scales[graph.indices])
    logs[at == graph.indices] = 0.0
    graph.data = logs
    return graph


def _near(squares: Array, scales: Array, others: Array, radii: Array, other_radii: Array) -> Any:
    """log k where a block of squared distances is within the larger of two radii."""
    counts, columns = near_pairs(squares, radii, other_radii)
    rows = np.repeat(np.arange(counts.size), counts)
    values = -squares[rows, columns] / (scales[rows] * others[columns])
    return csr_array((values, columns, np.concatenate([[0], np.cumsum(counts)])), shape=squares.shape)


def _placed(block: Any, rows: Array | None, cols: Array, shape: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Places and values of a sparse block at some rows (None: all) and columns of a matrix."""
    block = block.tocoo()
    return (block.row if rows is None else rows[block.row]), cols[block.col], block.data


def _mirrored(block: Any) -> Any:
    """The square block made of its upper triangle, with ones on the diagonal."""
    block = block.tocoo()
    upper = block.row < block.col
    i, j, values = block.row[upper], block.col[upper], block.data[upper]
    own = np.arange(block.shape[0])
    places = np.concatenate([i, j, own]), np.concatenate([j, i, own])
    return coo_array((np.concatenate([values, values, np.zeros(own.size)]), places), shape=block.shape)


def _sorted_csr(rows: Array, cols: Array, values: Array, shape: tuple[int, int]) -> Any:
    matrix = csr_array(coo_array((values, (rows, cols)), shape=shape))
    matrix.sort_indices()
    return matrix
