"""Nearly all of the nearest neighbours of many points: random trees find some, neighbours of neighbours the others.

A forest of random splits (Dasgupta and Freund 2008) puts near points into one leaf, whose pairs are compared; then
neighbours of neighbours are compared until hardly any row improves (Dong, Moses, Li 2011). Rows of the table are
improved from the table of the last round, each by itself, so that the result does not depend on the number of threads.

Cost: about n log n splits a tree and 2k² f operations a point and round, two to six rounds, in single precision.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import njit

from mercer.backends.arrays import Array
from mercer.backends.chunks import row_chunks
from mercer.backends.threads import run_chunks

_TREES = 8
_LEAF = 48  # points of a leaf at most
_ROUNDS, _ENOUGH = 12, 1e-3  # rounds at most, and the part of all entries whose change is worth another
_ROWS = 2048  # a call
_SEED = 0x5EED


def descended_neighbours(points: Array, count: int, *, absolute: bool = False) -> Array:
    """Numbers of ``count`` near points to each, itself not among them, -1 where fewer were found, in no order.

    Parameters
    ----------
    points : array of float32 of shape (n, f)
        Near the origin, where single precision has most digits.
    count : int
        Wanted of each.
    absolute : bool
        Compare by sums of absolute differences instead of squared ones.
    """
    first, *seeds = np.random.SeedSequence(_SEED).generate_state(_TREES + 1)
    place = _tree(points, int(first))[0]  # near points lie near each other in memory
    found, result = _descended(points[place], seeds, count, absolute), np.empty((points.shape[0], count), np.int32)
    result[place] = np.where(found >= 0, place[found], -1)
    return result


def _descended(points: Array, seeds: Any, count: int, absolute: bool) -> Array:
    """The numbers of near points, from trees of these seeds."""
    n = points.shape[0]
    numbers, lengths = np.full((n, count), -1, np.int32), np.full((n, count), np.inf, np.float32)
    for order, ends in run_chunks(lambda seed: _tree(points, int(seed)), seeds):
        leaves = [ends[part.start : part.stop + 1] for part in row_chunks(ends.size - 1, _ROWS // _LEAF)]
        run_chunks(partial(_compare, points, absolute, numbers, lengths, order), leaves)
    fresh, parts = numbers >= 0, row_chunks(n, _ROWS)
    for _ in range(_ROUNDS):
        before, changed = (numbers.copy(), fresh, *_reversed(numbers, count)), np.zeros_like(fresh)
        taken = run_chunks(partial(_explored, points, absolute, before, (numbers, lengths, changed)), parts)
        fresh = changed
        if sum(taken) <= _ENOUGH * numbers.size:
            break
    return numbers


def _explored(points: Array, absolute: bool, before: tuple[Array, ...], table: tuple[Array, ...], part: slice) -> int:
    return int(_explore(points, absolute, part.start, part.stop, before, table))


def _tree(points: Array, seed: int) -> tuple[Array, Array]:
    """The points in the order of the leaves of a random tree, and where each leaf ends, beginning with zero."""
    order = np.arange(points.shape[0], dtype=np.int32)
    ends = np.zeros(points.shape[0] + 1, np.int64)
    count = _split(points, order, ends, np.uint64(seed))
    return order, ends[: count + 1].copy()


def _reversed(numbers: Array, most: int) -> tuple[Array, Array]:
    """For every point, those that have it among their neighbours, at most so many: where they start, and they."""
    n = numbers.shape[0]
    starts, sources = np.zeros(n + 1, np.int64), np.empty(numbers.size, np.int32)
    _list_sources(numbers, most, starts, sources)
    return starts, sources


@njit(nogil=True, cache=True)
def _split(points: Array, order: Array, ends: Array, seed: Any) -> int:
    """Split runs of the order by the plane between two of their points, until they are leaves."""
    n, features = points.shape
    pending = [(0, n)]
    normal = np.empty(features, np.float32)
    sides = np.empty(n, np.float32)
    state, leaves = np.uint64(seed) | np.uint64(1), 0
    while len(pending) > 0:
        lo, hi = pending.pop()
        size = hi - lo
        if size <= _LEAF:
            leaves += 1
            ends[leaves] = hi
            continue
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        a = order[lo + np.int64((state >> np.uint64(33)) % np.uint64(size))]
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        b = order[lo + np.int64((state >> np.uint64(33)) % np.uint64(size))]
        offset = np.float32(0)
        for f in range(features):
            normal[f] = points[a, f] - points[b, f]
            offset += normal[f] * (points[a, f] + points[b, f]) / np.float32(2)
        for p in range(lo, hi):
            sides[p] = _projection(points[order[p]], normal) - offset
        middle = _partition(order, sides, lo, hi)
        if min(middle - lo, hi - middle) < size // 16:  # a plane that splits off next to nothing
            middle = lo + size // 2
        pending.append((middle, hi))
        pending.append((lo, middle))
    return leaves


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _projection(x: Array, normal: Array) -> Any:
    total = np.float32(0)
    for f in range(x.shape[0]):
        total += x[f] * normal[f]
    return total


@njit(nogil=True, cache=True)
def _partition(order: Array, sides: Array, lo: int, hi: int) -> int:
    """Points of positive side first; where they end."""
    i, j = lo, hi - 1
    while i <= j:
        if sides[i] > 0:
            i += 1
        else:
            order[i], order[j] = order[j], order[i]
            sides[i], sides[j] = sides[j], sides[i]
            j -= 1
    return i


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _length(x: Array, y: Array, absolute: bool) -> Any:
    total = np.float32(0)
    if absolute:
        for f in range(x.shape[0]):
            total += abs(x[f] - y[f])
    else:
        for f in range(x.shape[0]):
            total += (x[f] - y[f]) * (x[f] - y[f])
    return total


@njit(nogil=True, cache=True)
def _offer(numbers: Array, lengths: Array, number: int, length: float) -> int:
    """Put a neighbour in the place of the farthest if it is nearer and not there; its place, or -1.

    The first entry is the farthest: the row is a heap.
    """
    if not length < lengths[0]:
        return -1
    count = numbers.shape[0]
    for p in range(count):
        if numbers[p] == number:
            return -1
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and lengths[child + 1] > lengths[child]:
            child += 1
        if lengths[child] <= length:
            break
        lengths[at], numbers[at] = lengths[child], numbers[child]
        at = child
    lengths[at], numbers[at] = length, number
    return at


@njit(nogil=True, cache=True)
def _compare(points: Array, absolute: bool, numbers: Array, lengths: Array, order: Array, ends: Array) -> None:
    """Offer each other the points of some leaves, which have no point in common."""
    for leaf in range(ends.shape[0] - 1):
        for p in range(ends[leaf], ends[leaf + 1]):
            i = order[p]
            for q in range(p + 1, ends[leaf + 1]):
                j = order[q]
                length = _length(points[i], points[j], absolute)
                _offer(numbers[i], lengths[i], j, length)
                _offer(numbers[j], lengths[j], i, length)


@njit(nogil=True, cache=True)
def _list_sources(numbers: Array, most: int, starts: Array, sources: Array) -> None:
    n, count = numbers.shape
    for i in range(n):
        for p in range(count):
            j = numbers[i, p]
            if j >= 0 and starts[j + 1] < most:
                starts[j + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    filled = np.zeros(n, np.int32)
    for i in range(n):
        for p in range(count):
            j = numbers[i, p]
            if j >= 0 and filled[j] < most:
                sources[starts[j] + filled[j]] = i
                filled[j] += 1


@njit(nogil=True, cache=True)
def _explore(points: Array, absolute: bool, lo: int, hi: int, last: Any, table: Any) -> int:
    """Offer rows lo to hi the neighbours of their neighbours, and of those whose neighbour they are; how many took."""
    (before, fresh, starts, sources), (numbers, lengths, changed) = last, table
    count = numbers.shape[1]
    seen = np.full(points.shape[0], -1, np.int32)
    taken = 0
    for i in range(lo, hi):
        seen[i] = i
        for p in range(count):
            if before[i, p] >= 0:
                seen[before[i, p]] = i
        for hop in range(count + starts[i + 1] - starts[i]):
            direct = hop < count
            j = before[i, hop] if direct else sources[starts[i] + hop - count]
            if j < 0:
                continue
            new = direct and fresh[i, hop]
            if not direct and seen[j] != i:
                seen[j] = i
                taken += _take(points, i, j, absolute, numbers, lengths)
                new = True
            for q in range(count):
                k = before[j, q]
                if k < 0 or seen[k] == i or not (new or fresh[j, q]):
                    continue
                seen[k] = i
                taken += _take(points, i, k, absolute, numbers, lengths)
        for p in range(count):
            k, known = numbers[i, p], False
            for q in range(count):
                known = known or before[i, q] == k
            changed[i, p] = not known
    return taken


@njit(nogil=True, cache=True)
def _take(points: Array, i: int, j: int, absolute: bool, numbers: Array, lengths: Array) -> int:
    return 1 if _offer(numbers[i], lengths[i], j, _length(points[i], points[j], absolute)) >= 0 else 0
