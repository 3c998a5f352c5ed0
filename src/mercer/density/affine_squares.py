"""Densities of the Gaussian kernel with respect to a normal law with a full covariance: images of sums of squares.

A sum of squares of Gaussian sections exp(-‖y - z‖²/σ²) stays one when y is turned by a rotation. So the law of
x = Ay + s has marginals and conditionals of the same kind: turn y so that the coordinates of x that are kept, or given,
are functions of the first coordinates of y alone.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, like, to_numpy
from mercer.density.gaussian_squares import GaussianSquares
from mercer.density.law import Law


@final
class AffineSquares(Law):
    """The law of x = Ay + s, where y has a density that is a sum of squares on R^d.

    Parameters
    ----------
    squares : GaussianSquares
        The law of y, on all of R^d.
    matrix : array of shape (d, d)
        A, invertible.
    shift : array of shape (d,)
        s.
    """

    _squares: GaussianSquares
    _matrix: Array
    _shift: Array

    def __init__(self, squares: GaussianSquares, matrix: Any, shift: Any) -> None:
        self._squares = squares
        self._matrix, self._shift = (np.asarray(to_numpy(part), np.float64) for part in (matrix, shift))
        super().__init__(squares._answer(squares._points @ self._matrix.T + self._shift), None, None)

    @property
    def sampling_error(self) -> float:
        """As that of y."""
        return self._squares.sampling_error

    def score_samples(self, X: Any) -> Any:
        """log p at some points; minus infinity where p underflows."""
        X = self._rows(to_numpy(X) if self._home is None else like(X, self._home))
        inverse = like(np.linalg.inv(self._matrix), X)
        volume = float(np.linalg.slogdet(self._matrix)[1])
        return self._squares.score_samples((X - like(self._shift, X)) @ inverse.T) - volume

    def _mean(self) -> Array:
        return self._matrix @ self._squares._mean() + self._shift

    def _covariance(self) -> Array:
        return self._matrix @ self._squares._covariance() @ self._matrix.T

    def _marginal(self, kept: Array, others: Array) -> AffineSquares:
        turned, rotation = self._turned(kept)
        first = np.arange(kept.size)
        return AffineSquares(turned.marginal(first), (self._matrix[kept] @ rotation)[:, first], self._shift[kept])

    def _conditional(self, given: Array, at: Array, others: Array) -> AffineSquares:
        turned, rotation = self._turned(given)
        turning, count = self._matrix @ rotation, given.size
        first = np.linalg.solve(turning[given, :count], at - self._shift[given])
        shift = self._shift[others] + turning[others, :count] @ first
        return AffineSquares(turned.conditional(np.arange(count), first), turning[others, count:], shift)

    def _turned(self, coordinates: Array) -> tuple[GaussianSquares, Array]:
        """The law of Qᵀy for a rotation Q such that these coordinates of AQ have no columns but the first ones."""
        rotation = np.linalg.qr(self._matrix[coordinates].T, mode="complete")[0]
        squares = self._squares
        points = squares._answer(squares._points @ rotation)
        return GaussianSquares(points, squares._coefficients, squares.sigma), rotation

    def _cdf(self, x: Array) -> Array:
        scale = float(self._matrix[0, 0])
        below = self._squares._cdf((x - self._shift[0]) / scale)
        return below if scale > 0 else 1.0 - below

    def _quantile(self, levels: Array) -> Array:
        scale = float(self._matrix[0, 0])
        return scale * self._squares._quantile(levels if scale > 0 else 1.0 - levels) + self._shift[0]

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return self._squares._sample(n, rng) @ self._matrix.T + self._shift
