"""Columns of a matrix kept as rows of one array: put there, copied and added up on all cores.

Every entry of a sum is added in the order of the columns, whatever the chunks, so sums are the same for any number of
threads. Tensors take the same sums through their own library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mercer.backends.arrays import Array, is_tensor, namespace
from mercer.linalg.dense_products import over_rows

_PIECE = 512  # entries of a sum that stay in the first-level cache while columns pass by


def put(store: Array, places: Array, block: Array) -> None:
    """Write the columns of an N × m block into the rows of the store at these places."""
    if is_tensor(store):
        store[places] = block.T
        return
    size, width = block.shape
    if width == 1:
        store[places[0]] = block[:, 0]
        return
    over_rows(lambda rows: _put(store, places, block, rows.start, rows.stop), size, width, _PIECE)


def add(total: Array, store: Array, places: Array, coefficients: Array) -> None:
    """Add these multiples of stored columns to a vector."""
    if is_tensor(store):
        total += coefficients @ store[places]
        return

    def part(rows: slice) -> None:
        _add(total, store, places, coefficients, rows.start, rows.stop)

    over_rows(part, total.shape[0], places.shape[0], _PIECE)


def combine(store: Array, places: Array, v: Array, b: Array) -> tuple[Array, Array]:
    """Two sums of stored columns, in one reading of them.

    Rows of a tensor that hold no column must hold finite numbers: they are multiplied by zero, which spares a
    copy of the others.
    """
    size = store.shape[1]
    if is_tensor(store):
        xp = namespace(store)
        coefficients = xp.zeros((2, store.shape[0]), dtype=store.dtype, device=store.device)
        coefficients[0, places], coefficients[1, places] = v, b
        sums = coefficients @ store
        return sums[0], sums[1]
    first, second = np.empty(size), np.empty(size)

    def part(rows: slice) -> None:
        _combine(store, places, v, b, rows.start, rows.stop, first, second)

    over_rows(part, size, places.shape[0], _PIECE)
    return first, second


def enlarged(store: Array, count: int) -> Array:
    """A store of so many rows that begins with the rows of this one."""
    have, size = store.shape
    if is_tensor(store):
        xp = namespace(store)
        return xp.concat([store, xp.zeros((count - have, size), dtype=store.dtype, device=store.device)])
    larger = np.empty((count, size))

    def copy(rows: slice) -> None:
        larger[rows] = store[rows]

    over_rows(copy, have, size, 1)
    return larger


@njit(cache=True, nogil=True)
def _put(store: Any, places: Any, block: Any, start: int, stop: int) -> None:
    for lo in range(start, stop, 64):  # a tile of rows is read once and written to every column while it is in cache
        for k in range(places.size):
            row = store[places[k]]
            for i in range(lo, min(lo + 64, stop)):
                row[i] = block[i, k]


@njit(cache=True, nogil=True)
def _add(total: Any, store: Any, places: Any, coefficients: Any, start: int, stop: int) -> None:
    for lo in range(start, stop, _PIECE):
        hi = min(lo + _PIECE, stop)
        part = total[lo:hi]
        for k in range(places.size):
            column = store[places[k], lo:hi]
            for i in range(hi - lo):
                part[i] += coefficients[k] * column[i]


# Sums may be taken in any order: it is the same from run to run, and for any number of threads.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _combine(columns: Any, slots: Any, v: Any, b: Any, start: int, stop: int, first: Any, second: Any) -> None:
    """Two linear combinations in one reading of the columns, four at a time, in pieces that stay in the first cache."""
    for lo in range(start, stop, _PIECE):
        hi = min(lo + _PIECE, stop)
        x, y = first[lo:hi], second[lo:hi]
        x[:], y[:] = 0.0, 0.0
        whole = slots.size - slots.size % 4
        for k in range(0, whole, 4):
            p, q = columns[slots[k], lo:hi], columns[slots[k + 1], lo:hi]
            r, s = columns[slots[k + 2], lo:hi], columns[slots[k + 3], lo:hi]
            v0, v1, v2, v3 = v[k], v[k + 1], v[k + 2], v[k + 3]
            b0, b1, b2, b3 = b[k], b[k + 1], b[k + 2], b[k + 3]
            for i in range(hi - lo):
                x[i] += v0 * p[i] + v1 * q[i] + v2 * r[i] + v3 * s[i]
                y[i] += b0 * p[i] + b1 * q[i] + b2 * r[i] + b3 * s[i]
        for k in range(whole, slots.size):
            p = columns[slots[k], lo:hi]
            for i in range(hi - lo):
                x[i] += v[k] * p[i]
                y[i] += b[k] * p[i]
