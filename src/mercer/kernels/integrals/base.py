"""Integrals of products of kernel sections, which densities that are sums of squares need (SOS section 3, appendix B).

For support points z₁ … z_m and a measure ρ, with k_x = (k(x, z_p))_p:

    W_pq = ∫ k(x, z_p) k(x, z_q) dρ(x)                the mass matrix
    U(B)_r = ∫ (k_xᵀ B k_x) k(x, z_r) dρ(x)           the mean embedding of p_B at the support
    ∫ (Σ_r c_r k(x, z_r)) k_x k_xᵀ dρ(x)              the adjoint of U

The tensor u_pqr of order three that U and its adjoint share is never formed: memory is O(m²).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from mercer.backends.arrays import Array, namespace
from mercer.backends.rounding import EPS
from mercer.kernels.base import Kernel
from mercer.kernels.integrals.integral_enclosures import IntegralEnclosures
from mercer.kernels.integrals.measures import Measure

_SLIP = 16.0 * EPS  # of a square: twice that of its root, which has the rounding of an exponent of some ten


class SquareMasses(NamedTuple):
    """The integrals of some squares, of shape (r,), and a bound of the rounding error of their sum."""

    masses: Array
    rounding: float


class KernelIntegrals(ABC):
    """Integrals of two and three kernel sections, against the scaled measure exp(-log_scale) ρ.

    The scale keeps the numbers near one where (πσ²/2)^{d/2} would overflow: B scaled by exp(log_scale) is what the
    formulas below take, and the density is p_B(x) = exp(-log_scale) k_xᵀ B k_x.

    Attributes
    ----------
    kernel : Kernel
        A resolved kernel.
    points : array of shape (m, d)
        The support z; the integrals are arrays of its library.
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

    @abstractmethod
    def contracted(self, c: Array, Y: Array) -> Array:
        """∫ (Σ_p c_p k(x, z_p)) k(x, y_i) k(x, z_q) dρ, of shape (n, m)."""

    @abstractmethod
    def enclosures(self) -> IntegralEnclosures:
        """The same with proved errors, for a certificate."""

    @abstractmethod
    def enclosures_with(self, Y: Array) -> IntegralEnclosures:
        """Those of the support and the points Y behind it, scaled as these."""

    def square_masses(self, F: Array) -> SquareMasses:
        """∫ (Fᵀk_x)_c² dρ for every column c of F: the diagonal of FᵀWF.

        Where W is ill-conditioned and F large the terms of FᵀWF cancel, and digits are lost that the squares have:
        subclasses with nodes x_q sum w_q (Fᵀk_x)² instead, whose terms are not negative.
        """
        xp, W = namespace(F), self.mass()
        rounding = EPS * float(xp.sum(xp.abs(F) * (xp.abs(W) @ xp.abs(F))))
        return SquareMasses(xp.sum(F * (W @ F), axis=0), rounding)

    def at_nodes(self, F: Array) -> tuple[Array, Array] | None:
        """Nodes (Q, d) and the masses ‖Fᵀk_x‖² dρ there, none negative, that stand for p_B in integrals with k.

        None where there are no nodes, or too many to pair them with each other.
        """
        return None

    def squared_norm(self, B: Array) -> float | None:
        """‖w_p‖² = ∬ p_B(x) p_B(y) k(x, y) dρ(x) dρ(y), or None where it would cost too much or lose its digits."""
        return None


def summed_squares(K: Array, weights: Array, F: Array) -> SquareMasses:
    """Σ_q w_q (K F)_qc², and what rounding of K and of the product may change in it."""
    xp, values = namespace(K), K @ F
    slips = xp.abs(values) * (xp.abs(K) @ xp.abs(F))
    return SquareMasses(weights @ values**2, _SLIP * float(xp.sum(weights @ slips)))
