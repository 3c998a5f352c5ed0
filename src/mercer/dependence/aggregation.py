"""One valid p-value over several kernels, from the same resamples.

A function of a matrix with a column for the data and one for each resample that treats all columns alike turns
exchangeable columns into exchangeable numbers, so the rank of the observed number gives an exact p-value, whatever the
function does with the kernels. Here it takes the largest score: the statistic of each kernel is compared with the
statistics of all *other* columns, by its distance to their mean in standard deviations, made nearly normal for their
skewness by the cube root of Wilson and Hilferty (1931). Without that, wide kernels, whose null is a skew χ², would
drown narrow ones, whose null is nearly normal; ranks instead of scores would tie at 1/(1 + B) and lose power at small
levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.dependence.resampling import permutation_pvalue
from mercer.dependence.result import KernelPart

_FLAT = 1e-12  # of the spread of a row: entries whose standard deviation is less are equal
_LEAST_SKEW = 1e-3  # below, the cube root is the identity to rounding
_MOST_SKEW = 2.0**1.5  # of the square of a normal variable, the most skewed of all quadratic forms


class Aggregate(NamedTuple):
    """What several kernels say together.

    Attributes
    ----------
    observed : float
        The largest score of the data.
    null : array of shape (B,)
        The largest scores of the resamples.
    pvalue : float
        Of all kernels together.
    part_pvalues : array of shape (K,)
        Of each kernel alone, not corrected for the others.
    best : int
        The kernel with the largest score on the data.
    """

    observed: float
    null: Array
    pvalue: float
    part_pvalues: Array
    best: int


def aggregated(statistics: Any, roundings: Any = 0.0, handicaps: Any = 0.0) -> Aggregate:
    """One p-value of K statistics on the data and on B resamples.

    Parameters
    ----------
    statistics : array of shape (K, 1 + B)
        Row by row the kernels; the first column is the data's, the others those of the same B resamples.
    roundings : float or array of shape (K,), default=0
        How far equal statistics of a kernel may lie apart as computed: those are made equal first.
    handicaps : float or array of shape (K,), default=0
        What is taken from the scores of each kernel before the largest is found: a prior for those with less, chosen
        without the labels.
    """
    scores = standardised(statistics, roundings)
    fair = scores - np.broadcast_to(np.asarray(handicaps, dtype=np.float64), scores.shape[:1])[:, None]
    best = fair.max(axis=0)
    own = [permutation_pvalue(row[0], row[1:]) for row in scores]
    pvalue = permutation_pvalue(best[0], best[1:])
    return Aggregate(float(best[0]), best[1:], pvalue, np.array(own), int(fair[:, 0].argmax()))


def ranked(statistics: Array, roundings: Array, handicaps: Any = 0.0) -> Aggregate:
    """The p-value of a single statistic as it is, or one of the largest of several, as :func:`aggregated` has it."""
    if len(statistics) > 1:
        return aggregated(statistics, roundings, handicaps)
    observed, null = float(statistics[0, 0]), statistics[0, 1:]
    pvalue = permutation_pvalue(observed, null, float(roundings[0]))
    return Aggregate(observed, null, pvalue, np.array([pvalue]), 0)


def kernel_parts(kernels: Sequence[Any], statistics: Array, found: Aggregate) -> tuple[KernelPart, ...]:
    """What each of several kernels found; nothing of a single one."""
    if len(kernels) < 2:
        return ()
    return tuple(map(KernelPart, kernels, statistics[:, 0].tolist(), found.part_pvalues.tolist()))


def standardised(statistics: Any, roundings: Any = 0.0) -> Array:
    """Every statistic against the others of its row, about normal: of the shape (K, 1 + B) of what is given."""
    statistics = np.asarray(statistics, dtype=np.float64)
    allowed = np.broadcast_to(np.asarray(roundings, dtype=np.float64), statistics.shape[:1])
    return np.stack([_scores(row, rounding) for row, rounding in zip(statistics, allowed, strict=True)])


def _scores(row: Array, rounding: float) -> Array:
    """The score of each entry against all others; equal ones, to rounding, have the same, bit for bit."""
    order = np.argsort(row, kind="stable")
    values = row[order]
    run = np.concatenate([[0], np.cumsum(np.diff(values) > rounding)])  # entries of a run count as equal
    first = np.searchsorted(run, np.arange(run[-1] + 1))
    values = values[first][run]
    scores = np.empty_like(values)
    scores[order] = _against_others(values, first)[run]
    return scores


def _against_others(values: Array, places: Array) -> Array:
    """Scores of the entries at some places of an ascending row, each against the row without it."""
    middle = values[values.size // 2]
    spread = max(values[-1] - values[0], np.finfo(float).tiny)
    x = (values - middle) / spread
    mean, square, cube = (_without_one(x**power)[places] for power in (1, 2, 3))
    variance = square - mean**2
    scale = np.sqrt(np.maximum(variance, 0.0))
    gap = x[places] - mean
    flat = scale <= _FLAT  # all others are equal: no score of entries that differ is beyond that of one apart from them
    scale = np.where(flat, 1.0, scale)
    skew = np.clip((cube - 3 * mean * variance - mean**3) / scale**3, 0.0, _MOST_SKEW)
    apart = np.where(abs(gap) > _FLAT, np.sign(gap) / _FLAT, 0.0)
    return np.where(flat, apart, _normalised(gap / scale, skew))


def _without_one(x: Array) -> Array:
    """The mean of the entries without each of them, from sums on both sides of it: nothing cancels."""
    before = np.concatenate([[0.0], np.cumsum(x)[:-1]])
    after = np.concatenate([np.cumsum(x[::-1])[::-1][1:], [0.0]])
    return (before + after) / max(x.size - 1, 1)


def _normalised(t: Array, skew: Array) -> Array:
    """A gamma variable of mean 0, variance 1 and this skewness, made nearly normal."""
    g = np.maximum(skew, _LEAST_SKEW)
    return np.where(skew < _LEAST_SKEW, t, (6 / g) * (np.cbrt(g * t / 2 + 1) - 1) + g / 6)
