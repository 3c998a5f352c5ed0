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

from mercer.backends.arrays import Array, distinct_rows, to_numpy
from mercer.kernels import Precomputed
from mercer.landmarks.leverage import leverage
from mercer.linalg import greedy_cholesky, rp_cholesky
from mercer.operators import GramOperator

Strategy = Callable[[GramOperator, int, Array, np.random.Generator], Any]
_LLOYD_STEPS = 20
_ALL_AT_ONCE = 3 * 10**8  # products of a Lloyd step, up to which it sees all points
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
    labels = model.fit(distinct, sample_weight=masses / masses.mean()).labels_
    return first[_nearest_of_each(distinct, model.cluster_centers_, labels)]


def _nearest_of_each(points: Array, centres: Array, labels: Array) -> Array:
    """The point of each cluster that is nearest to its centre; an empty cluster has none."""
    off = points - centres[labels]
    order = np.lexsort((np.einsum("ij,ij->i", off, off), labels))
    return order[np.unique(labels[order], return_index=True)[1]]


def rpcholesky(gram: GramOperator, n_landmarks: int, weights: Array, rng: np.random.Generator) -> Array:
    """The pivots of :func:`mercer.rp_cholesky`: drawn by what the landmarks before leave unexplained."""
    return to_numpy(rp_cholesky(gram, n_landmarks, rng, weights=None if _equal(weights) else weights).landmarks)


def greedy(gram: GramOperator, n_landmarks: int, weights: Array, rng: np.random.Generator) -> Array:
    """The row that the landmarks before explain worst, each time: the farthest point in the feature space."""
    return to_numpy(greedy_cholesky(gram, n_landmarks).landmarks)


def _equal(weights: Array) -> bool:
    return bool(np.all(weights == weights[0]))


STRATEGIES: Mapping[str, Strategy] = {
    "rpcholesky": rpcholesky,
    "uniform": uniform,
    "k-means": k_means,
    "leverage": leverage,
    "greedy": greedy,
}
