"""Closed forms for the Gaussian kernel that factor into pairs: matrix products and O(m²) memory (SOS Lemma 4)."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends import products
from mercer.kernels.integrals_base import KernelIntegrals
from mercer.kernels.measures import GaussianMeasure, Lebesgue
from mercer.kernels.stationary import Gaussian

Array = np.ndarray[Any, np.dtype[Any]]
_PAIRWISE_UP_TO = 150


class GaussianMixture(NamedTuple):
    """Σ weights[i] N(means[i], variance · I); weights may be negative."""

    weights: Array
    means: Array
    variance: float


@final
class GaussianIntegrals(KernelIntegrals):
    """Closed forms for k(x, y) = exp(-a‖x - y‖²) and dρ = dx or N(μ₀, s² I), the latter ∝ exp(-b‖x - μ₀‖²).

    Completing the square, with b = 0 for Lebesgue's measure and points counted from μ₀,

        ∫ Π_{i ≤ n} k(x, p_i) dρ = c_n exp(-ab/(na+b) Σ‖p_i‖² - a²/(na+b) Σ_{i<j}‖p_i - p_j‖²)

    with c_n = (π/(na))^{d/2}, or (b/(na+b))^{d/2} for the Gaussian measure. For n = 3 the exponential is a product over
    pairs: u_pqr = c₃ h_p h_q h_r G_pq G_pr G_qr, so that U(B) = c₃ h ∘ diag(G (B ∘ hhᵀ ∘ G) G) needs matrix products
    and O(m²) memory alone (SOS Lemma 4 stores m³ numbers).
    """

    def __init__(self, kernel: Gaussian, points: Array, measure: Lebesgue | GaussianMeasure) -> None:
        d = points.shape[1]
        a = 1.0 / float(kernel.sigma) ** 2
        normal = isinstance(measure, GaussianMeasure)
        b = 0.5 / measure.std**2 if isinstance(measure, GaussianMeasure) else 0.0
        self._a, self._b = a, b
        self._centre = measure.mean if isinstance(measure, GaussianMeasure) else np.zeros(d)
        log_c2, log_c3 = (0.5 * d * np.log((b if normal else np.pi) / (n * a + b)) for n in (2, 3))
        super().__init__(kernel, points, measure, float(log_c2))
        self._c3 = float(np.exp(log_c3 - log_c2))
        self._pairs = self._pair_factor(points, 3)
        self._lone = self._lone_factor(points, 3)

    def mass(self, Y: Array | None = None) -> Array:
        Y = self.points if Y is None else Y
        outer = self._lone_factor(Y, 2)[:, None] * self._lone_factor(self.points, 2)
        return np.asarray(outer * self._pair_factor(Y, 2))

    def embed(self, B: Array, Y: Array | None = None) -> Array:
        G, h = self._towards(Y)
        inner = B * self._pairs * (self._lone[:, None] * self._lone)
        return np.asarray(self._c3 * h * np.einsum("ip,ip->i", G @ inner, G))

    def weighted_mass(self, c: Array, Y: Array | None = None) -> Array:
        G, h = self._towards(Y)
        inner = (G.T * (self._c3 * h * c)) @ G
        return np.asarray(inner * self._pairs * (self._lone[:, None] * self._lone))

    def mixture(self, B: Array) -> GaussianMixture:
        """The measure p_B dρ as a signed mixture of m(m+1)/2 normal laws, one for each pair of support points.

        k(x, p) k(x, q) dρ is W_pq times N(m_pq, I/(2(2a+b))), m_pq = (a(p + q) + bμ₀)/(2a + b).
        """
        i, j = np.triu_indices(self.points.shape[0])
        weights = (B * self.mass())[i, j] * np.where(i == j, 1.0, 2.0)
        rate = 2.0 * self._a + self._b
        means = (self._a * (self.points[i] + self.points[j]) + self._b * self._centre) / rate
        return GaussianMixture(weights, means, 0.5 / rate)

    def squared_norm(self, B: Array) -> float | None:
        """ωᵀκω over the components ω of the mixture, κ(m, m') = ∬ k dN(m) dN(m'): m⁴/8 kernel evaluations."""
        if self.points.shape[0] > _PAIRWISE_UP_TO:
            return None
        weights, means, variance = self.mixture(B)
        spread = 1.0 + 4.0 * self._a * variance
        evaluator = Gaussian(sigma=float(np.sqrt(spread / self._a))).evaluator(means)
        smoothed = products.multiply(evaluator, weights[:, None])[:, 0]
        return float(spread ** (-0.5 * means.shape[1]) * (weights @ smoothed))

    def _towards(self, Y: Array | None) -> tuple[Array, Array]:
        """G between Y and the support, and h of Y."""
        if Y is None:
            return self._pairs, self._lone
        return self._pair_factor(Y, 3), self._lone_factor(Y, 3)

    def _pair_factor(self, Y: Array, order: int) -> Array:
        """exp(-a²/(na+b) ‖y - z‖²)."""
        length = np.sqrt(order * self._a + self._b) / self._a
        return np.asarray(Gaussian(sigma=float(length))(Y, self.points), np.float64)

    def _lone_factor(self, Y: Array, order: int) -> Array:
        """exp(-ab/(na+b) ‖y - μ₀‖²)."""
        rate = self._a * self._b / (order * self._a + self._b)
        return np.asarray(np.exp(-rate * np.sum((Y - self._centre) ** 2, axis=1)))
