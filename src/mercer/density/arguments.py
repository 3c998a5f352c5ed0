"""Arguments of questions to a density, checked: points, coordinates, values of them, levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array, as_double, is_tensor, to_numpy

NOTHING_LEFT = "Every coordinate is given: there is nothing left to have a density."


def checked_rows(X: Any, d: int) -> Any:
    """Points of shape (n, d), in their own library; on the line n numbers do."""
    X = as_double(X) if is_tensor(X) else np.asarray(X, np.float64)
    if X.ndim == 1 and d == 1:
        X = X[:, None]
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(f"X must have {d} columns, not shape {tuple(X.shape)}.")
    return X


def checked_coordinates(coordinates: Any, d: int) -> Array:
    """Different numbers of coordinates."""
    chosen = np.atleast_1d(to_numpy(coordinates))
    if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
        raise ValueError("coordinates must be a list of whole numbers.")
    if chosen.min() < 0 or chosen.max() >= d or np.unique(chosen).size != chosen.size:
        raise ValueError(f"coordinates must be different numbers from 0 to {d - 1}.")
    return chosen.astype(np.intp)


def checked_values(values: Any, lower: Array, upper: Array) -> Array:
    """One finite number within the bounds for each coordinate given."""
    at = np.asarray(to_numpy(values), np.float64).reshape(-1)
    if at.size != lower.size or not np.all(np.isfinite(at)):
        raise ValueError(f"values must be {lower.size} finite numbers, one for each coordinate given.")
    if np.any((at < lower) | (at > upper)):
        raise ValueError(f"values {at.tolist()} lie outside the box, where the density is zero.")
    return at


def checked_levels(levels: Any) -> Array:
    """Numbers strictly between 0 and 1."""
    levels = np.asarray(to_numpy(levels), np.float64).reshape(-1)
    if np.any(~((levels > 0) & (levels < 1))):
        raise ValueError("levels must lie strictly between 0 and 1.")
    return levels


def one_dimension(what: str, d: int) -> str:
    """What to say where a question is for one dimension."""
    return f"{what} is for one dimension, not {d}: take a marginal first."
