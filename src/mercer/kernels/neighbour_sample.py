"""What a self-tuning kernel knows of its training points, and how it compares others with them."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from scipy.sparse import coo_array, csr_array, vstack

from mercer.backends.arrays import Array, as_double
from mercer.backends.chunks import row_chunks, rows_within
from mercer.backends.config import require_free_memory
from mercer.backends.cpu.neighbours import find_rows, near_pairs, row_keys
from mercer.backends.threads import run_chunks
from mercer.kernels.neighbour_graph import BLOCK, Parts, joined, log_affinity, log_graph, parts_of
from mercer.kernels.neighbours import GIVEN, Table, squares_between

_ENTRY_BYTES = 40  # of an entry while a matrix with copies of points is put together
_LARGE = 2.0**400  # coordinates whose squares are still numbers


class Setting(NamedTuple):
    """What is known of a :class:`Sample` before its neighbours are found, by the same names."""

    positions: Array
    power: int
    metric: str
    orders: tuple[int, int | None]
    smaller: bool


@final
@dataclass(frozen=True)
class Sample:
    """Distinct training points with their scales s, squared radii r² and log k between neighbours.

    Attributes
    ----------
    positions : array of shape (m, f)
        The distinct training points, times 2^-power.
    power : int
        Zero but where squares of the points given would leave double precision.
    metric : str
        Of their distances.
    orders : tuple of int and int or None
        Which neighbour's distance is s(x), and which r(x), None where every pair counts; at most m - 1.
    smaller : bool
        Whether the scale of a pair is the smaller of its two, or their geometric mean.
    scales, squared_radii : arrays of shape (m,)
        s and r² of the training points.
    graph : sparse CSR array of shape (m, m) or None
        log k of every pair that the kernel does not set to zero; its diagonal is stored, and zero.
    """

    positions: Array
    power: int
    metric: str
    orders: tuple[int, int | None]
    smaller: bool
    scales: Array
    squared_radii: Array
    graph: Any

    @classmethod
    def of(cls, setting: Setting, tables: list[Table], join: bool) -> Sample:
        """The sample of points whose nearest others were found."""
        m, (scale, radius) = setting.positions.shape[0], setting.orders
        scales, squared_radii = np.ones(m), np.full(m, np.inf)
        for table in tables if m > 1 else ():
            scales[table.rows] = np.sqrt(table.squares[:, scale])
            if radius is not None:
                squared_radii[table.rows] = table.squares[:, radius]
        graph = None if radius is None else log_graph(tables, scales, squared_radii, setting.smaller)
        sample = cls(*setting, scales, squared_radii, graph)
        if join and graph is not None:
            object.__setattr__(sample, "graph", joined(graph, setting.positions, sample.squares))
        return sample

    @property
    def digest(self) -> str:
        """What tells this sample from others: some digits of a hash of all that it knows."""
        whole = hashlib.blake2b(f"{self.power} {self.metric} {self.orders}".encode(), digest_size=4)
        graph = () if self.graph is None else (self.graph.indptr, self.graph.indices, self.graph.data)
        for part in (self.positions, self.scales, self.squared_radii, *graph):
            whole.update(np.ascontiguousarray(part).data)
        return whole.hexdigest()

    @cached_property
    def parts(self) -> Parts:
        """The connected parts of the graph; of a kernel of all pairs, one."""
        if self.graph is None:
            m = self.positions.shape[0]
            return Parts(np.zeros(m, np.int64), np.array([m]))
        return parts_of(self.graph)

    def with_scales(self, points: Array) -> tuple[Array, Array]:
        """Any points and their scales s, in the unit of the sample."""
        points = self._in_unit(points)
        return points, self._seen(points).scales

    def log_tile(self, rows: Array, cols: Array) -> Array:
        """log k between all of some points, whose last column is their scale."""
        unit = max(_unit(rows), _unit(cols))
        x, y = as_double(rows) / unit, as_double(cols) / unit
        return log_affinity(self.squares(x[:, :-1], y[:, :-1]), x[:, -1:], y[:, -1], self.smaller)

    @staticmethod
    def log_diagonal(n: int) -> Any:
        """log k of n points with themselves, as a sparse CSR array of no others."""
        return csr_array((np.zeros(n), np.arange(n), np.arange(n + 1)), shape=(n, n))

    def log_affinities(self, X: Array, Y: Array | None) -> Any:
        """log k(X, Y) as a sparse CSR array of the pairs where k is not set to zero; Y None means X.

        A training point has the neighbours of the graph, whatever found them; other points are compared with all.
        """
        X = self._in_unit(X)
        Y = X if Y is None else self._in_unit(Y)
        left = self._seen(X)
        right = left if Y is X else self._seen(Y)
        self._require_memory(left, right)
        if right.is_sample:
            return left.rows
        shape = (left.known.size, right.known.size)
        old, fresh = np.flatnonzero(right.known >= 0), np.flatnonzero(right.known < 0)
        parts = [_placed(left.rows[:, right.known[old]], np.arange(shape[0]), old)]
        if fresh.size:
            known = np.flatnonzero(left.known >= 0)
            parts.append(_placed(right.rows[fresh][:, left.known[known]].T, known, fresh))
            parts.append(self._between(X, left, Y, right))
        rows, cols, values = (np.concatenate(side) for side in zip(*parts, strict=True))
        return _sorted(csr_array(coo_array((values, (rows, cols)), shape=shape)))

    def squares(self, rows: Array, cols: Array) -> Array:
        """Squared distances between points in the unit of the sample."""
        if self.metric == GIVEN:
            raise ValueError(
                "metric='precomputed' knows the distances of its graph alone: a point that is no training point, or a "
                "pair that is not linked, has none. Pass a metric, or all points with the training points."
            )
        return squares_between(rows, cols, self.metric)

    def _in_unit(self, points: Array) -> Array:
        return points if self.power == 0 else np.ldexp(points, -self.power)

    def _find(self, points: Array) -> Array:
        """Which training point every point is, to the last bit; -1 where it is none."""
        return find_rows(points, row_keys(points), self.positions, *self._index)

    @cached_property
    def _index(self) -> tuple[Array, Array]:
        keys = row_keys(self.positions)
        return keys, np.argsort(keys, kind="stable")

    def _seen(self, points: Array) -> Seen:
        """The points with their scales and radii, and log k between them and the training points."""
        known, m = self._find(points), self.positions.shape[0]
        if known.size == m and np.array_equal(known, np.arange(m)):
            return Seen(known, self.scales, self.squared_radii, self.graph, is_sample=True)
        old, fresh = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
        graph = None if self.graph is None else self.graph[known[old]]
        if not fresh.size:
            return Seen(known, self.scales[known], self.squared_radii[known], graph)
        far = np.abs(points[fresh]).max(axis=1) > _LARGE
        near = fresh[~far]
        chunks = [near[part] for part in row_chunks(near.size, rows_within(BLOCK, m))] + [[row] for row in fresh[far]]
        scales, radii, rows = zip(*run_chunks(lambda part: self._compared(points[part]), chunks), strict=True)
        order = np.argsort(np.concatenate([old, near, fresh[far]]))
        return Seen(
            known,
            np.concatenate([self.scales[known[old]], *scales])[order],
            np.concatenate([self.squared_radii[known[old]], *radii])[order],
            None if graph is None else csr_array(vstack([graph, *rows], format="csr")[order]),
        )

    def _compared(self, points: Array) -> tuple[Array, Array, Any]:
        """Scales, squared radii and log k with the training points, of points that are none of them."""
        unit = _unit(points)
        squares = self.squares(points / unit, self.positions / unit if unit > 1 else self.positions)
        wanted = [order for order in self.orders if order is not None]
        nearest = np.partition(squares, sorted(set(wanted)), axis=1)
        scales = np.maximum(np.sqrt(nearest[:, wanted[0]]), np.finfo(float).tiny)
        if self.graph is None:
            return unit * scales, np.full(scales.size, np.inf), None
        radii = nearest[:, wanted[1]].copy()
        rows = self._near(squares, scales, self.scales / unit, radii, self.squared_radii / unit / unit)
        with np.errstate(over="ignore"):
            return unit * scales, unit * (unit * radii), rows

    def _between(self, X: Array, left: Seen, Y: Array, right: Seen) -> tuple[Array, Array, Array]:
        """log k of the pairs of which neither is a training point, as rows, columns and values."""
        rows, cols = np.flatnonzero(left.known < 0), np.flatnonzero(right.known < 0)
        points, scales, radii = Y[cols], right.scales[cols], right.squared_radii[cols]

        def compared(part: slice) -> Any:
            i = rows[part]
            return self._near(self.squares(X[i], points), left.scales[i], scales, left.squared_radii[i], radii)

        found = run_chunks(compared, row_chunks(rows.size, rows_within(BLOCK, cols.size)))
        block = vstack(found, format="csr") if found else csr_array((0, cols.size))
        return _placed(_mirrored(block) if left is right else block, rows, cols)

    def _near(self, squares: Array, scales: Array, others: Array, radii: Array, other_radii: Array) -> Any:
        """log k where a block of squared distances is within the larger of two radii."""
        counts, columns = near_pairs(squares, radii, other_radii)
        rows = np.repeat(np.arange(counts.size), counts)
        values = log_affinity(squares[rows, columns], scales[rows], others[columns], self.smaller)
        return csr_array((values, columns, np.concatenate([[0], np.cumsum(counts)])), shape=squares.shape)

    def _require_memory(self, left: Seen, right: Seen) -> None:
        """Refuse a matrix that copies of training points make dense."""
        graph, m = self.graph, self.positions.shape[0]
        copies = [np.bincount(side.known[side.known >= 0], minlength=m).astype(np.float64) for side in (left, right)]
        if max(float(copies[0].max()), float(copies[1].max())) <= 1:
            return
        links = csr_array((np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape)
        pairs = float(copies[0] @ (links @ copies[1]))
        require_free_memory(
            _ENTRY_BYTES * pairs,
            "Copies of points are neighbours of one another, and their graph takes",
            "give each point once, with the number of its copies as sample_weight",
            MemoryError,
        )


@final
@dataclass(frozen=True)
class Seen:
    """Points beside a sample: which training points they are (-1: none), s, r², and log k with all of these."""

    known: Array
    scales: Array
    squared_radii: Array
    rows: Any
    is_sample: bool = False


def _unit(points: Array) -> float:
    """A power of two by which points are divided before they are squared: one but for a point very far away."""
    largest = float(np.abs(points).max(initial=0.0))
    return 1.0 if largest < _LARGE else math.ldexp(1.0, math.frexp(largest)[1])


def _placed(block: Any, rows: Array, cols: Array) -> tuple[Array, Array, Array]:
    """Places and values of a sparse block at some rows and columns of a matrix."""
    block = block.tocoo()
    return rows[block.row], cols[block.col], block.data


def _mirrored(block: Any) -> Any:
    """The square block made of its upper triangle, with ones on the diagonal."""
    block = block.tocoo()
    upper = block.row < block.col
    i, j, values = block.row[upper], block.col[upper], block.data[upper]
    own = np.arange(block.shape[0])
    places = np.concatenate([i, j, own]), np.concatenate([j, i, own])
    return coo_array((np.concatenate([values, values, np.zeros(own.size)]), places), shape=block.shape)


def _sorted(matrix: Any) -> Any:
    matrix.sort_indices()
    return matrix
