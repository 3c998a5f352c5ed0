"""What a detector knows of its training rows, and the scores it gives to these and to others.

With R_k(x) the distance of the k-th neighbour, x itself not counted, in units of its median over the training rows,

    ratio(x) = mean over k of  log R_k(x) - mean over the k neighbours y of log R_k(y).

log R_k says how empty it is around x, and the ratio compares x with its neighbours, as local outlier factors do
(Breunig, Kriegel, Ng, Sander 2000). A sum of all that drowns what one of them says alone: a small group far away
differs from its neighbours in nothing, and has many near. So there are three views, with k the largest number of
neighbours that is asked and w six times as many,

    log R_w + c/8 · ratio,    log R_k + c/8 · ratio,    log R_k + c · ratio,

each in distances of its own quartiles from its own median, over the training rows, and a row is as novel as the view
says that finds it most so.
-log density is m log R_k up to a constant where points fill m dimensions, so that
c = locality · m weighs a ratio of densities by ``locality``, whatever the dimension. m is estimated from the distances
of neighbours (Levina, Bickel 2004; mean of inverses, MacKay, Ghahramani 2005).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, distinct_rows, to_numpy
from mercer.backends.config import require_memory
from mercer.backends.cpu.neighbours import find_rows, row_keys
from mercer.kernels import Kernel
from mercer.novelty.columns import one_unit, quantiles, spreads
from mercer.novelty.scales import Rule, parts_left_out, parts_new, radii
from mercer.novelty.search import EuclideanSearch, KernelSearch, query_chunks
from mercer.novelty.views import Views
from mercer.progress import Phases

_DIMENSION_NEIGHBOURS = 20
_WIDER = 6  # times as many neighbours say how empty it is around a row as are asked about theirs
_PARTS = 4  # of the rows, of which no neighbourhood is larger than one
_LARGEST_POWER = 500  # of two: squares of such coordinates, and sums of them, are numbers
_SMALLEST_POWER = 400  # under one, that squares of differences of coordinates of this size have to spare
_LARGEST = 2.0**_LARGEST_POWER


class Asked(NamedTuple):
    """The parameters of a detector that its scores depend on; ``kernel`` None means Euclidean distances."""

    kernel: Kernel | None
    counts: tuple[int, ...]
    locality: float
    standardize: bool | str


@final
@dataclass(frozen=True)
class Reference:
    """Distinct training points with their masses, scales and scores.

    Attributes
    ----------
    search : EuclideanSearch or KernelSearch
        The distinct points in the coordinates in which distances are taken, and how these are found.
    divisors : array of shape (d,) or None
        What columns are divided by; None where distances are those of a kernel.
    masses : array of shape (m,)
        How many rows each point stands for.
    radii : array of shape (m, s)
        R_k of every point.
    rule : Rule
        What is asked about neighbours.
    views : Views
        How scores are made of the answers.
    dimension : float
        m, of what the points fill.
    scores : array of shape (m,)
        Of a row at each point, without itself.
    """

    search: EuclideanSearch | KernelSearch
    divisors: Array | None
    masses: Array
    radii: Array
    rule: Rule
    views: Views
    dimension: float
    scores: Array

    @classmethod
    def of(cls, X: Any, weights: Array | None, asked: Asked, phases: Phases) -> Reference:
        """What is to be known of rows of X that count as many times as their weights say."""
        weights = np.ones(X.shape[0]) if weights is None else to_numpy(weights)
        if asked.kernel is not None and not weights.all():  # rows without weight are asked about as others are
            asked.kernel.resolve(X).diag(X)  # which refuses what is no point of the kernel
        X, weights = X[weights > 0], weights[weights > 0]
        search, divisors, place = _searched(X, weights, asked)
        masses = np.bincount(place, weights)
        counts, wide = _possible(asked.counts, float(masses.sum()))
        phases.begin("finding neighbours")
        near = search.others(min(max(_holding(masses, wide), _DIMENSION_NEIGHBOURS), masses.size - 1))
        phases.begin("scoring the rows")
        known = radii(near, masses, counts)
        units = np.array([_median(column, masses) for column in known.T])
        rule = Rule(counts, wide, units, _median(radii(near, masses, np.array([wide]))[:, 0], masses))
        parts, dimension = parts_left_out(near, masses, known, rule), _dimension(near.lengths, masses)
        views = Views.of(parts, masses, asked.locality * dimension)
        return cls(search, divisors, masses, known, rule, views, dimension, views.scores(parts))

    def novelty(self, X: Any) -> Array:
        """The score of every row of X; that of a row of the training set is the one that it has without itself."""
        sought = X if self.divisors is None else _divided(to_numpy(X), self.divisors)
        rows, points = to_numpy(sought), to_numpy(self.search.points)
        keys = row_keys(points)
        found = find_rows(rows, row_keys(rows), points, keys, np.argsort(keys, kind="stable"))
        out, fresh = self.scores[found], np.flatnonzero(found < 0)
        count = _holding(self.masses, self.rule.wide)
        for part in query_chunks(fresh.size, count):
            which = fresh[part]
            near = self.search.nearest(sought[which], count)
            out[which] = self.views.scores(parts_new(near, self.masses, self.radii, self.rule))
        return out


def _searched(X: Any, weights: Array, asked: Asked) -> tuple[EuclideanSearch | KernelSearch, Array | None, Array]:
    """A search among the distinct rows, what columns were divided by, and which of the distinct rows each row is."""
    if asked.kernel is not None:
        first, place = distinct_rows(X)
        _require_two(int(first.shape[0]))
        return KernelSearch(asked.kernel, X[first]), None, to_numpy(place)
    points = np.asarray(to_numpy(X), np.float64)
    apart = not one_unit(points, weights) if asked.standardize == "auto" else bool(asked.standardize)
    divisors = spreads(points, weights) if apart else np.ones(points.shape[1])
    divisors = np.ldexp(divisors, _power(points, divisors))
    points = _divided(points, divisors)
    first, place = distinct_rows(points)
    _require_two(first.size)
    return EuclideanSearch(np.ascontiguousarray(points[first])), divisors, place


def _power(points: Array, divisors: Array) -> int:
    """The power of two that makes a coordinate in the middle about one, or the largest as large as squares allow.

    So one row far out, or at the end of what numbers can be, does not make all others vanish beside it.
    """
    columns = zip(points.T, divisors, strict=True)
    sizes = np.concatenate([np.frexp(column[column != 0])[1] - math.frexp(divisor)[1] for column, divisor in columns])
    if not sizes.size:
        return 0
    middle = int(np.median(sizes))
    return max(middle, min(int(sizes.max()) - _LARGEST_POWER + 1, middle + _SMALLEST_POWER))


def _divided(points: Array, divisors: Array) -> Array:
    """The points in the coordinates of the search, as far away as squares allow."""
    with np.errstate(over="ignore"):
        return np.clip(np.asarray(points, np.float64) / divisors, -_LARGEST, _LARGEST)


def _require_two(distinct: int) -> None:
    if distinct < 2:
        raise ValueError("All points are equal: a detector needs two that differ.")


def _possible(counts: tuple[int, ...], rows: float) -> tuple[Array, float]:
    """The numbers of neighbours that are asked, and six times the most, each a quarter of the rows at most.

    Larger ones would tell a training row, which is compared with one row less, from a new one.
    """
    if rows < 2:
        raise ValueError(
            f"sample_weight counts rows, and its sum is {rows:g}: multiply it by a number, so that it is two or more."
        )
    most = max(1, math.floor(rows / _PARTS))
    found = np.array(sorted({float(min(k, most)) for k in counts}))
    return found, float(min(_WIDER * max(counts), most))


def _holding(masses: Array, wide: float) -> int:
    """So many points hold as much mass as is ever asked for, whichever they are, or are all there are."""
    needed = min(int(np.searchsorted(np.cumsum(np.sort(masses)), wide + 1)) + 1, masses.size)
    require_memory(
        36.0 * needed * masses.size,
        f"The {needed} nearest neighbours of {masses.size} points",
        "lower n_neighbors" if masses.min() >= 1 else "raise sample_weight, which counts rows",
    )
    return needed


def _median(column: Array, masses: Array) -> float:
    """The median scale of the training rows, of those that have one."""
    apart = column > 0
    return float(quantiles(column[apart], (0.5,), masses[apart])[0]) if apart.any() else 1.0


def _dimension(lengths: Array, masses: Array) -> float:
    """The dimension of what the points fill: the inverse of the mean of log R_k/R_j over the neighbours j < k."""
    near = lengths[:, : min(_DIMENSION_NEIGHBOURS, lengths.shape[1])]
    whole = near[:, 0] > 0
    if near.shape[1] < 2 or not whole.any():
        return 1.0
    near, masses = near[whole], masses[whole]
    logarithms = np.log(near[:, -1:] / near[:, :-1]).mean(axis=1)
    mean = float(masses @ logarithms / masses.sum())
    return 1 / mean if mean > 0 else 1.0
