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
    """What is asked about the neighbours of a row.

    Attributes
    ----------
    counts : array of shape (s,)
        The numbers k of neighbours with which a row is compared.
    wide : float
        The number w, as many or more, of which the level is taken.
    units : array of shape (s,)
        The median R_k of the training rows, in which lengths are measured.
    wide_unit : float
        The median R_w.
    """

    counts: Array
    wide: float
    units: Array
    wide_unit: float


class Parts(NamedTuple):
    """What a score is made of, each an array of shape (q,).

    Attributes
    ----------
    far, near : arrays
        log R_w, and log R_k of the largest k: how empty it is around a row.
    ratio : array
        The mean over k of log R_k less the mean of that of the k neighbours.
    """

    far: Array
    near: Array
    ratio: Array

    @classmethod
    def empty(cls, size: int) -> Parts:
        """For so many rows."""
        return cls(np.empty(size), np.empty(size), np.empty(size))

    def rows(self, part: slice) -> Parts:
        """Of some of the rows: views, to be filled."""
        return Parts(*(each[part] for each in self))


def radii(near: Nearest, masses: Array, counts: Array) -> Array:
    """R_k of every training point, of shape (m, s)."""
    out = np.empty((masses.size, counts.size))
    _for_rows(masses.size, lambda part: _fill_radii(part.start, *near, masses, counts, out[part]))
    return out


def parts_left_out(near: Nearest, masses: Array, known: Array, rule: Rule) -> Parts:
    """What the score of every training point among the others is made of."""
    out = Parts.empty(masses.size)
    _for_rows(
        masses.size,
        lambda part: _fill_left_out(part.start, *near, masses, known, *rule, *out.rows(part)),
    )
    return out


def parts_new(near: Nearest, masses: Array, known: Array, rule: Rule) -> Parts:
    """What the score of every new point is made of, from its nearest training points."""
    numbers, lengths = near
    out = Parts.empty(numbers.shape[0])
    _for_rows(
        numbers.shape[0],
        lambda part: _fill_new(numbers[part], lengths[part], masses, known, *rule, *out.rows(part)),
    )
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
    wide: float,
    units: Array,
    wide_unit: float,
    far: Array,
    near: Array,
    ratio: Array,
) -> None:
    for i in range(far.size):
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
            near[i] = _logarithm(known[u, s], unit)
            total += near[i] - said / taken
        far[i] = _logarithm(_radius(own, numbers[u], lengths[u], masses, wide), wide_unit)
        ratio[i] = total / counts.size


@njit(nogil=True, cache=True)
def _fill_new(
    numbers: Array,
    lengths: Array,
    masses: Array,
    known: Array,
    counts: Array,
    wide: float,
    units: Array,
    wide_unit: float,
    far: Array,
    near: Array,
    ratio: Array,
) -> None:
    for i in range(far.size):
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
            near[i] = _logarithm(_radius(0.0, numbers[i], lengths[i], masses, k), unit)
            total += near[i] - said / taken
        far[i] = _logarithm(_radius(0.0, numbers[i], lengths[i], masses, wide), wide_unit)
        ratio[i] = total / counts.size
