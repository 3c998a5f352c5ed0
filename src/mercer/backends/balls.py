"""Numbers with a proved error: a midpoint of twice the double precision, and a radius.

A :class:`Ball` holds arrays hi, lo and radius: the number it stands for lies within ``radius`` of hi + lo. Midpoints
are computed with some 100 bits, by error-free transformations of sums and products (Dekker 1971, Knuth); every
operation adds to the radius what its operands' radii and its own rounding can do. So what comes out of a formula is
true for exact arithmetic, whatever cancels in it: a cancellation shows as a radius that is large beside its midpoint.

The rounding of one sum is at most 4·2⁻¹⁰⁶ of the result, that of one product 7·2⁻¹⁰⁶ (Joldes, Muller and Popescu 2017,
algorithms 6 and 10); 2⁻¹⁰² is taken for both. Radii are rounded upwards by a factor 1 + 2⁻⁴⁰ and by 10⁻³⁰⁰, which
covers what underflow does to products of numbers below 10⁻¹⁵⁰.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.rounding import fast_two_sum, two_product, two_sum

_PAIR_UNIT = 2.0**-102  # of a sum or product of unevaluated pairs
_UP = 1.0 + 2.0**-40
_FLOOR = 1e-300
_LOG2 = (6.931471805599452862e-01, 2.319046813846299558e-17)  # log 2, to 2⁻¹⁰⁹
_HALVINGS, _TERMS = 8, 11
_EXPONENTIAL = 2.0**-92  # ten terms and eight squarings of 2⁻¹⁰⁰ each, and log 2 times a thousand, with a margin of 8
_UNDERFLOW = -680.0  # exp of it is 5e-296
_SMALLEST = 5e-296
_LEAST_LOGARITHM, _LARGEST_LOGARITHM = 1e-120, 1e290  # of numbers whose logarithm has an opposite with an exponential


def up(values: Any) -> Any:
    """Non-negative numbers made larger by more than some hundred roundings of a sum of a few terms."""
    return values * _UP + _FLOOR


@final
class Ball:
    """Arrays of numbers, each within ``radius`` of hi + lo."""

    __array_ufunc__ = None  # array * ball is this class's business
    __slots__ = ("hi", "lo", "radius")

    def __init__(self, hi: Any, lo: Any = 0.0, radius: Any = 0.0) -> None:
        self.hi = np.asarray(hi, np.float64)
        self.lo = np.broadcast_to(np.asarray(lo, np.float64), self.hi.shape)
        self.radius = np.broadcast_to(np.asarray(radius, np.float64), self.hi.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the arrays."""
        return self.hi.shape

    @property
    def T(self) -> Ball:
        """The transpose."""
        return Ball(self.hi.T, self.lo.T, self.radius.T)

    def __getitem__(self, key: Any) -> Ball:
        return Ball(self.hi[key], self.lo[key], self.radius[key])

    def magnitude(self) -> Array:
        """No number of the ball is larger in absolute value."""
        return np.asarray(up(np.abs(self.hi) + np.abs(self.lo) + self.radius))

    def lower(self) -> Array:
        """Doubles below all numbers of the ball."""
        return np.nextafter(self.hi - up(np.abs(self.lo) * (self.lo < 0) + self.radius), -np.inf)

    def upper(self) -> Array:
        """Doubles above all numbers of the ball."""
        return np.nextafter(self.hi + up(np.abs(self.lo) * (self.lo > 0) + self.radius), np.inf)

    def rounded(self) -> tuple[Array, Array]:
        """Double midpoints, and radii around them."""
        return self.hi, np.asarray(up(np.abs(self.lo) + self.radius))

    def widened(self, radius: Any) -> Ball:
        """The same with a larger radius."""
        return Ball(self.hi, self.lo, up(self.radius + radius))

    def __neg__(self) -> Ball:
        return Ball(-self.hi, -self.lo, self.radius)

    def __add__(self, other: Any) -> Ball:
        other = ball(other)
        s, e = two_sum(self.hi, other.hi)
        t, f = two_sum(self.lo, other.lo)
        s, e = fast_two_sum(s, e + t)
        s, e = fast_two_sum(s, e + f)
        return Ball(s, e, up(self.radius + other.radius + _PAIR_UNIT * np.abs(s)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Ball:
        return self + (-ball(other))

    def __rsub__(self, other: Any) -> Ball:
        return ball(other) + (-self)

    def __mul__(self, other: Any) -> Ball:
        other = ball(other)
        p, e = two_product(self.hi, other.hi)
        e = e + (self.hi * other.lo + self.lo * other.hi)
        p, e = fast_two_sum(p, e)
        spread = self.magnitude() * other.radius + self.radius * other.magnitude()
        return Ball(p, e, up(spread + _PAIR_UNIT * np.abs(p)))

    __rmul__ = __mul__

    def scaled(self, power: Any) -> Ball:
        """Times two to some powers: without rounding."""
        return Ball(np.ldexp(self.hi, power), np.ldexp(self.lo, power), up(np.ldexp(self.radius, power)))

    def squared(self) -> Ball:
        """Each number's square."""
        return self * self

    def inverse(self) -> Ball:
        """1/x for balls that leave zero out; an infinite radius for others."""
        least = np.abs(self.hi) * (1 - 2.0**-40) - np.abs(self.lo) - self.radius
        inside = least > 0
        x = 1.0 / np.where(inside, self.hi, 1.0)
        guess = Ball(x)
        defect = 1.0 - guess * Ball(self.hi, self.lo)
        better = guess + guess * defect  # 1/x - better = defect²/x
        slack = defect.magnitude() ** 2 + up(self.radius) / np.where(inside, least, 1.0)
        radius = better.radius + up(slack) * up(1.0 / np.where(inside, least, 1.0))
        return Ball(better.hi, better.lo, np.where(inside, up(radius), np.inf))

    def __truediv__(self, other: Any) -> Ball:
        return self * ball(other).inverse()

    def root(self) -> Ball:
        """√x for balls of positive numbers; where zero is inside, all that lies between zero and the largest root."""
        top = np.sqrt(np.maximum(self.upper(), 0.0))
        positive = (self.lower() > 0) & (self.hi > _FLOOR)
        guess = np.sqrt(np.where(positive, self.hi, 1.0))
        defect = (Ball(self.hi, self.lo) - Ball(guess).squared()) * Ball(0.5 / guess)
        better = Ball(guess) + defect  # within defect²/(2 guess) and the rounding of 0.5/guess of the root
        slack = defect.magnitude() ** 2 / guess + defect.magnitude() * 2.0**-52 + self.radius / guess
        half = up(0.5 * top)
        return Ball(
            np.where(positive, better.hi, half),
            np.where(positive, better.lo, 0.0),
            np.where(positive, up(better.radius + 2 * slack), up(half + 2.0**-52 * top)),
        )

    def sum(self, axis: int | None = None) -> Ball:
        """The sum over one axis, or of all, in pairs."""
        values = self if axis is not None else self._flat()
        values = Ball(*(np.moveaxis(part, axis or 0, 0) for part in (values.hi, values.lo, values.radius)))
        if values.shape[0] == 0:
            return Ball(np.zeros(values.shape[1:]))
        while values.shape[0] > 1:
            half = values.shape[0] // 2
            paired = values[:half] + values[half : 2 * half]
            values = paired if values.shape[0] == 2 * half else joined([paired, values[2 * half :]])
        return values[0]

    def _flat(self) -> Ball:
        return Ball(self.hi.reshape(-1), self.lo.reshape(-1), self.radius.reshape(-1))

    def __matmul__(self, other: Any) -> Ball:
        from mercer.backends.exact_products import product

        other = ball(other)
        if other.hi.ndim == 1:
            return product(self, other[:, None])[:, 0] if self.hi.ndim == 2 else (self * other).sum()
        return product(self, other) if self.hi.ndim == 2 else product(self[None], other)[0]

    def __rmatmul__(self, other: Any) -> Ball:
        return ball(other) @ self


def ball(value: Any) -> Ball:
    """A ball, or the ball of an array of doubles that are exact."""
    return value if isinstance(value, Ball) else Ball(value)


def joined(parts: list[Ball]) -> Ball:
    """Balls one below the other."""
    return Ball(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("hi", "lo", "radius")))


def exponential(x: Ball) -> Ball:
    """exp x for x up to 300.

    x = k log 2 + 2⁸ r with ``abs(r)`` < 0.0014; exp(r) - 1 by ten terms of its series, then s ← 2s + s² eight times.
    Below exp(-680) the result is zero with a radius.
    """
    gone = x.hi < _UNDERFLOW
    seen = Ball(np.where(gone, 0.0, x.hi), np.where(gone, 0.0, x.lo))
    k = np.rint(seen.hi / _LOG2[0])
    r = (seen - Ball(_LOG2[0], _LOG2[1]) * k).scaled(-_HALVINGS)
    total = Ball(np.ones(x.shape))
    for term in range(_TERMS - 1, 1, -1):  # 1 + r/2 (1 + r/3 (1 + …)), and r times it
        total = 1.0 + total * r * _reciprocals[term]
    s = total * r
    for _ in range(_HALVINGS):
        s = s.scaled(1) + s.squared()
    out = (1.0 + s).scaled(k.astype(np.int64))
    radius = out.hi * (_EXPONENTIAL + np.expm1(np.minimum(up(x.radius), 700.0)) * _UP)
    return Ball(np.where(gone, 0.0, out.hi), np.where(gone, 0.0, out.lo), np.where(gone, _SMALLEST, up(radius)))


def logarithm(x: Ball) -> Ball:
    """log x for balls of numbers between 1e-120 and 1e290, of an infinite radius for others.

    With g near log x, x exp(-g) = 1 + δ, and δ - δ² ≤ log(1 + δ) ≤ δ for δ ≥ -1/2.
    """
    inside = (x.lower() > _LEAST_LOGARITHM) & (x.upper() < _LARGEST_LOGARITHM)
    seen = Ball(*(np.where(inside, part, other) for part, other in ((x.hi, 1.0), (x.lo, 0.0), (x.radius, 0.0))))
    guess = np.log(seen.hi)
    off = seen * exponential(Ball(-guess)) - 1.0
    largest = off.magnitude()
    inside = inside & (largest < 0.5)
    return Ball(guess) + Ball(off.hi, off.lo, np.where(inside, up(off.radius + largest**2), np.inf))


_reciprocals = {term: Ball(1.0) / Ball(float(term)) for term in range(2, _TERMS)}
PI = Ball(3.141592653589793116, 1.224646799147353207e-16, 2.0**-105)
