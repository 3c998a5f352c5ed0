"""Whose nearest points stay nearest: the neighbours of points in two spaces, and the share that both have."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from mercer.backends.arrays import Array, like, to_numpy
from mercer.backends.chunks import PANEL_ENTRIES, row_chunks, rows_within
from mercer.kernels import Kernel

N_NEIGHBORS = 15


def nearest_points(coordinates: Array, rows: Array, count: int) -> Array:
    """The nearest others of some rows by the Euclidean distance, as an array of shape (len(rows), count)."""
    search = NearestNeighbors(n_neighbors=count + 1).fit(coordinates)
    found = search.kneighbors(coordinates[rows], return_distance=False)
    own = found == rows[:, None]
    own[~own.any(axis=1), -1] = True  # among equal points a search may find others in its place
    return found[~own].reshape(len(rows), count)


def nearest_by_kernel(kernel: Kernel, X: Any, rows: Array, count: int) -> Array:
    """The others with the highest affinity to some rows of X, as an array of shape (len(rows), count)."""
    found = []
    for part in row_chunks(len(rows), rows_within(PANEL_ENTRIES, X.shape[0])):
        affinities = np.array(to_numpy(kernel(X[like(rows[part], X)], X)), dtype=np.float64)
        affinities[np.arange(affinities.shape[0]), rows[part]] = -np.inf
        found.append(np.argpartition(-affinities, count - 1, axis=1)[:, :count])
    return np.concatenate(found)


def shared(first: Array, second: Array) -> Array:
    """For every row, the share of the numbers of ``first`` that are also in that row of ``second``."""
    shift = (1 + max(first.max(), second.max())) * np.arange(first.shape[0], dtype=np.int64)[:, None]
    return np.isin(first + shift, second + shift).mean(axis=1)
