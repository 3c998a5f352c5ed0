"""Closed forms for the Gaussian kernel that factor into pairs: matrix products and O(m²) memory (SOS Lemma 4)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, final

import numpy as np

from mercer.backends.arrays import Array, as_double, like, namespace, to_numpy, upper_triangle
from mercer.backends.chunks import SECTION_ROWS, row_chunks
from mercer.backends.rounding import EPS, times_power_of_two
from mercer.kernels.integrals.base import KernelIntegrals, SquareMasses, summed_squares
from mercer.kernels.integrals.integral_enclosures import GaussianEnclosures, IntegralEnclosures
from mercer.kernels.integrals.measures import GaussianMeasure, Lebesgue
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
    """Closed forms for k(x, y) = exp(-a‖x - y‖²) and dρ = dx or N(μ₀, s² I), the latter ∝ exp(-b‖x - μ₀‖²).

    Completing the square, with b = 0 for Lebesgue's measure and points counted from μ₀,

        ∫ Π_{i ≤ n} k(x, p_i) dρ = c_n exp(-ab/(na+b) Σ‖p_i‖² - a²/(na+b) Σ_{i<j}‖p_i - p_j‖²)

    with c_n = (π/(na))^{d/2}, or (b/(na+b))^{d/2} for the Gaussian measure. For n = 3 the exponential is a product over
    pairs: u_pqr = c₃ h_p h_q h_r G_pq G_pr G_qr, so that U(B) = c₃ h ∘ diag(G (B ∘ hhᵀ ∘ G) G) needs matrix products
    and O(m²) memory alone (SOS Lemma 4 stores m³ numbers). Lengths are counted in powers of two near σ, so that no a²
    or ab leaves the floating-point range.
    """

    def __init__(self, kernel: Gaussian, points: Array, measure: Lebesgue | GaussianMeasure) -> None:
        d = points.shape[1]
        self._sigma, self._power = float(kernel.sigma), -int(np.frexp(float(kernel.sigma))[1])
        _require_scale(kernel, points, measure)
        a = 1.0 / np.ldexp(self._sigma, self._power) ** 2
        normal = isinstance(measure, GaussianMeasure)
        b = 0.5 / np.ldexp(measure.std, self._power) ** 2 if isinstance(measure, GaussianMeasure) else 0.0
        self._a, self._b = float(a), float(b)
        origin = measure.mean if isinstance(measure, GaussianMeasure) else like(np.zeros(d), points)
        self._centre = times_power_of_two(origin, self._power)
        log_c2, log_c3 = (0.5 * d * np.log((b if normal else np.pi) / (n * a + b)) for n in (2, 3))
        log_unit = 0.0 if normal else -d * self._power * math.log(2.0)
        super().__init__(kernel, points, measure, float(log_c2) + log_unit)
        self._near = times_power_of_two(points, self._power)
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
        """b/a: zero for Lebesgue's measure."""
        return self._b / self._a

    def lone_factor(self, order: int) -> Array:
        """The part of single support points in an integral of so many sections, exp(-ab/(na+b) ‖z - μ₀‖²)."""
        return self._lone_factor(self.points, order)

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

    def mixture(self, B: Array) -> GaussianMixture:
        """The measure p_B dρ as a signed mixture of m(m+1)/2 normal laws, one for each pair of support points.

        k(x, p) k(x, q) dρ is W_pq times N(m_pq, I/(2(2a+b))), m_pq = (a(p + q) + bμ₀)/(2a + b).
        """
        i, j = upper_triangle(self.points.shape[0], self.points)
        weights = (B * self.mass())[i, j]
        weights[i != j] *= 2.0
        rate = 2.0 * self._a + self._b
        means = (self._a * (self._near[i] + self._near[j]) + self._b * self._centre) / rate
        variance = float(np.ldexp(0.5 / rate, -2 * self._power))
        return GaussianMixture(weights, times_power_of_two(means, -self._power), variance)

    def enclosures(self) -> IntegralEnclosures:
        """The closed forms anew from the points, as NumPy arrays."""
        points = to_numpy(self.points)
        if isinstance(self.measure, GaussianMeasure):
            return GaussianEnclosures(points, self._sigma, to_numpy(self.measure.mean), self.measure.std)
        return GaussianEnclosures(points, self._sigma, None, None)

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
            return self._double_sum(grid, masses, 0.0) * float(xp.sum(B * self.mass()) / xp.sum(masses)) ** 2
        if self.points.shape[0] > _PAIRWISE_UP_TO:
            return None
        weights, means, variance = self.mixture(B)
        norm = self._double_sum(means, weights, variance)
        rounding = EPS * float(abs(weights).sum()) ** 2
        return norm if rounding <= _NORM_ERROR * norm else None

    def _double_sum(self, means: Array, weights: Array, variance: float) -> float:
        """Σ ω_i ω_j ∬ k dN(m_i, variance) dN(m_j, variance)."""
        spread = 1.0 + 4.0 * variance / self._sigma**2
        matrix = Gaussian(sigma=float(np.sqrt(spread) * self._sigma)).matrix(means)
        smoothed = matrix.multiply(weights[:, None])[:, 0]
        return float(spread ** (-0.5 * means.shape[1]) * (weights @ smoothed))

    def _grid(self) -> Array | None:
        """Nodes over all bumps of a density, half of their deviation apart; None where there are too many.

        The trapezoidal rule is exact to rounding there: sums over the grid differ from integrals by exp(-2π² 2²) of the
        terms, by exp(-2π² 8/3) where a third kernel makes them narrower, and these may be 1e10 times as large as p.
        """
        if self.points.shape[1] > _GRID_FEATURES:
            return None
        xp, deviation = namespace(self._near), self._deviation()
        ends = xp.stack([xp.min(self._near, axis=0), xp.max(self._near, axis=0)])
        ends = (2.0 * self._a * ends + self._b * self._centre) / (2.0 * self._a + self._b)
        corners = np.array([[float(x) for x in end] for end in ends])
        counts = np.ceil((corners[1] - corners[0] + 18.0 * deviation) / (deviation * _GRID_STEP)) + 1.0
        if np.prod(counts) > _GRID_NODES:
            return None
        starts = corners[0] - 9.0 * deviation
        axes = [a + deviation * _GRID_STEP * np.arange(int(n)) for a, n in zip(starts, counts, strict=True)]
        grid = np.stack([x.reshape(-1) for x in np.meshgrid(*axes, indexing="ij")], axis=1)
        return like(np.ascontiguousarray(np.ldexp(grid, -self._power)), self.points)

    def _deviation(self) -> float:
        """The standard deviation of k(x, z)² dρ, in units of 2^-power."""
        return float(np.sqrt(0.5 / (2.0 * self._a + self._b)))

    def _log_cell(self) -> float:
        """The logarithm of the volume around a node of the grid."""
        side = math.log(self._deviation() * _GRID_STEP) - self._power * math.log(2.0)
        return side * self.points.shape[1]

    def _towards(self, Y: Array | None) -> tuple[Array, Array]:
        """G between Y and the support, and h of Y."""
        if Y is None:
            return self._pairs, self._lone
        return self._pair_factor(Y, 3), self._lone_factor(Y, 3)

    def _pair_factor(self, Y: Array, order: int) -> Array:
        """exp(-a²/(na+b) ‖y - z‖²)."""
        length = np.sqrt((order + self._b / self._a) / self._a)
        return as_double(Gaussian(sigma=float(length))(times_power_of_two(Y, self._power), self._near))

    def _lone_factor(self, Y: Array, order: int) -> Array:
        """exp(-ab/(na+b) ‖y - μ₀‖²)."""
        rate = self._b / (order + self._b / self._a)
        xp, near = namespace(Y), times_power_of_two(Y, self._power)
        return xp.exp(-rate * xp.sum((near - self._centre) ** 2, axis=1))


def _require_scale(kernel: Gaussian, points: Array, measure: Lebesgue | GaussianMeasure) -> None:
    """Refuse bandwidths whose ratios to the points or to the reference's width have squares beyond double precision."""
    sigma = float(kernel.sigma)
    widths = [measure.std] if isinstance(measure, GaussianMeasure) else []
    with np.errstate(over="ignore", under="ignore"):
        lengths = [float(abs(points).max()) / sigma, *(width / sigma for width in widths)]
        lengths += [sigma / width for width in widths]
    if not max(lengths) < _LARGEST_RATIO:
        raise ValueError(
            f"{kernel!r} is {max(lengths):.0e} times as narrow or wide as the points and the reference: take a "
            "bandwidth near their scale."
        )
