"""Distinct training points with their nearest neighbours, and the training points to which any point is linked."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, final

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from mercer.backends.arrays import Array
from mercer.backends.chunks import row_chunks, rows_within
from mercer.backends.cpu.neighbours import find_rows, row_keys
from mercer.backends.rounding import TINY
from mercer.backends.threads import run_chunks
from mercer.kernels.neighbour_graph import BLOCK, parts_of, shortest_edges
from mercer.kernels.neighbours import metric_named, neighbour_tables, squares_between


class Links(NamedTuple):
    """Points as they are linked to training points.

    Attributes
    ----------
    known : array of int, of shape (t,)
        Which training point each is, to the last bit; -1 where it is none.
    numbers : array of int, of shape (t, k)
        The training points to which each is linked: its nearest ones, or itself.
    lengths : array of shape (t, k)
        Distances to these in rising order: of a training point zero, and infinite beyond.
    """

    known: Array
    numbers: Array
    lengths: Array


@final
class LinkedPoints:
    """Distinct training points, each with its k nearest others.

    Parameters
    ----------
    positions : array of shape (m, f)
        The distinct training points.
    n_neighbors : int
        Neighbours of each, at most m - 1 of which there are.
    metric : str
        As :func:`mercer.kernels.neighbours.metric_named` has it.
    """

    positions: Array
    metric: str
    k: int
    numbers: Array
    lengths: Array
    _index: tuple[Array, Array]

    def __init__(self, positions: Array, n_neighbors: int, metric: str) -> None:
        self.positions, self.metric = positions, metric_named(metric, "auto")
        self.k = min(n_neighbors, positions.shape[0] - 1)
        self.numbers = np.zeros((positions.shape[0], self.k), np.int64)
        self.lengths = np.zeros((positions.shape[0], self.k))
        for table in neighbour_tables(positions, self.k, self.metric, "auto") if self.k else ():
            self.numbers[table.rows] = table.numbers[:, 1 : self.k + 1]
            self.lengths[table.rows] = np.maximum(np.sqrt(table.squares[:, 1 : self.k + 1]), TINY)  # zeros get lost
        if not np.isfinite(self.lengths).all():
            raise ValueError("The distance of two neighbours is no finite number: bring the points to a size near one.")
        keys = row_keys(positions)
        self._index = keys, np.argsort(keys, kind="stable")

    def directed(self, values: Array) -> Any:
        """The sparse matrix with a row of values for every training point, at the places of its neighbours."""
        m = self.positions.shape[0]
        return csr_array((values.ravel(), self.numbers.ravel(), self.k * np.arange(m + 1)), shape=(m, m))

    def squares(self, rows: Array, cols: Array) -> Array:
        """Squared distances between two sets of points."""
        return squares_between(rows, cols, self.metric)

    def links(self, points: Array) -> Links:
        """How any points are linked: a training point to itself, others to their nearest training points."""
        known = find_rows(points, row_keys(points), self.positions, *self._index)
        fresh, width = np.flatnonzero(known < 0), max(self.k, 1)
        numbers = np.repeat(np.maximum(known, 0)[:, None], width, axis=1)
        lengths = np.full(numbers.shape, np.inf)
        lengths[:, 0] = 0.0
        chunks = [fresh[part] for part in row_chunks(fresh.size, rows_within(BLOCK, self.positions.shape[0]))]
        found = run_chunks(lambda rows: self._nearest(points[rows], width), chunks)
        for rows, nearest in zip(chunks, found, strict=True):
            numbers[rows], lengths[rows] = nearest
        return Links(known, numbers, lengths)

    def _nearest(self, points: Array, count: int) -> tuple[Array, Array]:
        squares = self.squares(points, self.positions)
        found = np.argpartition(squares, count - 1, axis=1)[:, :count]
        near = np.take_along_axis(squares, found, axis=1)
        if not np.isfinite(near).all():
            raise ValueError("The distance of a point to its neighbours is no finite number: bring it nearer to them.")
        order = np.argsort(near, axis=1, kind="stable")
        return np.take_along_axis(found, order, axis=1), np.sqrt(np.take_along_axis(near, order, axis=1))


def one_part(graph: Any, points: LinkedPoints, kernel: Any, connect: bool) -> Any:
    """The graph, symmetric and of distances, if it is in one part; joined by its shortest edges if asked for.

    Every part but the largest is joined to its nearest other until one part is left (Borůvka 1926).
    """
    while (parts := parts_of(graph)).sizes.size > 1:
        if not connect:
            raise ValueError(f"{falls_apart(kernel, parts.sizes)}, embed the parts one by one, or pass connect=True.")
        i, j = shortest_edges(parts, points.positions, points.squares).T
        ends = (points.positions[which][:, None] for which in (i, j))
        lengths = [math.sqrt(points.squares(a, b)[0, 0]) for a, b in zip(*ends, strict=True)]
        edges = csr_array(coo_array((np.maximum(lengths, TINY), (i, j)), shape=graph.shape))
        graph = csr_array(graph.maximum(edges.maximum(edges.T)))
    return graph


def require_one_class(directed: Any, kernel: Any) -> None:
    """Refuse a directed graph with several sets of points that have no neighbour outside.

    A function that every point has from its neighbours is then free on each of them, so no one of them is told from the
    others.
    """
    count, labels = connected_components(directed, directed=True, connection="strong")
    if count == 1:
        return
    at = np.repeat(np.arange(directed.shape[0]), np.diff(directed.indptr))
    leaving = labels[at] != labels[directed.indices]
    open_classes = np.unique(labels[at[leaving]])
    sizes = -np.sort(-np.delete(np.bincount(labels), open_classes))
    if sizes.size > 1:
        raise ValueError(f"{falls_apart(kernel, sizes)}, or embed the parts one by one.")


def falls_apart(kernel: Any, sizes: Array) -> str:
    """The beginning of a sentence on a graph in several parts."""
    shown = ", ".join(str(int(size)) for size in sizes[:5]) + (" and fewer" if sizes.size > 5 else "")
    return (
        f"The neighbour graph of {kernel!r} falls into {sizes.size} parts, of {shown} points, between which nothing is "
        "known: raise n_neighbors"
    )
