"""Clusters of points of any size, however many of them differ."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.backends.arrays import Array

_LARGEST_POWER = 1023  # of two, that is a number
_PLAIN_POWERS = 40  # of two, up to which points are clustered as they are, in either precision


def clustered(model: Any, points: Array, masses: Array) -> tuple[Array, Array]:
    """The centres of k-means and the number of the cluster of every point.

    Points whose squares would leave floating point are clustered in a unit near their size. Those that differ in their
    last digits alone make fewer clusters than were asked for.
    """
    unit = _unit(points)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        model.fit(points if unit == 1.0 else points / unit, sample_weight=masses)
    return model.cluster_centers_ * unit, model.labels_


def _unit(points: Array) -> float:
    """One, or a power of two near the largest entry."""
    power = math.frexp(float(np.abs(points).max()) or 1.0)[1]
    return 1.0 if abs(power) < _PLAIN_POWERS else math.ldexp(1.0, min(power, _LARGEST_POWER))
