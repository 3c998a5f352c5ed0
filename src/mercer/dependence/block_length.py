"""How long the blocks of a series must be so that exchanging them leaves its dependence as it is.

The error of exchanging blocks of length L has two parts: of rows that depend across the ends of blocks, about τ/L where
τ rows say as much as one independent one, and of having few blocks, about L/n. Their balance is L ~ τ^(2/3) n^(1/3),
the order of Künsch (1989) and Politis and White (2004).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.stats import rankdata

from mercer.backends.arrays import Array, to_numpy

_MOST_COLUMNS = 32  # whose dependence is measured
_FEWEST_BLOCKS = 5  # of a series, where it is long enough


def series_block_length(*series: Any) -> int:
    """The length for the shortest of some series, each of shape (n, d), by the one that depends most on its past."""
    shortest = min(points.shape[0] for points in series)
    times = [autocorrelation_time(to_numpy(points)) for points in series]
    length = int(np.ceil(max(times) ** (2 / 3) * shortest ** (1 / 3)))
    return max(1, min(length, shortest // _FEWEST_BLOCKS))


def autocorrelation_time(points: Array) -> float:
    """τ = 1 + 2 Σ ρ_h, the largest over columns, of the values and of their distances to the median.

    Correlations are of ranks, so that a heavy tail does not hide them, and are summed in pairs of lags up to the first
    pair that is not positive (Geyer 1992).
    """
    return max((_time(series) for series in _rank_series(points)), default=1.0)


def _rank_series(points: Array) -> Iterable[Array]:
    for column in points.T[:_MOST_COLUMNS]:
        for values in (column, abs(column - np.median(column))):
            ranks = rankdata(values) - (values.shape[0] + 1) / 2
            if ranks.any():
                yield ranks


def _time(ranks: Array) -> float:
    n = ranks.shape[0]
    spectrum = abs(np.fft.rfft(ranks, 2 * n)) ** 2
    correlations = np.fft.irfft(spectrum)[:n]
    correlations = correlations / correlations[0]
    pairs = correlations[1 : n - 1 : 2] + correlations[2:n:2]
    positive = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else pairs.shape[0]
    return float(1 + 2 * pairs[:positive].sum()) if positive else max(1.0, float(1 + 2 * correlations[1:2].sum()))
