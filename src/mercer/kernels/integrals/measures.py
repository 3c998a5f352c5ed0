"""Measures that densities are taken with respect to, and laws that quadratures stand for.

Lebesgue's measure on R^d or on a box, a normal law, and finitely many points with weights. Estimators read what is
given with :mod:`mercer.kernels.integrals.given_measure`: from then on corners, means and points are arrays of the
library of the points that they are used with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, ArrayOrNumber, as_double, double, namespace
from mercer.backends.pairings import LARGEST_DISTANCE


@final
@dataclass(frozen=True)
class Lebesgue:
    """Lebesgue's measure on R^d."""

    def log_density(self, X: Array) -> Array:
        """log dρ/dx at the rows of X: zero everywhere."""
        return namespace(X).zeros(X.shape[0], dtype=double(X), device=X.device)


@final
@dataclass(frozen=True)
class Box:
    """Lebesgue's measure on the box [lower, upper]; as the law of a quadrature, the uniform one.

    Attributes
    ----------
    lower, upper : arrays of shape (d,)
        The corners, ``lower < upper`` in every coordinate; estimators take a number for all of them.
    """

    lower: ArrayOrNumber
    upper: ArrayOrNumber

    def log_density(self, X: Array) -> Array:
        """log dρ/dx at the rows of X: zero in the box, minus infinity outside."""
        inside = self.holds(X)
        out = namespace(X).zeros(X.shape[0], dtype=double(X), device=X.device)
        out[~inside] = -np.inf
        return out

    def holds(self, X: Array) -> Array:
        """Whether the rows of X lie in the box."""
        return namespace(X).all((self.lower <= X) & (self.upper >= X), axis=1)


@final
@dataclass(frozen=True)
class GaussianMeasure:
    """The normal law N(mean, std² I) or N(mean, covariance), whose tails a density with respect to it inherits.

    Attributes
    ----------
    mean : array of shape (d,)
        The mean μ₀; estimators take a number for all coordinates.
    std : float or None
        The standard deviation s > 0 of every coordinate; None where a covariance is given.
    covariance : array of shape (d, d) or None
        Σ, symmetric and positive definite.
    """

    mean: ArrayOrNumber
    std: float | None = None
    covariance: Array | None = None

    def log_density(self, X: Array) -> Array:
        """log dρ/dx at the rows of X."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._log_density(X)

    def _log_density(self, X: Array) -> Array:
        xp, apart = namespace(X), X - self.mean
        if self.covariance is None:
            assert self.std is not None
            squares = _numbers(xp.sum((apart / self.std) ** 2, axis=1))
            return -0.5 * squares - X.shape[1] * float(np.log(self.std) + 0.5 * np.log(2 * np.pi))
        root = xp.linalg.cholesky(self.covariance)
        squares = _numbers(xp.sum(xp.linalg.solve(root, as_double(apart).T) ** 2, axis=0))
        volume = float(xp.sum(xp.log(xp.linalg.diagonal(root)))) + 0.5 * X.shape[1] * float(np.log(2 * np.pi))
        return -0.5 * squares - volume

    def deviations(self) -> Array:
        """The standard deviation of every coordinate, of shape (d,)."""
        if self.covariance is not None:
            return namespace(self.covariance).linalg.diagonal(self.covariance) ** 0.5
        assert self.std is not None
        return namespace(self.mean).full_like(self.mean, self.std)


@final
@dataclass(frozen=True)
class DiscreteMeasure:
    """Σ_q w_q δ(x_q): the nodes and weights of a quadrature that stands for a measure, or a weighted sample.

    A density with respect to it is a function whose values at the nodes, times the weights, are probabilities.

    Attributes
    ----------
    points : array of shape (Q, d)
        The nodes x.
    weights : array of shape (Q,), float or None
        w, none negative and not all zero; None means 1/Q each.
    """

    points: Array
    weights: Any = None

    def log_density(self, X: Array) -> Array:
        """Zero everywhere: a density is with respect to the measure itself, which has none in dx."""
        return namespace(X).zeros(X.shape[0], dtype=double(X), device=X.device)


def _numbers(squares: Array) -> Array:
    """Squared distances, of which those that are no numbers are the largest."""
    largest = namespace(squares).full_like(squares, LARGEST_DISTANCE["float64" if squares.itemsize == 8 else "float32"])
    return namespace(squares).where(squares < largest, squares, largest)


Measure = Lebesgue | Box | GaussianMeasure | DiscreteMeasure
