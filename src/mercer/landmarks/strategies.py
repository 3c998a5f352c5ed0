"""Strategies that choose landmarks, one function each behind one interface.

A strategy is called with the Gram operator of the sample, the number of landmarks wanted, the shares of the rows in the
total weight (NumPy, positive, of sum one) and a generator. It returns distinct row numbers, fewer than wanted where it
knows no further ones. The points themselves are ``gram.points``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans

from mercer.backends import get_config
from mercer.backends.arrays import Array, distinct_rows, like, taken, to_numpy
from mercer.kernels import Precomputed
from mercer.landmarks.clusters import clustered
from mercer.landmarks.leverage import leverage
from mercer.linalg import greedy_cholesky, rp_cholesky
from mercer.operators import GramOperator

Strategy = Callable[[GramOperator, int, Array, np.random.Generator], Any]
_LLOYD_STEPS = 20
_ALL_AT_ONCE = 3 * 10**8  # products of a Lloyd step, up to which it sees all points
_FACTOR_SHARE = 1 / 2  # of the memory limit, for the Cholesky factor of the sample
_BATCH = 10  # points a centre in a batch, beyond


def uniform(gram: GramOperator, n_landmarks: int, weights: Array, rng: np.random.Generator) -> Array:
    """Rows drawn by their weights, without repetition."""
    return rng.choice(weights.size, n_landmarks, replace=False, p=weights)


def k_means(gram: GramOperator, n_landmarks: int, weights: Array, rng: np.random.Generator) -> Array:
    """The points nearest to the centres of k-means, in the Euclidean distance whatever the kernel.

    Lloyd's steps cost n·m·d flops each; of large samples they see a batch at a time.
    """
    if isinstance(gram.kernel, Precomputed):
        raise ValueError("strategy='k-means' needs points, not a precomputed kernel matrix: choose another strategy.")
    points = to_numpy(gram.points)
    first, place = distinct_rows(points)
    if first.size <= n_landmarks:
        return first
    distinct, masses = points[first], np.bincount(place, weights)
    seed, work = int(rng.integers(2**31)), float(first.size) * n_landmarks * points.shape[1]
    if work <= _ALL_AT_ONCE:
        model = KMeans(n_landmarks, n_init=1, max_iter=_LLOYD_STEPS, random_state=seed)
    else:
        batch = max(4096, _BATCH * n_landmarks)
        model = MiniBatchKMeans(n_landmarks, n_init=1, batch_size=batch, max_iter=_LLOYD_STEPS, random_state=seed)
    centres, labels = clustered(model, distinct, masses / masses.mean())
    return first[_nearest_of_each(distinct, centres, labels)]


def _nearest_of_each(points: Array, centres: Array, labels: Array) -> Array:
    """The point of each cluster that is nearest to its centre; an empty cluster has none."""
    off = points - centres[labels]
    off = off / (np.abs(off).max() or 1.0)  # whose squares are numbers, and tell small differences apart
    order = np.lexsort((np.einsum("ij,ij->i", off, off), labels))
    return order[np.unique(labels[order], return_index=True)[1]]


def rpcholesky(gram: GramOperator, n_landmarks: int, weights: Array, rng: np.random.Generator) -> Array:
    """The pivots of :func:`mercer.rp_cholesky`: drawn by what the landmarks before leave unexplained."""
    part, rows = _part_that_fits(gram, n_landmarks, weights, rng)
    equal = rows is not None or bool(np.all(weights == weights[0]))  # a part is drawn by weight: its rows count alike
    pivots = to_numpy(rp_cholesky(part, n_landmarks, rng, weights=None if equal else weights).landmarks)
    return pivots if rows is None else rows[pivots]


def greedy(gram: GramOperator, n_landmarks: int, weights: Array, rng: np.random.Generator) -> Array:
    """The row that the landmarks before explain worst, each time: the farthest point in the feature space."""
    part, rows = _part_that_fits(gram, n_landmarks, weights, rng)
    pivots = to_numpy(greedy_cholesky(part, n_landmarks).landmarks)
    return pivots if rows is None else rows[pivots]


def _part_that_fits(
    gram: GramOperator, n_landmarks: int, weights: Array, rng: np.random.Generator
) -> tuple[GramOperator, Array | None]:
    """The sample, or a random part of it, drawn by weight, whose factor of n × m numbers fits the memory allowed."""
    most = max(2 * n_landmarks, get_config().share(_FACTOR_SHARE) // (8 * n_landmarks))
    if weights.size <= most or isinstance(gram.kernel, Precomputed):
        return gram, None
    rows = np.sort(rng.choice(weights.size, most, replace=False, p=weights))
    return GramOperator(gram.kernel, taken(gram.points, like(rows, gram.reference))), rows


STRATEGIES: Mapping[str, Strategy] = {
    "rpcholesky": rpcholesky,
    "uniform": uniform,
    "k-means": k_means,
    "leverage": leverage,
    "greedy": greedy,
}
