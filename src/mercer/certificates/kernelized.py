"""Bounds on the optimum of the kernelised programme, with no inverse of its kernel matrix and every rounding counted.

**What is proved.** The programme of the kernel at the points and shares as they are given. Its matrix K is known by
entries that floating point evaluated, so every statement is made for all positive definite matrices within the error of
those entries: for the exact kernel, for the matrix of its rounded values, and for any other evaluation of them.

**Upper.** Let L be the computed factor of K̂ + τI, τ so large that LLᵀ ≽ K for all of these matrices; then
K⁻¹ ≽ (LLᵀ)⁻¹. If for some y

    T = Lᵀ(Diag(y) - Â)L + λI ≽ -tI,        Â = P K̄ P as computed,

then y' = θy + (1 - θ)y₀ with θ = λ/(λ + t) and any y₀ with Diag(y₀) ≽ Â is admissible, and p* ≤ dᵀ(y' + e) where
Diag(e) ≽ A - Â for every A that the entries allow. That T ≽ -tI is proved by a Cholesky factorisation that succeeds.

**Lower.** Coordinates Ξ whose rows have exactly the squared lengths d are feasible. For any a, with r = Ξ - Ka,

    Tr(ΞᵀK⁻¹Ξ) = 2 Tr(aᵀΞ) - Tr(aᵀKa) + Tr(rᵀK⁻¹r) ≤ 2 Tr(aᵀΞ) - Tr(aᵀKa) + ‖r‖²/λmin(K),

and λmin(K) is bounded from below by a factorisation. All of it is evaluated in balls (:mod:`mercer.backends.balls`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.balls import Ball, ball, up
from mercer.backends.rounding import UNIT, gamma
from mercer.certificates.certificate import N_LEAST, EmbeddingCertificate
from mercer.certificates.factorisation import bound_largest_eigenvalue
from mercer.linalg.eigen import least_of
from mercer.problems.kernelized import KernelizedProgramme, SingularKernelError

_MORE = 1.01
_SHARE = 4 * UNIT  # of a weight divided by the sum of all
_WORTH = 1e-8  # of the value, that a sharper factor is worth its products for


class Bounds(NamedTuple):
    """An upper bound, and the least eigenvalues of the dual slack that it rests on."""

    upper: float
    least_eigenvalues: Array


@final
class KernelizedProof:
    """What every certificate of one programme shares: the least eigenvalue of K, bounded, and the errors of Â.

    Parameters
    ----------
    programme : KernelizedProgramme
        The programme; nothing is taken from a solver.

    Raises
    ------
    SingularKernelError
        If K is not proved to be positive definite.
    """

    def __init__(self, programme: KernelizedProgramme) -> None:
        self.programme = programme
        self.least = self._least_eigenvalue()
        self._matrix = Ball(programme.matrix, 0.0, programme.radii)
        self._shares = Ball(programme.shares, 0.0, up(_SHARE * programme.shares))

    def _least_eigenvalue(self) -> float:
        """λmin(K) of the kernel's own matrix, bounded from below."""
        K = self.programme.matrix
        computed = -bound_largest_eigenvalue(-K, -least_of(K))
        bound = computed - self.programme.entries_norm
        if not bound > 0:
            raise SingularKernelError(
                f"The least eigenvalue of the kernel matrix is proved to be above {bound:.1e} only."
            )
        return bound

    def certificate(self, coordinates: Array, multipliers: Array | None) -> EmbeddingCertificate:
        """Bounds from coordinates Ξ, whose rows are brought to their lengths first, and y, without it that of Ξ."""
        programme = self.programme
        rows = programme.rescaled(np.asarray(coordinates, np.float64))
        lower = self.lower(rows)
        y = programme.multipliers(rows) if multipliers is None else multipliers
        best = min((self.upper(y, each) for each in {programme, self.working(rows)}), key=lambda bounds: bounds.upper)
        return EmbeddingCertificate(
            lower=lower,
            upper=best.upper,
            failure_probability=0.0,
            method="factorisation proof",
            n_products=programme.size,
            least_eigenvalues=best.least_eigenvalues,
            complementarity=_complementarity(programme, rows),
            rounding=self._rounding(rows, lower),
        )

    def working(self, rows: Array) -> KernelizedProgramme:
        """The programme, with a sharp factor where what rounding may do to the other one costs more than 1e-8 of f."""
        programme = self.programme
        cost = programme.regularization * programme.lift * float(np.sum(programme.coefficients(rows) ** 2))
        return self._sharp if cost > _WORTH * abs(programme.objective(rows)) else programme

    @cached_property
    def _sharp(self) -> KernelizedProgramme:
        return replace(self.programme, sharp=True)

    def lower(self, rows: Array) -> float:
        """A value that is attained, by coordinates within rounding of these."""
        programme, K = self.programme, self._matrix
        prescribed = Ball(programme.prescribed, 0.0, programme.prescribed_error)
        exact = ball(rows)
        exact = exact * (prescribed / exact.squared().sum(axis=1)).root()[:, None]
        weighted = self._shares[:, None] * exact
        sums = K @ self._shares
        along = (sums[:, None] * weighted).sum(axis=0).squared().sum() / (self._shares * sums).sum()
        value = (weighted * (K @ weighted)).sum() - along
        return float((value - self._trace(exact) * programme.regularization).lower())

    def _trace(self, exact: Ball) -> Ball:
        """A ball whose upper end Tr(ΞᵀK⁻¹Ξ) does not exceed."""
        a = self.programme.coefficients(exact.hi)
        image = self._matrix @ a
        rest = (exact - image).magnitude()
        value = (ball(a) * (exact.scaled(1) - image)).sum()
        return value.widened(_MORE * float(np.sum(rest**2)) / self.least)

    def upper(self, y: Array, factored: KernelizedProgramme | None = None) -> Bounds:
        """What no value exceeds, from any dual variables y; by another factor of K where one is given."""
        programme = self.programme if factored is None else factored
        strength, d = programme.regularization, programme.prescribed
        T = programme.slack(y)
        least = np.linalg.eigvalsh(T)[: min(N_LEAST, programme.size)]
        below = bound_largest_eigenvalue(-T, -float(least[0])) + self._forming(y, programme)
        t = max(below, 0.0) + UNIT * strength
        share = min(t / (strength + t) * _MORE, 1.0)  # 1 - θ, no less
        y0 = programme.dominating * _MORE
        total = Ball(y) * (1.0 - share) + Ball(y0) * share + Ball(self._centred_error())
        bound = (total * Ball(d, 0.0, programme.prescribed_error)).sum()
        return Bounds(float(bound.upper()), least)

    def _forming(self, y: Array, programme: KernelizedProgramme) -> float:
        """How far the computed T is from LᵀDiag(y)L - LᵀÂL + λI: γ|L|ᵀ|N||L| each, of a norm of at most γ‖L‖²‖N‖∞."""
        size = float(np.abs(y).max() + programme.dominating.max())
        squares = float(np.sum(programme.factor**2))
        return _MORE * gamma(2 * programme.size + 8, UNIT) * (squares * size + programme.regularization)

    def _centred_error(self) -> Array:
        """e with Diag(e) ≽ A - Â for every A = P(K - uuᵀ)P that entries and shares allow.

        With s = Kp and v = pᵀKp, uuᵀ = ssᵀ/v: sᵢ errs by Σⱼ radiusᵢⱼ pⱼ and its rounding, v by the sum of these with
        shares p; an entry of PuuᵀP by the relative errors of both factors and of v, of its own size.
        """
        programme = self.programme
        p, K, u = programme.shares, programme.matrix, programme.mean
        rounded = gamma(programme.size + 16, UNIT) + 4 * _SHARE
        sizes = np.abs(K) @ p
        sums = programme.radii @ p + rounded * sizes
        volume = float(p @ (K @ p))
        relative = float(p @ sums) / volume + rounded
        root = np.sqrt(volume)
        of_mean = sums / root + np.abs(u) * relative  # of u, entry by entry
        inside = p * (programme.radii @ p + rounded * sizes)
        outer = p * (of_mean * float(p @ np.abs(u)) + (np.abs(u) + of_mean) * float(p @ of_mean))
        return np.asarray(2 * _MORE * (inside + outer + rounded * p * np.abs(u) * float(p @ np.abs(u))))

    def _rounding(self, rows: Array, lower: float) -> float:
        """How far apart rounding alone keeps the bounds: what the lift of K, the forming of T and the balls cost."""
        programme = self.working(rows)
        a = programme.coefficients(rows)
        lifted = programme.regularization * programme.lift * float(np.sum(a**2))
        forming = self._forming(programme.multipliers(rows), programme) / programme.regularization
        reach = float((programme.dominating + np.abs(programme.multipliers(rows))) @ programme.prescribed)
        return lifted + forming * reach + max(programme.objective(rows) - lower, 0.0)


def certify_kernelized(
    programme: KernelizedProgramme, coordinates: Array, *, multipliers: Array | None = None
) -> EmbeddingCertificate:
    """Prove bounds on the optimum of a kernelised programme.

    Parameters
    ----------
    programme : KernelizedProgramme
        The programme; nothing is taken from a solver.
    coordinates : array of shape (m, r)
        Ξ, rows of any length but zero: they are brought to √d.
    multipliers : array of shape (m,), optional
        Dual variables that are hoped to be admissible; those that Ξ determines if left out.

    Returns
    -------
    EmbeddingCertificate
        Bounds for the exact kernel at the points given and for its entries in floating point; no chance involved.

    Raises
    ------
    SingularKernelError
        If K is not proved to be positive definite.

    Notes
    -----
    Cost: two or three factorisations and four eigenvalue problems of order m, 4m² doubles.
    """
    return KernelizedProof(programme).certificate(coordinates, multipliers)


def _complementarity(programme: KernelizedProgramme, rows: Array) -> float:
    """The size of (Diag(y) - A + λK⁻¹)Ξ over that of AΞ."""
    along = programme.centred @ rows
    slope = along - programme.regularization * programme.coefficients(rows)
    y = np.sum(slope * rows, axis=1) / programme.prescribed
    size = float(np.linalg.norm(along))
    return float(np.linalg.norm(y[:, None] * rows - slope)) / size if size > 0 else 0.0
