"""Means of the newest rows of a stream, for every row and several windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from mercer.backends.arrays import Array


def largest_scores(
    features: Array, order: Array, windows: Sequence[int], size: int, offset: Array | None = None
) -> Array:
    """The largest ‖m_w - o‖²/(1/w + 1/N) over the windows w that are full, for every row of a stream.

    Parameters
    ----------
    features : array of shape (n, r)
        Features of rows, less the mean of the reference.
    order : array of int of shape (T,)
        Which of them the stream consists of, one after the other.
    windows : sequence of int
        w.
    size : int
        N, the rows of the reference.
    offset : array of shape (r,), optional
        o, zero if left out.

    Returns
    -------
    array of shape (T,)
        Minus infinity as long as no window is full.
    """
    lengths = np.array(windows, dtype=np.int64)
    factors = 1 / (lengths**2 * (1 / lengths + 1 / size))
    offset = np.zeros(features.shape[1]) if offset is None else offset
    scores: Array = _scores(np.ascontiguousarray(features), order.astype(np.int64), offset, lengths, factors)
    return scores


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _scores(features: Array, order: Array, offset: Array, windows: Array, factors: Array) -> Array:
    """Running sums of each window: the newest row comes in, the oldest goes out."""
    out = np.full(order.size, -np.inf)
    sums = np.zeros((windows.size, features.shape[1]))
    for t in range(order.size):
        new = features[order[t]]
        for k in range(windows.size):
            old = features[order[t - windows[k]]] if t >= windows[k] else offset
            total = 0.0
            for j in range(new.size):
                value = sums[k, j] + (new[j] - old[j])
                sums[k, j] = value
                total += value * value
            if t + 1 >= windows[k]:
                out[t] = max(out[t], factors[k] * total)
    return out
