"""The reference measure of a density, from what the user said."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.backends.arrays import Array, is_tensor, like, to_numpy
from mercer.kernels.checks import positive_number
from mercer.kernels.integrals.measures import Box, GaussianMeasure, Lebesgue, Measure


def choose_reference(reference: Any, box: Any, X: Array, weights: Array) -> Measure:
    """Read ``reference`` and ``box`` as :class:`mercer.SumOfSquaresDensity` documents them.

    Corners and means are arrays of the library of X.

    Raises
    ------
    ValueError
        If they are not what is documented, or if a point lies outside the box.
    """
    if isinstance(reference, Box):
        box, reference = (reference.lower, reference.upper), "lebesgue"
    if box is not None:
        if not _named(reference, "lebesgue") and not isinstance(reference, Lebesgue):
            raise ValueError(f"box goes with reference='lebesgue', not with {reference!r}: leave one of them out.")
        return _around(_checked_box(box, X), X[weights > 0])
    if isinstance(reference, Lebesgue) or _named(reference, "lebesgue"):
        return Lebesgue()
    if isinstance(reference, GaussianMeasure):
        return _checked_normal(reference.mean, reference.std, X)
    if _named(reference, "gaussian"):
        mean = weights @ X
        apart = X - mean
        unit = float(abs(apart[weights > 0]).max())  # whose square may underflow
        spread = unit * float(np.sqrt(float((weights @ (apart / unit) ** 2).mean()))) if unit > 0 else 0.0
        if spread == 0:
            raise ValueError(
                f"All points are equal (n_samples = {X.shape[0]}), so reference='gaussian' has no width: give a pair "
                "(mean, std)."
            )
        return GaussianMeasure(mean, spread)
    if isinstance(reference, tuple) and len(reference) == 2:
        return _checked_normal(*reference, X)
    raise ValueError(f"reference={reference!r} must be 'lebesgue', 'gaussian' or a pair (mean, std) of a normal law.")


def _named(reference: Any, name: str) -> bool:
    return isinstance(reference, str) and reference == name


def _checked_normal(mean: Any, std: Any, X: Array) -> GaussianMeasure:
    d = X.shape[1]
    centre = _numbers(mean, "the mean of reference")
    if centre.ndim == 0:
        centre = np.full(d, centre)
    if centre.shape != (d,):
        raise ValueError(f"The mean of reference has shape {centre.shape}: it must have {d} entries.")
    return GaussianMeasure(like(centre, X), positive_number(std, "the std of reference"))


def _checked_box(box: Any, X: Array) -> Box:
    d = X.shape[1]
    if not (isinstance(box, tuple | list | np.ndarray) or is_tensor(box)) or len(box) != 2:
        raise ValueError(f"box={box!r} must be a pair (lower, upper) of numbers, or of corners with {d} entries.")
    corners = [_numbers(corner, "box") for corner in box]
    corners = [np.full(d, corner) if corner.ndim == 0 else corner for corner in corners]
    if any(corner.shape != (d,) for corner in corners):
        raise ValueError(f"box has corners of shape {[c.shape for c in corners]}: they must have {d} entries each.")
    lower, upper = corners
    if not np.all(lower < upper):
        raise ValueError(
            f"box is empty in coordinate {int(np.argmin(upper - lower))}: it is a lower corner and an upper one, not a "
            "range for each coordinate."
        )
    return Box(like(lower, X), like(upper, X))


def _numbers(value: Any, name: str) -> np.ndarray[Any, np.dtype[Any]]:
    try:
        array = np.asarray(to_numpy(value), np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, not {value!r}.") from None
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name}={value!r} must be finite.")
    return array


def _around(box: Box, X: Array) -> Box:
    outside = ~box.holds(X)
    if outside.any():
        first = ", ".join(f"{float(value):.4g}" for value in X[outside][0][:5])
        raise ValueError(
            f"{int(outside.sum())} of {X.shape[0]} points lie outside the box, the first at ({first}): no density "
            "on the box stands for them. Enlarge the box or remove them."
        )
    return box
