"""Points made ready for pairing: centred, scaled or brought to unit length, for every leaf of a program."""

from __future__ import annotations

import numpy as np
from numba import njit

from mercer.backends.cpu.steps import COSINE, DOT, INNER, LIMIT


@njit(nogil=True, cache=True, fastmath={"contract"})
def _prepare(raw, pairing, scales, limit, center, out):  # type: ignore[no-untyped-def]
    """One point as a pairing wants it, into out; returns its squared norm where the pairing needs that.

    Centring is exact where it matters (Sterbenz), so an offset common to all points costs no digit; the limit keeps
    squares finite. A scale is a length that a coordinate is divided by, or a power of two, which costs nothing.
    """
    total = 0.0
    if pairing == INNER:
        for k in range(raw.size):
            value = (raw[k] - center[k]) / scales[k]
            out[k] = min(max(value, -limit), limit)
        for k in range(raw.size):
            total += np.float64(out[k]) * np.float64(out[k])
    elif pairing == COSINE:
        _direction(raw, out)
    else:
        for k in range(raw.size):
            out[k] = raw[k] if pairing == DOT else raw[k] * scales[k]
    return total


@njit(nogil=True, cache=True)
def _direction(raw, out):  # type: ignore[no-untyped-def]
    """A point divided by its length; zero stays zero."""
    largest = 0.0
    for k in range(raw.size):
        largest = max(largest, abs(raw[k]))
    total = 0.0
    for k in range(raw.size):
        value = raw[k] / largest if largest > 0 else 0.0
        total += value * value
    factor = 1.0 / np.sqrt(total) if total > 0 else 0.0
    for k in range(raw.size):
        out[k] = raw[k] / largest * factor if largest > 0 else 0.0


@njit(nogil=True, cache=True)
def prepare(program, points, start, stop, out, norms):  # type: ignore[no-untyped-def]
    """The columns of every leaf of points from start to stop into out[leaf, start:stop], and their squared norms."""
    raw = np.zeros(out.shape[2])
    for leaf in range(program.pairings.size):
        center, scales, limit = program.centers[leaf], program.scales[leaf], program.numbers[leaf, LIMIT]
        width = program.widths[leaf]
        raw[width:] = 0
        for i in range(start, stop):
            for k in range(width):
                raw[k] = points[i, program.columns[leaf, k]]
            norms[leaf, i] = _prepare(raw, program.pairings[leaf], scales, limit, center, out[leaf, i])


@njit(nogil=True, cache=True)
def load(kept, kept_norms, lo, count, out, norms, points_too):  # type: ignore[no-untyped-def]
    """Norms of some prepared points and, for loops of ours, the points; BLAS reads them where they lie."""
    for leaf in range(out.shape[0]):
        for i in range(count):
            norms[leaf, i] = kept_norms[leaf, lo + i]
            if points_too:
                for k in range(out.shape[2]):
                    out[leaf, i, k] = kept[leaf, lo + i, k]


@njit(nogil=True, cache=True)
def transpose(y, width, yt):  # type: ignore[no-untyped-def]
    """Turn the prepared columns of a tile, so that loops over columns run along memory."""
    for leaf in range(y.shape[0]):
        for k in range(y.shape[2]):
            for j in range(width):
                yt[leaf, k, j] = y[leaf, j, k]


@njit(nogil=True, cache=True)
def load_scales(scales, lo, count, out):  # type: ignore[no-untyped-def]
    """Scales of the rows or columns of a tile."""
    for s in range(scales.shape[0]):
        for i in range(count):
            out[s, i] = scales[s, lo + i]


@njit(nogil=True, cache=True)
def largest_norm(points, pairing, scales, limit, center):  # type: ignore[no-untyped-def]
    """The largest squared norm of the prepared points."""
    raw, out, largest = np.empty(points.shape[1]), np.empty(points.shape[1]), 0.0
    for i in range(points.shape[0]):
        for k in range(raw.size):
            raw[k] = points[i, k]
        largest = max(largest, _prepare(raw, pairing, scales, limit, center, out))
    return largest
