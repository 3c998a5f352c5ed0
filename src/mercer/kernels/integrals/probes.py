"""Functions of the kernel's space that mean embeddings of densities are compared on.

A mean embedding w_p is known by its inner products ⟨ψ_j, w_p⟩ with some functions ψ₁ … ψ_N, the *probes*: the
projection of w_p on their span has the squared norm uᵀM⁻¹u, u the inner products and M = (⟨ψ_i, ψ_j⟩) their Gram
matrix. Sections ψ_j = φ(y_j) serve every kernel; for the Gaussian one the embeddings of the bumps that densities are
made of span w_p itself (:mod:`mercer.kernels.integrals.midpoints`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

from mercer.backends.arrays import Array, as_double
from mercer.kernels.integrals.base import KernelIntegrals
from mercer.kernels.integrals.integral_enclosures import ProbeEnclosures


class Probes(ABC):
    """Functions ψ₁ … ψ_N and their inner products with the embeddings of p_B, scaled as the integrals are."""

    @abstractmethod
    def gram(self) -> Array:
        """⟨ψ_i, ψ_j⟩, of shape (N, N)."""

    @abstractmethod
    def embed(self, B: Array) -> Array:
        """⟨ψ_j, w_p⟩ for p = p_B, of shape (N,); B is symmetric, m × m."""

    @abstractmethod
    def weighted_mass(self, c: Array) -> Array:
        """The matrix of B ↦ ⟨Σ_j c_j ψ_j, w_p⟩, of shape (m, m): the adjoint of :meth:`embed`."""

    @abstractmethod
    def contracted(self, c: Array) -> Array:
        """⟨ψ_j, w⟩ for the functions (Σ_p c_p k(·, z_p)) k(·, z_q) in the place of densities, of shape (N, m)."""

    @abstractmethod
    def enclosures(self) -> ProbeEnclosures:
        """The same with proved errors, for a certificate."""


@final
class SupportProbes(Probes):
    """The sections φ(z_r) of the support itself: the projection P_m of SOS (11)-(14)."""

    def __init__(self, integrals: KernelIntegrals) -> None:
        self._integrals = integrals

    def gram(self) -> Array:
        return as_double(self._integrals.kernel(self._integrals.points))

    def embed(self, B: Array) -> Array:
        return self._integrals.embed(B)

    def weighted_mass(self, c: Array) -> Array:
        return self._integrals.weighted_mass(c)

    def contracted(self, c: Array) -> Array:
        return self._integrals.weighted_mass(c)  # the tensor ∫ k(·, z_p) k(·, z_q) k(·, z_r) dρ is symmetric

    def enclosures(self) -> ProbeEnclosures:
        return self._integrals.enclosures()
