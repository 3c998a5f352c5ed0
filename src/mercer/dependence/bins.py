"""Samples cut into bins of equally many rows, whose labels are exchanged instead of those of single rows.

Where the rows of several samples are exchangeable, so are bins of equally many of them: the reorderings that move whole
bins are a subgroup of all reorderings, and a p-value over them is exact (Domingo-Enrich, Dwivedi, Mackey 2023, compress
then test). A statistic that is a quadratic form in the measures then needs no more than the matrix

    M_ab = Σ_{i ∈ a, j ∈ b} wᵢ wⱼ k(xᵢ, xⱼ)

of the bins, however many rows they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.dependence.relabelling import Drawing, relabellings
from mercer.dependence.resampling import permutations

MOST_BINS = 1024  # of a sample: the matrix of all bins stays small


@final
class Bins(NamedTuple):
    """The rows of the pooled sample, those of the first sample first, by bins.

    Attributes
    ----------
    rows : array of int of shape (N,)
        Row numbers, bin after bin.
    starts : array of int of shape (S,)
        Where in ``rows`` each bin begins.
    groups : array of int of shape (S,)
        Which sample each bin is of, counted from 0.
    exchanged : array of bool of shape (S,)
        Which have the common size and may change sides; what is left of each sample is a bin that stays where it is.
    """

    rows: Array
    starts: Array
    groups: Array
    exchanged: Array

    def sums(self, values: Array) -> Array:
        """The sum of some numbers of the rows over each bin."""
        return np.add.reduceat(values[self.rows], self.starts, axis=0)

    def labels(self, drawing: Drawing) -> Array:
        """Of two samples, which bins are of the first, of shape (1 + B, S): as observed, then in reorderings."""
        of_x = self.groups == 0
        moving = np.flatnonzero(self.exchanged)
        count = int(of_x[moving].sum())
        found = relabellings(count, moving.size - count, drawing)
        out = np.tile(of_x, (found.count, 1))
        out[:, moving] = found.block(slice(0, moving.size))
        return out

    def group_labels(self, drawing: Drawing) -> Array:
        """Which sample each bin is of, of shape (1 + B, S): as observed, then in reorderings of the bins."""
        moving = np.flatnonzero(self.exchanged)
        out = np.tile(self.groups, (1 + drawing.n_resamples, 1))
        first = 1
        for orders in permutations(moving.size, drawing.n_resamples, drawing.rng):
            out[first : first + orders.shape[0], moving] = self.groups[moving][orders]
            first += orders.shape[0]
        return out


def size_of_bins(sizes: Sequence[int], count: int) -> int:
    """Rows a bin such that the smallest sample has ``count`` bins, or one for each row."""
    return max(1, min(sizes) // count)


def cut(sizes: Sequence[int], size: int, rng: np.random.Generator | None, *, rest: bool = True) -> Bins:
    """Samples of some sizes in bins of ``size`` rows, at most 1024 of each sample.

    Parameters
    ----------
    sizes : sequence of int
        Rows of the samples.
    size : int
        Rows a bin.
    rng : Generator or None
        Shuffles the rows of each sample first; with None bins are consecutive rows, as a series wants them.
    rest : bool, default=True
        Whether the rows beyond the bins of a sample are a bin that stays where it is; they are left out otherwise.
    """
    rows, lengths, groups, exchanged = [], [], [], []
    for group, count in enumerate(sizes):
        bins = min(count // size, MOST_BINS)
        left = (count - bins * size) if rest else 0
        order = np.arange(count) if rng is None else rng.permutation(count)
        rows.append(sum(sizes[:group]) + order[: bins * size + left])
        own = [size] * bins + ([left] if left else [])
        lengths += own
        groups += [group] * len(own)
        exchanged += [True] * bins + ([False] if left else [])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.intp)
    return Bins(np.concatenate(rows), starts, np.array(groups), np.array(exchanged))


def discrepancies(matrix: Array, masses: Array, labels: Array, *, unbiased: bool) -> Array:
    """MMD² for each row of labels, from the matrix of the bins and their masses.

    With ``unbiased`` pairs inside a bin are left out and the rest counts for all, which is an unbiased estimate as that
    without the pairs i = j is.
    """
    x = labels.astype(np.float64)
    within_x = np.einsum("bs,bs->b", x @ matrix, x)
    to_all = x @ matrix.sum(axis=1)
    between, within_y = to_all - within_x, matrix.sum() - 2 * to_all + within_x
    mass_x, square_x = x @ masses, x @ masses**2
    mass_y, square_y = masses.sum() - mass_x, (masses**2).sum() - square_x
    out = -2 * between / (mass_x * mass_y)
    if not unbiased:
        return out + within_x / mass_x**2 + within_y / mass_y**2
    own = np.diagonal(matrix)
    alone_x, alone_y = x @ own, own.sum() - x @ own
    return out + (within_x - alone_x) / (mass_x**2 - square_x) + (within_y - alone_y) / (mass_y**2 - square_y)
