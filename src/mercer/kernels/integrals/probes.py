"""Functions of the kernel's space that mean embeddings of densities are compared on.

A mean embedding w_p is known by its inner products ⟨ψ_j, w_p⟩ with some functions ψ₁ … ψ_N, the *probes*: the
projection of w_p on their span has the squared norm uᵀM⁻¹u, u the inner products and M = (⟨ψ_i, ψ_j⟩) their Gram
matrix. Sections ψ_j = φ(y_j) serve every kernel; for the Gaussian one the embeddings of the bumps that densities are
made of span w_p itself (:mod:`mercer.kernels.integrals.midpoints`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import final

import numpy as np

from mercer.backends.arrays import Array, as_double
from mercer.backends.balls import Ball, joined
from mercer.kernels.integrals.base import KernelIntegrals
from mercer.kernels.integrals.integral_enclosures import IntegralEnclosures, ProbeEnclosures


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
class SectionProbes(Probes):
    """The sections φ(y_j) of some points; of the support itself where none are given, as in SOS (11)-(14)."""

    def __init__(self, integrals: KernelIntegrals, points: Array | None = None) -> None:
        self._integrals, self.points = integrals, points

    def gram(self) -> Array:
        points = self._integrals.points if self.points is None else self.points
        return as_double(self._integrals.kernel(points))

    def embed(self, B: Array) -> Array:
        return self._integrals.embed(B, self.points)

    def weighted_mass(self, c: Array) -> Array:
        return self._integrals.weighted_mass(c, self.points)

    def contracted(self, c: Array) -> Array:
        if self.points is None:
            return self._integrals.weighted_mass(c)  # the tensor ∫ k(·, z_p) k(·, z_q) k(·, z_r) dρ is symmetric
        return self._integrals.contracted(c, self.points)

    def enclosures(self) -> ProbeEnclosures:
        if self.points is None:
            return self._integrals.enclosures()
        return _AmongMore(self._integrals.enclosures_with(self.points), self._integrals.points.shape[0])


@final
class _AmongMore:
    """Sections at some points, from the integrals on these and the support before them."""

    def __init__(self, joint: IntegralEnclosures, m: int) -> None:
        self._joint, self._m = joint, m

    def gram(self) -> Ball:
        return self._joint.gram()[self._m :, self._m :]

    def embed(self, factor: Ball) -> Ball:
        return self._joint.embed(joined([factor, _zeros(self._added, *factor.shape[1:])]))[self._m :]

    def weighted_mass(self, c: Ball) -> Ball:
        return self._joint.weighted_mass(joined([_zeros(self._m), c]))[: self._m, : self._m]

    def sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        for rows, part in self._joint.sections(X):
            yield rows, part[:, self._m :]

    @cached_property
    def _added(self) -> int:
        return self._joint.gram().shape[0] - self._m


def _zeros(*shape: int) -> Ball:
    return Ball(np.zeros(shape))
