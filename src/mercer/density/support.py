"""The support points of a density: given, sampled, k-means centres, or chosen by another estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.validation import distinct_rows, whole_number

Array = np.ndarray[Any, np.dtype[Any]]


def choose_support(support: Any, X: Array, weights: Array, rng: np.random.Generator) -> Array:
    """Read ``support`` as :class:`mercer.SumOfSquaresDensity` documents it; repeated points are taken once."""
    points = np.asarray(support, np.float64) if isinstance(support, np.ndarray) else _sampled(support, X, weights, rng)
    return np.ascontiguousarray(points[distinct_rows(points)[0]], np.float64)


def _sampled(support: Any, X: Array, weights: Array, rng: np.random.Generator) -> Array:
    count = min(whole_number(support, "support", 1), int(np.sum(weights > 0)))
    return X[np.sort(rng.choice(X.shape[0], count, replace=False, p=weights))]
