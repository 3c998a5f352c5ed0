"""Landmarks that are spread evenly, each with the weight of the points that are nearest to it."""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array
from mercer.kernels.checks import in_one_unit


def spread_landmarks(points: Array, weights: Array, count: int) -> tuple[Array, Array]:
    """Take the point nearest to the mean first, then again and again the one that is farthest from all taken.

    No point is then farther from a landmark than twice what the best choice would leave (Gonzalez 1985). Points without
    weight are not taken. Cost: n · count distances.

    Returns
    -------
    indices : array of int
        Rows, no two of them equal points; fewer than ``count`` where there are no more.
    masses : array
        The weight of the points that have each as their nearest.
    """
    heavy = np.flatnonzero(weights > 0)
    X = in_one_unit(points[heavy])[0]
    nearest, owner = np.full(heavy.size, np.inf), np.zeros(heavy.size, np.int64)
    taken: list[int] = []
    candidate = int(np.argmin(((X - X.mean(axis=0)) ** 2).sum(axis=1)))
    while len(taken) < count and nearest[candidate] > 0:
        squares = ((X - X[candidate]) ** 2).sum(axis=1)
        closer = squares < nearest
        nearest[closer], owner[closer] = squares[closer], len(taken)
        taken.append(candidate)
        candidate = int(np.argmax(nearest))
    return heavy[taken], np.bincount(owner, weights[heavy], len(taken))
