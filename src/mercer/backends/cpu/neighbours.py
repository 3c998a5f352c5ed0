"""Compiled loops over points and their neighbours: squared distances, near pairs, and rows that are known.

Squares are sums of terms that are not negative, so they err by at most f + 2 roundings for points of f features, in any
order of the sum. All loops run without the interpreter's lock.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mercer.backends.arrays import Array
from mercer.backends.chunks import THREAD_ENTRIES, row_chunks, rows_within
from mercer.backends.threads import run_chunks

_SQUARED = {"euclidean": False, "manhattan": True}  # whether the sum of a metric's terms is the distance itself
MEASURED = tuple(_SQUARED)  # metrics that are computed here


def squared_distances(rows: Array, cols: Array, metric: str) -> Array:
    """The block of squared distances between two sets of points, on this thread."""
    out = np.empty((rows.shape[0], cols.shape[0]))
    _fill_block(rows, cols, _SQUARED[metric], out)
    return out


def squared_lengths(points: Array, rows: Array, neighbours: Array, metric: str) -> Array:
    """The squared distances from some of the points, by number, to those named in their rows of ``neighbours``."""
    out = np.empty(neighbours.shape)
    chunks = row_chunks(rows.shape[0], rows_within(THREAD_ENTRIES, neighbours.shape[1] * points.shape[1]))
    run_chunks(lambda part: _fill_lengths(points, rows[part], neighbours[part], _SQUARED[metric], out[part]), chunks)
    return out


def squared_lengths_to(points: Array, queries: Array, neighbours: Array, metric: str) -> Array:
    """The squared distances from every query to the points that its row of ``neighbours`` names."""
    out = np.empty(neighbours.shape)
    chunks = row_chunks(queries.shape[0], rows_within(THREAD_ENTRIES, neighbours.shape[1] * points.shape[1]))
    run_chunks(lambda part: _fill_to(points, queries[part], neighbours[part], _SQUARED[metric], out[part]), chunks)
    return out


def put_in_order(numbers: Array, squares: Array) -> None:
    """Sort every row by its squares, then by its numbers, in place; rows that are nearly in order take least."""
    chunks = row_chunks(numbers.shape[0], rows_within(THREAD_ENTRIES, numbers.shape[1]))
    run_chunks(lambda part: _put_in_order(numbers[part], squares[part]), chunks)


def near_pairs(squares: Array, radii: Array, other_radii: Array) -> tuple[Array, Array]:
    """Where a block of squared distances is at most the larger of two squared radii: counts of rows, and columns."""
    counts = np.zeros(squares.shape[0], np.int64)
    _count_near(squares, radii, other_radii, counts)
    columns = np.empty(int(counts.sum()), np.int64)
    _list_near(squares, radii, other_radii, columns)
    return counts, columns


def row_keys(points: Array) -> Array:
    """A number for every row that is the same for equal rows, and for hardly any others."""
    keys = np.empty(points.shape[0], np.uint64)

    def mix(part: slice) -> None:
        doubles = np.add(points[part], 0.0, dtype=np.float64, order="C")  # 0.0 for -0.0, which equals it
        _mix(doubles.view(np.uint64), keys[part])

    run_chunks(mix, row_chunks(points.shape[0], rows_within(THREAD_ENTRIES, points.shape[1])))
    return keys


def find_rows(points: Array, keys: Array, known: Array, known_keys: Array, order: Array) -> Array:
    """Which of the known rows every row is, -1 where it is none; ``order`` sorts the keys of the known rows."""
    found = np.full(points.shape[0], -1)
    start = np.searchsorted(known_keys, keys, sorter=order)
    _find(points, keys, known, known_keys, order, start, found)
    return found


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _square(x: Array, y: Array, absolute: bool) -> float:
    total = 0.0
    if absolute:
        for f in range(x.shape[0]):
            total += abs(np.float64(x[f]) - np.float64(y[f]))
        return total * total
    for f in range(x.shape[0]):
        difference = np.float64(x[f]) - np.float64(y[f])
        total += difference * difference
    return total


@njit(nogil=True, cache=True)
def _fill_block(rows: Array, cols: Array, absolute: bool, out: Array) -> None:
    for start in range(0, cols.shape[0], 256):  # columns that stay in the cache
        for i in range(rows.shape[0]):
            for j in range(start, min(start + 256, cols.shape[0])):
                out[i, j] = _square(rows[i], cols[j], absolute)


@njit(nogil=True, cache=True)
def _fill_lengths(points: Array, rows: Array, neighbours: Array, absolute: bool, out: Array) -> None:
    for i in range(neighbours.shape[0]):
        for p in range(neighbours.shape[1]):
            out[i, p] = _square(points[rows[i]], points[neighbours[i, p]], absolute)


@njit(nogil=True, cache=True)
def _fill_to(points: Array, queries: Array, neighbours: Array, absolute: bool, out: Array) -> None:
    for i in range(neighbours.shape[0]):
        for p in range(neighbours.shape[1]):
            out[i, p] = _square(queries[i], points[neighbours[i, p]], absolute)


@njit(nogil=True, cache=True)
def _put_in_order(numbers: Array, squares: Array) -> None:
    for i in range(squares.shape[0]):
        for j in range(1, squares.shape[1]):
            number, square, to = numbers[i, j], squares[i, j], j
            while to > 0 and (
                squares[i, to - 1] > square or (squares[i, to - 1] == square and numbers[i, to - 1] > number)
            ):
                squares[i, to], numbers[i, to] = squares[i, to - 1], numbers[i, to - 1]
                to -= 1
            squares[i, to], numbers[i, to] = square, number


@njit(nogil=True, cache=True)
def _count_near(squares: Array, radii: Array, other_radii: Array, counts: Array) -> None:
    for i in range(squares.shape[0]):
        for j in range(squares.shape[1]):
            if squares[i, j] <= radii[i] or squares[i, j] <= other_radii[j]:
                counts[i] += 1


@njit(nogil=True, cache=True)
def _list_near(squares: Array, radii: Array, other_radii: Array, columns: Array) -> None:
    at = 0
    for i in range(squares.shape[0]):
        for j in range(squares.shape[1]):
            if squares[i, j] <= radii[i] or squares[i, j] <= other_radii[j]:
                columns[at] = j
                at += 1


@njit(nogil=True, cache=True)
def _mix(bits: Array, keys: Array) -> None:
    prime = np.uint64(0x9E3779B97F4A7C15)
    for i in range(bits.shape[0]):
        key = np.uint64(0)
        for f in range(bits.shape[1]):
            key = (key ^ bits[i, f]) * prime
            key ^= key >> np.uint64(29)
        keys[i] = key


@njit(nogil=True, cache=True)
def _find(points: Array, keys: Array, known: Array, known_keys: Array, order: Array, start: Array, found: Array) -> Any:
    for i in range(points.shape[0]):
        at = start[i]
        while at < order.shape[0] and known_keys[order[at]] == keys[i]:
            candidate, same = order[at], True
            for f in range(points.shape[1]):
                same = same and points[i, f] == known[candidate, f]
            if same:
                found[i] = candidate
                break
            at += 1
