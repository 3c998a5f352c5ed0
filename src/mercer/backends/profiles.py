"""Scalar profiles f of a kernel ``k(x, y) = f(t)``, where t is a distance, a squared distance or an inner product.

A profile is data: which function, its parameters, and what is known of it. A device says how it is computed
(:mod:`mercer.backends.cpu.profiles`, :mod:`mercer.backends.torch.profiles`).
"""

from __future__ import annotations

from dataclasses import dataclass


class Profile:
    """A scalar function applied entry by entry."""

    @property
    def nonnegative(self) -> bool:
        """Whether f ≥ 0 is known everywhere, so that its logarithm tells all of it."""
        return False

    @property
    def power_at_zero(self) -> float:
        """The p ≤ 1 of f(0) - f(t) ~ t^p near zero: an error e of a small t becomes one of e^p."""
        return 1.0


@dataclass(frozen=True)
class Exponential(Profile):
    """f(t) = exp(-t): Gaussian of a squared distance, Laplacian of an l1 distance, chi-squared."""

    @property
    def nonnegative(self) -> bool:
        """Always."""
        return True


@dataclass(frozen=True)
class RootExponential(Profile):
    """f(t) = (1 + a s + b s²) exp(-s), s = sqrt(t): the Matérn profiles of order 1/2, 3/2 and 5/2."""

    linear: float = 0.0
    quadratic: float = 0.0

    @property
    def nonnegative(self) -> bool:
        """Always, since a, b ≥ 0."""
        return True

    @property
    def power_at_zero(self) -> float:
        """One half for exp(-s) = 1 - sqrt(t) + ..., one where the linear term cancels that of the exponential."""
        return 1.0 if self.linear == 1 else 0.5


@dataclass(frozen=True)
class BesselMatern(Profile):
    """f(t) = 2^(1-ν)/Γ(ν) s^ν K_ν(s), s = sqrt(t), for any real order ν > 0."""

    order: float

    @property
    def nonnegative(self) -> bool:
        """Always."""
        return True

    @property
    def power_at_zero(self) -> float:
        """Below order one, f = 1 - c t^ν + ..."""
        return min(self.order, 1.0)


@dataclass(frozen=True)
class Identity(Profile):
    """f(t) = t."""

    @property
    def power_at_zero(self) -> float:
        """One half: a caller that asks for t itself may take its root."""
        return 0.5


@dataclass(frozen=True)
class PowerOfAffine(Profile):
    """f(t) = (γ t + c)^degree."""

    gamma: float
    coef0: float
    degree: float

    @property
    def nonnegative(self) -> bool:
        """For an even degree."""
        return self.degree % 2 == 0


@dataclass(frozen=True)
class TanhOfAffine(Profile):
    """f(t) = tanh(γ t + c)."""

    gamma: float
    coef0: float
