"""Pre-images: points from their coordinates, by kernel ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from mercer.backends import get_config
from mercer.backends.arrays import (
    Array,
    add_to_diagonal,
    as_double,
    cholesky_factor,
    cholesky_solve,
    namespace,
    solve_triangular,
)
from mercer.kernels import Gaussian, Kernel
from mercer.linalg import rp_cholesky
from mercer.linalg.tall import inner_products, weighted_gram
from mercer.operators import GramOperator

_DENSE_UP_TO = 2000
_MOST_RANK = 1000
_SHARE = 1 / 8  # of the memory limit, for the factor
_LEFT_OUT = 1e-3  # of the penalty: what the trace left out by a factor may be


@final
@dataclass(frozen=True, eq=False)
class PreImage:
    """The map from coordinates to points: x(y) = Σᵢ k(y, yᵢ) cᵢ.

    Attributes
    ----------
    kernel : Kernel
        Between coordinates.
    centres : array of shape (m, p)
        Coordinates yᵢ.
    coefficients : array of shape (m, d)
        cᵢ.
    """

    kernel: Kernel
    centres: Array
    coefficients: Array

    def __call__(self, coordinates: Array) -> Array:
        """The points of some coordinates."""
        return GramOperator(self.kernel, coordinates, self.centres) @ self.coefficients


def kernel_between_coordinates(kernel: Kernel, coordinates: Array) -> Kernel:
    """The kernel itself where it is one of vectors and positive semi-definite, otherwise a Gaussian (median)."""
    if kernel.properties.positive_definite and kernel._reader is None and not kernel.is_local:
        return kernel
    return Gaussian().resolve(coordinates)


def learn_preimage(kernel: Kernel, coordinates: Array, points: Any, weights: Array | None, penalty: float) -> PreImage:
    """Minimise Σᵢ wᵢ ‖xᵢ - x(yᵢ)‖² + α ‖x‖² over the functions of a kernel, xᵢ the points and yᵢ their coordinates.

    Cost: up to n = 2000 a dense factorisation; beyond, randomly pivoted Cholesky of the kernel between coordinates
    until the trace that it leaves out is a thousandth of α, or of rank 1000, n·rank² flops and n·rank memory.
    """
    coordinates, points = as_double(coordinates), as_double(points)
    xp, n = namespace(points), points.shape[0]
    between = kernel_between_coordinates(kernel, coordinates)
    weights = xp.ones_like(points[:, 0]) if weights is None else as_double(weights)
    if n <= _DENSE_UP_TO:
        matrix = between(coordinates)
        add_to_diagonal(matrix, penalty / weights)
        return PreImage(between, coordinates, cholesky_solve(cholesky_factor(matrix), points))
    gram = GramOperator(between, coordinates)
    rank = max(1, min(_MOST_RANK, n, get_config().share(_SHARE) // (8 * n)))
    share = min(_LEFT_OUT * penalty / max(float(xp.sum(gram.diagonal())), penalty), 0.5)
    low = rp_cholesky(gram, rank, np.random.default_rng(0), tolerance=share)
    inner = weighted_gram(low.factor, xp.sqrt(weights))
    add_to_diagonal(inner, penalty)
    projected = cholesky_solve(cholesky_factor(inner), inner_products(low.factor, weights[:, None] * points))
    at = low.factor[low.landmarks]
    return PreImage(between, coordinates[low.landmarks], solve_triangular(at, projected, transpose=True))
