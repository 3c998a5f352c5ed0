"""Reference measures ρ that densities are taken with respect to: Lebesgue's on R^d or on a box, and a Gaussian.

Corners and means are arrays of the library of the points that they are used with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from mercer.backends.arrays import Array, double, namespace


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
    """Lebesgue's measure on the box [lower, upper].

    Attributes
    ----------
    lower, upper : arrays of shape (d,)
        The corners, ``lower < upper`` in every coordinate.
    """

    lower: Array
    upper: Array

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
    """The normal law N(mean, std² I), whose tails a density with respect to it inherits.

    Attributes
    ----------
    mean : array of shape (d,)
        The mean μ₀.
    std : float
        The standard deviation s > 0 of every coordinate.
    """

    mean: Array
    std: float

    def log_density(self, X: Array) -> Array:
        """log dρ/dx at the rows of X."""
        squares = namespace(X).sum(((X - self.mean) / self.std) ** 2, axis=1)
        return -0.5 * squares - X.shape[1] * float(np.log(self.std) + 0.5 * np.log(2 * np.pi))


Measure = Lebesgue | Box | GaussianMeasure
