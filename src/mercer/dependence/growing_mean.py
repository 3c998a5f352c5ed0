"""The mean of features of a stream, in the span of the sections of its first rows.

With P the projection on the span of k(x, ·), x ∈ I, the embedding of N rows of which the first n are I is

    w = (1/N) (Σ_{x ∈ I} k(x, ·) + Σ_{x ∉ I} k(x, ·)),   ŵ = w - (1/N) Σ_{x ∉ I} (1 - P) k(x, ·),

so that ŵ agrees with w on I, and ‖w - ŵ‖ ≤ (1/N) Σ √(k(x, x) - ‖P k(x, ·)‖²). Sums are all that is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, as_double, to_numpy
from mercer.backends.chunks import TALL_ROWS, row_chunks
from mercer.backends.rounding import UNIT, gamma
from mercer.dependence.landmark_features import LandmarkFeatures
from mercer.operators import GramOperator

_MORE = 1.01  # for the rounding of roots and of their sum


@final
@dataclass(frozen=True, eq=False)
class Growth:
    """What is kept of the rows after the first.

    Attributes
    ----------
    features : LandmarkFeatures
        Those of the first rows, I.
    sums : array of shape (r,)
        Σ of the features of all further rows.
    left : float
        Σ ‖(1 - P) k(x, ·)‖ of these rows, at most.
    n_first, n_seen : int
        Rows in I, and rows so far, those of I among them.
    """

    features: LandmarkFeatures
    sums: Array
    left: float
    n_first: int
    n_seen: int

    @classmethod
    def of(cls, kernel: Any, points: Array) -> Growth:
        """Nothing yet after the first rows."""
        features = LandmarkFeatures(kernel, points)
        return cls(features, np.zeros(features.rank), 0.0, int(points.shape[0]), int(points.shape[0]))

    def with_rows(self, X: Array) -> Growth:
        """With further rows: n·m kernel evaluations and 2 n m r flops."""
        sums, left = self.sums.copy(), self.left
        for part in row_chunks(X.shape[0], TALL_ROWS):
            found, apart = self._looked_at(X[part])
            sums += found
            left += apart
        return Growth(self.features, sums, left, self.n_first, self.n_seen + int(X.shape[0]))

    def _looked_at(self, X: Array) -> tuple[Array, float]:
        """The sum of the features of some rows, and of their distances from the span, rounding counted."""
        gram = GramOperator(self.features.kernel, X, self.features.components)
        values = to_numpy(as_double(gram @ self.features.whiten))
        own, entry = to_numpy(as_double(gram.kernel_diagonal())), gram.entry_error
        largest = float(np.abs(own).max())
        product = gamma(int(self.features.components.shape[0]) + 8, UNIT)
        slip = (entry.relative + entry.scaled + product) * largest + entry.absolute
        lost = 4 * self.features.amplification * slip * np.sqrt(largest) + 8 * UNIT * largest
        squares = own - np.einsum("ij,ij->i", values, values)
        return values.sum(axis=0), _MORE * float(np.sqrt(np.clip(squares, 0.0, None) + lost).sum())

    @property
    def weights(self) -> Array:
        """Of the sections of I, whose sum is ŵ."""
        further = to_numpy(self.features.whiten) @ self.sums
        return (np.ones(self.n_first) + further) / self.n_seen

    @property
    def error(self) -> float:
        """A bound on ‖w - ŵ‖."""
        return self.left / self.n_seen
