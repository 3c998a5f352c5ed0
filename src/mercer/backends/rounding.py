"""How far floating point can be from the numbers it stands for: units, sums, and the entries of a kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from mercer.backends.arrays import dtype_name

EPS = float(np.finfo(np.float64).eps)  # between 1 and the next double
UNIT = EPS / 2  # the unit roundoff of double precision
TINY = float(np.finfo(np.float64).tiny)  # below, doubles lose digits

_MORE = 1.01  # for products of errors, and for the rounding of these bounds


@cache
def unit_of(dtype: Any) -> float:
    """The unit roundoff of an arithmetic: a single operation errs by no more than this part of its result."""
    return float(np.finfo(dtype_name(dtype)).eps) / 2


def gamma(count: float, unit: float) -> float:
    """The relative error of a chain of ``count`` roundings, count·u / (1 - count·u) (Higham 2002, Lemma 3.1)."""
    return count * unit / (1 - count * unit) if count * unit < 1 else float("inf")


@dataclass(frozen=True)
class EntryError:
    """A bound on how far an evaluated entry K̂ᵢⱼ is from the kernel's value kᵢⱼ at the points given.

    ``abs(K̂ᵢⱼ - kᵢⱼ) ≤ relative·abs(kᵢⱼ) + scaled·√(kᵢᵢ kⱼⱼ) + absolute``. Two evaluations of one entry, by tiles of
    other shapes or on another machine, differ by no more than twice as much.

    Attributes
    ----------
    relative : float
        Of the entry itself: profiles of distances keep their leading digits wherever they are.
    scaled : float
        Of √(kᵢᵢ kⱼⱼ): inner products lose digits where they cancel.
    absolute : float
        Of one: what has no scale of its own.
    """

    relative: float
    scaled: float = 0.0
    absolute: float = 0.0

    def in_units(self, unit: float) -> EntryError:
        """The error whose parts are so many roundings of an arithmetic with this unit."""
        return EntryError(gamma(self.relative, unit), gamma(self.scaled, unit), gamma(self.absolute, unit))

    def plus(self, other: EntryError, *, nonnegative: bool, unit: float) -> EntryError:
        """Of a sum of two kernels.

        √(aᵢaⱼ) + √(bᵢbⱼ) ≤ √((aᵢ + bᵢ)(aⱼ + bⱼ)), and ``abs(a) ≤ √(aᵢaⱼ)`` where signs differ.
        """
        relative, scaled = max(self.relative, other.relative), max(self.scaled, other.scaled)
        if not nonnegative:
            relative, scaled = 0.0, relative + scaled
        return EntryError(_MORE * relative + unit, _MORE * scaled, _MORE * (self.absolute + other.absolute))

    def times(self, other: EntryError, *, unit: float) -> EntryError:
        """Of a product of two kernels, ``abs(a) ≤ √(aᵢaⱼ)``; what has no scale has none in a product."""
        a, b = self, other
        scaled = a.scaled * (1 + b.relative) + b.scaled * (1 + a.relative) + a.scaled * b.scaled
        absolute = 0.0 if a.absolute == b.absolute == 0 else float("inf")
        relative = a.relative + b.relative + a.relative * b.relative
        return EntryError(_MORE * relative + unit, _MORE * scaled, absolute)

    def multiple(self, factor: float, *, unit: float) -> EntryError:
        """Of a positive multiple."""
        return EntryError(_MORE * self.relative + 2 * unit, _MORE * self.scaled, _MORE * factor * self.absolute)

    def power(self, exponent: float, *, unit: float) -> EntryError:
        """Of an entrywise power; below one a power enlarges what is lost of an entry near zero."""
        most = max(exponent, 1.0)

        def grown(error: float) -> float:
            return float(np.expm1(most * np.log1p(error)))

        scaled = grown(self.scaled ** min(exponent, 1.0))
        absolute = 0.0 if self.absolute == 0 else float("inf")
        return EntryError(_MORE * grown(self.relative) + 4 * unit, _MORE * scaled, absolute)

    def normalised(self, *, unit: float) -> EntryError:
        """Of k(x, y) / √(k(x, x) k(y, y)), whose divisors have the errors of the diagonal."""
        absolute = 0.0 if self.absolute == 0 else float("inf")
        diagonal = self.relative + self.scaled
        return EntryError(_MORE * (self.relative + diagonal) + 8 * unit, _MORE * self.scaled, absolute)

    def beside(self, other: EntryError) -> EntryError:
        """Of a difference that comes on top of this one."""
        pairs = zip(
            (self.relative, self.scaled, self.absolute), (other.relative, other.scaled, other.absolute), strict=True
        )
        return EntryError(*(_MORE * (a + b) for a, b in pairs))

    def doubled(self) -> EntryError:
        """Between two evaluations, and so between either of them and the exact value."""
        return EntryError(2 * _MORE * self.relative, 2 * _MORE * self.scaled, 2 * _MORE * self.absolute)
