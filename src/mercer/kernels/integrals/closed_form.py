"""Closed forms that do not factor into pairs: the tensor u_pqr is made a slab at a time and thrown away again."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator
from typing import final

import numpy as np

from mercer.backends.arrays import Array, as_double, double, namespace, special, to_numpy
from mercer.backends.chunks import BALL_ENTRIES, SLAB_ENTRIES, row_chunks, rows_within
from mercer.kernels.integrals.base import KernelIntegrals
from mercer.kernels.integrals.integral_enclosures import IntegralEnclosures, SlabEnclosures
from mercer.kernels.integrals.measures import Box, GaussianMeasure, Lebesgue
from mercer.kernels.stationary import Gaussian, Laplacian


class LoopIntegrals(KernelIntegrals):
    """Products with the tensor in n m² d operations and O(m²) memory, exact to rounding."""

    @abstractmethod
    def _slab(self, Y: Array) -> Array:
        """∫ k(x, y_i) k(x, z_p) k(x, z_q) dρ, scaled, of shape (b, m, m)."""

    def embed(self, B: Array, Y: Array | None = None) -> Array:
        xp, Y = namespace(B), self._checked(Y)
        parts = [xp.tensordot(self._slab(Y[rows]), B, axes=2) for rows in self._blocks(Y.shape[0])]
        return xp.concat(parts) if parts else B[:0, 0]

    def weighted_mass(self, c: Array, Y: Array | None = None) -> Array:
        Y = self._checked(Y)
        total = self._filled(0.0, *[self.points.shape[0]] * 2)
        for rows in self._blocks(Y.shape[0]):
            total += namespace(c).tensordot(c[rows], self._slab(Y[rows]), axes=1)
        return total

    def contracted(self, c: Array, Y: Array) -> Array:
        xp, Y = namespace(c), self._checked(Y)
        return xp.concat([xp.tensordot(self._slab(Y[rows]), c, axes=1) for rows in self._blocks(Y.shape[0])])

    def enclosures(self) -> IntegralEnclosures:
        """The entries of W and of the tensor, as NumPy arrays."""

        def slabs() -> Iterator[tuple[slice, Array]]:
            parts = self._blocks(self.points.shape[0], BALL_ENTRIES)
            return ((rows, to_numpy(self._slab(self.points[rows]))) for rows in parts)

        return SlabEnclosures(self.kernel, to_numpy(self.points), to_numpy(self.mass()), slabs)

    def enclosures_with(self, Y: Array) -> IntegralEnclosures:
        joint = copy.copy(self)
        joint.points = namespace(Y).concat([self.points, self._checked(Y)])
        return joint.enclosures()

    def _blocks(self, n: int, entries: int = SLAB_ENTRIES) -> list[slice]:
        return row_chunks(n, rows_within(entries, self.points.shape[0] ** 2))

    def _checked(self, Y: Array | None) -> Array:
        """The points Y, or the support."""
        return self.points if Y is None else Y

    def _filled(self, value: float, *shape: int) -> Array:
        """An array of some shape with one number everywhere."""
        return namespace(self.points).full(shape, value, dtype=double(self.points), device=self.points.device)


@final
class GaussianBoxIntegrals(LoopIntegrals):
    """The Gaussian kernel exp(-‖x - y‖²/σ²) on a box, in any dimension.

    In one coordinate, with t the mean of the n points and S the sum of the squares of their distances to t,

        ∫ₐᵇ Π exp(-(x - p_i)²/σ²) dx = exp(-S/σ²) √(πσ²/n)/2 [erf(√n (b - t)/σ) - erf(√n (a - t)/σ)],

    and the coordinates multiply. The error functions couple the three points, so that no product of pairs is left.
    """

    def __init__(self, kernel: Gaussian, points: Array, measure: Box) -> None:
        self._sigma = float(kernel.sigma)
        super().__init__(kernel, points, measure, 0.5 * points.shape[1] * float(np.log(0.5 * np.pi * self._sigma**2)))
        self._box = measure

    def mass(self, Y: Array | None = None) -> Array:
        Y, Z = self._checked(Y), self.points
        total = as_double(Gaussian(sigma=float(self._sigma * np.sqrt(2.0)))(Y, Z))
        for j in range(Z.shape[1]):
            total = total * self._between((Y[:, None, j] + Z[None, :, j]) / 2, 2, j)
        return total

    def _slab(self, Y: Array) -> Array:
        wide, Z, d = Gaussian(sigma=float(self._sigma * np.sqrt(3.0))), self.points, self.points.shape[1]
        pairs, towards = as_double(wide(Z)), as_double(wide(Y, Z))
        slab = (2.0 / 3.0) ** (0.5 * d) * pairs * towards[:, :, None] * towards[:, None, :]
        for j in range(d):
            means = (Y[:, None, None, j] + Z[None, :, None, j] + Z[None, None, :, j]) / 3
            slab = slab * self._between(means, 3, j)
        return slab

    def _between(self, means: Array, order: int, j: int) -> Array:
        """The part of a normal law with variance σ²/(2n) and these means that lies in the j-th side of the box."""
        rate, ends = float(np.sqrt(order)) / self._sigma, (self._box.upper[j], self._box.lower[j])
        above, below = (special("erf", rate * (end - means)) for end in ends)
        return 0.5 * (above - below)


@final
class LaplacianIntegrals(LoopIntegrals):
    """The kernel exp(-‖x - y‖₁/σ) on R^d or on a box that holds the points.

    In one coordinate, with e_pq = exp(-|p - q|/σ),

        ∫ k(x,p) k(x,q) dx = (σ + |p - q|) e_pq
        ∫ k(x,p) k(x,q) k(x,r) dx = 2σ l (1 - (e_pq + e_pr + e_qr - l)/3),   l = the least of the three e,

    over R, since e of the outermost two points is the product of the other two. On [a, b] the two tails are taken off:
    (σ/n) Π exp(-(p_i - a)/σ) and its mirror image. Coordinates multiply.
    """

    def __init__(self, kernel: Laplacian, points: Array, measure: Lebesgue | Box) -> None:
        self._sigma = float(kernel.sigma)
        self._box = measure if isinstance(measure, Box) else None
        super().__init__(kernel, points, measure, points.shape[1] * float(np.log(self._sigma)))
        self._checked(points)

    def mass(self, Y: Array | None = None) -> Array:
        xp, Y, Z = namespace(self.points), self._checked(Y), self.points
        total = self._filled(1.0, Y.shape[0], Z.shape[0])
        for j in range(Z.shape[1]):
            apart = xp.abs(Y[:, None, j] - Z[None, :, j]) / self._sigma
            factor = (1.0 + apart) * xp.exp(-apart)
            for of_y, of_z in zip(self._tails(Y, j), self._tails(Z, j), strict=True):
                factor -= of_y[:, None] * of_z / 2
            total *= factor
        return total

    def _slab(self, Y: Array) -> Array:
        xp, Z = namespace(self.points), self.points
        slab = self._filled(1.0, Y.shape[0], Z.shape[0], Z.shape[0])
        for j in range(Z.shape[1]):
            pairs = xp.exp(-xp.abs(Z[:, None, j] - Z[None, :, j]) / self._sigma)[None]
            towards = xp.exp(-xp.abs(Y[:, None, j] - Z[None, :, j]) / self._sigma)
            one, other = towards[:, :, None], towards[:, None, :]
            least = xp.minimum(xp.minimum(one, other), pairs)
            factor = 2.0 * least * (1.0 - (one + other + pairs - least) / 3.0)
            for of_y, of_z in zip(self._tails(Y, j), self._tails(Z, j), strict=True):
                factor -= of_y[:, None, None] * (of_z[:, None] * of_z) / 3
            slab *= factor
        return slab

    def _tails(self, Y: Array, j: int) -> tuple[Array, ...]:
        """exp(-(y - a)/σ) and exp(-(b - y)/σ) in the j-th coordinate; nothing on R^d."""
        if self._box is None:
            return ()
        exp, below, above = namespace(Y).exp, Y[:, j] - self._box.lower[j], self._box.upper[j] - Y[:, j]
        return exp(-below / self._sigma), exp(-above / self._sigma)

    def _checked(self, Y: Array | None) -> Array:
        Y = self.points if Y is None else Y
        if self._box is not None and not bool(self._box.holds(Y).all()):
            raise ValueError("The closed form of the Laplacian on a box needs every point inside: enlarge the box.")
        return Y


@final
class LaplacianNormalIntegrals(LoopIntegrals):
    """The kernel exp(-‖x - y‖₁/σ) and ρ = N(μ₀, s² I), in any dimension.

    In one coordinate, counted from μ₀ in units of s, with t = s/σ, φ the normal density and Φ its integral, let

        B_c(u) = ∫_{x<u} exp(-c(u - x)) φ dx = exp(c²/2 - cu) Φ(u - c),   A_c(u) = B_c(-u), the same above u.

    The integrand is an exponential times φ between the points, so that for u ≤ v

        ∫ k(x,u) k(x,v) φ dx = exp(-t(v - u)) (B_2t(u) + Φ(v) - Φ(u) + A_2t(v)),

    and for u ≤ v ≤ w, with e = exp(-t · distance),

        ∫ k(x,u) k(x,v) k(x,w) φ dx
            = e_uw (e_uv (B_3t(u) - B_t(u)) + B_t(v) + A_t(v) + e_vw (A_3t(w) - A_t(w))).

    All terms are at most one. Coordinates multiply. The special functions are those of single points, found once.
    """

    def __init__(self, kernel: Laplacian, points: Array, measure: GaussianMeasure) -> None:
        super().__init__(kernel, points, measure, 0.0)
        assert measure.std is not None
        self._rate = measure.std / float(kernel.sigma)
        self._mean, self._std = measure.mean, measure.std
        self.log_scale = float(np.log(float(namespace(points).linalg.diagonal(self.mass()).max())))

    def mass(self, Y: Array | None = None) -> Array:
        xp, Y, t = namespace(self.points), self._checked(Y), self._rate
        total = self._filled(float(np.exp(-self.log_scale)), Y.shape[0], self.points.shape[0])
        for y, z in self._coordinates(Y):
            low, high = xp.minimum(y[:, None], z), xp.maximum(y[:, None], z)
            between = special("ndtr", high), special("ndtr", low)
            total *= xp.exp(-t * (high - low)) * (_below(low, 2 * t) + between[0] - between[1] + _below(-high, 2 * t))
        return total

    def _slab(self, Y: Array) -> Array:
        xp, m, t = namespace(self.points), self.points.shape[0], self._rate
        slab = self._filled(float(np.exp(-self.log_scale)), Y.shape[0], m, m)
        for y, z in self._coordinates(Y):
            values, places = xp.unique_inverse(xp.concat([y, z]))
            of_y, of_z = places[: y.shape[0], None, None], places[y.shape[0] :]
            one, other = of_z[:, None], of_z[None, :]
            low = xp.minimum(of_y, xp.minimum(one, other))
            high = xp.maximum(of_y, xp.maximum(one, other))
            middle = of_y + one + other - low - high
            least = _below(values, 3 * t) - _below(values, t)
            among = _below(values, t) + _below(-values, t)
            most = _below(-values, 3 * t) - _below(-values, t)
            to_low, to_high = xp.exp(-t * (values[middle] - values[low])), xp.exp(-t * (values[high] - values[middle]))
            slab *= to_low * to_high * (to_low * least[low] + among[middle] + to_high * most[high])
        return slab

    def _coordinates(self, Y: Array) -> Iterator[tuple[Array, Array]]:
        """The coordinates of Y and of the support in turn, counted from the mean in standard deviations."""
        yield from zip(((Y - self._mean) / self._std).T, ((self.points - self._mean) / self._std).T, strict=True)


def _below(u: Array, c: float) -> Array:
    """∫ exp(-c(u - x)) φ(x) dx over x < u."""
    return namespace(u).exp(0.5 * c**2 - c * u + special("log_ndtr", u - c))
