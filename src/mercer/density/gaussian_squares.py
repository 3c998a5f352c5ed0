"""Densities k_xᵀ B k_x of the Gaussian kernel on R^d or a box: moments, marginals, conditionals, distribution, samples.

The product of two kernel sections is a Gaussian between its points,

    k(x, zᵢ) k(x, zⱼ) = Wᵢⱼ N(x; (zᵢ + zⱼ)/2, σ²/4 I),   Wᵢⱼ = (πσ²/2)^{d/2} exp(-‖zᵢ - zⱼ‖²/(2σ²))

so the density is a mixture of Gaussians, cut off at the box, whose weights Pᵢⱼ, BᵢⱼWᵢⱼ times the mass inside the box,
sum to one but may be negative. Integrating some coordinates out, or fixing them, multiplies B entry by entry with a
positive semi-definite matrix: what results is again such a density, of the coordinates left (the product is positive
semi-definite by Schur's theorem).
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from mercer.density.arguments import (
    NOTHING_LEFT,
    checked_coordinates,
    checked_levels,
    checked_rows,
    checked_values,
    one_dimension,
)
from mercer.density.line_laws import LineCells
from mercer.density.truncated_normal import draw_between, mass_between, moments_between
from mercer.kernels import Gaussian
from mercer.linalg.eigen import positive_eigenpairs
from mercer.validation import whole_number

Array = np.ndarray[Any, np.dtype[Any]]

_PANEL = 2**22  # entries at a time
_LEAST_ACCEPTED = 0.05  # below, coordinates drawn one after the other are quicker than wasted proposals
_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)


@final
class GaussianSquares:
    """The probability density p(x) = k_xᵀ B k_x for k(x, z) = exp(-‖x - z‖²/σ²), on R^d or a box.

    Parameters
    ----------
    points : array of shape (m, d)
        Z.
    coefficients : array of shape (m, m)
        B, symmetric positive semi-definite; it is scaled so that p integrates to one.
    sigma : float
        σ.
    lower, upper : arrays of shape (d,), optional
        The corners of the box outside of which p is zero; entries may be infinite. None means none.

    Attributes
    ----------
    mixture : array of shape (m, m)
        P: the weight of the Gaussian N((zᵢ + zⱼ)/2, σ²/4 I) inside the box; they sum to one, some may be negative.
    """

    def __init__(
        self, points: Array, coefficients: Array, sigma: float, lower: Array | None = None, upper: Array | None = None
    ) -> None:
        self.points = np.asarray(points, np.float64)
        self.sigma = float(sigma)
        self.lower = np.full(self.n_features, -np.inf) if lower is None else np.asarray(lower, np.float64)
        self.upper = np.full(self.n_features, np.inf) if upper is None else np.asarray(upper, np.float64)
        self._kernel = Gaussian(sigma=self.sigma)
        mixture = np.asarray(coefficients, np.float64) * self._overlap(range(self.n_features))
        total = float(mixture.sum())
        if not total > 0:
            raise ValueError("The density has no mass: its coefficients are not positive semi-definite, or vanish.")
        self.mixture = mixture / total
        self._coefficients = np.asarray(coefficients, np.float64) / total
        # (πσ²/2)^{-d/2}, which turns k k into densities; in logarithms, for it leaves the floating-point range with d.
        self._log_scale = -0.5 * self.n_features * math.log(math.pi * self.sigma**2 / 2)

    @property
    def n_features(self) -> int:
        """d."""
        return int(self.points.shape[1])

    @property
    def acceptance_rate(self) -> float:
        """1/Σ|Pᵢⱼ|, one where no weight is negative: the share of proposals from the mixture of all abs(P) that fit p.

        Rounding in p, its moments and its draws is about 2.2e-16 over this number.
        """
        return 1.0 / float(np.abs(self.mixture).sum())

    @property
    def sampling_error(self) -> float:
        """How far, in total variation, rounding may take the law of :meth:`sample` from the density."""
        return _EPS / self.acceptance_rate

    def score_samples(self, X: Any) -> Array:
        """log p at some points; minus infinity where p underflows and outside the box."""
        X = checked_rows(X, self.n_features)
        with np.errstate(divide="ignore"):
            logs = np.log(self._form(X, self._coefficients)) + self._log_scale
        return np.where(np.all((self.lower <= X) & (self.upper >= X), axis=1), logs, -np.inf)

    def density(self, X: Any) -> Array:
        """p at some points."""
        return np.exp(self.score_samples(X))

    def mean(self) -> Array:
        """The expectation: Σ Pᵢⱼ (zᵢ + zⱼ)/2 on R^d."""
        return np.array([float(np.sum(self.mixture * self._component_moments(k)[0])) for k in range(self.n_features)])

    def covariance(self) -> Array:
        """The covariance: that of the components' means under P, and P's mean of their variances, σ²/4 I on R^d."""
        mean = self.mean()
        out = np.empty((self.n_features, self.n_features))
        for k in range(self.n_features):
            means, variances = self._component_moments(k)
            weighted = self.mixture * (means - mean[k])
            out[k, k] = np.sum(self.mixture * variances) + np.sum(weighted * (means - mean[k]))
            for l in range(k):
                out[k, l] = out[l, k] = np.sum(weighted * (self._component_moments(l)[0] - mean[l]))
        return out

    def marginal(self, coordinates: Any) -> GaussianSquares:
        """The density of some coordinates, the others integrated out."""
        kept = checked_coordinates(coordinates, self.n_features)
        others = np.setdiff1d(np.arange(self.n_features), kept)
        return self._of(kept, self._coefficients * self._overlap(others))

    def conditional(self, coordinates: Any, values: Any) -> GaussianSquares:
        """The density of the other coordinates, given the values of these."""
        given = checked_coordinates(coordinates, self.n_features)
        at = checked_values(values, self.lower[given], self.upper[given])
        others = np.setdiff1d(np.arange(self.n_features), given)
        if others.size == 0:
            raise ValueError(NOTHING_LEFT)
        section = self._sections(given, at[None])[0]
        return self._of(others, self._coefficients * np.outer(section, section))

    def cdf(self, x: Any) -> Array:
        """P(X ≤ x) in one dimension."""
        cells, values = self._line("cdf")
        below = cells.cdf(values, np.asarray(x, np.float64).reshape(-1))
        return np.clip(below / float(np.sum(cells.masses(values))), 0.0, 1.0)

    def quantile(self, levels: Any) -> Array:
        """The inverse of the distribution function in one dimension."""
        levels = checked_levels(levels)
        cells, values = self._line("quantile")
        return cells.quantiles(values[None], levels)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Independent draws, exact but for rounding, n × d.

        Points are proposed from the mixture with weights ``abs(P)`` and accepted with the probability by which p lies
        below it. Where cancellation leaves fewer than a twentieth of them, coordinates are drawn one after the other by
        inverting their conditional distribution functions.
        """
        n = whole_number(n, "n", 1)
        return self._by_rejection(n, rng) if self.acceptance_rate >= _LEAST_ACCEPTED else self._by_coordinates(n, rng)

    def _of(self, coordinates: Array, coefficients: Array) -> GaussianSquares:
        """A density of some of the coordinates."""
        bounds = self.lower[coordinates], self.upper[coordinates]
        return GaussianSquares(self.points[:, coordinates], coefficients, self.sigma, *bounds)

    def _overlap(self, coordinates: Any) -> Array:
        """exp(-‖zᵢ - zⱼ‖²/(2σ²)) in some coordinates, times the mass of the Gaussian inside the box there."""
        chosen = np.asarray(coordinates, np.intp)
        if chosen.size == 0:
            return np.ones((self.points.shape[0],) * 2)
        out = np.asarray(Gaussian(sigma=math.sqrt(2) * self.sigma)(self.points[:, chosen]), np.float64)
        for k in chosen:
            if self._bounded(k):
                out *= mass_between(self._midpoints(k), self.sigma / 2, self.lower[k], self.upper[k])
        return out

    def _bounded(self, k: int) -> bool:
        return bool(np.isfinite(self.lower[k]) or np.isfinite(self.upper[k]))

    def _midpoints(self, k: int) -> Array:
        return np.asarray(0.5 * (self.points[:, k, None] + self.points[:, k]))

    def _component_moments(self, k: int) -> tuple[Array, Array | float]:
        """Mean and variance of coordinate k under each Gaussian of the mixture."""
        if not self._bounded(k):
            return self._midpoints(k), self.sigma**2 / 4
        return moments_between(self._midpoints(k), self.sigma / 2, self.lower[k], self.upper[k])

    def _form(self, X: Array, matrix: Array) -> Array:
        """k_xᵀ M k_x, never negative."""
        out = np.empty(X.shape[0])
        width = max(1, _PANEL // self.points.shape[0])
        for lo in range(0, X.shape[0], width):
            block = np.asarray(self._kernel(X[lo : lo + width], self.points), np.float64)
            out[lo : lo + width] = np.einsum("ij,ij->i", block @ matrix, block)
        return np.maximum(out, 0.0)

    def _sections(self, coordinates: Any, values: Array) -> Array:
        """k(x, zᵢ) in some coordinates for values (n, c) of them; far away all underflow, their ratios do not."""
        logs = np.zeros((values.shape[0], self.points.shape[0]))
        for place, k in enumerate(coordinates):
            logs -= ((values[:, place, None] - self.points[:, k]) / self.sigma) ** 2
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))

    def _line(self, what: str) -> tuple[LineCells, Array]:
        """Cells of the line and the density on their nodes."""
        if self.n_features != 1:
            raise ValueError(one_dimension(what, self.n_features))
        cells = LineCells(self.points[:, 0], self.sigma, self.lower[0], self.upper[0])
        values = self._form(cells.nodes.reshape(-1, 1), self._coefficients)
        return cells, values.reshape(cells.nodes.shape)

    def _by_rejection(self, n: int, rng: np.random.Generator) -> Array:
        flat = np.abs(self.mixture).reshape(-1)
        chances = np.cumsum(flat)
        magnitude = np.abs(self._coefficients)
        parts: list[Array] = []
        found = 0
        while found < n:
            count = int(1.2 * (n - found) / self.acceptance_rate) + 16
            count = min(count, max(1, _PANEL // self.points.shape[0]))
            pairs = np.searchsorted(chances, rng.uniform(0, chances[-1], count), side="right")
            i, j = np.divmod(np.minimum(pairs, flat.size - 1), self.points.shape[0])
            proposed = draw_between(
                0.5 * (self.points[i] + self.points[j]), self.sigma / 2, self.lower, self.upper, rng
            )
            bound = np.maximum(self._form(proposed, magnitude), _TINY)
            kept = proposed[rng.uniform(0, 1, count) * bound < self._form(proposed, self._coefficients)]
            parts.append(kept)
            found += kept.shape[0]
        return np.concatenate(parts)[:n]

    def _by_coordinates(self, n: int, rng: np.random.Generator) -> Array:
        """One coordinate after the other, given those before, the ones to come integrated out."""
        out = np.empty((n, self.n_features))
        for k in range(self.n_features):
            cells = LineCells(self.points[:, k], self.sigma, self.lower[k], self.upper[k])
            at_nodes = np.exp(-(((cells.nodes.reshape(-1, 1) - self.points[:, k]) / self.sigma) ** 2))
            sizes, vectors = positive_eigenpairs(self._coefficients * self._overlap(range(k + 1, out.shape[1])), _EPS)
            levels = rng.uniform(_TINY, 1, n)
            width = max(1, _PANEL // at_nodes.shape[0])
            for rows in (slice(lo, lo + width) for lo in range(0, n, width)):
                before = self._sections(range(k), out[rows, :k]) if k else np.ones((1, self.points.shape[0]))
                values = _squares(before, vectors * np.sqrt(sizes), at_nodes)
                out[rows, k] = cells.quantiles(values.reshape(-1, *cells.nodes.shape), levels[rows])
        return out


def _squares(weights: Array, factor: Array, sections: Array) -> Array:
    """Σ_c (Σᵢ wᵢ fᵢ_c kᵢ)² for all rows w of the weights (n, m) and k of the sections (t, m), n × t."""
    out = np.zeros((weights.shape[0], sections.shape[0]))
    for column in factor.T:
        out += ((weights * column) @ sections.T) ** 2
    return out
