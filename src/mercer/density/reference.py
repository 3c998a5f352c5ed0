"""The reference measure of a density, from what the user said."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels.measures import Box, GaussianMeasure, Lebesgue, Measure
from mercer.kernels.validation import positive_number

Array = np.ndarray[Any, np.dtype[Any]]


def choose_reference(reference: Any, box: Any, X: Array) -> Measure:
    """Read ``reference`` and ``box`` as :class:`mercer.SumOfSquaresDensity` documents them."""
    if box is not None:
        return _checked_box(box, X)
    if isinstance(reference, Lebesgue | Box | GaussianMeasure):
        return reference
    if reference == "lebesgue":
        return Lebesgue()
    if reference == "gaussian":
        std = float(np.sqrt(np.mean(np.var(X, axis=0))))
        return GaussianMeasure(np.mean(X, axis=0), positive_number(std, "the standard deviation of X"))
    raise ValueError(f"reference={reference!r} must be 'lebesgue', 'gaussian' or a measure of mercer.kernels.measures.")


def _checked_box(box: Any, X: Array) -> Box:
    corners = np.asarray(box, np.float64)
    if corners.shape == (2,):
        corners = np.repeat(corners[:, None], X.shape[1], axis=1)
    if corners.shape != (2, X.shape[1]) or not np.all(np.isfinite(corners)):
        raise ValueError(f"box={box!r} must be (lower, upper): two numbers, or two corners of {X.shape[1]} entries.")
    return Box(corners[0], corners[1])
