"""The integrals of a density's programme with proved errors, for its certificate.

Where the kernel is Gaussian and the measure has closed forms of pairs, they are evaluated anew as
:class:`~mercer.backends.balls.Ball`, from the points, the bandwidth and the measure alone: what comes out holds for the
exact integrals of the exact kernel. For all other integrals the numbers that floating point gives are taken for the
programme's own, that is the values k(x_q, z_p) at the nodes of a quadrature and its weights, or the entries W_pq and
u_pqr of a closed form; what is made of them is proved, their own error is not part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Protocol, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.balls import Ball, ball, exponential, joined, up
from mercer.backends.chunks import BALL_ENTRIES, row_chunks, rows_within
from mercer.backends.rounding import UNIT
from mercer.kernels.base import Kernel

_PRECISE_ENTRIES = 10**6  # of k(x_i, z_p); beyond, they are made in double precision, with their error


class IntegralEnclosures(Protocol):
    """What a proof asks of the integrals; all of them scaled as those of :class:`KernelIntegrals`."""

    def mass(self) -> Ball:
        """W, of shape (m, m)."""

    def gram(self) -> Ball:
        """k(z_p, z_q), of shape (m, m)."""

    def embed(self, factor: Ball) -> Ball:
        """U(F Fᵀ), of shape (m,), for F of shape (m, r)."""

    def weighted_mass(self, c: Ball) -> Ball:
        """∫ (Σ_r c_r k(x, z_r)) k_x k_xᵀ dρ, of shape (m, m)."""

    def sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        """k(x_i, z_p) for some rows of X at a time."""


@final
class ScaledPoints:
    """Points z in units of 2^e ≈ σ, whose Gaussian sections are exp(-‖x - z_p‖²/σ²)."""

    def __init__(self, points: Array, sigma: float) -> None:
        self.power = -int(np.frexp(sigma)[1])
        self.rate = Ball(np.ldexp(sigma, self.power)).squared().inverse()
        self._points = np.ldexp(points, self.power)
        self.distances = self.distances_to(points)

    def distances_to(self, X: Array) -> Ball:
        """‖x_i - z_p‖²/σ²."""
        return squared_distances(np.ldexp(X, self.power), self._points) * self.rate

    def sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        """Those at some rows of X at a time; with the error of double precision where they are many."""
        n, m = X.shape[0], self._points.shape[0]
        for rows in row_chunks(n, rows_within(BALL_ENTRIES, m)):
            if n * m <= _PRECISE_ENTRIES:
                yield rows, exponential(-self.distances_to(X[rows]))
            else:
                yield rows, rounded_exponential(np.ldexp(X[rows], self.power), self._points, self.rate)


class GaussianForms:
    """Integrals of two and three Gaussian sections, from the distances of their points in units of σ.

    The distances of shape (m, m) are ‖z_p - z_q‖²/σ², in d dimensions. With r = σ²/(2s²) for ρ = N(μ₀, s² I) and 0 for
    Lebesgue's measure, the factors of pairs of a product of n sections are exp(-‖z_p - z_q‖²/((n + r)σ²)), those of
    single points, ‖z_p - μ₀‖²/σ² away, exp(-r‖z_p - μ₀‖²/((n + r)σ²)).
    """

    def __init__(self, distances: Ball, d: int, ratio: Ball | None = None, away: Ball | None = None) -> None:
        self._distances, self._d = distances, d
        self._ratio, self._away = ball(0.0) if ratio is None else ratio, away

    def mass(self) -> Ball:
        lone, pairs = self._lone_factor(2), self._pair_factor(2)
        return pairs if lone is None else pairs * lone[:, None] * lone

    def gram(self) -> Ball:
        return exponential(-self._distances)

    def embed(self, factor: Ball) -> Ball:
        inner = (factor @ factor.T) * self._inner
        total = ((self._pairs @ inner) * self._pairs).sum(axis=1)
        return total if self._lone is None else total * self._lone

    def weighted_mass(self, c: Ball) -> Ball:
        weights = c if self._lone is None else c * self._lone
        return ((self._pairs * weights) @ self._pairs) * self._inner

    @cached_property
    def _pairs(self) -> Ball:
        return self._pair_factor(3)

    @cached_property
    def _lone(self) -> Ball | None:
        return self._lone_factor(3)

    @cached_property
    def _inner(self) -> Ball:
        inner = self._pairs * self._heights()
        return inner if self._lone is None else inner * self._lone[:, None] * self._lone

    def _heights(self) -> Ball:
        """c₃/c₂."""
        return powered(((self._ratio + 2.0) / (self._ratio + 3.0)).root(), self._d)

    def _pair_factor(self, order: int) -> Ball:
        return exponential(-(self._distances / (self._ratio + float(order))))

    def _lone_factor(self, order: int) -> Ball | None:
        if self._away is None:
            return None
        return exponential(-(self._away * (self._ratio / (self._ratio + float(order)))))


@final
class GaussianEnclosures(GaussianForms):
    """The closed forms of :class:`~mercer.kernels.integrals.gaussian.GaussianIntegrals`, in units of 2^e ≈ σ."""

    def __init__(self, points: Array, sigma: float, centre: Array | None, std: float | None) -> None:
        self._scaled = scaled = ScaledPoints(points, sigma)
        ratio = away = None
        if centre is not None and std is not None:
            ratio = (Ball(np.ldexp(std, scaled.power)).squared() * 2.0 * scaled.rate).inverse()
            away = scaled.distances_to(centre[None])[0]
        super().__init__(scaled.distances, points.shape[1], ratio, away)

    def sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        return self._scaled.sections(X)


class _GivenValues:
    """Kernel values as floating point gives them."""

    def __init__(self, kernel: Kernel, points: Array) -> None:
        self._kernel, self._points = kernel, points

    def gram(self) -> Ball:
        return Ball(np.asarray(self._kernel(self._points), np.float64))

    def sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        for rows in row_chunks(X.shape[0], rows_within(BALL_ENTRIES, self._points.shape[0])):
            yield rows, Ball(np.asarray(self._kernel(X[rows], self._points), np.float64))


@final
class NodeEnclosures(_GivenValues):
    """A measure Σ_q w_q δ(x_q) and the values K_qp = k(x_q, z_p), both taken as exact."""

    def __init__(self, kernel: Kernel, points: Array, values: Array, weights: Array) -> None:
        super().__init__(kernel, points)
        self._values, self._weights = values, weights

    def mass(self) -> Ball:
        return self._added(lambda K, w: (K.T * w) @ K)

    def embed(self, factor: Ball) -> Ball:
        return self._added(lambda K, w: K.T @ ((K @ factor).squared().sum(axis=1) * w))

    def weighted_mass(self, c: Ball) -> Ball:
        return self._added(lambda K, w: (K.T * ((K @ c) * w)) @ K)

    def _added(self, term: Callable[[Ball, Array], Ball]) -> Ball:
        """The sum of a term over some nodes at a time."""
        parts = row_chunks(self._weights.size, rows_within(BALL_ENTRIES, self._values.shape[1]))
        total = term(ball(self._values[parts[0]]), self._weights[parts[0]])
        for part in parts[1:]:
            total = total + term(ball(self._values[part]), self._weights[part])
        return total


@final
class SlabEnclosures(_GivenValues):
    """A mass matrix and a tensor u_pqr made a slab at a time, their entries taken as exact."""

    def __init__(
        self, kernel: Kernel, points: Array, mass: Array, slabs: Callable[[], Iterator[tuple[slice, Array]]]
    ) -> None:
        super().__init__(kernel, points)
        self._mass, self._slabs = mass, slabs

    def mass(self) -> Ball:
        return Ball((self._mass + self._mass.T) / 2)

    def embed(self, factor: Ball) -> Ball:
        B = factor @ factor.T
        flat = Ball(B.hi.reshape(-1), B.lo.reshape(-1), B.radius.reshape(-1))
        return joined([Ball(slab.reshape(slab.shape[0], -1)) @ flat for _, slab in self._slabs()])

    def weighted_mass(self, c: Ball) -> Ball:
        m = self._mass.shape[0]
        total = Ball(np.zeros(m * m))
        for rows, slab in self._slabs():
            total = total + c[rows] @ Ball(slab.reshape(slab.shape[0], -1))
        return Ball(*(part.reshape(m, m) for part in (total.hi, total.lo, total.radius)))


def squared_distances(X: Array, Y: Array) -> Ball:
    """‖x - y‖² for all pairs of rows of doubles."""
    total = Ball(np.zeros((X.shape[0], Y.shape[0])))
    for x, y in zip(X.T, Y.T, strict=True):
        total = total + (Ball(x[:, None]) - Ball(y[None])).squared()
    return total


def rounded_exponential(X: Array, Y: Array, rate: Ball) -> Ball:
    """exp(-rate ‖x - y‖²) in double precision: d + 5 roundings of the exponent, and four units in exp's last place."""
    squares = np.zeros((X.shape[0], Y.shape[0]))
    for x, y in zip(X.T, Y.T, strict=True):
        squares += (x[:, None] - y) ** 2
    exponents = squares * float(rate.hi)
    values = np.exp(-exponents)
    return Ball(values, 0.0, up(values * UNIT * ((X.shape[1] + 6) * exponents * (1 + 2.0**-30) + 8)))


def powered(base: Ball, exponent: int) -> Ball:
    """A ball's power, by squaring."""
    out = ball(1.0)
    while exponent:
        if exponent % 2:
            out = out * base
        base, exponent = base * base, exponent // 2
    return out
