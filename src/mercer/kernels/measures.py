"""Reference measures ρ that densities are taken with respect to: Lebesgue's on R^d or on a box, and a Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@final
@dataclass(frozen=True)
class Lebesgue:
    """Lebesgue's measure on R^d."""

    def log_density(self, X: Array) -> Array:
        """log dρ/dx at the rows of X: zero everywhere."""
        return np.zeros(X.shape[0])


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
        inside = np.all((self.lower <= X) & (self.upper >= X), axis=1)
        return np.where(inside, 0.0, -np.inf)


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
        squares = np.sum(((X - self.mean) / self.std) ** 2, axis=1)
        return np.asarray(-0.5 * squares - X.shape[1] * (np.log(self.std) + 0.5 * np.log(2 * np.pi)))


Measure = Lebesgue | Box | GaussianMeasure
