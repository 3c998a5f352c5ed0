"""Fitting a density that is a sum of squares by maximum likelihood.

    minimise -Σ_i a_i log p(x_i) + λ Tr(B K̃)   over   p(x) = k_xᵀ B k_x,  B ≽ 0,  Tr(B W) = 1

a convex programme in B, of weights a that are positive and sum to one. In C = R B Rᵀ, W = RᵀR, the constraint is the
spectrahedron {C ≽ 0, Tr C = 1}, as that of :class:`mercer.problems.SumOfSquares`; the gradient is λR⁻ᵀK̃R⁻¹ - Γ with
Γ = Σ_i a_i g_i g_iᵀ/p(x_i), g_i = R⁻ᵀk_{x_i}, and ⟨Γ, C⟩ = 1 at every density.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from mercer.backends.arrays import Array, namespace, norm
from mercer.kernels.integrals.sections import SquareSections
from mercer.problems.problem import Problem
from mercer.problems.squares_likelihood_enclosures import LikelihoodEnclosures
from mercer.problems.sum_of_squares import TRACE, Spans
from mercer.problems.sum_of_squares_enclosures import Sample

LOGARITHMS = "an objective of logarithms"


@dataclass(frozen=True)
class ObservedSections:
    """Sections at the points that were observed, in the basis T: g_i = exp(s_i) G_i.

    Attributes
    ----------
    rows : array of shape (n, s)
        G.
    log_scales : array of shape (n,)
        s.
    shares : array of shape (n,)
        a, positive, of sum one.
    """

    rows: Array
    log_scales: Array
    shares: Array


@final
class SquaresLikelihood(Problem):
    """The programme in C on the spectrahedron.

    Parameters
    ----------
    sections : SquareSections
        W, its enclosures and the sections themselves, scaled.
    basis : array of shape (m, s)
        T, whose columns are orthonormal in L²(ρ): B = T C Tᵀ.
    gram : array of shape (m, m)
        K̃.
    observed : ObservedSections
        The sections of the sample.
    sample : Sample
        The points behind them, for the certificate.
    regularization : float, default=0.0
        λ ≥ 0, of the density's own B, not the scaled one.

    Attributes
    ----------
    size, dimension : int
        m, and the order of C.
    scale : float
        One: tolerances are in nats a point.

    Notes
    -----
    Cost: n s² operations for a gradient. Memory: n s.
    """

    scale = 1.0
    probe_points = None  # nothing is compared

    def __init__(
        self,
        sections: SquareSections,
        basis: Array,
        gram: Array,
        observed: ObservedSections,
        sample: Sample,
        *,
        regularization: float = 0.0,
    ) -> None:
        self.integrals, self.basis, self.observed = sections, basis, observed
        self.spans = Spans(basis, basis[:, :0])
        self.size, self.dimension = (int(length) for length in basis.shape)
        self.regularization, self._sample = regularization, sample
        strength = float(np.exp(np.log(regularization) - sections.unit_log_scale)) if regularization > 0 else 0.0
        penalty = strength * (basis.T @ gram @ basis)
        self.penalty = (penalty + penalty.T) / 2
        self.constant = sections.log_scale - 2.0 * float(observed.shares @ observed.log_scales)

    @property
    def needs(self) -> frozenset[str]:
        """Tr C = 1, and logarithms."""
        return frozenset({TRACE, LOGARITHMS})

    @cached_property
    def enclosures(self) -> LikelihoodEnclosures:
        """The programme's numbers with proved errors."""
        return LikelihoodEnclosures(self.integrals, self.basis, self._sample, self.regularization)

    def residual(self, factor: Array) -> Array:
        """‖FᵀG_i‖², the densities of C = F Fᵀ at the sample up to their scales."""
        return namespace(factor).sum((self.observed.rows @ factor) ** 2, axis=1)

    def value(self, factor: Array, residual: Array | None = None) -> float:
        """f(C) of C = F Fᵀ; infinite where a point has no density."""
        residual = self.residual(factor) if residual is None else residual
        return self.misfit(residual) + float((factor * (self.penalty @ factor)).sum())

    def misfit(self, residual: Array) -> float:
        """-Σ a_i log p(x_i)."""
        xp = namespace(residual)
        if not bool((residual > 0).all()):
            return float("inf")
        return self.constant - float(self.observed.shares @ xp.log(residual))

    def gradient(self, residual: Array) -> Array:
        """∇f(C) = λTᵀK̃T - Γ, symmetric of order s."""
        rows = self.observed.rows
        gamma = (rows.T * (self.observed.shares / residual)) @ rows
        return self.penalty - (gamma + gamma.T) / 2

    def tangent(self, factor: Array) -> LikelihoodTangent:
        """The root of the curvature along ½(F Dᵀ + D Fᵀ), for many products."""
        return LikelihoodTangent(self, factor)

    def coefficients(self, factor: Array) -> Array:
        """The factor T F of the scaled B, with Tr(B W) = 1 to rounding."""
        return self.basis @ (factor / norm(factor))

    def coordinates(self, coefficients: Array) -> Array:
        """The F with T F nearest to a factor of the scaled B, of shape (m, r): T has orthogonal columns."""
        return (self.basis.T @ coefficients) / namespace(coefficients).sum(self.basis**2, axis=0)[:, None]


@final
class LikelihoodTangent:
    """D ↦ A(½(F Dᵀ + D Fᵀ)) with A(C)_i = √(a_i/2) G_iᵀCG_i/p(x_i), 2‖A(C)‖² the curvature of f along C at F Fᵀ."""

    def __init__(self, problem: SquaresLikelihood, factor: Array) -> None:
        self._rows, self._inner = problem.observed.rows, problem.observed.rows @ factor
        values = namespace(factor).sum(self._inner**2, axis=1)
        self._roots = namespace(factor).sqrt(problem.observed.shares / 2.0) / values

    def apply(self, D: Array) -> Array:
        """A(½(F Dᵀ + D Fᵀ)), one number a point."""
        return self._roots * namespace(D).sum((self._rows @ D) * self._inner, axis=1)

    def transpose(self, y: Array) -> Array:
        """A*(y) F, of shape (s, r)."""
        return self._rows.T @ (self._inner * (self._roots * y)[:, None])
