"""The diagonal of the inverse of a sparse symmetric matrix from its factor, without the inverse."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit

from mercer.backends.arrays import Array


def inverse_diagonal(lower: Any, pivots: Array) -> Array:
    """diag((L D Lᵀ)⁻¹) by the recurrences of Takahashi, Fagan and Chin (1973).

    Entries of the inverse at the places of L follow from those of later columns alone if the places are closed: where a
    column has entries i and k, column min(i, k) has one in row max(i, k). Elimination closes them; those that came out
    as zero and are not stored are put back.

    Parameters
    ----------
    lower : sparse CSC array of shape (n, n)
        L, lower triangular with ones on the diagonal.
    pivots : array of shape (n,)
        D.

    Returns
    -------
    array of shape (n,)
        Cost: the sum of squares of the numbers of entries of the columns of L.
    """
    lower = lower.tocsc()
    lower.sort_indices()
    starts, rows, values = lower.indptr.astype(np.int64), lower.indices.astype(np.int64), lower.data
    starts, rows, values = _closed(starts, rows, values)
    inverse = np.zeros_like(values)
    _recur(starts, rows, values, pivots, inverse)
    return inverse[starts[:-1]]


def _closed(starts: Array, rows: Array, values: Array) -> tuple[Array, Array, Array]:
    """The columns with zeros at the places that elimination fills: a column's rows go to that of the first of them."""
    columns = [rows[lo:hi] for lo, hi in pairwise(starts)]
    whole = True
    for column in columns:
        if column.size > 2:
            first = column[1]
            missing = np.setdiff1d(column[2:], columns[first], assume_unique=True)
            if missing.size:
                columns[first], whole = np.sort(np.concatenate([columns[first], missing])), False
    if whole:
        return starts, rows, values
    ends = np.concatenate([[0], np.cumsum([column.size for column in columns])])
    filled = np.zeros(ends[-1])
    for j, column in enumerate(columns):
        own = slice(starts[j], starts[j + 1])
        filled[ends[j] + np.searchsorted(column, rows[own])] = values[own]
    return ends, np.concatenate(columns), filled


@njit(nogil=True, cache=True)
def _recur(starts: Array, rows: Array, values: Array, pivots: Array, inverse: Array) -> None:
    """Fill the entries of the inverse at the places of L, the last column first."""
    n = pivots.shape[0]
    place = np.full(n, -1, np.int64)  # where a row lies among the entries of the column at hand
    sums = np.zeros(n)
    for j in range(n - 1, -1, -1):
        begin, end = starts[j] + 1, starts[j + 1]
        for p in range(begin, end):
            place[rows[p]] = p
            sums[rows[p]] = 0.0
        for p in range(begin, end):  # column k of the inverse below its diagonal meets the rows of column j
            k = rows[p]
            for q in range(starts[k], starts[k + 1]):
                i = rows[q]
                if place[i] < 0:
                    continue
                sums[i] += inverse[q] * values[p]
                if i != k:
                    sums[k] += inverse[q] * values[place[i]]
        own = 1.0 / pivots[j]
        for p in range(begin, end):
            inverse[p] = -sums[rows[p]]
            own -= values[p] * inverse[p]
            place[rows[p]] = -1
        inverse[starts[j]] = own
