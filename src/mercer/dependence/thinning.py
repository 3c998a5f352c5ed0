"""Thinning: a few rows of a sample whose mean embedding is nearly that of all, by repeated kernel halving.

Rows are taken in pairs (x, x'), of which one is kept. With the signs s = ±1 that say which, the embeddings of the kept
and of the dropped half differ by Σ sₜ (k(xₜ, ·) - k(x'ₜ, ·)), and each sign is chosen so that this sum grows least, the
first by a coin (the self-balancing walk of Dwivedi and Mackey 2021, without its randomness after the first sign). Then
all signs are looked at again, and turned where the sum gets shorter. As a coin decides which half is called the kept
one, the embedding of the kept half is an unbiased estimate of that of all. Groups are halved and merged until the size
that is asked for is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from mercer.backends.arrays import Array, as_double, like, to_numpy
from mercer.backends.matrix import KernelMatrix
from mercer.backends.threads import run_chunks_of
from mercer.dependence.bins import Bins, size_of_bins
from mercer.kernels import Kernel

_BINS = 64  # of the smaller sample
_OVERSAMPLING = 4  # a coreset of √b rows of b is as good as all of them up to a constant; so many times as large
_SWEEPS = 2  # of looking at all signs again
_MOST_KERNELS = 3  # of a collection, in whose sum coresets are balanced


class Thinning(NamedTuple):
    """Rows a bin, and how often they are halved."""

    size: int
    halvings: int

    @property
    def kept(self) -> int:
        """Rows of a coreset."""
        return self.size >> self.halvings


def planned(n: int, m: int) -> Thinning:
    """Bins of b rows, a coreset of about 4√b of them in each; the size of a bin is a multiple of 2^halvings."""
    size = size_of_bins((n, m), _BINS)
    halvings = max(0, round(np.log2(np.sqrt(size) / _OVERSAMPLING)))
    unit = 2**halvings
    return Thinning(max(unit, size // unit * unit), halvings)


def thinned(kernels: Sequence[Kernel], points: Any, bins: Bins, thinning: Thinning, rng: np.random.Generator) -> Array:
    """The coreset of every bin, row numbers of shape (S, kept): one for all kernels, balanced in the sum of some.

    Cost: about 2·kept kernel evaluations a row; memory: (2·kept)² numbers a thread.
    """
    rows = bins.rows.reshape(-1, thinning.size)
    if not thinning.halvings:
        return rows
    which = np.unique(np.linspace(0, len(kernels) - 1, _MOST_KERNELS).round().astype(int))
    matrix = reduce(add, [kernels[k] for k in which]).matrix(points)
    coins = [rng.integers(0, 2, (rows.shape[0], 2 ** (j - 1))) for j in range(thinning.halvings, 0, -1)]

    def thin(bin_: int) -> Array:
        left = rows[bin_]
        for heads in coins:
            groups = zip(left.reshape(heads.shape[1], -1), heads[bin_], strict=True)
            left = np.concatenate([_half(matrix, like(group, points), int(coin)) for group, coin in groups])
        return left

    return np.stack(run_chunks_of(points, thin, range(rows.shape[0])))


def _half(matrix: KernelMatrix, group: Array, coin: int) -> Array:
    """One row of each pair of a group."""
    signs = _balanced(to_numpy(as_double(matrix.block(group, group))), 2 * coin - 1, _SWEEPS)
    return to_numpy(group).reshape(-1, 2)[np.arange(signs.size), (signs > 0).astype(np.intp)]


@njit(cache=True, nogil=True)
def _balanced(K: Array, first: int, sweeps: int) -> Array:
    """Signs of the pairs of consecutive rows that keep ‖Σ sₜ (k(x₂ₜ, ·) - k(x₂ₜ₊₁, ·))‖ small."""
    pairs = K.shape[0] // 2
    D = np.empty((pairs, pairs))
    for t in range(pairs):
        for j in range(pairs):
            D[t, j] = K[2 * t, 2 * j] - K[2 * t, 2 * j + 1] - K[2 * t + 1, 2 * j] + K[2 * t + 1, 2 * j + 1]
    signs = np.zeros(pairs)
    pull = np.zeros(pairs)  # Σⱼ sⱼ D_tj
    for t in range(pairs):
        signs[t] = first if pull[t] == 0 else -np.sign(pull[t])
        pull += signs[t] * D[t]
    for _ in range(sweeps):
        for t in range(pairs):
            others = pull[t] - signs[t] * D[t, t]
            if others * signs[t] > 0:
                signs[t] = -signs[t]
                pull += 2 * signs[t] * D[t]
    return signs
