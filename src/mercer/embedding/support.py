"""The points that the embedding is solved on: all of them, those of positive weight, or landmarks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer.kernels import Kernel, Precomputed
from mercer.validation import checked_weights

Array = np.ndarray[Any, np.dtype[Any]]


class Support(NamedTuple):
    """Which rows carry the problem, and with which weights; None means all of them, and ones."""

    indices: Array | None
    weights: Array | None

    def points(self, X: Any, kernel: Kernel) -> Any:
        """The rows of X that carry the problem; of a precomputed kernel matrix, their columns too."""
        if self.indices is None:
            return X
        rows = X[self.indices]
        return rows[:, self.indices] if isinstance(kernel, Precomputed) else rows

    def columns(self, X: Any, kernel: Kernel) -> Any:
        """What :meth:`points` has to be compared with X: X itself, or its precomputed columns."""
        return X[:, self.indices] if isinstance(kernel, Precomputed) and self.indices is not None else X


def choose_support(landmarks: Any, weights: Array | None, X: Any) -> Support:
    """Read ``landmarks`` and checked sample weights as :class:`mercer.SDPEmbedding` documents them."""
    if landmarks is not None:
        return _from_landmarks(landmarks, weights, X)
    if weights is None or np.all(weights == 1):
        return Support(None, None)
    if np.all(weights > 0):
        return Support(None, weights)
    indices = np.flatnonzero(weights)
    return Support(_enough(indices, "points of positive weight"), weights[indices])


def _from_landmarks(landmarks: Any, sample_weight: Array | None, X: Any) -> Support:
    n = X.shape[0]
    indices, weights = _indices_and_weights(landmarks, X, sample_weight)
    chosen = np.asarray(indices)
    if chosen.dtype == bool and chosen.shape == (n,):
        chosen = np.flatnonzero(chosen)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise ValueError("landmarks must be row numbers: a one-dimensional array of integers, or (indices, weights).")
    if chosen.size and (chosen.min() < -n or chosen.max() >= n):
        raise ValueError(f"landmarks has the row {int(chosen[np.argmax(np.abs(chosen))])}, but X has {n} rows.")
    chosen = chosen % n
    if np.unique(chosen).size != chosen.size:
        raise ValueError("landmarks names a row twice: give it once, with the sum of its weights.")
    if weights is None:
        values = np.full(chosen.size, n / max(chosen.size, 1)) if sample_weight is None else sample_weight[chosen]
    else:
        values = checked_weights(weights, chosen.size, "the weights of landmarks")
    positive = values > 0
    return Support(_enough(chosen[positive], "landmarks of positive weight"), values[positive])


def _indices_and_weights(landmarks: Any, X: Any, sample_weight: Array | None) -> tuple[Any, Any]:
    """The rows and weights that an estimator chose, a pair states, or an array of rows leaves to us.

    Those of an estimator are brought to the total weight of the sample for which its landmarks stand.
    """
    if hasattr(landmarks, "fit"):
        try:
            check_is_fitted(landmarks)
        except NotFittedError:
            landmarks = clone(landmarks).fit(X, **({} if sample_weight is None else {"sample_weight": sample_weight}))
    if hasattr(landmarks, "indices_"):
        weights = getattr(landmarks, "weights_", None)
        total = X.shape[0] if sample_weight is None else np.sum(sample_weight)
        return landmarks.indices_, None if weights is None else np.asarray(weights) * (total / np.sum(weights))
    if hasattr(landmarks, "fit"):
        raise TypeError(f"landmarks={landmarks!r} has no attribute indices_ after fit: it chooses no landmarks.")
    if isinstance(landmarks, tuple):
        if len(landmarks) != 2:
            raise ValueError(f"landmarks has {len(landmarks)} parts: give an index array, or (indices, weights).")
        return landmarks
    return landmarks, None


def _enough(indices: Array, what: str) -> Array:
    if indices.size < 2:
        raise ValueError(f"Found {indices.size} {what}, but the embedding needs at least 2.")
    return indices
