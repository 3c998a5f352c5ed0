"""A measure as a person gives it, checked against the points that it is used with."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from mercer.backends.arrays import Array, as_double, contiguous, is_tensor, like, namespace, to_numpy
from mercer.kernels.checks import as_points, checked_weights, positive_number
from mercer.kernels.integrals.measures import Box, DiscreteMeasure, GaussianMeasure, Lebesgue, Measure

_ASYMMETRY = 1e-12  # of the largest entry: what rounding may make of a covariance
_SINGULAR = 1e-13  # of the largest eigenvalue: the least one that is no rounding error


def checked_measure(measure: Any, X: Array, name: str) -> Measure | None:
    """One of the measures, its arrays finite, of as many features as X and in its library; None if it is none of them.

    Raises
    ------
    ValueError
        If the numbers of a measure are not what it documents.
    """
    if isinstance(measure, Lebesgue):
        return measure
    if isinstance(measure, Box):
        return checked_box((measure.lower, measure.upper), X, name)
    if isinstance(measure, GaussianMeasure):
        if (measure.std is None) == (measure.covariance is None):
            raise ValueError(f"{name} is a normal law by its std or by its covariance: give one of the two.")
        return checked_normal(measure.mean, measure.covariance if measure.std is None else measure.std, X, name)
    if isinstance(measure, DiscreteMeasure):
        return checked_points_with_weights(measure, X, name)
    return None


def same_measure(one: Measure | None, other: Measure | None) -> bool:
    """Whether two measures are of one kind and have the same numbers, or there are none."""
    if one is None or other is None or type(one) is not type(other):
        return one is other
    pairs = ((getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return all(a is b or (a is not None and b is not None and _alike(a, b)) for a, b in pairs)


def _alike(one: Any, other: Any) -> bool:
    return np.array_equal(to_numpy(one), to_numpy(other))


def checked_normal(mean: Any, spread: Any, X: Array, name: str) -> GaussianMeasure:
    """N(mean, spread² I) where the spread is a number, N(mean, spread) where it is a matrix."""
    d = X.shape[1]
    centre = _numbers(mean, f"the mean of {name}")
    if centre.ndim == 0:
        centre = np.full(d, centre)
    if centre.shape != (d,):
        raise ValueError(f"The mean of {name} has shape {centre.shape}: it must have {d} entries.")
    if is_tensor(spread) and spread.ndim == 0:
        spread = float(spread)
    if np.ndim(spread if not is_tensor(spread) else to_numpy(spread)) == 0:
        return GaussianMeasure(like(centre, X), positive_number(spread, f"the std of {name}"))
    return GaussianMeasure(like(centre, X), None, like(_covariance(spread, d, name), X))


def _covariance(covariance: Any, d: int, name: str) -> np.ndarray[Any, np.dtype[Any]]:
    matrix = _numbers(covariance, f"the covariance of {name}")
    if matrix.shape != (d, d):
        raise ValueError(f"The covariance of {name} has shape {matrix.shape}: it must be {d} × {d}.")
    size = float(np.abs(matrix).max())
    if float(np.abs(matrix - matrix.T).max()) > _ASYMMETRY * size:
        raise ValueError(f"The covariance of {name} is not symmetric.")
    matrix = (matrix + matrix.T) / 2
    levels = np.linalg.eigvalsh(matrix)
    if not levels[0] > _SINGULAR * levels[-1]:
        raise ValueError(
            f"The covariance of {name} has the eigenvalue {levels[0]:.3g}: it must be positive definite, so that the "
            "law has a density."
        )
    return matrix


def checked_box(box: Any, X: Array, name: str = "box") -> Box:
    """A box by a pair of corners, or of numbers."""
    d = X.shape[1]
    if not (isinstance(box, tuple | list | np.ndarray) or is_tensor(box)) or len(box) != 2:
        raise ValueError(f"{name}={box!r} must be a pair (lower, upper) of numbers, or of corners with {d} entries.")
    corners = [_numbers(corner, name) for corner in box]
    corners = [np.full(d, corner) if corner.ndim == 0 else corner for corner in corners]
    if any(corner.shape != (d,) for corner in corners):
        raise ValueError(f"{name} has corners of shape {[c.shape for c in corners]}: they must have {d} entries each.")
    lower, upper = corners
    if not np.all(lower < upper):
        raise ValueError(
            f"{name} is empty in coordinate {int(np.argmin(upper - lower))}: it is a lower corner and an upper one, "
            "not a range for each coordinate."
        )
    return Box(like(lower, X), like(upper, X))


def checked_points_with_weights(measure: DiscreteMeasure, X: Array, name: str) -> DiscreteMeasure:
    """Nodes with the weights they have, 1/Q where there are none; those without weight are left out."""
    points = as_double(like(as_points(measure.points, f"the points of {name}"), X))
    count = int(points.shape[0])
    if count == 0 or points.shape[1] != X.shape[1]:
        raise ValueError(
            f"The points of {name} have shape {tuple(points.shape)}: they must be points with {X.shape[1]} features, "
            "at least one."
        )
    given = 1 / count if measure.weights is None else measure.weights
    weights = checked_weights(given, count, f"the weights of {name}", reference=X)
    kept = namespace(weights).nonzero(weights > 0)[0]
    return DiscreteMeasure(contiguous(points[kept]), weights[kept])


def _numbers(value: Any, name: str) -> np.ndarray[Any, np.dtype[Any]]:
    try:
        array = np.asarray(to_numpy(value), np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, not {value!r}.") from None
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name}={value!r} must be finite.")
    return array
