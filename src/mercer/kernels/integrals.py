"""Integrals of products of kernel sections, which densities that are sums of squares need (SOS section 3, appendix B).

For support points z₁ … z_m and a measure ρ, with k_x = (k(x, z_p))_p:

    W_pq = ∫ k(x, z_p) k(x, z_q) dρ(x)                the mass matrix
    U(B)_r = ∫ (k_xᵀ B k_x) k(x, z_r) dρ(x)           the mean embedding of p_B at the support
    ∫ (Σ_r c_r k(x, z_r)) k_x k_xᵀ dρ(x)              the adjoint of U

The tensor u_pqr of order three that U and its adjoint share is never formed: memory is O(m²).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np

from mercer.kernels.base import Kernel
from mercer.kernels.measures import Box, GaussianMeasure, Lebesgue, Measure
from mercer.kernels.stationary import Gaussian

Array = np.ndarray[Any, np.dtype[Any]]


class KernelIntegrals(ABC):
    """Integrals of two and three kernel sections, against the scaled measure exp(-log_scale) ρ.

    The scale keeps the numbers near one where (πσ²/2)^{d/2} would overflow: B scaled by exp(log_scale) is what the
    formulas below take, and the density is p_B(x) = exp(-log_scale) k_xᵀ B k_x.

    Attributes
    ----------
    kernel : Kernel
        A resolved kernel.
    points : array of shape (m, d)
        The support z.
    measure : Lebesgue, Box or GaussianMeasure
        ρ.
    log_scale : float
        The logarithm of the scale.
    error : float
        An estimate of the error of the integrals, relative to the largest entry of W; 0 for closed forms.
    """

    def __init__(self, kernel: Kernel, points: Array, measure: Measure, log_scale: float, error: float = 0.0) -> None:
        self.kernel, self.points, self.measure = kernel, points, measure
        self.log_scale, self.error = log_scale, error

    @abstractmethod
    def mass(self, Y: Array | None = None) -> Array:
        """∫ k(x, y_i) k(x, z_p) dρ, of shape (n, m); W itself where Y is left out."""

    @abstractmethod
    def embed(self, B: Array, Y: Array | None = None) -> Array:
        """∫ (k_xᵀ B k_x) k(x, y_i) dρ at points Y, of shape (n,); U(B) at the support where Y is left out.

        B is symmetric, m × m.
        """

    @abstractmethod
    def weighted_mass(self, c: Array, Y: Array | None = None) -> Array:
        """∫ (Σ_i c_i k(x, y_i)) k_x k_xᵀ dρ, of shape (m, m): the adjoint of :meth:`embed`."""


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


def kernel_integrals(kernel: Kernel, points: Array, measure: Measure) -> KernelIntegrals:
    """The integrals of a resolved kernel on some points: in closed form where there is one."""
    if isinstance(kernel, Gaussian) and not isinstance(measure, Box):
        return GaussianIntegrals(kernel, points, measure)
    raise ValueError(
        f"There is no closed form for the integrals of {kernel!r} over R^d: give a box, or use Gaussian()."
    )
