"""The training points that a kernel made from distances is centred on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array, distinct_rows, to_numpy
from mercer.kernels.checks import as_points, whole_number


class Weighted(NamedTuple):
    """Distinct training points in the order in which they first occur, and their weights, which sum to one."""

    points: Array
    weights: Array


def distinct_points(X: Any, sample_weight: Any) -> Weighted:
    """The distinct rows of X of positive weight, each with the sum of the weights of its copies."""
    points = to_numpy(as_points(X))
    n = points.shape[0]
    weights = np.ones(n) if sample_weight is None else to_numpy(sample_weight).astype(np.float64)
    rows = np.flatnonzero(weights > 0)
    if not rows.size:
        raise ValueError("There is no training point of positive weight to learn from.")
    chosen = points if rows.size == n else points[rows]
    first, place = distinct_rows(chosen)
    kept = chosen if first.size == n else np.ascontiguousarray(chosen[first])
    total = np.bincount(place, weights[rows] / weights.max())
    return Weighted(kept, total / total.sum())


def check_n_center(n_center: Any) -> None:
    """Refuse a number of centring points that is none."""
    if n_center is not None:
        whole_number(n_center, "n_center", 1)


def centre_rows(weights: Array, n_center: int | None) -> tuple[Array, Array]:
    """Which of the weighted points stand for all of them, and their weights, which sum to one.

    All of them up to ``n_center``; beyond, those at evenly spaced places of the running sum of the weights, so that the
    choice is the same every time, follows the order of the rows and counts a row of weight two as the row twice.
    """
    if n_center is None or weights.size <= n_center:
        return np.arange(weights.size), weights
    places = (np.arange(n_center) + 0.5) / n_center
    found = np.minimum(np.searchsorted(np.cumsum(weights), places), weights.size - 1)
    rows, counts = np.unique(found, return_counts=True)
    return rows, counts / n_center
