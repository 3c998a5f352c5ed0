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
from functools import cached_property
from typing import Any, final

import numpy as np

from mercer.backends.arrays import Array, like, namespace, to_numpy
from mercer.backends.chunks import PANEL_ENTRIES, THREAD_BYTES, panel_rows, row_chunks, rows_within
from mercer.backends.rounding import EPS, TINY
from mercer.backends.threads import run_chunks_of
from mercer.density.law import Law
from mercer.density.piecewise_cdf import LineCells
from mercer.density.truncated_normal import draw_between, mass_between, moments_between
from mercer.kernels import Gaussian
from mercer.kernels.checks import as_points
from mercer.linalg.eigen import positive_eigenpairs

_LEAST_ACCEPTED = 0.05  # below, coordinates drawn one after the other are quicker than wasted proposals


@final
class GaussianSquares(Law):
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
    points, lower, upper : arrays
        As given.
    mixture : array of shape (m, m)
        P: the weight of the Gaussian N((zᵢ + zⱼ)/2, σ²/4 I) inside the box; they sum to one, some may be negative.

    Notes
    -----
    Where the points are a tensor, so are all answers. The density itself is computed in their library; moments, tables
    of distribution functions and draws, of the size of the support and of the answer, are NumPy's and brought over.
    """

    sigma: float
    _kernel: Gaussian
    _mixture: Array
    _coefficients: Array
    _log_scale: float

    def __init__(self, points: Any, coefficients: Any, sigma: float, lower: Any = None, upper: Any = None) -> None:
        super().__init__(points, lower, upper)
        self.sigma = float(sigma)
        self._kernel = Gaussian(sigma=self.sigma)
        coefficients = np.asarray(to_numpy(coefficients), np.float64)
        mixture = coefficients * self._overlap(range(self.n_features))
        total = float(mixture.sum())
        if not total > 0:
            raise ValueError("The density has no mass: its coefficients are not positive semi-definite, or vanish.")
        self._mixture = mixture / total
        self._coefficients = coefficients / total
        # (πσ²/2)^{-d/2}, which turns k k into densities; in logarithms, for it leaves the floating-point range with d.
        self._log_scale = -0.5 * self.n_features * math.log(math.pi * self.sigma**2 / 2)

    @property
    def mixture(self) -> Any:
        """P."""
        return self._answer(self._mixture)

    @property
    def acceptance_rate(self) -> float:
        """1/Σ|Pᵢⱼ|, one where no weight is negative: the share of proposals from the mixture of all abs(P) that fit p.

        Rounding in p, its moments and its draws is about 2.2e-16 over this number.
        """
        return 1.0 / float(np.abs(self._mixture).sum())

    @property
    def sampling_error(self) -> float:
        """How far, in total variation, rounding may take the law of :meth:`sample` from the density."""
        return EPS / self.acceptance_rate

    def score_samples(self, X: Any) -> Any:
        """log p at some points; minus infinity where p underflows and outside the box."""
        X = self._rows(to_numpy(X) if self._home is None else like(X, self._home))
        xp, lower, upper = namespace(X), like(self._lower, X), like(self._upper, X)
        with np.errstate(divide="ignore"):
            logs = xp.log(self._form(X, self._coefficients)) + self._log_scale
        logs[~xp.all((lower <= X) & (upper >= X), axis=1)] = -np.inf
        return logs

    def _mean(self) -> Array:
        """Σ Pᵢⱼ (zᵢ + zⱼ)/2 on R^d."""
        return np.array([float(np.sum(self._mixture * self._component_moments(k)[0])) for k in range(self.n_features)])

    def _covariance(self) -> Array:
        """That of the components' means under P, and P's mean of their variances, σ²/4 I on R^d."""
        mean = self._mean()
        out = np.empty((self.n_features, self.n_features))
        for k in range(self.n_features):
            means, variances = self._component_moments(k)
            weighted = self._mixture * (means - mean[k])
            out[k, k] = np.sum(self._mixture * variances) + np.sum(weighted * (means - mean[k]))
            for l in range(k):
                out[k, l] = out[l, k] = np.sum(weighted * (self._component_moments(l)[0] - mean[l]))
        return out

    def _marginal(self, kept: Array, others: Array) -> GaussianSquares:
        return self._of(kept, self._coefficients * self._overlap(others))

    def _conditional(self, given: Array, at: Array, others: Array) -> GaussianSquares:
        section = self._sections(given, at[None])[0]
        return self._of(others, self._coefficients * np.outer(section, section))

    def _cdf(self, x: Array) -> Array:
        cells, values = self._line
        return np.clip(cells.cdf(values, x) / float(np.sum(cells.masses(values))), 0.0, 1.0)

    def _quantile(self, levels: Array) -> Array:
        cells, values = self._line
        return cells.quantiles(values[None], levels)

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        """Propose from the mixture with weights ``abs(P)``, accept with the probability by which p lies below it.

        Where cancellation leaves fewer than a twentieth of them, coordinates are drawn one after the other by inverting
        their conditional distribution functions. Both are exact but for rounding.
        """
        draw = self._by_rejection if self.acceptance_rate >= _LEAST_ACCEPTED else self._by_coordinates
        return draw(n, rng)

    def _of(self, coordinates: Array, coefficients: Array) -> GaussianSquares:
        """A density of some of the coordinates."""
        bounds = self._lower[coordinates], self._upper[coordinates]
        return GaussianSquares(self._answer(self._points[:, coordinates]), coefficients, self.sigma, *bounds)

    def _overlap(self, coordinates: Any) -> Array:
        """exp(-‖zᵢ - zⱼ‖²/(2σ²)) in some coordinates, times the mass of the Gaussian inside the box there."""
        chosen = np.asarray(coordinates, np.intp)
        if chosen.size == 0:
            return np.ones((self._points.shape[0],) * 2)
        out = np.asarray(Gaussian(sigma=math.sqrt(2) * self.sigma)(self._points[:, chosen]), np.float64)
        for k in chosen:
            if self._bounded(k):
                out *= mass_between(self._midpoints(k), self.sigma / 2, self._lower[k], self._upper[k])
        return out

    def _bounded(self, k: int) -> bool:
        return bool(np.isfinite(self._lower[k]) or np.isfinite(self._upper[k]))

    def _midpoints(self, k: int) -> Array:
        return np.asarray(0.5 * (self._points[:, k, None] + self._points[:, k]))

    def _component_moments(self, k: int) -> tuple[Array, Array | float]:
        """Mean and variance of coordinate k under each Gaussian of the mixture."""
        if not self._bounded(k):
            return self._midpoints(k), self.sigma**2 / 4
        return moments_between(self._midpoints(k), self.sigma / 2, self._lower[k], self._upper[k])

    def _form(self, X: Any, matrix: Any) -> Any:
        """k_xᵀ M k_x, never negative."""
        X = as_points(X)
        xp, matrix, points = namespace(X), like(matrix, X), like(self._points, X)
        kernel, out = self._kernel.matrix(X, points), xp.empty(X.shape[0], dtype=xp.float64, device=X.device)

        def fill(rows: slice) -> None:
            block = kernel.block(rows, slice(None))
            out[rows] = xp.einsum("ij,ij->i", block @ matrix, block)

        run_chunks_of(X, fill, row_chunks(X.shape[0], panel_rows(points.shape[0], most=THREAD_BYTES)))
        return xp.clip(out, 0.0, None)

    def _sections(self, coordinates: Any, values: Array) -> Array:
        """k(x, zᵢ) in some coordinates for values (n, c) of them; far away all underflow, their ratios do not."""
        logs = np.zeros((values.shape[0], self._points.shape[0]))
        for place, k in enumerate(coordinates):
            logs -= ((values[:, place, None] - self._points[:, k]) / self.sigma) ** 2
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))

    @cached_property
    def _line(self) -> tuple[LineCells, Array]:
        """Cells of the line and the density on their nodes, in one dimension."""
        cells = LineCells(self._points[:, 0], self.sigma, self._lower[0], self._upper[0])
        values = self._form(cells.nodes.reshape(-1, 1), self._coefficients)
        return cells, values.reshape(cells.nodes.shape)

    def _by_rejection(self, n: int, rng: np.random.Generator) -> Array:
        flat = np.abs(self._mixture).reshape(-1)
        chances = np.cumsum(flat)
        magnitude = np.abs(self._coefficients)
        parts: list[Array] = []
        found = 0
        while found < n:
            count = int(1.2 * (n - found) / self.acceptance_rate) + 16
            count = min(count, rows_within(PANEL_ENTRIES, self._points.shape[0]))
            pairs = np.searchsorted(chances, rng.uniform(0, chances[-1], count), side="right")
            i, j = np.divmod(np.minimum(pairs, flat.size - 1), self._points.shape[0])
            proposed = draw_between(
                0.5 * (self._points[i] + self._points[j]), self.sigma / 2, self._lower, self._upper, rng
            )
            bound = np.maximum(self._form(proposed, magnitude), TINY)
            kept = proposed[rng.uniform(0, 1, count) * bound < self._form(proposed, self._coefficients)]
            parts.append(kept)
            found += kept.shape[0]
        return np.concatenate(parts)[:n]

    def _by_coordinates(self, n: int, rng: np.random.Generator) -> Array:
        """One coordinate after the other, given those before, the ones to come integrated out."""
        out = np.empty((n, self.n_features))
        for k in range(self.n_features):
            cells = LineCells(self._points[:, k], self.sigma, self._lower[k], self._upper[k])
            at_nodes = np.exp(-(((cells.nodes.reshape(-1, 1) - self._points[:, k]) / self.sigma) ** 2))
            sizes, vectors = positive_eigenpairs(self._coefficients * self._overlap(range(k + 1, out.shape[1])), EPS)
            levels = rng.uniform(TINY, 1, n)
            for rows in row_chunks(n, rows_within(PANEL_ENTRIES, at_nodes.shape[0])):
                before = self._sections(range(k), out[rows, :k]) if k else np.ones((1, self._points.shape[0]))
                values = _squares(before, vectors * np.sqrt(sizes), at_nodes)
                out[rows, k] = cells.quantiles(values.reshape(-1, *cells.nodes.shape), levels[rows])
        return out


def _squares(weights: Array, factor: Array, sections: Array) -> Array:
    """Σ_c (Σᵢ wᵢ fᵢ_c kᵢ)² for all rows w of the weights (n, m) and k of the sections (t, m), n × t."""
    out = np.zeros((weights.shape[0], sections.shape[0]))
    for column in factor.T:
        out += ((weights * column) @ sections.T) ** 2
    return out
