"""What a model says of each row: stationary density, novelty, the weight of a landmark."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.plots.explorer.columns import Column

STATIONARY, NOVELTY, WEIGHT = "stationary density", "novelty", "landmark weight"


def quantities_of(model: Any, X: Any, fitted: bool, n: int, landmarks: Any = None) -> list[Column]:
    """Columns of what the model, or landmarks given beside it, knows of the rows; what it lacks is left out."""
    novelty = np.asarray(to_numpy(model.novelty(X)), dtype=np.float64) if hasattr(model, "novelty") else None
    columns = {STATIONARY: _stationary(model, fitted, n, novelty), NOVELTY: novelty}
    columns[WEIGHT] = _weights(landmarks_of(model, fitted, landmarks), n)
    return [Column(name, "number", values) for name, values in columns.items() if values is not None]


def landmarks_of(model: Any, fitted: bool, landmarks: Any = None) -> tuple[Array, Array] | None:
    """Row numbers of the landmarks and their weights; None where the model has none among these rows."""
    if landmarks is not None:
        rows, weights = landmarks.indices_, landmarks.weights_
    elif fitted and getattr(model, "landmarks_", None) is not None:
        rows, weights = model.landmarks_, model.sample_weight_
    else:
        return None
    rows = np.asarray(to_numpy(rows), dtype=np.int64)
    return rows, np.ones(rows.size) if weights is None else np.asarray(to_numpy(weights), dtype=np.float64)


def _stationary(model: Any, fitted: bool, n: int, novelty: Array | None) -> Array | None:
    """π(x): the model's own where it has one a row, otherwise exp(-novelty), to which it is proportional."""
    own = getattr(model, "stationary_", None)
    if own is not None and fitted and own.shape[0] == n:
        return np.asarray(to_numpy(own), dtype=np.float64)
    if novelty is None or own is None:
        return None
    shares = np.exp(novelty.min() - novelty)
    return shares / shares.sum()


def _weights(landmarks: tuple[Array, Array] | None, n: int) -> Array | None:
    if landmarks is None:
        return None
    rows, weights = landmarks
    if rows.size and rows.max() >= n:
        raise ValueError(f"A landmark is row {int(rows.max())}, but there are {n} rows: pass landmarks of these rows.")
    values = np.full(n, np.nan)
    values[rows] = weights
    return values
