"""Arguments of questions to a density, checked: points, coordinates, values of them, levels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from mercer.backends import config_context
from mercer.backends.arrays import Array, as_double, is_tensor, like, to_numpy
from mercer.validation import checked_points

NOTHING_LEFT = "Every coordinate is given: there is nothing left to have a density."


def checked_rows(X: Any, d: int) -> Any:
    """Points of shape (n, d), in their own library; on the line n numbers do."""
    X = as_double(X) if is_tensor(X) else np.asarray(X, np.float64)
    if X.ndim == 1 and d == 1:
        X = X[:, None]
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(f"X must have {d} columns, not shape {tuple(X.shape)}.")
    return X


def checked_pairs(estimator: Any, X: Any, y: Any, *, fitting: bool) -> tuple[Any, Any]:
    """Points and a target for each of them, in double precision, as scikit-learn validates them.

    Tensors stay tensors; a model fitted to tensors is given tensors, and one fitted to NumPy arrays these. Targets that
    cannot be used are refused by scikit-learn's own sentence.
    """
    options: dict[str, Any] = {"dtype": np.float64, "order": "C", "y_numeric": True}
    tensors = is_tensor(X) if fitting else getattr(estimator, "_fitted_like", None) is not None
    if not tensors:
        estimator._fitted_like = None
        least = 2 if fitting else 1
        plain = to_numpy(X) if is_tensor(X) else X, to_numpy(y) if is_tensor(y) else y
        X, y = validate_data(estimator, *plain, reset=fitting, ensure_min_samples=least, **options)
        return X, np.asarray(y, np.float64)
    with config_context(dtype="float64"):
        X = checked_points(estimator, X, fitting=fitting)
    if is_tensor(y) and tuple(y.shape) == (X.shape[0],) and not y.is_complex() and bool(y.isfinite().all()):
        return X, like(y.detach(), X, dtype=X.dtype)
    _, y = validate_data(estimator, to_numpy(X), to_numpy(y) if is_tensor(y) else y, reset=False, **options)
    return X, like(y, X, dtype=X.dtype)


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
