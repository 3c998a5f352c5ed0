"""Units of columns: whether they agree, and a spread of each column by which it is divided where they do not.

Distances add up columns, so that a column in millimetres outvotes one in metres. Dividing every column by its spread
makes units irrelevant, but it also takes away what common units say: the rim of an image is dark in nearly all of them,
and dividing by its small spread makes a stray pixel there count more than the figure. Columns are therefore left alone
as long as their ranges are much alike.
"""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array

_OUTER = (0.01, 0.99)  # parts of the points between which the range of a column is taken
_MOST_COLUMNS = (0.1, 0.9)  # the part of the columns whose ranges are compared
_ALIKE = 8.0  # times that ranges may differ in one unit
_QUARTERS = (0.25, 0.75)
_NORMAL = 1.349  # standard deviations between the quartiles of a normal law


def quantiles(values: Array, parts: tuple[float, ...], weights: Array) -> Array:
    """The least values that these parts of the weight do not exceed, of every column: one of the values themselves."""
    return np.quantile(values, parts, axis=0, weights=weights, method="inverted_cdf")


def one_unit(points: Array, weights: Array) -> bool:
    """Whether the ranges of the columns that vary, but for a tenth at either end, are within a factor of eight."""
    low, high = quantiles(points, _OUTER, weights)
    with np.errstate(over="ignore"):
        ranges = high / 2 - low / 2
    ranges = np.log(ranges[ranges > 0])
    if ranges.size < 2:
        return True
    least, largest = np.quantile(ranges, _MOST_COLUMNS)
    return bool(largest - least <= np.log(_ALIKE))


def spreads(points: Array, weights: Array) -> Array:
    """The distance of the quartiles of every column in normal deviations, which outliers do not stretch.

    Of a column of which half or more is one value it is the standard deviation, and of one that does not vary, one.
    """
    low, high = quantiles(points, _QUARTERS, weights)
    middle = quantiles(points, (0.5,), weights)[0]
    with np.errstate(over="ignore"):
        found = (high - low) / _NORMAL
        size = np.abs(points - middle).max(axis=0)
        unit = np.where(size > 0, size, 1.0)
        off = (points - middle) / unit
        mean = weights @ off / weights.sum()
        deviation = unit * np.sqrt(weights @ (off - mean) ** 2 / weights.sum())
    found = np.where(found > 0, found, deviation)
    if not np.all(np.isfinite(found)):
        raise ValueError("The spread of a column of X exceeds the largest number: divide X by a constant.")
    return np.where(found > 0, found, 1.0)
