"""∫ k(x, y) dμ(y) and ∬ k(x, y) dμ(x) dμ(y) for a law μ, with proved errors: what a quadrature of μ needs (QUAD 2).

The kernel is a sum of Gaussians, as are the Gaussian, its powers, products, sums and positive multiples; for a law that
is a sum over points it is any kernel. In one coordinate, with k = exp(-t²(x - y)²), on the interval [a, b] of length L,

    ∫ k dy/L = √π/(2tL) (erf(t(b - x)) - erf(t(a - x))),
    ∬ k dx dy/L² = √π erf(tL)/(tL) - (1 - exp(-t²L²))/(tL)²,

and the coordinates multiply. For N(m, Σ), in units in which t = 1, with G = I + 2Σ,

    ∫ k dμ(y) = det(G)^(-1/2) exp(-(x - m)ᵀ G⁻¹ (x - m)),   ∬ k dμ dμ = det(I + 4Σ)^(-1/2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import erf

from mercer.backends.arrays import Array, as_double, like, to_numpy
from mercer.backends.balls import PI, Ball, ball, exponential, joined, up
from mercer.backends.chunks import BALL_ENTRIES, row_chunks, rows_within
from mercer.backends.rounding import UNIT, exact_sum, gamma
from mercer.kernels.algebra import Power, Product, Scaled, Sum
from mercer.kernels.base import Kernel
from mercer.kernels.integrals.measures import Box, DiscreteMeasure, GaussianMeasure, Lebesgue, Measure
from mercer.kernels.integrals.normal_balls import WidenedCovariance, widened
from mercer.kernels.stationary import Gaussian, Matern

_ERF_UNITS = 8  # of the last place: what the library's error function may miss
_MOST_TERMS = 64


@dataclass(frozen=True, eq=False)
class LawSections:
    """What is known of a law μ of mass one at some points x.

    Attributes
    ----------
    values, errors : arrays of shape (n,)
        ∫ k(x_i, y) dμ(y), and how far each may be from that.
    energy, energy_error : float
        ∬ k dμ dμ, and its error.
    """

    values: Array
    errors: Array
    energy: float
    energy_error: float


class _Term(NamedTuple):
    """c exp(-Σ t²(x - y)²) by c and the t² of all columns."""

    factor: Ball
    rates: Ball


def law_sections(kernel: Kernel, X: Array, measure: Measure) -> LawSections:
    """The integrals of a resolved kernel against a law: the uniform one of a box, a normal one, or a weighted sample.

    Measures are brought to mass one. Values are arrays of the library of X, in double precision.

    Raises
    ------
    ValueError
        Where there is no closed form.
    """
    if isinstance(measure, DiscreteMeasure):
        return _of_points(kernel, X, measure)
    if isinstance(measure, Lebesgue):
        raise ValueError("Lebesgue's measure on R^d is no law, for its mass is infinite: give a box or a normal law.")
    points = to_numpy(as_double(X))
    power = -int(np.frexp(np.max(np.abs(points), initial=0.0))[1])  # in units of a power of two near the points
    terms = _gaussian_terms(kernel, X.shape[1], power)
    if terms is None:
        raise ValueError(
            f"The integrals of {kernel!r} against {type(measure).__name__} have no closed form here: use Gaussian(), "
            "or sums, products and powers of it, or give points of the law as a DiscreteMeasure."
        )
    form = _Uniform(measure, power) if isinstance(measure, Box) else _Normal(measure, power)
    points = np.ldexp(points, power)
    chunks = row_chunks(points.shape[0], rows_within(BALL_ENTRIES, points.shape[1]))
    values, errors = joined([_added(form.sections(points[rows], term) for term in terms) for rows in chunks]).rounded()
    energy, energy_error = _added(form.energy(term) for term in terms).rounded()
    if not (np.all(np.isfinite(errors)) and np.isfinite(energy_error)):
        raise ValueError(
            f"The integrals of {kernel!r} leave double precision: bring points, law and bandwidth to one scale."
        )
    return LawSections(like(values, X), like(errors, X), float(energy), float(energy_error))


def _added(parts: Iterator[Ball]) -> Ball:
    total = next(parts)
    for part in parts:
        total = total + part
    return total


def _gaussian_terms(kernel: Kernel, d: int, power: int) -> list[_Term] | None:
    """The Gaussians that a kernel is the sum of; None where it is not known to be one, or of too many."""
    if isinstance(kernel, Gaussian):
        return [_Term(ball(1.0), _lengths(kernel.sigma, d, power).squared().inverse())]
    if isinstance(kernel, Matern) and kernel.nu == np.inf:
        return [_Term(ball(1.0), (_lengths(kernel.length_scale, d, power).squared() * 2.0).inverse())]
    if isinstance(kernel, Scaled):
        inner = _gaussian_terms(kernel.kernel, d, power)
        return inner and [_Term(term.factor * float(kernel.factor), term.rates) for term in inner]
    if isinstance(kernel, Sum):
        left, right = _gaussian_terms(kernel.left, d, power), _gaussian_terms(kernel.right, d, power)
        return left + right if left and right else None
    if isinstance(kernel, Product):
        return _times(_gaussian_terms(kernel.left, d, power), _gaussian_terms(kernel.right, d, power))
    if isinstance(kernel, Power) and float(kernel.exponent).is_integer():
        inner = out = _gaussian_terms(kernel.kernel, d, power)
        for _ in range(int(kernel.exponent) - 1):
            out = _times(out, inner)
        return out
    return None


def _lengths(length: Any, d: int, power: int) -> Ball:
    """One length for every column, times two to a power."""
    return Ball(np.broadcast_to(np.ldexp(np.asarray(length, np.float64), power), (d,)))


def _times(left: list[_Term] | None, right: list[_Term] | None) -> list[_Term] | None:
    if not left or not right or len(left) * len(right) > _MOST_TERMS:
        return None
    return [_Term(a.factor * b.factor, a.rates + b.rates) for a in left for b in right]


class _Uniform:
    """The uniform law of a box."""

    def __init__(self, box: Box, power: int) -> None:
        self._ends = tuple(np.ldexp(to_numpy(corner), power) for corner in (box.lower, box.upper))

    def sections(self, X: Array, term: _Term) -> Ball:
        """∫ c exp(-Σ t²(x - y)²) dμ(y) at every row."""
        out, roots = ball(np.ones(X.shape[0])) * term.factor, term.rates.root()
        for j, (a, b) in enumerate(zip(*self._ends, strict=True)):
            root, length = roots[j], Ball(b) - Ball(a)
            inside = _error_function((Ball(b) - X[:, j]) * root) - _error_function((Ball(a) - X[:, j]) * root)
            out = out * inside * (PI.root() * (root * length).inverse()).scaled(-1)
        return out

    def energy(self, term: _Term) -> Ball:
        """∬ c exp(-Σ t²(x - y)²) dμ dμ."""
        out, roots = term.factor, term.rates.root()
        for j, (a, b) in enumerate(zip(*self._ends, strict=True)):
            length = (Ball(b) - Ball(a)) * roots[j]
            gone = 1.0 - exponential(-length.squared())
            out = out * (PI.root() * _error_function(length) * length.inverse() - gone * length.squared().inverse())
        return out


class _Normal:
    """N(m, s² I) or N(m, Σ)."""

    def __init__(self, law: GaussianMeasure, power: int) -> None:
        self._mean = np.ldexp(to_numpy(law.mean), power)
        self._std = None if law.std is None else float(np.ldexp(law.std, power))
        self._covariance = None if law.covariance is None else np.ldexp(to_numpy(law.covariance), 2 * power)

    def sections(self, X: Array, term: _Term) -> Ball:
        """∫ c exp(-Σ t²(x - y)²) dμ(y) at every row."""
        apart = Ball(X) - self._mean
        if self._covariance is None:
            wider = self._wider(term.rates.scaled(1))
            away = (apart.squared() * (term.rates * wider.inverse())).sum(axis=1)
            return exponential(-away) * (_height(wider) * term.factor)
        wide, near = self._widened(term.rates, 2.0), apart * term.rates.root()
        away = ((near @ wide.inverse) * near).sum(axis=1)
        return exponential(-away) * (_height(wide.pivots) * term.factor)

    def energy(self, term: _Term) -> Ball:
        """∬ c exp(-Σ t²(x - y)²) dμ dμ."""
        if self._covariance is None:
            return _height(self._wider(term.rates.scaled(2))) * term.factor
        return _height(self._widened(term.rates, 4.0).pivots) * term.factor

    def _wider(self, rates: Ball) -> Ball:
        """1 + ts² of every column."""
        assert self._std is not None
        return Ball(self._std).squared() * rates + 1.0

    def _widened(self, rates: Ball, factor: float) -> WidenedCovariance:
        """That of Σ in units in which the kernel is the same in all columns."""
        roots = rates.root()
        assert self._covariance is not None
        return widened(ball(self._covariance) * (roots[:, None] * roots), ball(factor))


def _height(wider: Ball) -> Ball:
    """The product of all x^(-1/2)."""
    out, roots = ball(1.0), wider.root().inverse()
    for k in range(roots.shape[0]):
        out = out * roots[k]
    return out


def _error_function(z: Ball) -> Ball:
    """erf z: that of the midpoint in double precision, whose slope is below 1.13, and some units in the last place."""
    middle, away = z.rounded()
    values = erf(middle)
    return Ball(values, 0.0, up(1.13 * away + _ERF_UNITS * UNIT * np.abs(values)))


def _of_points(kernel: Kernel, X: Array, law: DiscreteMeasure) -> LawSections:
    """Sums over the points of a law, in double precision.

    With κ² = k(x, x), no entry exceeds κ_i κ_j, so that sums with an error η of each entry and k roundings of each term
    miss by (η + γ_k) κ_i Σ w κ at most.
    """
    points, weights = as_double(X), law.weights / exact_sum(law.weights)
    towards, among = kernel.matrix(points, law.points), kernel.matrix(law.points)
    values = as_double(towards.multiply(weights[:, None])[:, 0])
    energy = exact_sum(weights * as_double(among.multiply(weights[:, None])[:, 0]))
    entry = among.entry_error
    if entry.absolute > 0:
        raise ValueError(f"The entries of {kernel!r} have no known error: a law takes a kernel of which one is known.")
    slip = entry.relative + entry.scaled + gamma(max(towards.summation_depth, among.summation_depth) + 8, UNIT)
    roots, weight = (
        as_double(kernel.matrix(points).diagonal()) ** 0.5,
        1.02 * float(as_double(among.diagonal()) ** 0.5 @ weights),
    )
    return LawSections(values, 1.02 * slip * weight * roots, energy, 2.04 * slip * weight**2)
