"""The threshold of a drift detector, from streams in which nothing changes.

A stream without drift, and the reference it is compared with, are drawn anew from the rows of the reference: the mean
of N drawn rows takes the place of the reference's, T further ones that of the stream. Up to its first alarm a stream is
watched for min(t, T) rows, and the alarms over the rows watched are the rate of alarms; the threshold is the least at
which that is no more than the rate asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.threads import run_chunks
from mercer.dependence.sliding import largest_scores

_RISK = 0.5  # expected alarms of a simulated stream, where that is not too long
_LONGEST = 20_000
_WINDOWS_LONG = 4  # windows that a stream is long at least, so that its beginning counts little


class Calibration(NamedTuple):
    """What a threshold is found for: the windows, the alarms a row, and how many alarms to simulate."""

    windows: tuple[int, ...]
    rate: float
    alarms: int


def calibrated(features: Array, plan: Calibration, rng: np.random.Generator) -> float:
    """The threshold at which independent rows of the reference's law raise so many alarms.

    Parameters
    ----------
    features : array of shape (N, r)
        Of the reference, less their mean.
    plan : Calibration
        What is asked for.
    rng : Generator
        The source of chance.

    Notes
    -----
    Cost: alarms/rate simulated rows, each 5 r flops for every window; memory: some numbers a simulated row on each
    thread.
    """
    N, longest = features.shape[0], plan.windows[-1]
    length = int(max(min(_RISK / plan.rate, _LONGEST), _WINDOWS_LONG * longest))
    streams = rng.spawn(int(np.ceil(plan.alarms / -np.expm1(-plan.rate * length))))

    def records(chance: np.random.Generator) -> tuple[Array, Array]:
        offset = _reference_mean(features, chance)
        scores = largest_scores(features, chance.integers(0, N, length), plan.windows, N, offset)
        highest = np.maximum.accumulate(scores)
        at = 1 + np.flatnonzero(highest[1:] > highest[:-1])  # no window is full at the first row
        return at + 1, highest[at]

    return _least_threshold(run_chunks(records, streams), length, plan.rate)


def _least_threshold(records: Sequence[tuple[Array, Array]], length: int, rate: float) -> float:
    """The least of all record scores at which the alarms over the rows watched are at most the rate."""
    candidates = np.unique(np.concatenate([values for _, values in records]))
    low, high = 0, candidates.size - 1
    while low < high:
        middle = (low + high) // 2
        alarms, rows = 0, 0
        for times, values in records:
            place = int(np.searchsorted(values, candidates[middle]))
            alarms += place < values.size
            rows += int(times[place]) if place < values.size else length
        low, high = (low, middle) if alarms <= rate * rows else (middle + 1, high)
    return float(candidates[low])


def _reference_mean(features: Array, chance: np.random.Generator) -> Array:
    """The mean of as many rows as the reference has, drawn from it: what another reference would have had."""
    N = features.shape[0]
    drawn = np.bincount(chance.integers(0, N, N), minlength=N)
    return np.asarray(drawn @ features / N)
