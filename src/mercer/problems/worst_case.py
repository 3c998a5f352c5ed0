"""The largest expectation of a function over the distributions of an MMD ball around a sample (SOS 3), on some points.

    maximise Σ aᵢ f(zᵢ)   over   a ≥ 0,  Σ aᵢ = 1,  ‖Σ (aᵢ - pᵢ) φ(zᵢ)‖ ≤ ε

p the sample's weights, which are zero at points that it does not have. For every h of the kernel's space and every
distribution μ in the ball, E_μ f ≤ max (f - h) + ⟨h, w_μ⟩ ≤ max (f - h) + ⟨h, v⟩ + ε‖h‖, v the sample's embedding.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.problems.problem import Problem


class PricedWeights(NamedTuple):
    """Weights a, and a price λ ≥ 0 of the ball: the function h of the bound is λ Σ (aᵢ - pᵢ) φ(zᵢ)."""

    weights: Array
    price: float


@final
class ExpectationInBall(Problem):
    """The programme on N points, with a low-rank stand-in for their kernel matrix.

    Parameters
    ----------
    values, shares : arrays of shape (N,)
        f and p.
    features : array of shape (N, r)
        Φ with ΦΦᵀ the kernel matrix, or near it: a certificate does not use it.
    radius : float
        ε > 0.
    """

    def __init__(self, values: Array, shares: Array, features: Array, radius: float) -> None:
        self.values, self.shares, self.features, self.radius = values, shares, features, radius
        self._centre = features.T @ shares

    @property
    def size(self) -> int:
        """N."""
        return int(self.values.size)

    def offset(self, weights: Array) -> Array:
        """Σ (aᵢ - pᵢ) φ(zᵢ) in the coordinates of the features."""
        return np.asarray(self.features.T @ weights - self._centre)

    def objective(self, weights: Array) -> float:
        """Σ aᵢ f(zᵢ)."""
        return float(self.values @ weights)

    def bound(self, offset: Array, price: float) -> float:
        """max (f - h) + ⟨h, v⟩ + ε‖h‖ for h = price · offset."""
        h = price * offset
        top = float(np.max(self.values - self.features @ h))
        return top + float(h @ self._centre) + self.radius * float(np.linalg.norm(h))
