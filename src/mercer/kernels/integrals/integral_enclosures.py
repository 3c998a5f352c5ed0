"""The integrals of a density's programme with proved errors, for its certificate.

Where the kernel is Gaussian and the measure has closed forms of pairs, they are evaluated anew as
:class:`~mercer.backends.balls.Ball`, from the points, the bandwidth and the measure alone: what comes out holds for the
exact integrals of the exact kernel. For all other integrals the numbers that floating point gives are taken for the
programme's own, that is the values k(x_q, z_p) at the nodes of a quadrature and its weights, or the entries W_pq and
u_pqr of a closed form; what is made of them is proved, their own error is not part of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import cached_property, reduce
from typing import Protocol, final

import numpy as np

from mercer.backends.arrays import Array
from mercer.backends.balls import Ball, ball, exponential, joined, up
from mercer.backends.chunks import BALL_ENTRIES, row_chunks, rows_within
from mercer.backends.rounding import UNIT, gamma
from mercer.kernels.base import Kernel

_NORM_ROWS = 512
_MORE = 1.01  # for the rounding of bounds that are sums of non-negative numbers
_PRECISE_ENTRIES = 10**6  # of k(x_i, z_p); beyond, they are made in double precision, with their error


class ProbeEnclosures(Protocol):
    """What a proof asks of the probes ψ_j that embeddings are compared on, :mod:`mercer.kernels.integrals.probes`.

    Those of the support are its sections, ψ_p = k(·, z_p).
    """

    def gram(self) -> Ball:
        """⟨ψ_i, ψ_j⟩, of shape (N, N)."""

    def embed(self, factor: Ball) -> Ball:
        """⟨ψ_j, w_p⟩ for B = F Fᵀ, of shape (N,), for F of shape (m, r)."""

    def weighted_mass(self, c: Ball) -> Ball:
        """The matrix of B ↦ ⟨Σ_j c_j ψ_j, w_p⟩, of shape (m, m)."""

    def sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        """ψ_j(x_i) for some rows of X at a time."""


class IntegralEnclosures(ProbeEnclosures, Protocol):
    """What a proof asks of the integrals; all of them scaled as those of :class:`KernelIntegrals`."""

    def mass(self) -> Ball:
        """W, of shape (m, m)."""


class DistanceEnclosures(IntegralEnclosures, Protocol):
    """What the whole distance between density and sample takes besides (SOS 9)."""

    def energy(self, factor: Ball) -> Ball:
        """The matrix T(F Fᵀ) of B ↦ ⟨w_F, w_p⟩, w_F the embedding of ‖Fᵀk_x‖², of shape (m, m)."""

    def potential(self, X: Array, shares: Ball) -> Ball:
        """The matrix V of B ↦ ⟨v, w_p⟩, v = Σ a_i φ(x_i), of shape (m, m)."""

    def sample_norm(self, X: Array, shares: Ball) -> Ball:
        """‖v‖²."""


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

    def distances_between(self, X: Array, Y: Array) -> Ball:
        """‖x_i - y_j‖²/σ²."""
        return squared_distances(np.ldexp(X, self.power), np.ldexp(Y, self.power)) * self.rate

    def sections(self, X: Array, order: Ball | None = None) -> Iterator[tuple[slice, Ball]]:
        """exp(-‖x - z_p‖²/(nσ²)) for some rows of X at a time, n = 1 if left out.

        They come with the error of double precision where they are many.
        """
        n, m = X.shape[0], self._points.shape[0]
        rate = self.rate if order is None else self.rate / order
        for rows in row_chunks(n, rows_within(BALL_ENTRIES, m)):
            scaled = np.ldexp(X[rows], self.power)
            if n * m <= _PRECISE_ENTRIES:
                yield rows, exponential(-(squared_distances(scaled, self._points) * rate))
            else:
                yield rows, rounded_exponential(scaled, self._points, rate)


class GaussianForms:
    """Integrals of two and three Gaussian sections, from the distances of their points in units of σ.

    The distances of shape (m, m) are ‖z_p - z_q‖²/σ², in d dimensions. With r = σ²/(2s²) for ρ = N(μ₀, s² I) and 0 for
    Lebesgue's measure, the factors of pairs of a product of n sections are exp(-‖z_p - z_q‖²/((n + r)σ²)), those of
    single points, ‖z_p - μ₀‖²/σ² away, exp(-r‖z_p - μ₀‖²/((n + r)σ²)).

    Embeddings are compared on the sections of the points themselves, or, under Lebesgue's measure, on those of
    ``probes``: their distances from each other and from the points, of shapes (N, N) and (N, m).
    """

    def __init__(
        self,
        distances: Ball,
        d: int,
        ratio: Ball | None = None,
        away: Ball | None = None,
        probes: tuple[Ball, Ball] | None = None,
    ) -> None:
        self._distances, self._d = distances, d
        self._ratio, self._away = ball(0.0) if ratio is None else ratio, away
        self._probes = probes

    def mass(self) -> Ball:
        lone, pairs = self._lone_factor(2), self._pair_factor(2)
        return pairs if lone is None else pairs * lone[:, None] * lone

    def gram(self) -> Ball:
        return exponential(-(self._distances if self._probes is None else self._probes[0]))

    def embed(self, factor: Ball) -> Ball:
        inner = (factor @ factor.T) * self._inner
        total = ((self._towards @ inner) * self._towards).sum(axis=1)
        return total if self._lone is None else total * self._lone

    def weighted_mass(self, c: Ball) -> Ball:
        weights = c if self._lone is None else c * self._lone
        return ((self._towards.T * weights) @ self._towards) * self._inner

    @cached_property
    def _pairs(self) -> Ball:
        return self._pair_factor(3)

    @cached_property
    def _towards(self) -> Ball:
        """The factors of pairs of a probe and a point."""
        return self._pairs if self._probes is None else exponential(-(self._probes[1] / 3.0))

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
        self._centre = centre
        ratio = away = None
        if centre is not None and std is not None:
            ratio = (Ball(np.ldexp(std, scaled.power)).squared() * 2.0 * scaled.rate).inverse()
            away = scaled.distances_to(centre[None])[0]
        super().__init__(scaled.distances, points.shape[1], ratio, away)

    def sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        return self._scaled.sections(X)

    def energy(self, factor: Ball) -> Ball:
        """T(F Fᵀ), the matrix of B ↦ ⟨w_F, w_p⟩, w_F the embedding of ‖Fᵀk_x‖² (SOS 9), of shape (m, m).

        The exponent of the integral of five sections, of x with z_p and z_q, of y with z_s and z_t, and of x with y, is
        a sum over pairs: with t = (2 + r)(4 + r), H = exp(-‖z_p - z_q‖²/(tσ²)) and I what is left for the pairs (p, q)
        and (s, t), T_pq = I_pq Σ_st (F Fᵀ ∘ I)_st H_ps H_pt H_qs H_qt. Cost: m/2 products of m × m matrices.
        """
        pairs, inner = self._four_sections
        M, m = (factor @ factor.T) * inner, pairs.shape[0]
        rows = []
        for p in range(m):
            towards = pairs[: p + 1] * pairs[p]
            rows.append(_padded(((towards @ M) * towards).sum(axis=1), m))
        lower = Ball(*(np.stack([getattr(row, name) for row in rows]) for name in ("hi", "lo", "radius")))
        whole = Ball(*(part + np.tril(part, -1).T for part in (lower.hi, lower.lo, lower.radius)))
        return whole * inner * self._fifth

    @cached_property
    def _four_sections(self) -> tuple[Ball, Ball]:
        """H and I."""
        width = (self._ratio + 2.0) * (self._ratio + 4.0)
        pairs = exponential(-(self._distances / width))
        inner = exponential(-(self._distances * ((self._ratio + 3.0) / width)))
        lone = self._lone_factor(2)
        return pairs, inner if lone is None else inner * lone[:, None] * lone

    @cached_property
    def _fifth(self) -> Ball:
        return powered(((self._ratio + 2.0) / (self._ratio + 4.0)).root(), self._d)

    def potential(self, X: Array, shares: Ball) -> Ball:
        """V = Σ_i a_i ∫ k(x, x_i) k_x k_xᵀ dρ."""
        order = self._ratio + 3.0
        total = Ball(np.zeros(self._distances.shape))
        for rows, towards in self._scaled.sections(X, order):
            weights = shares[rows]
            if self._centre is not None:
                away = self._scaled.distances_between(X[rows], self._centre[None])[:, 0]
                weights = weights * exponential(-(away * (self._ratio / order)))
            total = total + (towards.T * weights) @ towards
        return total * self._inner

    def sample_norm(self, X: Array, shares: Ball) -> Ball:
        """‖v‖²."""
        scaled = np.ldexp(X, self._scaled.power)

        def block(rows: slice, columns: slice) -> Ball:
            return rounded_exponential(scaled[rows], scaled[columns], self._scaled.rate)

        return quadratic_form(block, shares)


class _GivenValues:
    """Kernel values as floating point gives them."""

    def __init__(self, kernel: Kernel, points: Array) -> None:
        self._kernel, self._points = kernel, points

    def gram(self) -> Ball:
        return Ball(np.asarray(self._kernel(self._points), np.float64))

    def sections(self, X: Array) -> Iterator[tuple[slice, Ball]]:
        for rows in row_chunks(X.shape[0], rows_within(BALL_ENTRIES, self._points.shape[0])):
            yield rows, Ball(np.asarray(self._kernel(X[rows], self._points), np.float64))

    def _between(self, X: Array, Y: Array, weights: Ball) -> Ball:
        """Σ_j a_j k(x_i, y_j), some rows at a time."""
        parts = row_chunks(X.shape[0], rows_within(BALL_ENTRIES, Y.shape[0]))
        return joined([Ball(np.asarray(self._kernel(X[rows], Y), np.float64)) @ weights for rows in parts])


@final
class NodeEnclosures(_GivenValues):
    """A measure Σ_q w_q δ(x_q) and the values K_qp = k(x_q, z_p), both taken as exact."""

    def __init__(self, kernel: Kernel, points: Array, nodes: Array, values: Array, weights: Array) -> None:
        super().__init__(kernel, points)
        self._nodes, self._values, self._weights = nodes, values, weights

    def mass(self) -> Ball:
        return self._added(lambda K, w: (K.T * w) @ K)

    def embed(self, factor: Ball) -> Ball:
        return self._added(lambda K, w: K.T @ ((K @ factor).squared().sum(axis=1) * w))

    def weighted_mass(self, c: Ball) -> Ball:
        return self._added(lambda K, w: (K.T * ((K @ c) * w)) @ K)

    def energy(self, factor: Ball) -> Ball:
        """T(F Fᵀ) = Kᵀ Diag(w g) K, g the embedding of ‖Fᵀk_x‖² at the nodes: Q² kernel values, taken as exact."""
        masses = joined([(K @ factor).squared().sum(axis=1) * w for K, w in self._parts()])
        return self._weighted(self._between(self._nodes, self._nodes, masses))

    def potential(self, X: Array, shares: Ball) -> Ball:
        """V = Kᵀ Diag(w v) K, v the sample's embedding at the nodes."""
        return self._weighted(self._between(self._nodes, X, shares))

    def sample_norm(self, X: Array, shares: Ball) -> Ball:
        """‖v‖²."""

        def block(rows: slice, columns: slice) -> Ball:
            return Ball(np.asarray(self._kernel(X[rows], X[columns]), np.float64))

        return quadratic_form(block, shares)

    def _weighted(self, values: Ball) -> Ball:
        """Kᵀ Diag(w g) K for values g at the nodes."""
        start, total = 0, Ball(np.zeros([self._values.shape[1]] * 2))
        for K, w in self._parts():
            stop = start + w.size
            total, start = total + (K.T * (values[start:stop] * w)) @ K, stop
        return total

    def _parts(self) -> Iterator[tuple[Ball, Array]]:
        """Some rows of K at a time, and their weights."""
        for part in row_chunks(self._weights.size, rows_within(BALL_ENTRIES, self._values.shape[1])):
            yield ball(self._values[part]), self._weights[part]

    def _added(self, term: Callable[[Ball, Array], Ball]) -> Ball:
        """The sum of a term over some nodes at a time."""
        return reduce(operator.add, (term(K, w) for K, w in self._parts()))


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


def quadratic_form(block: Callable[[slice, slice], Ball], weights: Ball) -> Ball:
    """Σ_ij a_i a_j K_ij for a symmetric matrix given by blocks: twice the blocks above the diagonal, and those on it.

    Blocks are added in double precision, where n products and sums of a row err by γ_2n of their sizes at most.
    """
    n = weights.shape[0]
    middle, radius = weights.rounded()
    parts = row_chunks(n, _NORM_ROWS)
    total = Ball(0.0)
    for i, rows in enumerate(parts):
        for columns in parts[i:]:
            K, error = block(rows, columns).rounded()
            size = np.abs(middle[rows]) + radius[rows]
            others = np.abs(middle[columns]) + radius[columns]
            slack = gamma(2 * (rows.stop - rows.start + columns.stop - columns.start) + 4, UNIT)
            spread = size @ ((np.abs(K) * slack + error) @ others)
            spread += radius[rows] @ (np.abs(K) @ others) + size @ (np.abs(K) @ radius[columns])
            part = Ball(middle[rows] @ (K @ middle[columns]), 0.0, up(spread * _MORE))
            total = total + (part if columns is rows else part.scaled(1))
    return total


def _padded(row: Ball, length: int) -> Ball:
    """A row with zeros behind it."""
    return Ball(*(np.pad(part, (0, length - part.shape[0])) for part in (row.hi, row.lo, row.radius)))


def powered(base: Ball, exponent: int) -> Ball:
    """A ball's power, by squaring."""
    out = ball(1.0)
    while exponent:
        if exponent % 2:
            out = out * base
        base, exponent = base * base, exponent // 2
    return out
