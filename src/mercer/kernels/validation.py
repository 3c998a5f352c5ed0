"""Checks of input, each with one sentence that says what is wrong and what to do."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def as_points(X: Any, name: str = "X") -> Array:
    """A two-dimensional, finite float32 or float64 array with rows as points."""
    if hasattr(X, "toarray"):
        raise TypeError(f"{name} is a sparse matrix: pass a dense array, or sparse affinities with Precomputed().")
    try:
        array = np.asarray(X)
    except ValueError:
        raise ValueError(f"{name} must be a table of numbers whose rows are equally long.") from None
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must be real.")
    if array.dtype.kind not in "fiub":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold numbers, not {array.dtype}: {error}.") from None
    if array.ndim != 2:
        hint = "Reshape a single feature with .reshape(-1, 1)." if array.ndim == 1 else "Rows are points."
        raise ValueError(f"{name} must be 2-dimensional, not {array.ndim}-dimensional. {hint}")
    require_columns(array, name)
    if array.dtype != np.float32:
        array = array.astype(np.float64, copy=False)
    finite = np.isfinite(array)
    if not finite.all():
        row, col = np.argwhere(~finite)[0]
        raise ValueError(f"{name} has {array[row, col]} in row {row}, column {col}: remove or impute it first.")
    return np.ascontiguousarray(array)


def require_columns(array: Any, name: str) -> None:
    """Refuse points without coordinates; no points at all are fine, their block is empty."""
    if array.shape[1] == 0:
        raise ValueError(f"{name} has no columns: a point needs at least one feature.")


def positive_number(value: Any, name: str, *, zero: bool = False) -> float:
    """A finite real number above zero (or at least zero)."""
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ValueError(f"{name}={value!r} must be a finite number.")
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name}={value!r} must be {'at least 0' if zero else 'greater than 0'}.")
    return float(value)


def checked_weights(weights: Any, n: int, name: str, *, signed: bool = False) -> Array:
    """Weights as finite non-negative float64, one for each of n points; a single number is the weight of all.

    Signed weights may be negative, and zero everywhere.
    """
    values = np.asarray(weights)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be real numbers, not of type {values.dtype}.")
    values = values.astype(np.float64)
    if values.ndim == 0:
        values = np.full(n, values)
    if values.shape != (n,):
        raise ValueError(f"{name} has shape {values.shape}: it must have one entry for each of the {n} points.")
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} has a NaN or an infinity at index {int(np.argmin(np.isfinite(values)))}.")
    if signed:
        return values
    if np.any(values < 0):
        raise ValueError(f"{name} is negative at index {int(np.argmin(values))}: weights must not be negative.")
    if not np.any(values > 0):
        raise ValueError(f"{name} is zero everywhere: at least one weight must be positive.")
    return values


def scale_free(weights: Array) -> Array:
    """Weights times the power of two that brings the largest to between ½ and 1, exactly: no sum, no square overflows.

    What depends on the ratios of weights alone is then the same, bit for bit, in any unit.
    """
    return np.ldexp(weights, -int(np.frexp(np.max(np.abs(weights), initial=0.0))[1]))
