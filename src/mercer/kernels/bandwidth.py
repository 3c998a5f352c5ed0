"""Bandwidths chosen from the data.

Three rules, all deterministic, all on at most 1 000 points drawn with a fixed seed:

``"median"``
    The median distance between two different points. Robust and customary, but a property of the whole cloud: with
    several clusters it measures the distance between them and blurs what is inside.
``"slope"``
    The length at which S(σ) = mean of k_σ(xᵢ, xⱼ) over all pairs, i = j included, grows fastest on a log-log scale. For
    points on a manifold of dimension m and σ between the sampling distance and the radius of curvature, S grows like
    σ^m; it is flat (1/n) where σ is so small that points see only themselves, and flat (1) where it is so large that
    all look alike. The steepest point is thus the scale at which the kernel resolves the data, and its slope estimates
    m (Coifman, Shkolnisky, Sigworth, Singer 2008; Berry, Harlim 2016). Distances between clusters do not move it as
    they move the median.
``"columns"``
    A length for each column: the median difference of two points that differ in it, times one number for all columns,
    which makes the median distance in these lengths one. Columns of any units then count alike. A column that is the
    same everywhere gets that number itself.

With weights a pair counts wᵢwⱼ times, so that a row of weight two is the same as the row twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from mercer.backends import forms, profiles
from mercer.backends.arrays import Array, as_double, contiguous, is_tensor, like, namespace, to_numpy
from mercer.backends.matrix import kernel_matrix
from mercer.backends.rounding import EPS
from mercer.kernels.checks import as_points, checked_weights, positive_number, scale_free

RULES = ("median", "slope")
COLUMN_RULES = (*RULES, "columns")
Metric = Literal["sqeuclidean", "cityblock", "mismatches"]
MOST_POINTS = 1000
_GRID = 96
_BINS = 1024
_FAR = 300.0  # log of a distance in bandwidths whose square is finite and where any kernel is zero


def resolve_length(
    value: Any,
    name: str,
    X: Any,
    metric: Metric,
    kernel_of: Callable[[Array], Array],
    sample_weight: Array | None = None,
) -> float | tuple[float, ...]:
    """Return a length as a number: itself, or by the rule it names. ``kernel_of`` is k as a function of r / length.

    Lengths of the columns, given or by the rule for them, are a tuple.
    """
    if not isinstance(value, str):
        return checked_lengths(value, name, X.shape[1])
    if value == "columns":
        return _column_lengths(as_points(X), name, metric, sample_weight)
    pairs = _pairs(X, name, metric, sample_weight)
    with np.errstate(over="ignore"):
        length = pairs.unit * (_quantile(pairs, 0.5) if value == "median" else _steepest(pairs, kernel_of))
    if not np.isfinite(length):
        raise ValueError(f"The distances that {name} is chosen from exceed the largest number: divide X by a constant.")
    return length


def distance_quantiles(
    X: Any, metric: Metric, parts: Sequence[float], sample_weight: Array | None = None
) -> list[float]:
    """The distances that these parts of the pairs of different points do not exceed."""
    pairs = _pairs(X, "the bandwidth", metric, sample_weight)
    with np.errstate(over="ignore"):
        found = [pairs.unit * _quantile(pairs, part) for part in parts]
    if not np.all(np.isfinite(found)):
        raise ValueError("The distances of the points exceed the largest number: divide X by a constant.")
    return found


def check_rule(value: Any, name: str, rules: tuple[str, ...] = RULES) -> None:
    """Refuse a text that names no rule."""
    if isinstance(value, str) and value not in rules:
        raise ValueError(f"{name}={value!r} must be a positive number or one of {', '.join(map(repr, rules))}.")


def checked_lengths(value: Any, name: str, n_features: int) -> float | tuple[float, ...]:
    """A positive number, or one for each column as a tuple."""
    if is_tensor(value):
        value = to_numpy(value)
    if not isinstance(value, list | tuple | np.ndarray) or np.ndim(value) == 0:
        return positive_number(value, name)
    if len(value) != n_features:
        raise ValueError(
            f"{name} has {len(value)} numbers, but the points have {n_features} columns: give one for each."
        )
    return tuple(positive_number(length, f"{name}[{k}]") for k, length in enumerate(value))


def _column_lengths(X: Array, name: str, metric: Metric, sample_weight: Any) -> tuple[float, ...]:
    """The median difference in each column, times what makes the median distance one."""
    medians = np.ones(X.shape[1])
    for k in range(X.shape[1]):
        column = X[:, k : k + 1]
        if (column != column[:1]).any():
            pairs = _pairs(column, name, metric, sample_weight)
            medians[k] = pairs.unit * _quantile(pairs, 0.5)
    pairs = _pairs(as_double(X) / like(medians, X), name, metric, sample_weight)
    with np.errstate(over="ignore"):
        lengths = pairs.unit * _quantile(pairs, 0.5) * medians
    if not np.all(np.isfinite(lengths)):
        raise ValueError(f"The distances that {name} is chosen from exceed the largest number: divide X by a constant.")
    return tuple(lengths.tolist())


class _Pairs(NamedTuple):
    """Distances of different points, in a unit; how often each counts, and how often a point meets itself."""

    distances: Array
    counts: Array
    coincident: float
    unit: float


def _pairs(X: Any, name: str, metric: Metric, sample_weight: Any) -> _Pairs:
    """The pairs of points in the sample, as float64, in the library of the points."""
    X = as_points(X)
    w = like(np.ones(X.shape[0]), X)
    if sample_weight is not None:
        w = scale_free(checked_weights(sample_weight, X.shape[0], "sample_weight", reference=X))
        X, w = X[w > 0], w[w > 0]
    if X.shape[0] < 2:
        raise ValueError(
            f"{name} is chosen from the distances of points, but there is {'one' if len(X) else 'none'}"
            f"{'' if sample_weight is None else ' of positive weight'}: pass a number."
        )
    X, w = _some(X, w)
    X, unit = _centred(as_double(X))
    spread = float(abs(X).max())
    if spread == 0:
        raise ValueError(f"All points are equal, so {name} cannot be chosen from the data: pass a number.")
    distances = _distances(X, metric, spread)
    counts = namespace(X).ones_like(distances) if sample_weight is None else _above_diagonal(w[:, None] * w)
    apart = distances > 0
    return _Pairs(distances[apart], counts[apart], float(w @ w + 2 * counts[~apart].sum()), unit)


def _centred(X: Array) -> tuple[Array, float]:
    """The points in a unit in which their differences are finite, less the first of them, and that unit."""
    unit = 16.0 if float(abs(X).max()) > np.finfo(np.float64).max / 16 else 1.0
    X = X / unit
    return X - X[:1], unit


def _distances(X: Array, metric: Metric, length: float) -> Array:
    """The distances of all pairs, row by row; a length of about their size keeps squares finite."""
    xp = namespace(X)
    if xp is np and X.shape[1] == 1 and metric != "mismatches":  # a column, of which there may be thousands
        return pdist(X, "cityblock")
    values = _above_diagonal(kernel_matrix(forms.Pairing(metric, profiles.Identity(), length), contiguous(X)).dense())
    return length * (xp.sqrt(values) if metric == "sqeuclidean" else values)


def _above_diagonal(matrix: Array) -> Array:
    """The entries above the diagonal of a square matrix, row by row."""
    xp = namespace(matrix)
    return matrix[xp.triu(xp.ones(matrix.shape, dtype=xp.bool, device=matrix.device), k=1)]


def some_points(X: Any, weights: Array | None) -> tuple[Array, Array | None]:
    """The points that the rules look at among rows that come a block at a time, and their weights."""
    if X.shape[0] <= MOST_POINTS:
        return X[:], weights
    chosen = np.sort(np.random.default_rng(0).choice(X.shape[0], MOST_POINTS, replace=False))
    return X[chosen], None if weights is None else weights[chosen]


def _some(X: Array, w: Array) -> tuple[Array, Array]:
    """At most 1 000 points, drawn with a fixed seed; if these are all the same, one of them and some that differ."""
    if X.shape[0] <= MOST_POINTS:
        return X, w
    xp, rng = namespace(X), np.random.default_rng(0)
    chosen = like(np.sort(rng.choice(X.shape[0], MOST_POINTS, replace=False)), X)
    if (X[chosen] == X[chosen[0]]).all():
        others = xp.nonzero((X[chosen[0]] != X).any(axis=1))[0][: MOST_POINTS // 2]
        chosen = xp.sort(xp.concat([chosen[: MOST_POINTS - others.shape[0]], others]))
    return X[chosen], w[chosen]


def _quantile(pairs: _Pairs, part: float) -> float:
    """The distance that a part of the pairs does not exceed; the mean of two where exactly that part lies below."""
    xp = namespace(pairs.distances)
    if part == 0.5 and xp is np and (pairs.counts == pairs.counts[0]).all():  # the same, without sorting them all
        return float(np.median(pairs.distances))
    order = xp.argsort(pairs.distances)
    cumulated = pairs.counts[order].cumsum(0)
    rounding = cumulated.shape[0] * EPS  # of the sums: a tie is one in any unit of the weights
    around = like(np.array([1 - rounding, 1 + rounding]), cumulated)
    at = xp.searchsorted(cumulated, part * cumulated[-1] * around)
    return float(xp.mean(pairs.distances[order[at]]))


def _steepest(pairs: _Pairs, kernel_of: Callable[[Array], Array]) -> float:
    """The steepest point of log S on a grid of log σ, the distances counted in narrow bins of their logarithm.

    What remains of the points is a table, and it is NumPy's, whatever library they are of.
    """
    pairs = pairs._replace(distances=to_numpy(pairs.distances), counts=to_numpy(pairs.counts))
    logarithms = np.log(pairs.distances)
    counts, edges = np.histogram(logarithms, _BINS, weights=pairs.counts)
    centers = (edges[:-1] + edges[1:]) / 2
    logs = np.linspace(np.log(_quantile(pairs, 0.001)) - 1, logarithms.max() + 2, _GRID)
    sums = np.array([pairs.coincident + 2 * counts @ kernel_of(np.exp(np.minimum(centers - t, _FAR))) for t in logs])
    return float(np.exp(logs[np.argmax(np.gradient(np.log(sums), logs))]))
