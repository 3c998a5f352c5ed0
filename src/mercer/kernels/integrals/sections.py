"""The functions that the squares of a density are made of, whatever they are: sections of a kernel, or Gaussians.

A likelihood takes less of them than a distance of embeddings does: their values, W = ∫ k_x k_xᵀ dρ, and both with
proved errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, final

from mercer.backends.arrays import Array, as_double
from mercer.backends.balls import Ball
from mercer.backends.rounding import EPS
from mercer.kernels.base import Kernel
from mercer.kernels.integrals.base import KernelIntegrals, SquareMasses


class SectionEnclosures(Protocol):
    """What the proof of a likelihood asks for; all of it scaled as the sections are."""

    def mass(self) -> Ball:
        """W, of shape (m, m)."""

    def gram(self) -> Ball:
        """K̃, of shape (m, m)."""

    def sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        """The functions at some rows of X at a time."""


class SquareSections(Protocol):
    """m functions, with integrals against the scaled measure exp(-log_scale) ρ.

    Attributes
    ----------
    log_scale : float
        The logarithm of the scale: p(x) = exp(-log_scale) k_xᵀ B k_x has mass one where Tr(B W) = 1.
    log_scale_error : float
        What rounding does to it at most.
    unit_log_scale : float
        The logarithm of the mass of a section's square in the units of B and λ that are the user's.
    error : float
        An estimate of the error of the integrals; 0 for closed forms.
    """

    @property
    def log_scale(self) -> float: ...

    @property
    def log_scale_error(self) -> float: ...

    @property
    def unit_log_scale(self) -> float: ...

    @property
    def error(self) -> float: ...

    @property
    def points(self) -> Array:
        """Where they are, of shape (m, d)."""

    def mass(self) -> Array:
        """W."""

    def gram(self) -> Array:
        """K̃, of the penalty λ Tr(B K̃)."""

    def square_masses(self, F: Array) -> SquareMasses:
        """∫ (Fᵀk_x)_c² dρ for every column c of F."""

    def scaled_product(self, X: Array, F: Array) -> tuple[Array, Array]:
        """k_xᵀ F = exp(s) P at the rows of X: s of shape (n,) and P of shape (n, r)."""

    def enclosures(self) -> SectionEnclosures:
        """The same with proved errors."""


@final
class KernelSections:
    """The sections k(·, z_p) of a kernel, by its integrals."""

    def __init__(self, integrals: KernelIntegrals, gram: Array) -> None:
        self.integrals, self._gram = integrals, gram
        self.kernel: Kernel = integrals.kernel
        self.points, self.log_scale, self.error = integrals.points, integrals.log_scale, integrals.error
        self.unit_log_scale = self.log_scale
        self.log_scale_error = 4 * EPS * (16 + 2 * int(self.points.shape[1]) + 4 * abs(self.log_scale))

    def mass(self) -> Array:
        """W."""
        return self.integrals.mass()

    def gram(self) -> Array:
        """The kernel's values between its points."""
        return self._gram

    def square_masses(self, F: Array) -> SquareMasses:
        """Those of the integrals."""
        return self.integrals.square_masses(F)

    def scaled_product(self, X: Array, F: Array) -> tuple[Any, Any]:
        """Row by row over the largest of its values, where the kernel is known to be positive."""
        scales, product = self.kernel.matrix(X, self.integrals.points).scaled_product(F)
        return as_double(scales), product

    def enclosures(self) -> SectionEnclosures:
        """Those of the integrals."""
        return self.integrals.enclosures()
