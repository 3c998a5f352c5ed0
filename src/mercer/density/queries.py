"""What people ask of a density, answered in closed form where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.density.gaussian_squares import GaussianSquares
from mercer.density.tabulated import TabulatedDensity
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.measures import Box, GaussianMeasure, Lebesgue, Measure
from mercer.linalg.random import as_generator
from mercer.validation import whole_number

Array = np.ndarray[Any, np.dtype[Any]]

_PROPOSALS = 4
_LEAST_INSIDE = 1e-4  # of the draws on R^d
_MOST_TRIED = 100_000
_ALL_BUT = 1e-6
_WIDENINGS = 20


class DensityQueries:
    """Samples, moments, marginals, conditionals and the distribution function of a fitted sum of squares.

    For the Gaussian kernel with Lebesgue's measure on R^d, or with a Gaussian reference measure, all of them are closed
    forms and samples are exact (:class:`mercer.density.GaussianSquares`). On a box, draws of the Gaussian kernel are
    exact too, by rejection; everything else comes from a table in up to three dimensions, whose error is stated.
    """

    support_: Array
    _factor: Array  # F up to a constant: B = c F Fᵀ
    kernel_: Kernel
    measure_: Measure

    def density(self, X: Any) -> Array:
        """The density; the estimator has it."""
        raise NotImplementedError

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw independent points from the density, n_samples × d.

        Draws are exact, but for rounding, for the Gaussian kernel; for other kernels their law is within
        ``sampling_error_`` of the density in total variation.
        """
        check_is_fitted(self)
        n, rng = whole_number(n_samples, "n_samples", 1), as_generator(random_state)
        form = self._closed_form()
        if form is not None:
            return form.sample(n, rng)
        if isinstance(self.kernel_, Gaussian) and isinstance(self.measure_, Box):
            whole = GaussianSquares(self.support_, self._factor @ self._factor.T, float(self.kernel_.sigma))
            return _draws_inside(whole, self.measure_, n, rng)
        return self._table().sample(n, rng)

    @property
    def sampling_error_(self) -> float:
        """The total-variation distance of the law of :meth:`sample` from the density: zero where draws are exact."""
        check_is_fitted(self)
        return 0.0 if isinstance(self.kernel_, Gaussian) else self._table().error

    def mean(self) -> Array:
        """The expectation of the density."""
        return self._moments().mean()

    def covariance(self) -> Array:
        """The covariance matrix of the density."""
        return self._moments().covariance()

    def cdf(self, x: Any) -> Array:
        """P(X ≤ x), for densities in one dimension."""
        return self._moments().cdf(np.asarray(x, np.float64).reshape(-1))

    def marginal(self, coordinates: Any) -> GaussianSquares:
        """The density of some coordinates, the others integrated out; closed form for the Gaussian kernel on R^d."""
        return self._closed("marginal").marginal(coordinates)

    def conditional(self, coordinates: Any, values: Any) -> GaussianSquares:
        """The density of the other coordinates, given these; closed form for the Gaussian kernel on R^d."""
        return self._closed("conditional").conditional(coordinates, values)

    def _closed_form(self) -> GaussianSquares | None:
        check_is_fitted(self)
        return closed_form(self.support_, self._factor, self.kernel_, self.measure_)

    def _moments(self) -> GaussianSquares | TabulatedDensity:
        form = self._closed_form()
        return self._table() if form is None else form

    def _closed(self, what: str) -> GaussianSquares:
        form = self._closed_form()
        if form is None:
            raise ValueError(
                f"A {what} has a closed form for the Gaussian kernel on R^d only, not for {self.kernel_!r} with "
                f"{type(self.measure_).__name__}: fit with a Gaussian kernel and without a box."
            )
        return form

    def _table(self) -> TabulatedDensity:
        if isinstance(self.measure_, Box):
            return TabulatedDensity(self.density, self.measure_.lower, self.measure_.upper)
        low, high = self.support_.min(axis=0), self.support_.max(axis=0)
        reach = np.maximum(high - low, np.ptp(self.support_) or 1.0)
        for _ in range(_WIDENINGS):
            table = TabulatedDensity(self.density, low - reach, high + reach)
            if table.mass >= 1 - _ALL_BUT:
                return table
            reach = 1.5 * reach
        return table


def closed_form(support: Array, factor: Array, kernel: Kernel, measure: Measure) -> GaussianSquares | None:
    """The density as a sum of squares of Gaussians on R^d with Lebesgue's measure, where it is one.

    A Gaussian reference N(μ, s²I) is shared out among both sections of a square: k(x, z)·√ρ(x) is a Gaussian too, with
    1/σ̃² = 1/σ² + 1/(4s²) around z̃ = σ̃²(z/σ² + μ/(4s²)), times exp(-‖z - μ‖²/(σ² + 4s²)).
    """
    if not isinstance(kernel, Gaussian):
        return None
    sigma = float(kernel.sigma)
    if isinstance(measure, Lebesgue):
        return GaussianSquares(support, factor @ factor.T, sigma)
    if not isinstance(measure, GaussianMeasure):
        return None
    a, b = 1 / sigma**2, 1 / (4 * measure.std**2)
    log_height = -np.sum((support - measure.mean) ** 2, axis=1) / (sigma**2 + 4 * measure.std**2)
    factor = np.exp(log_height - log_height.max())[:, None] * factor
    points = (a * support + b * measure.mean) / (a + b)
    return GaussianSquares(points, factor @ factor.T, (a + b) ** -0.5)


def _draws_inside(whole: GaussianSquares, box: Box, n: int, rng: np.random.Generator) -> Array:
    """Draws on R^d that fall into the box."""
    parts: list[Array] = []
    found = tried = 0
    while found < n:
        count = _PROPOSALS * n + 64
        drawn = whole.sample(count, rng)
        parts.append(drawn[np.all((drawn >= box.lower) & (drawn <= box.upper), axis=1)])
        found, tried = found + parts[-1].shape[0], tried + count
        if tried > _MOST_TRIED and found < _LEAST_INSIDE * tried:
            raise ValueError(f"Only {found} of {tried} draws fell into the box: the kernel is too wide for it.")
    return np.concatenate(parts)[:n]
