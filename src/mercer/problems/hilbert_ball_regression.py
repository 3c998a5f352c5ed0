"""Least squares with the penalty of Staib and Jegelka (2019): the relaxation that SOS section 2.1 warns of.

If the adversary may choose any vector v of the Hilbert space with ‖v - w_μ̂‖ ≤ ε, the worst loss is R̂(f) + ε‖ℓ_f‖, the
norm of the loss as a function. For the Gaussian kernel of bandwidth σ and f in its space, f² lies in the space of
bandwidth σ/√2; the terms of the loss that hold y do not, and are dropped, as those authors do in their experiments. So

    F(β) = R̂(β) + ε ‖f²‖ + λ‖β‖²,      ‖f²‖² = Σ_ab α_a α_b exp(-‖ξ_a - ξ_b‖²/(2σ²)) f((ξ_a + ξ_b)/2)²

for f = Σ_a α_a k(·, ξ_a): the reproducing property at the midpoints, since k_a k_b is a section at (ξ_a + ξ_b)/2. With
E = exp(-‖ξ_a - ξ_b‖²/(2σ²)) and D = Diag(α) it is Tr((DE)⁴). In the Bargmann transform ‖f²‖ is the square of an L⁴ norm
of f, hence convex, and F is strongly convex: F(β) - min F ≤ ‖∇F(β)‖²/(4λ).
"""

from __future__ import annotations

from typing import final

import numpy as np

from mercer.backends.arrays import Array, add_to_diagonal, copied, namespace
from mercer.problems.problem import Problem
from mercer.problems.sample_loss import SampleLoss


@final
class HilbertBallRegression(Problem):
    """The penalised least squares in β, f = βᵀu, u = Uᵀk_x, ‖f‖ = ‖β‖.

    Parameters
    ----------
    midpoint_gram : array of shape (m, m)
        E.
    function_basis : array of shape (m, l)
        U.
    sample : SampleLoss
        R̂.
    radius, regularization : float
        ε ≥ 0 and λ > 0.

    Notes
    -----
    Cost of a value, a gradient or a Hessian: O(m³).
    """

    def __init__(
        self,
        midpoint_gram: Array,
        function_basis: Array,
        sample: SampleLoss,
        *,
        radius: float,
        regularization: float,
    ) -> None:
        self.sample, self.radius, self.regularization = sample, radius, regularization
        self._root, self._basis = midpoint_gram, function_basis

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"a penalty in place of an adversary"})

    def start(self) -> Array:
        """Ridge regression without the penalty."""
        return namespace(self.sample.slope).linalg.solve(self._curved(), self.sample.slope)

    def gap(self, gradient: Array) -> float:
        """How far the value at a point with this gradient can be from the least one, but for rounding."""
        return float(gradient @ gradient) / (4 * self.regularization)

    def square_norm(self, beta: Array) -> float:
        """‖f²‖ in the space of bandwidth σ/√2."""
        alpha = self._basis @ beta
        return float(np.sqrt(max(float(alpha @ self._middle_values(alpha) ** 2 @ alpha), 0.0)))

    def value(self, beta: Array) -> float:
        """F(β)."""
        penalty = self.radius * self.square_norm(beta) + self.regularization * float(beta @ beta)
        return self.sample.value(beta) + penalty

    def gradient(self, beta: Array) -> Array:
        """∇F(β)."""
        alpha = self._basis @ beta
        slope = self.sample.gradient(beta) + 2 * self.regularization * beta
        norm = self.square_norm(beta)
        if norm > 0:
            pull = self._basis.T @ (self._middle_values(alpha) ** 2 @ alpha)
            slope += self.radius * 2 / norm * pull
        return slope

    def hessian(self, beta: Array) -> Array:
        """The Hessian of F; that of the penalty, Tr((DE)⁴)^(1/2), vanishes with f."""
        matrix = 2 * self._curved()
        norm = self.square_norm(beta)
        if norm > 0:
            alpha = self._basis @ beta
            P = self._middle_values(alpha)
            second = 4 * (2 * self._root * (P @ (alpha[:, None] * self._root)) + P**2)  # of Tr((DE)⁴)
            first = 4 * P**2 @ alpha
            moved = self._basis.T @ (second / (2 * norm) - first[:, None] * first / (4 * norm**3)) @ self._basis
            matrix += self.radius * (moved + moved.T) / 2
        return matrix

    def _curved(self) -> Array:
        """Half the Hessian without the penalty on f²."""
        matrix = copied(self.sample.curvature)
        add_to_diagonal(matrix, self.regularization)
        return matrix

    def _middle_values(self, alpha: Array) -> Array:
        """E D E: f((ξ_a + ξ_b)/2) exp(-‖ξ_a - ξ_b‖²/(4σ²))."""
        return (self._root * alpha) @ self._root
