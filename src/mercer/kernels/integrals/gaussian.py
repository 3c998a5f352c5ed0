"""Closed forms for the Gaussian kernel that factor into pairs: matrix products and O(m²) memory (SOS Lemma 4)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, as_double, like, namespace, to_numpy, upper_triangle
from mercer.backends.balls import Ball
from mercer.backends.chunks import SECTION_ROWS, row_chunks
from mercer.backends.rounding import EPS, times_power_of_two
from mercer.kernels.integrals.base import KernelIntegrals, SquareMasses, summed_squares
from mercer.kernels.integrals.integral_enclosures import GaussianEnclosures, IntegralEnclosures
from mercer.kernels.integrals.measures import GaussianMeasure, Lebesgue
from mercer.kernels.integrals.normal_balls import widened
from mercer.kernels.integrals.normal_enclosures import CovarianceEnclosures
from mercer.kernels.stationary import Gaussian

_PAIRWISE_UP_TO = 150
_NORM_ERROR = 1e-7  # of a norm: with more, rounding has taken too many of its digits
_GRID_FEATURES, _GRID_NODES, _GRID_STEP = 3, 20_000, 0.5
_LARGEST_RATIO = 1e100


class GaussianMixture(NamedTuple):
    """Σ weights[i] N(means[i], variance · I); weights may be negative."""

    weights: Array
    means: Array
    variance: float


@final
class GaussianIntegrals(KernelIntegrals):
    """Closed forms for k(x, y) = exp(-a‖x - y‖²) and dρ = dx or a normal law ∝ exp(-Σ b_l (x - μ₀)_l²) in its own axes.

    Completing the square, with b = 0 for Lebesgue's measure and points counted from μ₀, in every coordinate

        ∫ Π_{i ≤ n} k(x, p_i) dρ = c_n exp(-ab/(na+b) Σ p_i² - a²/(na+b) Σ_{i<j} (p_i - p_j)²)

    with c_n = (π/(na))^{1/2}, or (b/(na+b))^{1/2} for a normal law, whose axes are those of its covariance and whose b
    is 1/(2s²) in each. The coordinates multiply. For n = 3 the exponential is a product over pairs: u_pqr =
    c₃ h_p h_q h_r G_pq G_pr G_qr, so that U(B) = c₃ h ∘ diag(G (B ∘ hhᵀ ∘ G) G) needs matrix products and O(m²) memory
    alone (SOS Lemma 4 stores m³ numbers). Lengths are counted in powers of two near σ, so that no a² or ab leaves the
    floating-point range.
    """

    def __init__(self, kernel: Gaussian, points: Array, measure: Lebesgue | GaussianMeasure) -> None:
        self._kernel = kernel
        self._sigma, self._power = float(kernel.sigma), -int(np.frexp(float(kernel.sigma))[1])
        _require_scale(kernel, points, measure)
        self._a = float(1.0 / np.ldexp(self._sigma, self._power) ** 2)
        self._frame = _frame(points, measure, self._power)
        self._b = self._frame.rates  # a number, or one for each axis
        log_c2, log_c3 = self._log_constants(points.shape[1], measure)
        log_unit = -points.shape[1] * self._power * math.log(2.0) if isinstance(measure, Lebesgue) else 0.0
        super().__init__(kernel, points, measure, log_c2 + log_unit)
        self._near = self._frame.placed(points)
        self._c3 = float(np.exp(log_c3 - log_c2))
        self._pairs = self._pair_factor(points, 3)
        self._lone = self._lone_factor(points, 3)
        self._inner = self._c3 * self._pairs * (self._lone[:, None] * self._lone)

    @property
    def scaled_points(self) -> Array:
        """The support in units of a power of two near σ."""
        return self._near

    @property
    def rate(self) -> float:
        """a, in these units."""
        return self._a

    @property
    def ratio(self) -> float:
        """b/a of a measure that is the same in all directions: zero for Lebesgue's."""
        return float(self._b / self._a)

    def lone_factor(self, order: int) -> Array:
        """The part of single support points in an integral of so many sections, exp(-ab/(na+b) ‖z - μ₀‖²)."""
        return self._lone_factor(self.points, order)

    def _log_constants(self, d: int, measure: Lebesgue | GaussianMeasure) -> list[float]:
        """log c₂ and log c₃."""
        if isinstance(measure, Lebesgue):
            return [0.5 * d * math.log(math.pi / (n * self._a)) for n in (2, 3)]
        if measure.covariance is None:
            return [0.5 * d * math.log(self._b / (n * self._a + self._b)) for n in (2, 3)]
        covariance = np.ldexp(to_numpy(measure.covariance), 2 * self._power)
        return [-0.5 * widened(covariance, Ball(2.0 * n * self._a)).log_determinant() for n in (2, 3)]

    @property
    def is_isotropic(self) -> bool:
        """Whether the measure is the same in all directions."""
        return self._frame.axes is None

    def mass(self, Y: Array | None = None) -> Array:
        Y = self.points if Y is None else Y
        outer = self._lone_factor(Y, 2)[:, None] * self._lone_factor(self.points, 2)
        return outer * self._pair_factor(Y, 2)

    def embed(self, B: Array, Y: Array | None = None) -> Array:
        G, h = self._towards(Y)
        return h * namespace(G).einsum("ip,ip->i", G @ (B * self._inner), G)

    def weighted_mass(self, c: Array, Y: Array | None = None) -> Array:
        G, h = self._towards(Y)
        total = (G.T * (h * c)) @ G
        total *= self._inner
        return total

    def contracted(self, c: Array, Y: Array) -> Array:
        G, h = self._towards(Y)
        return h[:, None] * ((G * c) @ self._inner) * G

    def mixture(self, B: Array) -> GaussianMixture:
        """The measure p_B dρ as a signed mixture of m(m+1)/2 normal laws, one for each pair of support points.

        k(x, p) k(x, q) dρ is W_pq times N(m_pq, I/(2(2a+b))), m_pq = (a(p + q) + bμ₀)/(2a + b); for measures that are
        the same in all directions. :meth:`bumps` is for others, too.
        """
        weights, means = self.bumps(B)
        variance = float(np.ldexp(0.5 / (2.0 * self._a + self._b), -2 * self._power))
        return GaussianMixture(weights, means, variance)

    def bumps(self, B: Array) -> tuple[Array, Array]:
        """The weights and the means of these laws, whose covariance is :meth:`bump_covariance`."""
        weights, means = self._components(B)
        return weights, self._frame.back(means)

    def bump_covariance(self) -> Array:
        """The covariance of k(x, z)² dρ as a NumPy array of shape (d, d)."""
        variances = np.ldexp(self._deviation() ** 2, -2 * self._power)
        axes = np.eye(variances.size) if self._frame.axes is None else to_numpy(self._frame.axes)
        return (axes * variances) @ axes.T

    def _components(self, B: Array) -> tuple[Array, Array]:
        """The weights of these laws, and their means in the frame."""
        i, j = upper_triangle(self.points.shape[0], self.points)
        weights = (B * self.mass())[i, j]
        weights[i != j] *= 2.0
        means = self._a * (self._near[i] + self._near[j]) + self._b * self._frame.centre
        return weights, means / (2.0 * self._a + self._b)

    def enclosures(self) -> IntegralEnclosures:
        """The closed forms anew from the points, as NumPy arrays."""
        return self.enclosures_of(to_numpy(self.points))

    def enclosures_of(self, points: Array) -> IntegralEnclosures:
        """Those of other points, an array of NumPy, in place of the support."""
        measure = self.measure
        if not isinstance(measure, GaussianMeasure):
            return GaussianEnclosures(points, self._sigma, None, None)
        mean = to_numpy(measure.mean)
        if measure.covariance is None:
            return GaussianEnclosures(points, self._sigma, mean, measure.std)
        return CovarianceEnclosures(points, self._sigma, mean, to_numpy(measure.covariance))

    def enclosures_with(self, Y: Array) -> IntegralEnclosures:
        measure = self.measure
        assert isinstance(measure, Lebesgue | GaussianMeasure)
        return GaussianIntegrals(self._kernel, namespace(Y).concat([self.points, Y]), measure).enclosures()

    def square_masses(self, F: Array) -> SquareMasses:
        """∫ (Fᵀk_x)_c² dρ on a grid in up to three dimensions, where nothing cancels; as diag(FᵀWF) elsewhere."""
        grid = self._grid()
        if grid is None:
            return super().square_masses(F)
        parts = [summed_squares(K, weights, F) for K, weights in self._sections(grid)]
        masses = namespace(F).stack([part.masses for part in parts])
        return SquareMasses(namespace(F).sum(masses, axis=0), float(sum(part.rounding for part in parts)))

    def at_nodes(self, F: Array) -> tuple[Array, Array] | None:
        grid = self._grid()
        if grid is None:
            return None
        xp = namespace(F)
        return grid, xp.concat([weights * xp.sum((K @ F) ** 2, axis=1) for K, weights in self._sections(grid)])

    def _sections(self, grid: Array) -> Iterator[tuple[Array, Array]]:
        """k(nodes, support) and the weights of the nodes, some nodes at a time."""
        for rows in row_chunks(grid.shape[0], SECTION_ROWS):
            nodes = grid[rows]
            weights = namespace(nodes).exp(self.measure.log_density(nodes) + (self._log_cell() - self.log_scale))
            yield as_double(self.kernel(nodes, self.points)), weights

    def squared_norm(self, B: Array) -> float | None:
        """‖w_p‖² on a grid in up to three dimensions, over pairs of components of the mixture for up to 150 points.

        Components of the mixture cancel: an answer whose error, ε (Σ|ω|)², is above 1e-7 of it is none.
        """
        grid = self._grid()
        if grid is not None:
            xp = namespace(B)
            masses = xp.concat([w * xp.einsum("qp,qp->q", K @ B, K) for K, w in self._sections(grid)])
            spread = self._double_sum(self._frame.placed(grid), masses, 0.0)
            return spread * float(xp.sum(B * self.mass()) / xp.sum(masses)) ** 2
        if self.points.shape[0] > _PAIRWISE_UP_TO:
            return None
        weights, means = self._components(B)
        norm = self._double_sum(means, weights, 0.5 / (2.0 * self._a + self._b))
        rounding = EPS * float(abs(weights).sum()) ** 2
        return norm if rounding <= _NORM_ERROR * norm else None

    def _double_sum(self, means: Array, weights: Array, variance: Any) -> float:
        """Σ ω_i ω_j ∬ k dN(m_i, variance) dN(m_j, variance), means and variances of the axes in the frame."""
        spread = 1.0 + 4.0 * self._a * variance + 0.0 * means[0]  # one for each axis
        near = means / spread**0.5
        smoothed = Gaussian(sigma=self._a**-0.5).matrix(near).multiply(weights[:, None])[:, 0]
        heights = namespace(means).log(spread)
        return float(np.exp(-0.5 * float(heights.sum()))) * float(weights @ smoothed)

    def _grid(self) -> Array | None:
        """Nodes over all bumps of a density, half of their deviation apart; None where there are too many.

        The trapezoidal rule is exact to rounding there: sums over the grid differ from integrals by exp(-2π² 2²) of the
        terms, by exp(-2π² 8/3) where a third kernel makes them narrower, and these may be 1e10 times as large as p.
        """
        if self.points.shape[1] > _GRID_FEATURES:
            return None
        xp, deviation = namespace(self._near), self._deviation()
        ends = xp.stack([xp.min(self._near, axis=0), xp.max(self._near, axis=0)])
        ends = (2.0 * self._a * ends + self._b * self._frame.centre) / (2.0 * self._a + self._b)
        corners = np.array([[float(x) for x in end] for end in ends])
        counts = np.ceil((corners[1] - corners[0] + 18.0 * deviation) / (deviation * _GRID_STEP)) + 1.0
        if np.prod(counts) > _GRID_NODES:
            return None
        starts, steps = corners[0] - 9.0 * deviation, deviation * _GRID_STEP
        axes = [a + step * np.arange(int(n)) for a, step, n in zip(starts, steps, counts, strict=True)]
        grid = np.stack([x.reshape(-1) for x in np.meshgrid(*axes, indexing="ij")], axis=1)
        return self._frame.back(like(np.ascontiguousarray(grid), self.points))

    def _deviation(self) -> Array:
        """The standard deviation of k(x, z)² dρ in every axis, in units of 2^-power."""
        rates = np.asarray(to_numpy(self._b), np.float64)
        return np.broadcast_to(np.sqrt(0.5 / (2.0 * self._a + rates)), (self.points.shape[1],))

    def _log_cell(self) -> float:
        """The logarithm of the volume around a node of the grid."""
        sides = np.log(self._deviation() * _GRID_STEP) - self._power * math.log(2.0)
        return float(sides.sum())

    def _towards(self, Y: Array | None) -> tuple[Array, Array]:
        """G between Y and the support, and h of Y."""
        if Y is None:
            return self._pairs, self._lone
        return self._pair_factor(Y, 3), self._lone_factor(Y, 3)

    def _pair_factor(self, Y: Array, order: int) -> Array:
        """exp(-Σ a²/(na+b) (y - z)²)."""
        length = ((order + self._b / self._a) / self._a) ** 0.5
        if self.is_isotropic:
            return as_double(Gaussian(sigma=float(length))(self._frame.placed(Y), self._near))
        return as_double(Gaussian(sigma=1.0)(self._frame.placed(Y) / length, self._near / length))

    def _lone_factor(self, Y: Array, order: int) -> Array:
        """exp(-Σ ab/(na+b) (y - μ₀)²)."""
        rate = self._b / (order + self._b / self._a)
        xp = namespace(Y)
        return xp.exp(-xp.sum(rate * (self._frame.placed(Y) - self._frame.centre) ** 2, axis=1))


class _Frame(NamedTuple):
    """Coordinates in units of 2^-power; for a covariance, counted from the mean in the directions of its axes.

    ``centre`` is the mean there, ``rates`` b, ``origin`` the mean in the units and the directions of the points.
    """

    power: int
    origin: Array
    axes: Array | None
    centre: Array
    rates: Any

    def placed(self, Y: Array) -> Array:
        """Points in the frame."""
        near = times_power_of_two(Y, self.power)
        return near if self.axes is None else (as_double(near) - self.origin) @ self.axes

    def back(self, Y: Array) -> Array:
        """Points of the frame as they were."""
        near = Y if self.axes is None else Y @ self.axes.T + self.origin
        return times_power_of_two(near, -self.power)


def _frame(points: Array, measure: Lebesgue | GaussianMeasure, power: int) -> _Frame:
    nowhere = like(np.zeros(points.shape[1]), points)
    if isinstance(measure, Lebesgue):
        return _Frame(power, nowhere, None, nowhere, 0.0)
    origin = times_power_of_two(measure.mean, power)
    if measure.covariance is None:
        assert measure.std is not None
        return _Frame(power, origin, None, origin, float(0.5 / np.ldexp(measure.std, power) ** 2))
    variances, axes = namespace(points).linalg.eigh(times_power_of_two(measure.covariance, 2 * power))
    return _Frame(power, origin, axes, nowhere, 0.5 / variances)


def _require_scale(kernel: Gaussian, points: Array, measure: Lebesgue | GaussianMeasure) -> None:
    """Refuse bandwidths whose ratios to the points or to the reference's width have squares beyond double precision."""
    sigma = float(kernel.sigma)
    widths = [float(width) for width in measure.deviations()] if isinstance(measure, GaussianMeasure) else []
    with np.errstate(over="ignore", under="ignore"):
        lengths = [float(abs(points).max()) / sigma, *(width / sigma for width in widths)]
        lengths += [sigma / width for width in widths]
    if not max(lengths) < _LARGEST_RATIO:
        raise ValueError(
            f"{kernel!r} is {max(lengths):.0e} times as narrow or wide as the points and the reference: take a "
            "bandwidth near their scale."
        )
