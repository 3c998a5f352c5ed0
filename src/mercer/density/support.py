"""The support points of a density: given, sampled, k-means centres, or chosen by another estimator."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from mercer.backends.arrays import Array, as_double, contiguous, like, namespace, to_numpy
from mercer.kernels.checks import as_points
from mercer.validation import distinct_rows, fitted_chooser, whole_number

DEFAULT_SIZE = 100


def choose_support(support: Any, X: Array, weights: Array, rng: np.random.Generator) -> Array:
    """Read ``support`` as :class:`mercer.SumOfSquaresDensity` documents it, as distinct points of shape (m, d).

    They are of the library of X. Random draws, k-means and the numbers that another estimator chose are NumPy's.
    """
    xp = namespace(X)
    present = xp.nonzero(weights > 0)[0]
    first, place = distinct_rows(X[present])
    rows, masses = present[first], xp.bincount(place, weights=weights[present])
    if support is None:
        support = DEFAULT_SIZE
    if isinstance(support, str):
        support = (support, DEFAULT_SIZE)
    if isinstance(support, Integral) and not isinstance(support, bool):
        points = X[_sampled(rows, masses, whole_number(support, "support", 1), rng)]
    elif isinstance(support, tuple):
        points = _centres(support, X[rows], masses, rng)
    elif hasattr(support, "fit") or hasattr(support, "indices_"):
        points = _chosen_by(support, X, weights)
    else:
        points = _given(support, X)
    return contiguous(as_double(points[distinct_rows(points)[0]]))


def _sampled(rows: Array, masses: Array, count: int, rng: np.random.Generator) -> Array:
    """So many distinct rows, drawn by their weights without repetition; all where there are no more."""
    if count >= rows.shape[0]:
        return rows
    chances = to_numpy(masses / masses.sum())
    return rows[like(np.sort(rng.choice(chances.size, count, replace=False, p=chances)), rows)]


def _centres(support: tuple[Any, ...], X: Array, masses: Array, rng: np.random.Generator) -> Array:
    """Centres of k-means on the distinct points."""
    if len(support) != 2 or support[0] != "kmeans":
        raise ValueError(f"support={support!r} must be 'kmeans' or ('kmeans', number of centres).")
    count = whole_number(support[1], "the number of k-means centres", 1)
    if count >= X.shape[0]:
        return X
    model = KMeans(count, n_init=1, random_state=int(rng.integers(2**31)))
    return like(model.fit(to_numpy(X), sample_weight=to_numpy(masses)).cluster_centers_, X)


def _chosen_by(estimator: Any, X: Array, weights: Array) -> Array:
    """The rows an estimator such as QuadratureSparsifier has in ``indices_``, fitted here if it was not before."""
    estimator = fitted_chooser(estimator, "support", X, None if bool((weights == weights[0]).all()) else weights)
    rows = to_numpy(estimator.indices_)
    if rows.ndim != 1 or rows.size == 0 or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(f"support={estimator!r} has indices_ that are no list of row numbers, or an empty one.")
    if rows.min() < 0 or rows.max() >= X.shape[0]:
        raise ValueError(f"support={estimator!r} chose rows that X, of {X.shape[0]} rows, does not have: fit it to X.")
    return X[like(rows, X)]


def _given(support: Any, X: Array) -> Array:
    points, d = like(as_points(support, "support"), X), X.shape[1]
    if points.shape[0] == 0 or points.shape[1] != d:
        raise ValueError(f"support has shape {tuple(points.shape)}: it must be points with {d} features, at least one.")
    return points
