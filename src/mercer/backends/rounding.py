"""How far floating point can be from the numbers it stands for, and sums and products that lose nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from mercer.backends.arrays import dtype_name, is_tensor, namespace

EPS = float(np.finfo(np.float64).eps)  # between 1 and the next double
UNIT = EPS / 2  # the unit roundoff of double precision
TINY = float(np.finfo(np.float64).tiny)  # below, doubles lose digits

_SPLITTER = 2.0**27 + 1.0
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
        """The error whose parts are so many roundings of an arithmetic with this unit.

        What has no scale is in the units of the kernel, so that its size says nothing of the number of roundings.
        """
        return EntryError(gamma(self.relative, unit), gamma(self.scaled, unit), _MORE * unit * self.absolute)

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

    def worse(self, other: EntryError) -> EntryError:
        """What holds of the entries of two matrices."""
        return EntryError(
            max(self.relative, other.relative), max(self.scaled, other.scaled), max(self.absolute, other.absolute)
        )

    def doubled(self) -> EntryError:
        """Between two evaluations, and so between either of them and the exact value."""
        return EntryError(2 * _MORE * self.relative, 2 * _MORE * self.scaled, 2 * _MORE * self.absolute)


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """fl(a + b) and its error (Knuth)."""
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


def fast_two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """fl(a + b) and its error, where a is the larger (Dekker)."""
    s = a + b
    return s, b - (s - a)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """fl(ab) and its error (Dekker, Veltkamp), for numbers below 2⁹⁹⁰."""
    p = a * b
    a1, a2 = _halves(a)
    b1, b2 = _halves(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Any) -> tuple[Any, Any]:
    c = _SPLITTER * a
    high = c - (c - a)
    return high, a - high


def exact_sum(terms: Any) -> float:
    """Σ tᵢ of a vector of doubles, wrong by no more than u |Σ tᵢ| + u² (2 + log₂ n)² Σ |tᵢ|, u = 2⁻⁵³.

    NumPy arrays are summed by :func:`math.fsum`, whose only rounding is the last. Tensors are halved until one number
    is left, what each addition rounds away kept beside it: 20 n operations, on the device that they lie on.
    """
    if not is_tensor(terms):
        return math.fsum(terms)
    xp = namespace(terms)
    lost = xp.zeros_like(terms)
    while (n := int(terms.shape[0])) > 1:
        half = n // 2
        total, error = two_sum(terms[:half], terms[half : 2 * half])
        error = error + (lost[:half] + lost[half : 2 * half])
        terms, lost = xp.concat([total, terms[2 * half :]]), xp.concat([error, lost[2 * half :]])
    return float(terms[0]) + float(lost[0]) if terms.shape[0] else 0.0


def times_power_of_two(values: Any, power: int) -> Any:
    """Values times 2^power, exact except for what leaves the range."""
    if not is_tensor(values):
        return np.ldexp(values, power)
    if -1074 <= power <= 1023:
        return values * math.ldexp(1.0, power)
    first = math.copysign(1000, power)  # a power of two beyond is no double
    return times_power_of_two(values * 2.0**first, power - int(first))
