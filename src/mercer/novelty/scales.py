"""How far the k-th neighbour of a point is, and how far that is beside its neighbours' own: the loops.

R_k(x) is the distance at which k rows lie around x, x itself not counted. Training points are distinct and stand for
several rows each, or for a part of one: point u has the mass W_u, and one copy of it, min(1, W_u), is left out where u
is asked about itself. What a neighbour y says about u is its R_k *without that copy of u*, so that the score of a
training row is the one that a model of all other rows gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from mercer.backends.arrays import Array
from mercer.backends.chunks import TALL_ROWS, row_chunks
from mercer.backends.threads import run_chunks
from mercer.novelty.search import Nearest

FLOOR = 0.1  # of the median R_k, below which a distance counts as hardly more than zero: rows may have copies
FAR = 1e9  # beyond which the floor is lost in rounding, and squares might not be numbers


class Rule(NamedTuple):
    """What a score is made of: the mean over k of log R_w(x) + c (log R_k(x) - mean over the k neighbours of log R_k).

    Attributes
    ----------
    counts, wide : arrays of shape (s,)
        The numbers k of neighbours that are asked, and w, as many or more, of which the level is taken.
    units, wide_units : arrays of shape (s,)
        The median R_k and R_w of the training rows, in which lengths are measured.
    local : float
        c, the weight of what neighbours say.
    """

    counts: Array
    wide: Array
    units: Array
    wide_units: Array
    local: float


def radii(near: Nearest, masses: Array, counts: Array) -> Array:
    """R_k of every training point, of shape (m, s)."""
    out = np.empty((masses.size, counts.size))
    _for_rows(masses.size, lambda part: _fill_radii(part.start, *near, masses, counts, out[part]))
    return out


def scores_left_out(near: Nearest, masses: Array, known: Array, rule: Rule) -> Array:
    """The score of every training point among the others, of shape (m,); the higher, the more novel."""
    out = np.empty(masses.size)
    _for_rows(masses.size, lambda part: _fill_left_out(part.start, *near, masses, known, *rule, out[part]))
    return out


def scores_new(near: Nearest, masses: Array, known: Array, rule: Rule) -> Array:
    """The score of every new point, of shape (q,), from its nearest training points."""
    out = np.empty(near.numbers.shape[0])
    numbers, lengths = near
    _for_rows(out.size, lambda part: _fill_new(numbers[part], lengths[part], masses, known, *rule, out[part]))
    return out


def _for_rows(n: int, fill: Callable[[slice], None]) -> None:
    run_chunks(fill, row_chunks(n, TALL_ROWS))


@njit(nogil=True, cache=True)
def _radius(own: float, numbers: Array, lengths: Array, masses: Array, wanted: float) -> float:
    """The distance at which there is as much mass as wanted, from what lies at the point itself on."""
    enough, total = wanted * (1 - 1e-12), own
    if total >= enough:
        return 0.0
    for j in range(numbers.size):
        total += masses[numbers[j]]
        if total >= enough:
            return lengths[j]
    return lengths[-1]


@njit(nogil=True, cache=True)
def _logarithm(radius: float, unit: float) -> float:
    ratio = radius / unit
    return np.log(ratio) if ratio > FAR else 0.5 * np.log(ratio * ratio + FLOOR * FLOOR)


@njit(nogil=True, cache=True)
def _fill_radii(start: int, numbers: Array, lengths: Array, masses: Array, counts: Array, out: Array) -> None:
    for i in range(out.shape[0]):
        u = start + i
        own = masses[u] - min(1.0, masses[u])
        for s in range(counts.size):
            out[i, s] = _radius(own, numbers[u], lengths[u], masses, counts[s])


@njit(nogil=True, cache=True)
def _fill_left_out(
    start: int,
    numbers: Array,
    lengths: Array,
    masses: Array,
    known: Array,
    counts: Array,
    wide: Array,
    units: Array,
    wide_units: Array,
    local: float,
    out: Array,
) -> None:
    for i in range(out.size):
        u, total = start + i, 0.0
        copy = min(1.0, masses[u])
        own = masses[u] - copy
        for s in range(counts.size):
            k, unit, said = counts[s], units[s], 0.0
            taken = min(own, k)
            if taken > 0:  # other copies of u, of which each leaves itself out too
                alone = _radius(own - min(1.0, own), numbers[u], lengths[u], masses, k)
                said = taken * _logarithm(alone, unit)
            for j in range(numbers.shape[1]):
                if taken >= k:
                    break
                y = numbers[u, j]
                share, radius = min(masses[y], k - taken), known[y, s]
                if lengths[u, j] <= radius:  # u is among the k of y
                    beside = masses[y] - min(1.0, masses[y])
                    radius = _radius(beside, numbers[y], lengths[y], masses, k + copy)
                said += share * _logarithm(radius, unit)
                taken += share
            level = _logarithm(_radius(own, numbers[u], lengths[u], masses, wide[s]), wide_units[s])
            total += level + local * (_logarithm(known[u, s], unit) - said / taken)
        out[i] = total / counts.size


@njit(nogil=True, cache=True)
def _fill_new(
    numbers: Array,
    lengths: Array,
    masses: Array,
    known: Array,
    counts: Array,
    wide: Array,
    units: Array,
    wide_units: Array,
    local: float,
    out: Array,
) -> None:
    for i in range(out.size):
        total = 0.0
        for s in range(counts.size):
            k, unit, said, taken = counts[s], units[s], 0.0, 0.0
            for j in range(numbers.shape[1]):
                if taken >= k:
                    break
                y = numbers[i, j]
                share = min(masses[y], k - taken)
                said += share * _logarithm(known[y, s], unit)
                taken += share
            level = _logarithm(_radius(0.0, numbers[i], lengths[i], masses, wide[s]), wide_units[s])
            radius = _radius(0.0, numbers[i], lengths[i], masses, k)
            total += level + local * (_logarithm(radius, unit) - said / taken)
        out[i] = total / counts.size
