"""How far the likelihood of a sum of squares can be from the best one: one eigenvalue, with every rounding counted.

Of the programme that :mod:`mercer.problems.squares_likelihood_enclosures` states, with any positive numbers q_i,
-log p ≥ 1 - log q - p/q, so that the objective is at least

    1 - Σ_i a_i log q_i + ⟨λK̃ - Γ, B⟩,   Γ = Σ_i a_i k_{x_i} k_{x_i}ᵀ/q_i,

and the optimum at least 1 - Σ a_i log q_i + θ for every θ with Tᵀ(λK̃ - Γ)T - θ TᵀWT ≽ 0. With q the densities of the
solution this is the bound of the spectrahedron's linear oracle: without a penalty, no density is better than the
solution by more than λ_max(R⁻ᵀΓR⁻¹) - 1 nats a point, W = RᵀR.

Nothing is believed of the solver but C itself, and nothing of floating point: sections, integrals, logarithms and the
objective are balls with proved radii, and the semi-definite matrix is proved to be one by a factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.backends.arrays import Array, norm, to_numpy
from mercer.backends.balls import Ball, ball, logarithm
from mercer.certificates.certificate import Certificate
from mercer.certificates.enclosures import least_ratio
from mercer.certificates.spectrahedron import proved
from mercer.problems.squares_likelihood import SquaresLikelihood
from mercer.problems.squares_likelihood_enclosures import LikelihoodEnclosures


@dataclass(frozen=True, repr=False)
class LikelihoodCertificate(Certificate):
    """The certificate of a likelihood: bounds of -Σ a_i log p(x_i) with its penalty, in nats a point.

    A mean logarithm has no size of its own, as it changes with the units of the data: gaps are relative to the density.
    """

    @property
    def gap(self) -> float:
        """The nats a point that another density could gain at most."""
        return self.upper - self.lower

    @property
    def relative_gap(self) -> float:
        """exp(gap) - 1: the part by which the geometric mean of the densities of the sample could be larger."""
        return float(np.expm1(min(self.upper - self.lower, 700.0)))


def certify_likelihood(problem: SquaresLikelihood, factor: Array) -> LikelihoodCertificate:
    """What :func:`mercer.certificates.spectrahedron.certify_spectrahedron` proves of a distance, of a likelihood.

    F has the shape (s, r); a density that leaves the range of double precision is an ArithmeticError.

    Notes
    -----
    Cost: n m exponentials of twice the double precision, and n m² operations of that kind.
    """
    factor = factor / norm(factor)
    with np.errstate(over="ignore", invalid="ignore"):  # a radius without end is one that proves nothing
        bounds = _bounds(problem.enclosures, to_numpy(factor))
    gradient = problem.gradient(problem.residual(factor))
    return proved(LikelihoodCertificate, "largest eigenvalue of the likelihood's gradient", bounds, gradient, factor)


def _bounds(programme: LikelihoodEnclosures, factor: Array) -> tuple[float, float]:
    """Below the optimum, minus infinity where no θ is found, and above the objective at C = F Fᵀ over its mass."""
    L = programme.basis @ ball(factor)
    share = (L * (programme.mass @ L)).sum().inverse()
    found, touching = programme.log_scale, programme.log_scale
    gamma = Ball(np.zeros(programme.mass.shape))
    for values, powers, shares in programme.observed():
        density = (values @ L).squared().sum(axis=1) * share
        shift = programme.powers_of_two(powers).scaled(1)
        found = found + (shares * (shift - logarithm(density))).sum()
        at = Ball(np.maximum(density.hi, np.finfo(np.float64).tiny))  # any positive numbers will do
        touching = touching + (shares * (shift - logarithm(at))).sum()
        gamma = gamma + (values.T * (shares / at)) @ values
    slope = _penalised(programme, -gamma)
    theta = least_ratio(programme.in_basis(slope), programme.constraint)
    lower = float((touching + 1.0 + Ball(theta)).lower()) if np.isfinite(theta) else -np.inf
    return lower, float((found + _penalty(programme, L, share)).upper())


def _penalised(programme: LikelihoodEnclosures, M: Ball) -> Ball:
    """M + λK̃."""
    return M + programme.gram * programme.strength if np.any(programme.strength.hi) else M


def _penalty(programme: LikelihoodEnclosures, L: Ball, share: Ball) -> Ball:
    """λ Tr(B K̃)."""
    if not np.any(programme.strength.hi):
        return ball(0.0)
    return (L * (programme.gram @ L)).sum() * share * programme.strength
