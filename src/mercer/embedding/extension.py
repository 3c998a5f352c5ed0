"""An embedding at new points: affinities to the training points, in logarithms, and sums over them.

Far from the data every k(x, xⱼ) underflows. Written as k(x, xⱼ) = P_j e^t with t = maxⱼ log k(x, xⱼ), the weights P
stay between 0 and 1 and one of them is 1, so directions and averages are defined arbitrarily far away, and log Σⱼ k(x,
xⱼ) is finite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, as_double, namespace
from mercer.embedding.support import Support
from mercer.kernels import Kernel
from mercer.kernels.checks import first_place
from mercer.linalg.tall import row_lengths
from mercer.operators import DiffusionOperator, GramOperator

_LARGEST = float(np.log(np.finfo(np.float64).max))


@final
@dataclass(frozen=True)
class Extension:
    """All that new points need of a solved embedding (PSD22 (1.5)); made of the solution and the data alone.

    The direction of Ξ(x) is that of Σⱼ wⱼ k(x, xⱼ) βⱼ with βⱼ = Ξⱼ/√mⱼ - mean/√vol, its squared length is
    d(x) = k(x, x)/m(x) - m(x)/vol.

    Attributes
    ----------
    kernel : Kernel
        Resolved.
    points : array or sparse array
        What the problem was solved on.
    support : Support
        Which rows of X these are, and their weights w in the user's unit.
    weights : array of shape (m,)
        w over the square of the support's unit.
    slopes : array of shape (m, r)
        β, in these weights.
    log_volume, log_longest : float
        Logarithms of the sum of all affinities and of the largest √d in the training set, in these weights.
    """

    kernel: Kernel
    points: Any
    support: Support
    weights: Array
    slopes: Array
    log_volume: float
    log_longest: float

    @classmethod
    def of(
        cls, kernel: Kernel, points: Any, support: Support, operator: DiffusionOperator, coordinates: Array
    ) -> Extension:
        """The extension of coordinates (m × r) of the points of a diffusion operator in the scaled weights."""
        root = namespace(coordinates).sqrt
        mean = as_double(operator.stationary * root(operator.weights)) @ as_double(coordinates)
        slopes = coordinates / root(operator.degrees)[:, None] - mean / math.sqrt(operator.volume)
        longest = float((operator.diagonal() / operator.weights).max())
        logarithms = math.log(operator.volume), 0.5 * math.log(longest) if longest > 0 else -math.inf
        return cls(kernel, points, support, as_double(operator.weights), slopes, *logarithms)

    def novelty(self, X: Any) -> Array:
        """-log Σⱼ wⱼ k(x, xⱼ) for every row of X, in the user's weights."""
        return -self._sums(X, self.slopes[:, :0])[0] - 2 * math.log(self.support.unit)

    def coordinates(self, X: Any, *, capped: bool) -> Array:
        """Ξ(x) for every row of X, of shape (n, r), in the unit of the user's weights."""
        log_degrees, averages, log_diagonal = self._sums(X, self.slopes)
        xp, lengths = namespace(averages), row_lengths(averages)[:, None]
        directions = averages / xp.where(lengths > 0, lengths, 1.0)
        radius = log_radius(log_degrees, log_diagonal, self.log_volume)
        if capped:
            radius = xp.clip(radius, None, self.log_longest)
        elif (radius - math.log(self.support.unit) > 0.5 * _LARGEST).any():
            row = int(xp.argmax(radius))
            raise ValueError(f"Row {row} of X is so far from the data that its radius overflows: use radius='capped'.")
        return self.support.lengths(xp.exp(radius)[:, None] * directions)

    def _sums(self, X: Any, values: Array) -> tuple[Array, Array, Array]:
        columns = self.support.columns(X, self.kernel)
        return log_degrees_and_sums(self.kernel, columns, self.points, values, self.weights)


def embedded_rows(coordinates: Array, extension: Extension, X: Any, *, capped: bool) -> Array:
    """The solution on its points, extended to the others where it does not cover all rows of X."""
    if extension.support.indices is None:
        return coordinates
    everywhere = extension.coordinates(X, capped=capped)
    everywhere[extension.support.indices] = coordinates
    return everywhere


def log_degrees_and_sums(
    kernel: Kernel, X: Any, training: Any, values: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """Sums over the training points, for every row of X.

    Parameters
    ----------
    kernel : Kernel
        Resolved.
    X, training : arrays
        New points and training points.
    values : array of shape (n, r)
        What is summed.
    weights : array of shape (n,)
        Positive weights of the training points.

    Returns
    -------
    log_degrees : array of shape (m,)
        log Σⱼ wⱼ k(x, xⱼ).
    sums : array of shape (m, r)
        Σⱼ pⱼ valuesⱼ with pⱼ = wⱼ k(x, xⱼ) / Σ wₗ k(x, xₗ).
    log_diagonal : array of shape (m,)
        log k(x, x).
    """
    gram, xp = GramOperator(kernel, X, training), namespace(values)
    summed = xp.concat([weights[:, None], weights[:, None] * values], axis=1)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is named
        scale, products = gram.scaled_product(summed)
    degrees = products[:, 0]
    _require_affinities(degrees, kernel)
    with np.errstate(divide="ignore", over="ignore"):
        log_diagonal = xp.log(as_double(gram.kernel_diagonal()))
    return xp.log(degrees) + scale, products[:, 1:] / degrees[:, None], log_diagonal


def _require_affinities(degrees: Array, kernel: Kernel) -> None:
    """Refuse a point from which no affinity, or an infinite one, leads to the training points."""
    finite, positive = namespace(degrees).isfinite(degrees), degrees > 0
    if not finite.all():
        row = first_place(~finite)[0]
        raise ValueError(f"Row {row} of X is so far from the data that {kernel!r} overflows: it has no place.")
    if not positive.all():
        row = first_place(~positive)[0]
        raise ValueError(
            f"Row {row} of X has no positive affinity to the training points: it has no place in the embedding."
        )


def log_radius(log_degrees: Array, log_diagonal: Array, log_volume: float) -> Array:
    """½ log d(x), d(x) = k(x, x)/m - m/vol = (k(x, x)/m) (1 - m²/(vol k(x, x)))."""
    xp = namespace(log_degrees)
    ratio = xp.clip(xp.exp(2 * log_degrees - log_volume - log_diagonal), None, 1.0)
    with np.errstate(divide="ignore"):
        return 0.5 * (log_diagonal - log_degrees + xp.log1p(-ratio))
