"""Features of a sample from a factor of its kernel matrix, and ridge regression on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

from mercer.backends import get_config
from mercer.backends.arrays import Array, as_double, namespace, solve_triangular, to_numpy
from mercer.kernels import Precomputed
from mercer.linalg import greedy_cholesky
from mercer.linalg.tall import weighted_gram
from mercer.operators import GramOperator

_SHARE = 1 / 8  # of the memory limit, for the features
_CERTAIN = 1e-10  # what is left of one beside a leverage, below which a row decides its own prediction


@final
@dataclass(frozen=True)
class Features:
    """Features of the training points with orthogonal columns, and the map that gives those of others.

    Attributes
    ----------
    values, spectrum : arrays of shapes (n, r) and (r,)
        Of the training points, and the weighted sums of their squares.
    centres, projection, offset : arrays
        Features of x are k(x, centres) projection - offset; of a matrix, centres are the numbers of its columns.
    left_out : float
        The weighted mean of what they leave out of k(x, x).
    """

    values: Array
    spectrum: Array
    centres: Array
    projection: Array
    offset: Array
    left_out: float

    @classmethod
    def of(cls, gram: GramOperator, shares: Array, centred: bool, most: int, tolerance: float) -> Features:
        """From a factor of the kernel matrix with the largest pivots, which leaves out a part of its trace."""
        n = gram.shape[0]
        rank = max(1, min(most, n, get_config().share(_SHARE) // (8 * n)))
        low = greedy_cholesky(gram, rank, usable=to_numpy(shares) > 0, tolerance=min(tolerance, 0.5))
        factor, xp = as_double(low.factor), namespace(low.factor)
        if not factor.shape[1]:
            raise ValueError(f"{gram.kernel!r} is zero at all points: there is nothing to learn from.")
        mean = shares @ factor if centred else xp.zeros_like(factor[0])
        spectrum, axes = xp.linalg.eigh(weighted_gram(factor - mean, xp.sqrt(shares)))
        at = factor[low.landmarks]
        identity = xp.eye(at.shape[0], dtype=at.dtype, device=at.device)
        projection = solve_triangular(at, identity, transpose=True) @ axes
        centres = low.landmarks if isinstance(gram.kernel, Precomputed) else gram.points[low.landmarks]
        left_out = float(shares @ as_double(low.residual_diagonal))
        values, spectrum = (factor - mean) @ axes, xp.clip(spectrum, 0.0, None)
        return cls(values, spectrum, centres, projection, mean @ axes, left_out)


@final
@dataclass(frozen=True)
class Ridge:
    """Ridge regression on features with orthogonal columns, of rows with weights of sum one.

    Minimises Σ wᵢ (vᵢ - c - φᵢᵀb)² + λ‖b‖²; without an intercept c = 0.
    """

    features: Array
    spectrum: Array
    shares: Array
    intercept: bool

    @cached_property
    def _weighted(self) -> Array:
        return self.features * self.shares[:, None]

    def weights(self, features: Array, penalty: float) -> Array:
        """The weights of the training values in the predictions at points with these features."""
        rows = (features / (self.spectrum + penalty)) @ self._weighted.T
        return rows + self.shares if self.intercept else rows

    def predicted(self, features: Array, values: Array, penalty: float) -> Array:
        """Predictions of several functions, whose values are columns."""
        slopes = (self._weighted.T @ values) / (self.spectrum + penalty)[:, None]
        found = features @ slopes
        return found + self.shares @ values if self.intercept else found

    def left_out(self, values: Array, penalty: float) -> Array:
        """Every value minus its prediction by the fit without it, which no second fit is needed for."""
        xp = namespace(values)
        leverage = self.shares * ((self.features**2) @ (1 / (self.spectrum + penalty)))
        rest = 1.0 - (leverage + self.shares if self.intercept else leverage)
        return (values - self.predicted(self.features, values, penalty)) / xp.clip(rest, _CERTAIN, None)[:, None]

    def left_out_squares(self, factor: Array, penalty: float) -> Array:
        """The squared lengths of what is left out, of vectors that are the rows of a factor."""
        return namespace(factor).sum(self.left_out(factor, penalty) ** 2, axis=1)
