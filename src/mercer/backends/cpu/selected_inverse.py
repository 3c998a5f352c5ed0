"""The diagonal of the inverse of a sparse symmetric matrix from its factor, without the inverse."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mercer.backends.arrays import Array


def inverse_diagonal(lower: Any, pivots: Array) -> Array | None:
    """diag((L D Lᵀ)⁻¹) by the recurrences of Takahashi, Fagan and Chin (1973); None where a factor has not their form.

    Entries of the inverse at the places of L follow from those of later columns alone, because the places of L are
    closed: where a column has entries i and k, column min(i, k) has one in row max(i, k).

    Parameters
    ----------
    lower : sparse CSC array of shape (n, n)
        L, lower triangular with ones on the diagonal.
    pivots : array of shape (n,)
        D.

    Returns
    -------
    array of shape (n,) or None
        Cost: the sum of squares of the numbers of entries of the columns of L.
    """
    lower = lower.tocsc()
    lower.sort_indices()
    starts, rows, values = lower.indptr.astype(np.int64), lower.indices.astype(np.int64), lower.data
    if not np.array_equal(rows[starts[:-1]], np.arange(pivots.size)):
        return None
    inverse = np.zeros_like(values)
    closed = _recur(starts, rows, values, pivots, inverse)
    return inverse[starts[:-1]] if closed else None


@njit(nogil=True, cache=True)
def _recur(starts: Array, rows: Array, values: Array, pivots: Array, inverse: Array) -> bool:
    """Fill the entries of the inverse at the places of L, the last column first; False where one is missing."""
    n = pivots.shape[0]
    place = np.full(n, -1, np.int64)  # where a row lies among the entries of the column at hand
    sums = np.zeros(n)
    for j in range(n - 1, -1, -1):
        begin, end = starts[j] + 1, starts[j + 1]
        for p in range(begin, end):
            place[rows[p]] = p
            sums[rows[p]] = 0.0
        for p in range(begin, end):  # column k of the inverse below its diagonal meets the rows of column j
            k, found = rows[p], 0
            for q in range(starts[k], starts[k + 1]):
                i = rows[q]
                if place[i] < 0:
                    continue
                found += 1
                sums[i] += inverse[q] * values[p]
                if i != k:
                    sums[k] += inverse[q] * values[place[i]]
            if found < end - p:
                return False
        own = 1.0 / pivots[j]
        for p in range(begin, end):
            inverse[p] = -sums[rows[p]]
            own -= values[p] * inverse[p]
            place[rows[p]] = -1
        inverse[starts[j]] = own
    return True
