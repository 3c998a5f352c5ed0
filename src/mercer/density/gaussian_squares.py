"""Densities k_xᵀ B k_x of the Gaussian kernel on R^d: moments, marginals, conditionals, distribution, samples.

The product of two kernel sections is a Gaussian between its points,

    k(x, zᵢ) k(x, zⱼ) = Wᵢⱼ N(x; (zᵢ + zⱼ)/2, σ²/4 I),   Wᵢⱼ = (πσ²/2)^{d/2} exp(-‖zᵢ - zⱼ‖²/(2σ²))

so the density is a mixture of Gaussians whose weights Pᵢⱼ = BᵢⱼWᵢⱼ sum to one but may be negative. Integrating some
coordinates out, or fixing them, multiplies B entry by entry with a positive semi-definite matrix: what results is again
such a density, of the coordinates left (the product is positive semi-definite by Schur's theorem).
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from scipy.special import ndtr

from mercer.kernels import Gaussian
from mercer.validation import whole_number

Array = np.ndarray[Any, np.dtype[Any]]

_PANEL = 2**22  # entries at a time
_LEAST_ACCEPTED = 1e-3  # below, proposals are wasted: coordinates are drawn one after the other instead
_HALVINGS = 60
_TINY = np.finfo(float).tiny


@final
class GaussianSquares:
    """The probability density p(x) = k_xᵀ B k_x for k(x, z) = exp(-‖x - z‖²/σ²).

    Parameters
    ----------
    points : array of shape (m, d)
        Z.
    coefficients : array of shape (m, m)
        B, symmetric positive semi-definite; it is scaled so that p integrates to one.
    sigma : float
        σ.

    Attributes
    ----------
    mixture : array of shape (m, m)
        P = B ∘ W: the weight of the Gaussian N((zᵢ + zⱼ)/2, σ²/4 I); they sum to one, some may be negative.
    """

    def __init__(self, points: Array, coefficients: Array, sigma: float) -> None:
        self.points = np.asarray(points, np.float64)
        self.sigma = float(sigma)
        self._kernel = Gaussian(sigma=self.sigma)
        mixture = np.asarray(coefficients, np.float64) * self._overlap(self.points)
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

    def _overlap(self, points: Array) -> Array:
        """exp(-‖zᵢ - zⱼ‖²/(2σ²)): W without its constant."""
        return np.asarray(Gaussian(sigma=math.sqrt(2) * self.sigma)(points), np.float64)

    def score_samples(self, X: Any) -> Array:
        """log p at some points; minus infinity where p underflows."""
        with np.errstate(divide="ignore"):
            return np.log(self._form(self._checked(X), self._coefficients)) + self._log_scale

    def density(self, X: Any) -> Array:
        """p at some points."""
        return np.exp(self.score_samples(X))

    def _form(self, X: Array, matrix: Array) -> Array:
        """k_xᵀ M k_x, never negative."""
        out = np.empty(X.shape[0])
        width = max(1, _PANEL // self.points.shape[0])
        for lo in range(0, X.shape[0], width):
            block = np.asarray(self._kernel(X[lo : lo + width], self.points), np.float64)
            out[lo : lo + width] = np.einsum("ij,ij->i", block @ matrix, block)
        return np.maximum(out, 0.0)

    def mean(self) -> Array:
        """The expectation: Σ Pᵢⱼ (zᵢ + zⱼ)/2."""
        return np.asarray(self.mixture.sum(axis=1) @ self.points)

    def covariance(self) -> Array:
        """The covariance: that of the midpoints under P, and σ²/4 I."""
        centred = self.points - self.mean()
        among = 0.5 * (centred.T @ (self.mixture.sum(axis=1)[:, None] * centred) + centred.T @ self.mixture @ centred)
        return np.asarray(among + 0.25 * self.sigma**2 * np.eye(self.n_features))

    def marginal(self, coordinates: Any) -> GaussianSquares:
        """The density of some coordinates, the others integrated out."""
        kept = self._chosen(coordinates)
        others = np.setdiff1d(np.arange(self.n_features), kept)
        factor = self._overlap(self.points[:, others]) if others.size else 1.0
        return GaussianSquares(self.points[:, kept], self._coefficients * factor, self.sigma)

    def conditional(self, coordinates: Any, values: Any) -> GaussianSquares:
        """The density of the other coordinates, given the values of these."""
        given = self._chosen(coordinates)
        at = np.asarray(values, np.float64).reshape(1, -1)
        if at.shape[1] != given.size or not np.all(np.isfinite(at)):
            raise ValueError(f"values must be {given.size} finite numbers, one for each coordinate given.")
        others = np.setdiff1d(np.arange(self.n_features), given)
        if others.size == 0:
            raise ValueError("Every coordinate is given: there is nothing left to have a density.")
        log_section = -np.sum((self.points[:, given] - at) ** 2, axis=1) / self.sigma**2
        section = np.exp(log_section - log_section.max())  # far away all sections underflow, their ratios do not
        coefficients = self._coefficients * np.outer(section, section)
        return GaussianSquares(self.points[:, others], coefficients, self.sigma)

    def cdf(self, x: Any) -> Array:
        """P(X ≤ x) in one dimension."""
        if self.n_features != 1:
            raise ValueError(f"cdf is for one dimension, not {self.n_features}: take a marginal first.")
        return self._distribution(np.asarray(x, np.float64).reshape(-1))

    def _distribution(self, x: Array) -> Array:
        """Σ Pᵢⱼ Φ(2(x - mᵢⱼ)/σ), over the upper triangle."""
        i, j = np.triu_indices(self.points.shape[0])
        weights = self.mixture[i, j] * np.where(i == j, 1.0, 2.0)
        middle = 0.5 * (self.points[i, 0] + self.points[j, 0])
        out = np.empty(x.size)
        width = max(1, _PANEL // weights.size)
        for lo in range(0, x.size, width):
            out[lo : lo + width] = ndtr(2 * (x[lo : lo + width, None] - middle) / self.sigma) @ weights
        return np.clip(out, 0.0, 1.0)

    def quantile(self, levels: Any) -> Array:
        """The inverse of the distribution function in one dimension, by halving."""
        levels = np.asarray(levels, np.float64).reshape(-1)
        if np.any(~((levels > 0) & (levels < 1))):
            raise ValueError("levels must lie strictly between 0 and 1.")
        # every component has its mass within ten of its deviations, σ/2, of a midpoint
        low = np.full(levels.size, self.points.min() - 10 * self.sigma)
        high = np.full(levels.size, self.points.max() + 10 * self.sigma)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < levels
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Independent draws, exact but for rounding, n × d.

        Points are proposed from the mixture with weights ``abs(P)`` and accepted with the probability by which p lies
        below it: the rate is one over the sum of ``abs(P)``. Where cancellation makes that too small, coordinates are
        drawn one after the other by inverting their conditional distribution functions.
        """
        n = whole_number(n, "n", 1)
        if self.acceptance_rate >= _LEAST_ACCEPTED:
            return self._by_rejection(n, rng)
        return np.concatenate([self._by_coordinates(rng) for _ in range(n)])

    @property
    def acceptance_rate(self) -> float:
        """The share of proposals that :meth:`sample` accepts: one where no weight is negative."""
        return 1.0 / float(np.abs(self.mixture).sum())

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
            proposed = 0.5 * (self.points[i] + self.points[j])
            proposed = proposed + 0.5 * self.sigma * rng.standard_normal(proposed.shape)
            bound = np.maximum(self._form(proposed, magnitude), _TINY)
            kept = proposed[rng.uniform(0, 1, count) * bound < self._form(proposed, self._coefficients)]
            parts.append(kept)
            found += kept.shape[0]
        return np.concatenate(parts)[:n]

    def _by_coordinates(self, rng: np.random.Generator) -> Array:
        """One draw, coordinate by coordinate."""
        rest, drawn = self, []
        for left in range(self.n_features, 0, -1):
            drawn.append(float(rest.marginal([0]).quantile(rng.uniform(_TINY, 1))[0]))
            if left > 1:
                rest = rest.conditional([0], [drawn[-1]])
        return np.array([drawn])

    def _chosen(self, coordinates: Any) -> Array:
        chosen = np.atleast_1d(np.asarray(coordinates))
        if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
            raise ValueError("coordinates must be a list of whole numbers.")
        if chosen.min() < 0 or chosen.max() >= self.n_features or np.unique(chosen).size != chosen.size:
            raise ValueError(f"coordinates must be different numbers from 0 to {self.n_features - 1}.")
        return chosen.astype(np.intp)

    def _checked(self, X: Any) -> Array:
        X = np.asarray(X, np.float64)
        if X.ndim == 1 and self.n_features == 1:
            X = X[:, None]
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X must have {self.n_features} columns, not shape {X.shape}.")
        return X
