"""The pairs whose distances an unfolding keeps: of points with their neighbours, or of a graph that is given."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse
from scipy.sparse.csgraph import connected_components, dijkstra

from mercer.backends.arrays import Array
from mercer.backends.cpu.neighbours import squared_distances
from mercer.backends.rounding import UNIT, gamma
from mercer.kernels.neighbour_graph import joined
from mercer.kernels.neighbours import neighbour_tables

_METRIC = "euclidean"
_LINK = -1.0  # the log of an affinity that does not vanish
_NAMED = 3  # rows that a sentence names


class PairGraph(NamedTuple):
    """Pairs of distinct points, their squared distances, and by what part of themselves these may be wrong."""

    pairs: Array
    squares: Array
    rounding: float


class Groups(NamedTuple):
    """Points at distance zero from one another: the first row of each group, and the group of every row."""

    first: Array
    place: Array


def neighbour_pairs(points: Array, rows: Array, n_neighbors: int, *, connect: bool) -> PairGraph:
    """The pairs of distinct points of which one is among the nearest of the other, or as near as the last of them.

    ``rows`` are the numbers by which a sentence calls the points.
    """
    m = points.shape[0]
    graph = _links(points, min(n_neighbors, m - 1))
    if connect:
        graph = joined(graph, points, lambda left, right: squared_distances(left, right, _METRIC))
    upper = graph.tocoo()
    kept = upper.row < upper.col
    pairs = np.stack([upper.row[kept], upper.col[kept]], axis=1).astype(np.int64)
    refuse_parts(pairs, rows, f"n_neighbors={n_neighbors}", "raise n_neighbors, pass connect=True")
    squares = ((points[pairs[:, 0]] - points[pairs[:, 1]]) ** 2).sum(axis=1)
    return PairGraph(pairs, squares, gamma(points.shape[1] + 8, UNIT))


def _links(points: Array, count: int) -> Any:
    """A symmetric sparse array of one value, stored for neighbours."""
    rows, cols = [], []
    for table in neighbour_tables(points, count, _METRIC, "auto"):
        near = table.squares <= table.squares[:, count][:, None]
        rows.append(np.repeat(table.rows, near.sum(axis=1)))
        cols.append(table.numbers[near])
    i, j = np.concatenate(rows), np.concatenate(cols)
    places = np.unique(np.concatenate([i * points.shape[0] + j, j.astype(np.int64) * points.shape[0] + i]))
    i, j = np.divmod(places, points.shape[0])
    graph = csr_array(coo_array((np.full(i.size, _LINK), (i, j)), shape=(points.shape[0],) * 2))
    graph.sort_indices()
    return graph


def given_pairs(graph: Any, n_neighbors: int) -> tuple[PairGraph, Groups]:
    """The pairs of a matrix of distances: those stored in a sparse one, the nearest of each row of a dense one.

    Points at distance zero become one; the distances of two pairs that become one so must agree.
    """
    i, j, distances = _stored(graph) if issparse(graph) else _nearest(np.asarray(graph), n_neighbors)
    _refuse_no_distances(i, j, distances)
    n = graph.shape[0]
    groups = _groups(n, i[distances == 0], j[distances == 0])
    i, j = groups.place[i], groups.place[j]
    kept = i != j
    low, high = np.minimum(i, j)[kept], np.maximum(i, j)[kept]
    m = groups.first.size
    keys, which = np.unique(low * m + high, return_inverse=True)
    shortest, longest = np.full(keys.size, np.inf), np.zeros(keys.size)
    np.minimum.at(shortest, which, distances[kept])
    np.maximum.at(longest, which, distances[kept])
    pairs = np.stack(np.divmod(keys, m), axis=1)
    _refuse_two_distances(pairs, shortest, longest, groups.first)
    refuse_parts(pairs, groups.first, "the graph given", "add pairs to it", count=m)
    return PairGraph(pairs, longest**2, gamma(8, UNIT)), groups


def _stored(graph: Any) -> tuple[Array, Array, Array]:
    entries = coo_array(graph)
    off = entries.row != entries.col
    return entries.row[off].astype(np.int64), entries.col[off].astype(np.int64), np.asarray(entries.data[off], float)


def _nearest(matrix: Array, count: int) -> tuple[Array, Array, Array]:
    """Each row's nearest others, with all that are as near as the last of them."""
    n = matrix.shape[0]
    apart = matrix.astype(float)
    np.fill_diagonal(apart, np.inf)
    last = np.partition(apart, min(count, n - 1) - 1, axis=1)[:, min(count, n - 1) - 1]
    i, j = np.nonzero(apart <= last[:, None])
    return i, j, apart[i, j]


def _refuse_no_distances(i: Array, j: Array, distances: Array) -> None:
    wrong = ~(np.isfinite(distances) & (distances >= 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"The distance of rows {i[at]} and {j[at]} is {distances[at]:g}: it must be a finite number that is not "
            "negative."
        )


def _refuse_two_distances(pairs: Array, shortest: Array, longest: Array, rows: Array) -> None:
    wrong = longest - shortest > 1e-9 * longest
    if wrong.any():
        at = int(np.argmax(wrong))
        i, j = rows[pairs[at]]
        raise ValueError(
            f"The graph has two distances for rows {i} and {j}, {shortest[at]:g} and {longest[at]:g}: pass a "
            "symmetric matrix, in which points at distance zero have equal rows."
        )


def _groups(n: int, i: Array, j: Array) -> Groups:
    """The rows that pairs at distance zero make one."""
    links = coo_array((np.ones(i.size), (i, j)), shape=(n, n))
    found = connected_components(links, directed=False)[1]
    first = np.unique(found, return_index=True)[1]
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return Groups(first[order], rank[found])


def refuse_parts(pairs: Array, rows: Array, cause: str, remedy: str, *, count: int | None = None) -> None:
    """Refuse a graph that falls apart: its parts could be drawn away from one another without end."""
    m = rows.size if count is None else count
    links = coo_array((np.ones(pairs.shape[0]), (pairs[:, 0], pairs[:, 1])), shape=(m, m))
    n_parts, found = connected_components(links, directed=False)
    if n_parts == 1:
        return
    sizes = np.bincount(found)
    least = int(np.argmin(sizes))
    named = rows[np.flatnonzero(found == least)[:_NAMED]]
    shown = ", ".join(map(str, named)) + (", …" if sizes[least] > _NAMED else "")
    which = f"row {shown} has no neighbours" if sizes[least] == 1 else f"rows {shown} are linked to no others"
    raise ValueError(
        f"With {cause} the graph falls into {n_parts} parts, which nothing keeps from drifting apart without end: "
        f"{which}. Please {remedy}, or fit each part alone."
    )


def refuse_long_pairs(graph: PairGraph, rows: Array, tol: float, unit: float) -> None:
    """Refuse a distance that exceeds the way over other pairs, even if all of them change by the part ``tol``.

    Squared distances are in units of unit².
    """
    m, lengths = rows.size, np.sqrt(graph.squares)
    i, j = graph.pairs.T
    ways = dijkstra(csr_array(coo_array((lengths, (i, j)), shape=(m, m))), directed=False)
    excess = lengths * (1 - tol) / (ways[i, j] * (1 + tol))
    worst = int(np.argmax(excess))
    if excess[worst] > 1:
        apart, around = unit * lengths[worst], unit * ways[i[worst], j[worst]]
        raise ValueError(
            f"Rows {rows[i[worst]]} and {rows[j[worst]]} are {apart:g} apart, but only {around:g} "
            "by way of other pairs: no points have such distances. Correct the graph, or pass "
            "distances='not exceeded'."
        )
