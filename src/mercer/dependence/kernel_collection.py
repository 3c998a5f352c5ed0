"""The kernels that a test of two samples takes where none is given: Gaussians from narrow to wide.

No single bandwidth finds every difference: a wide one sees means, a narrow one sees fine structure. The scale of the
data runs geometrically from half the 5 % quantile of the distances between points to twice the 95 % quantile (as in
Schrab et al. 2023 and Biggs et al. 2023); three Gaussians stand at an eighth, at three eighths and at the end of it. On
the tables of benchmarks/testing_tables.py they find as much as the best larger collections of Gaussians and Laplacians,
since every kernel costs power where the others are right. Columns of a data frame, and others whose units differ
tenfold, are brought to one unit first. Numbers and categories are compared each alone and together: a product alone
would hide a difference of one kind behind the chance of the other. Everything is a function of the pooled sample that
treats all rows alike.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array, as_double, like, namespace, to_numpy
from mercer.kernels import Categories, Gaussian, Kernel
from mercer.kernels.bandwidth import distance_quantiles
from mercer.kernels.tables import Table

_ENDS = (0.05, 0.95)  # quantiles of the distances
_PLACES = (1 / 8, 3 / 8, 1.0)  # on the scale
_HANDICAPS = (0.25, 0.0, 0.0)  # a prior for smooth differences, which are the more common ones
_MIDDLE = 1  # the one that is multiplied by a kernel of the categories
_CATEGORIES = (0.5, 1.0, 2.0)  # times the median number of columns that differ
_UNITS_DIFFER = 10.0  # the ratio of the columns' lengths


class Collection(NamedTuple):
    """Kernels, and the handicap of each: by how much its score must be higher to count as much as another's."""

    kernels: list[Kernel]
    handicaps: Array


def default_kernels(points: Any, weights: Array | None, table: Table | None) -> Collection:
    """The collection for these points, each row treated alike."""
    categories = sorted(table.texts) if table is not None else []
    numbers = [k for k in range(points.shape[1]) if k not in categories]
    if not numbers:
        return _of_categories(points, weights)
    if not bool((points[:, numbers] != points[:1, numbers]).any()):  # numbers that say nothing
        if not categories:
            raise ValueError("All points are equal, in all samples: there is no difference to look for.")
        found = _of_categories(points[:, categories], weights)
        return found._replace(kernels=[kernel.on(categories) for kernel in found.kernels])
    kernels, handicaps = _of_numbers(points[:, numbers], weights, named=table is not None)
    if not categories:
        return Collection(kernels, handicaps)
    other = Categories().resolve(points[:, categories], weights).on(categories)
    alone = [kernel.on(numbers) for kernel in kernels]
    return Collection([*alone, other, alone[_MIDDLE] * other], np.append(handicaps, [0.0, 0.0]))


def _of_categories(points: Any, weights: Array | None) -> Collection:
    """Kernels that count the columns in which two rows differ."""
    sigma = float(Categories().resolve(points, weights).sigma)
    return Collection([Categories(factor * sigma) for factor in _CATEGORIES], np.zeros(len(_CATEGORIES)))


def _of_numbers(points: Any, weights: Array | None, *, named: bool) -> Collection:
    """Gaussians on columns of numbers; those that have names are different quantities."""
    units = column_units(points, weights, always=named)
    scaled = points if units is None else as_double(points) / like(units, points)
    low, high = distance_quantiles(scaled, "sqeuclidean", _ENDS, weights)
    lengths = [low / 2 * (4 * high / low) ** place for place in _PLACES]
    sigmas: list[Any] = lengths if units is None else [tuple((length * units).tolist()) for length in lengths]
    return Collection([Gaussian(sigma) for sigma in sigmas], np.array(_HANDICAPS))


def column_units(points: Any, weights: Array | None, *, always: bool = False) -> Array | None:
    """The median difference in each column; None where those are about the same, unless they are ``always`` asked for.

    Units differ where the columns do tenfold, by their deviations and by their median differences: a skew column has a
    small median difference and is in the same unit all the same. A tenth of the columns on either side may be as they
    are, such as the pixels at the edge of images. A column without differences gets the length of another.
    """
    if points.shape[1] == 1 or not bool((points != points[:1]).any()):
        return None
    deviations = _deviations(points, weights)
    varies = to_numpy((points != points[:1]).any(axis=0)) & (deviations > 0)
    if not varies.any() or (not always and _trimmed_ratio(deviations[varies]) <= _UNITS_DIFFER):
        return None
    lengths = np.array(Gaussian("columns").resolve(points, weights).get_params()["sigma"])
    if not always and _trimmed_ratio(lengths[varies]) <= _UNITS_DIFFER:
        return None
    return np.where(varies, lengths, lengths[varies][0])


def _deviations(points: Any, weights: Array | None) -> Array:
    """The standard deviations of the columns, in units of the largest number of each so that no square is infinite."""
    values = as_double(points)
    xp, n = namespace(values), values.shape[0]
    largest = xp.max(abs(values), axis=0)
    scaled = values / xp.where(largest > 0, largest, xp.ones_like(largest))
    shares = xp.ones_like(values[:, 0]) / n if weights is None else like(weights / weights.sum(), values)
    return to_numpy(largest * xp.sqrt(shares @ (scaled - shares @ scaled) ** 2))


def _trimmed_ratio(lengths: Array) -> float:
    """The largest over the smallest, without a tenth of them at either end."""
    ordered = np.sort(lengths)
    cut = len(ordered) // 10
    return float(ordered[-1 - cut] / ordered[cut])
