"""The numbers of a density's programme with proved errors: what its certificate is made of.

The programme is fixed by two subspaces of coefficients, the ranges of T (of the densities' B = T C Tᵀ) and of Ω (of the
functions Σ_p c_p φ(z_p) projected on), by the points, the weights, the kernel and the measure:

    minimise ‖P(w_p - v)‖² + λ Tr(B K̃)   over   B = T C Tᵀ,  C ≽ 0,  Tr(B W) = 1

P the orthogonal projection on the span of the functions Σ_j c_j ψ_j of some probes ψ, the sections φ(z_r) of the
support in SOS (12), with coefficients in the range of Ω. Nothing depends on how well T and Ω are orthonormalised. With
P = I the objective is the whole MMD² of SOS (9), and there is no Ω.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import cached_property, reduce
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, to_numpy
from mercer.backends.balls import Ball, ball
from mercer.backends.rounding import EPS
from mercer.kernels.integrals import KernelIntegrals
from mercer.kernels.integrals.integral_enclosures import ProbeEnclosures


class Sample(NamedTuple):
    """Points and their weights as given, None for equal ones: the sample's embedding is Σ a_i φ(x_i), Σ a_i = 1."""

    points: Array
    weights: Array | None


class SpanEnclosures:
    """Integrals on a support and two spans of coefficients on it, the ranges of T and Ω, as balls.

    Balls are NumPy's: tensors are brought over once, when the proof begins.
    """

    def __init__(self, integrals: Any, basis: Array, whitening: Array) -> None:
        self.integrals = integrals
        self.basis, self.whitening = ball(to_numpy(basis)), ball(to_numpy(whitening))

    @cached_property
    def mass(self) -> Ball:
        """W."""
        return self.integrals.mass()

    @cached_property
    def gram(self) -> Ball:
        """K̃."""
        return self.integrals.gram()

    @cached_property
    def constraint(self) -> Ball:
        """TᵀWT: Tr(B W) = ⟨C, TᵀWT⟩."""
        return self.in_basis(self.mass)

    @cached_property
    def projected_gram(self) -> Ball:
        """ΩᵀK̃Ω."""
        return self.whitening.T @ (self.gram @ self.whitening)

    def in_basis(self, M: Ball) -> Ball:
        """TᵀMT."""
        return self.basis.T @ (M @ self.basis)


@final
class SquaresEnclosures(SpanEnclosures):
    """W, K̃, the sample's embedding at the probes and λ as balls.

    Parameters
    ----------
    integrals : KernelIntegrals
        Whose :meth:`~KernelIntegrals.enclosures` is asked for.
    basis, whitening : arrays of shape (m, s) and (N, q)
        T and Ω, taken as exact.
    sample : Sample or array of shape (N,)
        The data, or the values ⟨v, ψ_j⟩ where these are the programme's own.
    regularization : float
        λ ≥ 0.
    probes : ProbeEnclosures
        Those of ψ.

    Notes
    -----
    Cost: as that of a dozen products of m × m matrices for each of the methods; n m exponentials for the sample.
    """

    def __init__(
        self,
        integrals: KernelIntegrals,
        basis: Array,
        whitening: Array,
        sample: Sample | Array,
        regularization: float,
        probes: ProbeEnclosures,
    ) -> None:
        super().__init__(integrals.enclosures(), basis, whitening)
        self.probes = probes
        self._sample = _plain(sample) if isinstance(sample, Sample) else to_numpy(sample)
        self.strength = scaled_strength(regularization, integrals.log_scale, integrals.points.shape[1])

    @cached_property
    def target(self) -> Ball:
        """⟨v, ψ_j⟩, of shape (N,)."""
        if not isinstance(self._sample, Sample):
            return ball(self._sample)
        return embedded_sample(self.probes, self._sample)

    @cached_property
    def probe_gram(self) -> Ball:
        """⟨ψ_i, ψ_j⟩."""
        return self.probes.gram()

    @cached_property
    def projected_gram(self) -> Ball:
        """ΩᵀMΩ, M the Gram matrix of the probes."""
        return self.whitening.T @ (self.probe_gram @ self.whitening)

    def tangent(self, c: Ball) -> Ball:
        """2 A*(c) + λTᵀK̃T, the matrix of C ↦ 2 ⟨g, w_p⟩ + λ Tr(B K̃) for g = Σ c_j ψ_j."""
        return self.in_basis(_penalised(self.probes.weighted_mass(c).scaled(1), self))


@final
class WholeEnclosures(SpanEnclosures):
    """W, K̃, λ and all that ‖v - w_p‖² = ‖v‖² - 2⟨V, B⟩ + ⟨B, T(B)⟩ takes (SOS 9) as balls: nothing is projected.

    The parameters are those of :class:`SquaresEnclosures`, without Ω.

    Notes
    -----
    Cost: n²/2 exponentials in double precision for ‖v‖², n m of twice the double precision and n m² operations for V;
    ``energy`` as :meth:`DistanceEnclosures.energy` says.
    """

    def __init__(self, integrals: KernelIntegrals, basis: Array, sample: Sample, regularization: float) -> None:
        super().__init__(integrals.enclosures(), basis, basis[:, :0])
        self._sample = _plain(sample)
        self._shares = exact_shares(self._sample.weights, self._sample.points.shape[0])
        self.strength = scaled_strength(regularization, integrals.log_scale, integrals.points.shape[1])

    @cached_property
    def squared_norm(self) -> Ball:
        """‖v‖²."""
        return self.integrals.sample_norm(self._sample.points, self._shares)

    @cached_property
    def potential(self) -> Ball:
        """V."""
        return self.integrals.potential(self._sample.points, self._shares)

    def energy(self, factor: Ball) -> Ball:
        """T(F Fᵀ), of shape (m, m)."""
        return self.integrals.energy(factor)

    def tangent(self, energy: Ball) -> Ball:
        """2Tᵀ(T(B) - V)T + λTᵀK̃T, the matrix of C ↦ 2 ⟨w - v, w_p⟩ + λ Tr(B K̃), w the embedding behind T(B)."""
        return self.in_basis(_penalised((energy - self.potential).scaled(1), self))


def _penalised(M: Ball, programme: SquaresEnclosures | WholeEnclosures) -> Ball:
    """M + λK̃."""
    return M + programme.gram * programme.strength if np.any(programme.strength.hi) else M


def _plain(sample: Sample) -> Sample:
    """The sample as NumPy arrays."""
    return Sample(to_numpy(sample.points), None if sample.weights is None else to_numpy(sample.weights))


def embedded_sample(integrals: Any, sample: Sample) -> Ball:
    """Σ a_i k(x_i, z_r) at the support."""
    return weighted_sum(integrals.sections(sample.points), exact_shares(sample.weights, sample.points.shape[0]))


def weighted_sum(sections: Iterable[tuple[slice, Ball]], shares: Ball) -> Ball:
    """Σ_i a_i k(x_i, z_r) from rows of k, some at a time."""
    return reduce(operator.add, (part.T @ shares[rows] for rows, part in sections))


def exact_shares(weights: Array | None, n: int) -> Ball:
    """Weights over their sum; those of a signed target cancel in it, and their radii say so."""
    if weights is None:
        share = Ball(1.0) / Ball(float(n))
        return Ball(*(np.full(n, part) for part in (share.hi, share.lo, share.radius)))
    scaled = ball(np.ldexp(weights, -int(np.frexp(np.max(np.abs(weights)))[1])))
    return scaled * scaled.sum().inverse()


def scaled_strength(regularization: float, log_scale: float, d: int) -> Ball:
    """λ exp(-log_scale), with the rounding of a logarithm that may be a sum of some terms, and of exp."""
    if regularization == 0:
        return ball(0.0)
    value = float(np.exp(np.log(regularization) - log_scale))
    size = 16 + 2 * d + 4 * abs(log_scale) + abs(np.log(regularization))
    return Ball(value, 0.0, 4 * EPS * size * value)
