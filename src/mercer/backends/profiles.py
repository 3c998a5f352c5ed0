"""Scalar profiles f of a kernel ``k(x, y) = f(t)``, where t is a distance, a squared distance or an inner product.

A profile works in place on arrays of t and knows its logarithm, which stays finite where f underflows. The two that
most products spend their time in, :class:`Exponential` and :class:`RootExponential`, also exist as compiled sweeps in
:mod:`mercer.backends.compiled`; the others run as NumPy expressions on a tile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_SERIES_BELOW = 1e-3
_DEBYE_FROM = 100.0
_DEBYE_BEYOND = 1e6


def log_in_place(values: Array) -> None:
    """Replace values by their logarithm, minus infinity where they are zero or negative."""
    with np.errstate(divide="ignore"):
        np.log(np.maximum(values, 0, out=values), out=values)


class Profile(ABC):
    """A scalar function applied entry by entry."""

    @property
    def nonnegative(self) -> bool:
        """Whether f ≥ 0 is known everywhere, so that its logarithm tells all of it."""
        return False

    @property
    def power_at_zero(self) -> float:
        """The p ≤ 1 of f(0) - f(t) ~ t^p near zero: an error e of a small t becomes one of e^p."""
        return 1.0

    @abstractmethod
    def apply(self, t: Array) -> None:
        """Replace t by f(t), in place."""

    def log(self, t: Array) -> None:
        """Replace t by log f(t), in place; minus infinity where f is zero or negative."""
        self.apply(t)
        log_in_place(t)


@dataclass(frozen=True)
class Exponential(Profile):
    """f(t) = exp(-t): Gaussian of a squared distance, Laplacian of an l1 distance, chi-squared."""

    @property
    def nonnegative(self) -> bool:
        """Always."""
        return True

    def apply(self, t: Array) -> None:
        """Replace t by exp(-t)."""
        np.exp(np.negative(t, out=t), out=t)

    def log(self, t: Array) -> None:
        """Replace t by -t."""
        np.negative(t, out=t)


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

    def apply(self, t: Array) -> None:
        """Replace t by (1 + a s + b s²) exp(-s)."""
        s = np.sqrt(t)
        np.exp(-s, out=t)
        t *= self._polynomial(s)

    def log(self, t: Array) -> None:
        """Replace t by log(1 + a s + b s²) - s."""
        s = np.sqrt(t)
        np.log(self._polynomial(s), out=t)
        t -= s

    def _polynomial(self, s: Array) -> Array:
        a, b = s.dtype.type(self.linear), s.dtype.type(self.quadratic)
        return 1 + s * (a + b * s)


@dataclass(frozen=True)
class BesselMatern(Profile):
    """f(t) = 2^(1-ν)/Γ(ν) s^ν K_ν(s), s = sqrt(t), for any real order ν > 0.

    ``log K_ν`` comes from scipy's scaled Bessel function up to order 100 and s = 10⁶ and from Debye's uniform expansion
    beyond, where K_ν overflows or scipy gives up; near s = 0 the power series of f takes over.
    """

    order: float

    @property
    def nonnegative(self) -> bool:
        """Always."""
        return True

    @property
    def power_at_zero(self) -> float:
        """Below order one, f = 1 - c t^ν + ..."""
        return min(self.order, 1.0)

    def apply(self, t: Array) -> None:
        """Replace t by f(t)."""
        self.log(t)
        np.exp(t, out=t)

    def log(self, t: Array) -> None:
        """Replace t by log f(t)."""
        from scipy.special import gammaln

        nu = self.order
        s = np.sqrt(t.astype(np.float64))
        tiny = s**2 < _SERIES_BELOW * max(nu - 1, 0.0)
        safe = np.where(s > 0, s, 1.0)
        value = (1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(safe) + self._log_bessel(safe)
        if nu > 4:  # three terms of the series hold below the first order that is not analytic, s^(2ν)
            u = np.where(tiny, s**2 / 4, 0.0)
            series = -u / (nu - 1) * (1 - u / (2 * (nu - 2)) * (1 - u / (3 * (nu - 3))))
            value = np.where(tiny, np.log1p(series), value)
        t[...] = np.where(s > 0, np.minimum(value, 0.0), 0.0)

    def _log_bessel(self, s: Array) -> Array:
        """log K_ν(s), s > 0."""
        if self.order > _DEBYE_FROM:
            return self._debye(s)
        from scipy.special import kve

        near = np.minimum(s, _DEBYE_BEYOND)
        with np.errstate(divide="ignore", over="ignore"):
            value = np.log(kve(self.order, near)) - near
        return np.where(s > near, self._debye(np.maximum(s, _DEBYE_BEYOND)), value)

    def _debye(self, s: Array) -> Array:
        """Four terms of DLMF 10.41.4; for large s they are those of the expansion in 1/s."""
        nu = self.order
        z = s / nu
        root = np.hypot(1.0, z)
        eta = root + np.log(z / (1 + root))
        p = 1 / root
        p2 = p * p
        terms = (  # u_k(p) of DLMF 10.41.10, with the sign (-1)^k of K_ν
            -p * (3 - 5 * p2) / 24,
            p2 * (81 - 462 * p2 + 385 * p2**2) / 1152,
            -p * p2 * (30375 - 369603 * p2 + 765765 * p2**2 - 425425 * p2**3) / 414720,
            p2**2 * (4465125 - 94121676 * p2 + 349922430 * p2**2 - 446185740 * p2**3 + 185910725 * p2**4) / 39813120,
        )
        tail = sum(term / nu ** (k + 1) for k, term in enumerate(terms))
        return np.asarray(0.5 * np.log(np.pi / (2 * nu)) - nu * eta - 0.5 * np.log(root) + np.log1p(tail))


@dataclass(frozen=True)
class Identity(Profile):
    """f(t) = t."""

    @property
    def power_at_zero(self) -> float:
        """One half: who asks for t itself may take its root."""
        return 0.5

    def apply(self, t: Array) -> None:
        """Leave t as it is."""


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

    def apply(self, t: Array) -> None:
        """Replace t by (γ t + c)^degree."""
        t *= t.dtype.type(self.gamma)
        t += t.dtype.type(self.coef0)
        if self.degree % 1 and np.any(t < 0):
            raise ValueError(f"degree={self.degree:g} must be a whole number: γ x · y + c is negative on this data.")
        np.power(t, t.dtype.type(self.degree), out=t)


@dataclass(frozen=True)
class TanhOfAffine(Profile):
    """f(t) = tanh(γ t + c)."""

    gamma: float
    coef0: float

    def apply(self, t: Array) -> None:
        """Replace t by tanh(γ t + c)."""
        t *= t.dtype.type(self.gamma)
        t += t.dtype.type(self.coef0)
        np.tanh(t, out=t)
