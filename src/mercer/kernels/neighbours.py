"""The nearest of a set of distinct points to each of them: exact search, an approximate index, or the user's own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

from mercer.backends import get_config
from mercer.backends.arrays import Array
from mercer.backends.cpu.neighbours import MEASURED, squared_lengths

_SPARE = 3  # neighbours beyond those asked for, to see whether several are equally far
EXACT = ("exact", "brute", "kd_tree", "ball_tree")


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


def neighbour_tables(points: Array, count: int, metric: str, algorithm: Any) -> list[Table]:
    """Tables that together have every point once, with ``count`` others at least.

    An exact search finds all that are as near as the last of them. Points are distinct, and more than ``count``.
    """
    return _exact(points, count, metric, algorithm)


def _exact(points: Array, count: int, metric: str, algorithm: str) -> list[Table]:
    """By scikit-learn, asked for more where the farthest neighbour found is no farther than the last one wanted."""
    name = algorithm if algorithm in EXACT[1:] else "auto"
    search = NearestNeighbors(metric=metric, algorithm=name, n_jobs=get_config().threads)
    seen = points - points.mean(axis=0) if metric == "euclidean" else points  # inner products lose digits far from 0
    search.fit(seen)
    tables, rows, wanted = [], np.arange(points.shape[0]), count + 1 + _SPARE
    while rows.size:
        wanted = min(wanted, points.shape[0])
        distances, numbers = search.kneighbors(seen[rows], wanted)
        squares = squared_lengths(points, rows, numbers, metric) if metric in MEASURED else distances**2
        table = _in_order(rows, numbers, squares)
        whole = (table.squares[:, -1] > table.squares[:, count]) | (wanted == points.shape[0])
        tables.append(Table(*(part[whole] for part in table)))
        rows, wanted = rows[~whole], 2 * wanted
    return tables


def _in_order(rows: Array, numbers: Array, squares: Array) -> Table:
    """The table with each point as its own nearest, where a search may have found others as near."""
    own = numbers == rows[:, None]
    lost = ~own.any(axis=1)
    numbers[lost, -1] = rows[lost]
    own[lost, -1] = True
    squares = np.where(own, -1.0, squares)
    order = np.argsort(squares, axis=1, kind="stable")
    numbers, squares = (np.take_along_axis(part, order, axis=1) for part in (numbers, squares))
    squares[:, 0] = 0.0
    return Table(rows, numbers, squares)
