"""The nearest of a set of distinct points to each of them: exact search, an approximate one, or the user's own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from mercer.backends import get_config
from mercer.backends.arrays import Array, is_source
from mercer.backends.chunks import THREAD_ENTRIES, row_chunks, rows_within, source_rows
from mercer.backends.cpu.neighbour_descent import descended_neighbours
from mercer.backends.cpu.neighbours import (
    MEASURED,
    put_in_order,
    squared_distances,
    squared_lengths,
    squared_lengths_to,
)
from mercer.backends.threads import run_chunks

_SPARE = 3  # neighbours beyond those asked for, to see whether several are equally far
_TREE_FEATURES = 15  # up to which a tree beats the comparison of all pairs, and the approximate search
_MOST_COMPARED = 50_000  # points of more features, up to which the comparison of all pairs takes seconds
_TREE_NORMS = {"euclidean": 2, "manhattan": 1, "chebyshev": np.inf}
_QUERIES = 2048  # points a call of a tree
_LEAF = 32  # points of a leaf of a tree
_LEAST_SHARED = 2**15  # points whose search is shared by the workers of a cluster
_PARTS_A_THREAD = 4
_TABLE = 2**21  # entries of a table that is made at a time
_DESCENDED = ("euclidean", "manhattan", "cosine")  # metrics of the approximate search
_SAME_METRIC = {"minkowski": "euclidean", "l2": "euclidean", "l1": "manhattan", "cityblock": "manhattan"}
METRICS = (
    "euclidean",
    "manhattan",
    "chebyshev",
    "canberra",
    "cosine",
    "correlation",
    "hamming",
    "haversine",
    *("l1", "l2", "cityblock"),
)


GIVEN = "precomputed"


class Table(NamedTuple):
    """The nearest points to some of them, in rising order of the distance, itself first.

    Attributes
    ----------
    rows : array of int, of shape (r,)
        Which points.
    numbers : array of int, of shape (r, K)
        Their neighbours.
    squares : array of shape (r, K)
        Squared distances, infinite where a row has fewer neighbours.
    """

    rows: Array
    numbers: Array
    squares: Array


def metric_named(name: Any, neighbors: Any) -> str:
    """A metric by one name, for those that have several; distances that are given come with what gives them."""
    if isinstance(name, str) and name == GIVEN:
        if isinstance(neighbors, str):
            raise ValueError(
                f"metric={GIVEN!r} takes distances from neighbors: a sparse matrix of them, or a transformer, not "
                f"{neighbors!r}."
            )
        return GIVEN
    if not isinstance(name, str) or name not in METRICS:
        raise ValueError(
            f"metric={name!r} must be one of {', '.join(map(repr, METRICS))}, or {GIVEN!r} for distances of a graph "
            "that is passed as neighbors."
        )
    return _SAME_METRIC.get(name, name)


def squares_between(rows: Array, cols: Array, metric: str) -> Array:
    """The block of squared distances between two sets of points, on this thread; of a metric by its one name."""
    if metric in MEASURED:
        return squared_distances(rows, cols, metric)
    return np.asarray(pairwise_distances(rows, cols, metric=metric), np.float64) ** 2


def neighbour_tables(points: Array, count: int, metric: str, neighbors: Any) -> list[Table]:
    """Tables that together have every point once, with ``count`` others at least.

    Parameters
    ----------
    points : array of shape (m, f)
        Distinct, and more than ``count``.
    count : int
        Neighbours wanted; an exact search finds all that are as near as the last of them.
    metric : str
        As :func:`metric_named` has it.
    neighbors : str or transformer
        As :class:`mercer.SelfTuning` documents it.
    """
    if not isinstance(neighbors, str):
        return [_transformed(points, count, metric, neighbors)]
    if neighbors == "approximate" or (neighbors == "auto" and _too_many(points, metric)):
        return _approximate(points, count, metric)
    return _exact(points, count, metric)


def nearest_to(points: Array, queries: Array, count: int) -> tuple[Array, Array]:
    """Numbers of the nearest ``count`` points to every query and their squared distances, Euclidean, in rising order.

    Points that are equally far come in their order.
    """
    if is_source(points):
        return _nearest_in_blocks(points, queries, count)
    find, order = _finder(points, "euclidean"), _together(queries, "euclidean")
    out = np.empty((order.size, count), np.int32), np.empty((order.size, count))
    for rows in (order[part] for part in row_chunks(order.size, rows_within(_TABLE, count))):
        numbers = find(queries[rows], count)[1].astype(np.int32)
        squares = squared_lengths_to(points, queries[rows], numbers, "euclidean")
        put_in_order(numbers, squares)
        out[0][rows], out[1][rows] = numbers, squares
    return out


def _nearest_in_blocks(rows: Any, queries: Array, count: int) -> tuple[Array, Array]:
    """As :func:`nearest_to`, of rows that come a block at a time: one pass, in which the nearest so far are kept."""
    numbers, squares = np.empty((queries.shape[0], 0), np.int64), np.empty((queries.shape[0], 0))
    for where, block in rows.blocks(source_rows(4 * rows.shape[1])):
        found, apart = nearest_to(block, queries, min(count, block.shape[0]))
        numbers = np.concatenate([numbers, found + np.int64(where.start)], axis=1)
        squares = np.concatenate([squares, apart], axis=1)
        order = np.argsort(squares, axis=1, kind="stable")[:, :count]
        numbers, squares = (np.take_along_axis(each, order, axis=1) for each in (numbers, squares))
    return numbers, squares


def _too_many(points: Array, metric: str) -> bool:
    """Whether an approximate search saves time."""
    (m, f), tree = points.shape, metric in _TREE_NORMS
    return metric in _DESCENDED and m > _MOST_COMPARED and not (tree and f <= _TREE_FEATURES)


def _exact(points: Array, count: int, metric: str) -> list[Table]:
    """Asks for more where the farthest neighbour found is no farther than the last one wanted."""
    query, total = _searcher(points, metric), points.shape[0]
    tables, pending, wanted = [], _together(points, metric), count + 1 + _SPARE
    while pending.size:
        wanted, tied = min(wanted, total), []
        for rows in (pending[part] for part in row_chunks(pending.size, rows_within(_TABLE, wanted))):
            distances, numbers = query(rows, wanted)
            table = _found(rows, numbers, _squares(points, rows, numbers, distances, metric))
            whole = (table.squares[:, -1] > table.squares[:, count]) | (wanted == total)
            tables.append(Table(*(part[whole] for part in table)))
            tied.append(rows[~whole])
        pending, wanted = np.concatenate(tied), 2 * wanted
    return tables


def _searcher(points: Array, metric: str) -> Any:
    """A function of row numbers and a count, which gives distances and numbers of the nearest points."""
    cluster = get_config().cluster
    if cluster is not None and points.shape[0] >= _LEAST_SHARED:
        return _shared_search(points, metric, cluster)
    return _numbered_finder(points, metric)


def _shared_search(points: Array, metric: str, cluster: Any) -> Any:
    """The same by the workers of a cluster, each of which has all points and answers for some of the rows."""
    from mercer.backends.dask import tasks

    makers = cluster.on_all(_numbered_finder, points, metric)
    parts_of = _PARTS_A_THREAD * cluster.divided_for

    def query(rows: Array, wanted: int) -> Any:
        parts = [part for part in np.array_split(rows, parts_of) if part.size]
        asked = [makers[i % len(makers)] for i in range(len(parts))]
        found = cluster.gather(cluster.apply(tasks.asked, asked, parts, [wanted] * len(parts)))
        return tuple(np.concatenate([part[i] for part in found]) for i in (0, 1))

    return query


def _numbered_finder(points: Array, metric: str) -> Any:
    """The search for rows of these points, on this machine."""
    find = _finder(points, metric)
    return lambda rows, wanted: find(points[rows], wanted)


def _finder(points: Array, metric: str) -> Any:
    """A function of any points and a count, which gives distances and numbers of the nearest of the points."""
    threads = get_config().threads
    if metric in _TREE_NORMS and points.shape[1] <= _TREE_FEATURES:
        order = _together(points, metric)  # so that the points of a leaf lie side by side in memory
        tree, p = cKDTree(points[order], _LEAF), _TREE_NORMS[metric]

        def query(sought: Array, wanted: int) -> Any:
            size = sought.shape[0]
            parts = run_chunks(lambda part: tree.query(sought[part], wanted, p=p), row_chunks(size, _QUERIES))
            distances, places = (np.concatenate([part[i] for part in parts]).reshape(size, wanted) for i in (0, 1))
            if np.any(places == order.size):  # what a tree says where a distance is infinite
                raise ValueError(
                    "The distance of two neighbours is no finite number: bring the points to a size near one."
                )
            return distances, order[places]

        return query
    centre = points.mean(axis=0) if metric == "euclidean" else 0.0  # inner products lose digits far from 0
    seen = points - centre if metric == "euclidean" else points
    search = NearestNeighbors(metric=metric, algorithm="brute", n_jobs=threads).fit(seen)
    return lambda sought, wanted: search.kneighbors(sought - centre, wanted)


def _together(points: Array, metric: str) -> Array:
    """The numbers of the points, near ones after each other where a tree looks for them: for the sake of caches."""
    tree = metric in _TREE_NORMS and points.shape[1] <= _TREE_FEATURES
    return cKDTree(points, _LEAF).indices.copy() if tree and points.shape[0] else np.arange(points.shape[0])


def _approximate(points: Array, count: int, metric: str) -> list[Table]:
    """By descent; distances to what it finds are computed again, and points it leaves short are searched exactly."""
    if metric not in _DESCENDED:
        raise ValueError(
            f"neighbors='approximate' knows metric={', '.join(map(repr, _DESCENDED))}: pass neighbors='exact' or a "
            f"transformer for {metric!r}."
        )
    wanted, rows = min(count + _SPARE, points.shape[0] - 1), np.arange(points.shape[0])
    found = descended_neighbours(_near_origin(points, metric), wanted, absolute=metric == "manhattan")
    numbers = np.column_stack([np.where(found >= 0, found, rows[:, None]), rows])
    squares = np.where(numbers == rows[:, None], np.inf, _pair_squares(points, numbers, metric))
    squares[:, -1] = 0.0
    table = _in_order(rows, numbers, squares)
    short = np.isinf(table.squares[:, count])
    tables = [Table(*(part[~short] for part in table))]
    if short.any():
        distances, numbers = _searcher(points, metric)(rows[short], wanted + 1)
        squares = _squares(points, rows[short], numbers, distances, metric)
        tables.append(_in_order(rows[short], numbers, squares))
    return tables


def _near_origin(points: Array, metric: str) -> Array:
    """The points in single precision, where it has most digits; those of equal direction as one for the cosine."""
    if metric == "cosine":
        return normalize(points).astype(np.float32)
    centred = points - points.mean(axis=0)
    return (centred / (np.abs(centred).max() or 1.0)).astype(np.float32)


def _pair_squares(points: Array, numbers: Array, metric: str) -> Array:
    """Squared distances from every point to those of its row of numbers."""
    rows = np.arange(points.shape[0])
    if metric in MEASURED:
        return squared_lengths(points, rows, numbers, metric)
    directions, squares = normalize(np.asarray(points, np.float64)), np.empty(numbers.shape)
    for part in row_chunks(rows.size, rows_within(THREAD_ENTRIES, points.shape[1] * numbers.shape[1])):
        squares[part] = (1 - np.einsum("if,ikf->ik", directions[part], directions[numbers[part]])) ** 2
    return squares


def _transformed(points: Array, count: int, metric: str, transformer: Any) -> Table:
    """By a transformer of scikit-learn's kind, which makes a sparse graph of distances."""
    own = getattr(transformer, "metric", metric)
    if metric != GIVEN and (callable(own) or _SAME_METRIC.get(own, own) != metric):
        raise ValueError(f"neighbors={transformer!r} measures by metric={own!r}, the kernel by {metric!r}: give one.")
    return graph_table(clone(transformer).fit_transform(points), points, count, metric)


def graph_table(graph: Any, points: Array, count: int, metric: str) -> Table:
    """The table of a sparse graph of distances between the points, computed again where we know the metric."""
    graph, m = graph.tocsr(), points.shape[0]
    if graph.shape != (m, m):
        raise ValueError(f"The graph of neighbors is {graph.shape[0]} × {graph.shape[1]} for {m} distinct points.")
    stored = np.diff(graph.indptr)
    rows = np.arange(m)
    at, width = np.repeat(rows, stored), int(stored.max(initial=0)) + 1
    place = np.arange(graph.nnz) - np.repeat(graph.indptr[:-1], stored)
    numbers, squares = np.repeat(rows[:, None], width, axis=1), np.full((m, width), np.inf)
    numbers[at, place] = graph.indices
    squares[at, place] = np.where(graph.indices == at, np.inf, np.asarray(graph.data, np.float64) ** 2)
    if metric in MEASURED:
        squares = np.where(np.isinf(squares), np.inf, squared_lengths(points, rows, numbers, metric))
    squares[:, -1] = -1.0  # itself
    table = _in_order(rows, numbers, squares)
    short = np.isinf(table.squares[:, min(count, width - 1)]) if width > count else np.ones(m, bool)
    if short.any():
        row = int(np.argmax(short))
        raise ValueError(
            f"The graph of neighbors has {int(np.isfinite(table.squares[row]).sum()) - 1} neighbours of row {row}, but "
            f"the kernel asks for {count}: give it more."
        )
    return table


def _squares(points: Array, rows: Array, numbers: Array, distances: Array, metric: str) -> Array:
    return squared_lengths(points, rows, numbers, metric) if metric in MEASURED else distances**2


def _found(rows: Array, numbers: Array, squares: Array) -> Table:
    """As :func:`_in_order`, for what a search gives, which is nearly in order; equally near ones by their number."""
    own = numbers == rows[:, None]
    lost = np.flatnonzero(~own.any(axis=1))
    numbers = numbers.astype(np.int32)
    numbers[lost, -1] = rows[lost]
    own[lost, -1] = True
    squares[own] = -1.0
    put_in_order(numbers, squares)
    squares[:, 0] = 0.0
    return Table(rows, numbers, squares)


def _in_order(rows: Array, numbers: Array, squares: Array) -> Table:
    """The table sorted, with each point as its own nearest, where a search may have found others as near or not it."""
    own = (numbers == rows[:, None]) & np.isfinite(squares)
    lost = ~own.any(axis=1)
    numbers[lost, -1] = rows[lost]
    own[lost, -1] = True
    squares = np.where(own, -1.0, squares)
    order = np.argsort(squares, axis=1, kind="stable")
    numbers, squares = (np.take_along_axis(part, order, axis=1) for part in (numbers, squares))
    squares[:, 0] = 0.0
    return Table(rows, numbers.astype(np.int32), squares)
