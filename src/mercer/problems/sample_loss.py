"""The mean squared loss on a weighted sample, a convex quadratic of the coefficients of a function."""

from __future__ import annotations

from functools import cached_property
from typing import final

from mercer.backends.arrays import Array


@final
class SampleLoss:
    """R̂(β) = Σ wᵢ (βᵀu(xᵢ) - yᵢ)² = βᵀHβ - 2rᵀβ + c.

    Parameters
    ----------
    features : array of shape (n, l)
        u(xᵢ).
    targets, weights : arrays of shape (n,)
        yᵢ, and the weights of the sample, which sum to one.

    Attributes
    ----------
    curvature, slope : arrays of shape (l, l) and (l,)
        H and r.
    """

    def __init__(self, features: Array, targets: Array, weights: Array) -> None:
        self.features, self._targets, self._weights = features, targets, weights
        self.curvature = features.T @ (weights[:, None] * features)
        self.slope = features.T @ (weights * targets)

    @cached_property
    def constant(self) -> float:
        """c, the loss of f = 0."""
        return float(self._weights @ self._targets**2)

    def value(self, beta: Array) -> float:
        """R̂(β), from the residuals: H, r and c would lose the digits of a small loss."""
        return float(self._weights @ (self.features @ beta - self._targets) ** 2)

    def gradient(self, beta: Array) -> Array:
        """∇R̂(β)."""
        return 2 * (self.curvature @ beta - self.slope)
