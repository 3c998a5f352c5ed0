"""The graph of a self-tuning kernel on its training points: log k of near pairs, its parts, and what joins them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from mercer.backends.arrays import Array
from mercer.backends.chunks import row_chunks, rows_within
from mercer.backends.pairings import LARGEST_DISTANCE
from mercer.backends.rounding import TINY
from mercer.backends.threads import run_chunks
from mercer.kernels.neighbours import Table

BLOCK = 2**20  # distances that a thread has in hand
_BRIDGE = -1.0  # log k of two points as far apart as their scales
_VANISHES = -745.0  # below, exp(t) is zero


class Parts(NamedTuple):
    """The connected parts of a graph.

    Attributes
    ----------
    labels : array of int, of shape (m,)
        The part of every training point, the largest one being part 0.
    sizes : array of int
        How many points each part has, in falling order.
    """

    labels: Array
    sizes: Array


def log_graph(tables: list[Table], scales: Array, squared_radii: Array, smaller: bool) -> Any:
    """log k of every training point and those within its radius, and of these and it; the diagonal is stored."""
    rows, cols, squares = [], [], []
    for table in tables:
        near = table.squares <= squared_radii[table.rows][:, None]
        rows.append(np.repeat(table.rows.astype(np.int32), near.sum(axis=1)))
        cols.append(table.numbers[near])
        squares.append(np.maximum(table.squares[near], TINY))  # a zero would not be stored
    m = scales.shape[0]
    places = np.concatenate(rows), np.concatenate(cols)
    directed = csr_array(coo_array((np.concatenate(squares), places), shape=(m, m)))
    graph = csr_array(directed.maximum(directed.T.tocsr()))  # found from either side
    graph.sort_indices()
    at = rows_of(graph)
    logs = log_affinity(graph.data, scales[at], scales[graph.indices], smaller)
    logs[at == graph.indices] = 0.0
    graph.data = logs
    return graph


def log_affinity(squares: Array, scales: Array, others: Array, smaller: bool) -> Array:
    """-d²/(s s'), or -d²/min(s, s')², the same bits for a pair in either order; finite at any distance."""
    least = np.minimum(scales, others)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is no number is named where it is used
        ratios = squares / (least if smaller else np.maximum(scales, others)) / least
    return -np.minimum(ratios, LARGEST_DISTANCE["float64"])


def rows_of(graph: Any) -> Array:
    """The row of every entry stored."""
    return np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))


def parts_of(graph: Any) -> Parts:
    """The parts between which no affinity is above zero."""
    held = graph.data > _VANISHES
    links = coo_array((held[held], (rows_of(graph)[held], graph.indices[held])), shape=graph.shape)
    found = connected_components(links, directed=False)[1]
    sizes = np.bincount(found)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return Parts(rank[found], sizes[order])


def joined(graph: Any, positions: Array, squares: Any) -> Any:
    """The graph with the shortest edges that join its parts, as between points one scale apart (k = 1/e).

    Every part but the largest is joined to its nearest other, until one part is left (Borůvka 1926). Cost: the points
    of all parts but the largest, times all points, times their features, at most log₂ of the number of parts times.
    """
    while (parts := parts_of(graph)).sizes.size > 1:
        shortest = shortest_edges(parts, positions, squares)
        i, j = (np.concatenate([shortest[:, a], shortest[:, b]]) for a, b in ((0, 1), (1, 0)))
        at = rows_of(graph)
        kept = ~np.isin(at * graph.shape[0] + graph.indices, i * graph.shape[0] + j)  # edges that vanish
        keys = np.unique(i * graph.shape[0] + j)
        places = (
            np.concatenate([at[kept], keys // graph.shape[0]]),
            np.concatenate([graph.indices[kept], keys % graph.shape[0]]),
        )
        values = np.concatenate([graph.data[kept], np.full(keys.size, _BRIDGE)])
        graph = csr_array(coo_array((values, places), shape=graph.shape))
        graph.sort_indices()
    return graph


def shortest_edges(parts: Parts, positions: Array, squares: Any) -> Array:
    """For every part but the largest, its point and the one of another part that are nearest, as rows of a pair."""
    rows = np.flatnonzero(parts.labels > 0)

    def nearest(part: slice) -> tuple[Array, Array]:
        block = squares(positions[rows[part]], positions)
        block[parts.labels[rows[part]][:, None] == parts.labels] = np.inf
        to = np.argmin(block, axis=1)
        return to, block[np.arange(to.size), to]

    found = run_chunks(nearest, row_chunks(rows.size, rows_within(BLOCK, positions.shape[0])))
    to, lengths = (np.concatenate(side) for side in zip(*found, strict=True))
    order = np.lexsort((lengths, parts.labels[rows]))
    _, first = np.unique(parts.labels[rows][order], return_index=True)
    return np.stack([rows[order][first], to[order][first]], axis=1)
