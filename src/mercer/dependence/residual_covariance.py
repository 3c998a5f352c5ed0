"""The squared covariance of two sets of residuals, on the data and on resamples, for several kernels at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import EPS, gamma
from mercer.backends.threads import run_chunks

Transform = Callable[[Array], Array]  # of the residuals of Y: what a resample makes of them
_AT_ONCE = 16  # resamples between two reports of progress; each is a product of its own


@final
class ResidualCovariance:
    """T = (1/n) ‖Σᵢ rᵢ ⊗ sᵢ‖² for every pair of residuals r of X and s of Y.

    All pairs come from one product of the matrices of all residuals: n P Q operations, P and Q columns in all.

    Parameters
    ----------
    left, right : sequences of arrays of shape (n, p) and (n, q)
        The residuals of X, and of Y.
    """

    def __init__(self, left: Sequence[Array], right: Sequence[Array]) -> None:
        self._left, self._right = (np.concatenate(list(blocks), axis=1) for blocks in (left, right))
        self._starts = tuple(
            np.cumsum([0, *(block.shape[1] for block in blocks)])[:-1].astype(np.intp) for blocks in (left, right)
        )
        norms = [np.array([np.linalg.norm(block) for block in blocks]) for blocks in (left, right)]
        self._sizes = np.outer(norms[0], norms[1])

    def statistics(self, resamples: Iterator[Transform], count: int, progress: Callable[[float], None] | None) -> Array:
        """The statistics of the data, then of the resamples: shape (pairs, 1 + count), those of one r together."""
        columns = [self._of(self._right)]
        while len(columns) <= count:
            some = [next(resamples) for _ in range(min(_AT_ONCE, count + 1 - len(columns)))]
            columns += run_chunks(lambda change: self._of(change(self._right)), some)
            if progress is not None:
                progress((len(columns) - 1) / count)
        return np.stack(columns, axis=1)

    def _of(self, right: Array) -> Array:
        squares = (self._left.T @ right) ** 2
        return (np.add.reduceat(np.add.reduceat(squares, self._starts[0], 0), self._starts[1], 1) / self._size).ravel()

    @property
    def _size(self) -> int:
        return int(self._left.shape[0])

    def roundings(self, statistics: Array) -> Array:
        """How far statistics that are equal in exact arithmetic may lie apart, for each pair.

        An entry of the product errs by γ_n times the norms of its columns. Residuals of equal rows, made of as many
        operations as there are columns of a factor, may differ by as much again.
        """
        error = 4 * gamma(self._size + 1000, EPS) * self._sizes.ravel() / np.sqrt(self._size)
        return np.asarray(2 * error * (np.sqrt(statistics.max(axis=1)) + error))
