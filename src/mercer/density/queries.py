"""What people ask of a density, answered in closed form where there is one."""

from __future__ import annotations

import copy
import hashlib
import pickle
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.backends.arrays import Array, namespace, to_numpy
from mercer.density.gaussian_squares import GaussianSquares
from mercer.density.tabulated import TabulatedDensity
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.checks import as_generator
from mercer.kernels.integrals.measures import Box, GaussianMeasure, Measure
from mercer.validation import whole_number

_ALL_BUT = 1e-6
_WIDENINGS = 20


class DensityQueries:
    """Samples, moments, marginals, conditionals and the distribution function of a fitted sum of squares.

    For the Gaussian kernel all of them are closed forms and samples are exact, whether with Lebesgue's measure on R^d,
    on a box or with a Gaussian reference measure (:class:`mercer.density.GaussianSquares`). For other kernels they come
    from a table in up to three dimensions, whose error is stated (:class:`mercer.density.TabulatedDensity`). Either is
    made at the first question, kept for the next, and no part of a pickle.
    """

    support_: Array
    _factor: Array  # F up to a constant: B = c F Fᵀ
    kernel_: Kernel
    measure_: Measure
    _kept_law: tuple[bytes, GaussianSquares | TabulatedDensity] | None = None

    def density(self, X: Any) -> Array:
        """The density; the estimator has it."""
        raise NotImplementedError

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw independent points from the density, n_samples × d.

        Their law is within ``sampling_error_`` of the density in total variation: rounding for the Gaussian kernel, the
        cells of a table for others.
        """
        n, rng = whole_number(n_samples, "n_samples", 1), as_generator(random_state)
        return self._law().sample(n, rng)

    @property
    def sampling_error_(self) -> float:
        """An estimate of how far the law of :meth:`sample` is from the density, in total variation."""
        return self._law().sampling_error

    def mean(self) -> Array:
        """The expectation of the density."""
        return self._law().mean()

    def covariance(self) -> Array:
        """The covariance matrix of the density."""
        return self._law().covariance()

    def cdf(self, x: Any) -> Array:
        """P(X ≤ x), for densities in one dimension."""
        return self._law().cdf(x)

    def quantile(self, levels: Any) -> Array:
        """The inverse of :meth:`cdf`, for levels strictly between 0 and 1."""
        return self._law().quantile(levels)

    def marginal(self, coordinates: Any) -> GaussianSquares | TabulatedDensity:
        """The density of some coordinates, the others integrated out."""
        return self._law().marginal(coordinates)

    def conditional(self, coordinates: Any, values: Any) -> GaussianSquares | TabulatedDensity:
        """The density of the other coordinates, given the values of these."""
        return self._law().conditional(coordinates, values)

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_kept_law"}

    def _law(self) -> GaussianSquares | TabulatedDensity:
        """The closed form, or the table, of the numbers that the model has at the moment."""
        if hasattr(self, "fit"):
            check_is_fitted(self)
        print_of = self._fingerprint()
        if self._kept_law is None or print_of is None or self._kept_law[0] != print_of:
            form = closed_form(self.support_, self._factor, self.kernel_, self.measure_)
            # a table asks a copy, which a later fit does not change
            self._kept_law = print_of or b"", copy.copy(self)._table() if form is None else form
        return self._kept_law[1]

    def _fingerprint(self) -> bytes | None:
        """Of all that the law is made of, since attributes may be set or changed in place; None where there is none."""
        made_of = to_numpy(self.support_), to_numpy(self._factor), self.kernel_, self.measure_
        try:
            return hashlib.blake2b(pickle.dumps(made_of)).digest()
        except (AttributeError, TypeError, pickle.PicklingError):  # a kernel that is no part of a module
            return None

    def _table(self) -> TabulatedDensity:
        if isinstance(self.measure_, Box):
            return TabulatedDensity(self.density, self.measure_.lower, self.measure_.upper, self.support_)
        support = to_numpy(self.support_)
        low, high = support.min(axis=0), support.max(axis=0)
        reach = np.maximum(high - low, np.ptp(support) or 1.0)
        for _ in range(_WIDENINGS):
            table = TabulatedDensity(self.density, low - reach, high + reach, self.support_)
            if table.mass >= 1 - _ALL_BUT:
                return table
            reach = 1.5 * reach
        return table


def closed_form(support: Array, factor: Array, kernel: Kernel, measure: Measure) -> GaussianSquares | None:
    """The density as a sum of squares of Gaussians with Lebesgue's measure on R^d or on a box, where it is one.

    A Gaussian reference N(μ, s²I) is shared out among both sections of a square: k(x, z)·√ρ(x) is a Gaussian too, with
    1/σ̃² = 1/σ² + 1/(4s²) around z̃ = σ̃²(z/σ² + μ/(4s²)), times exp(-‖z - μ‖²/(σ² + 4s²)).
    """
    if not isinstance(kernel, Gaussian):
        return None
    sigma = float(kernel.sigma)
    if not isinstance(measure, GaussianMeasure):
        bounds = (measure.lower, measure.upper) if isinstance(measure, Box) else (None, None)
        return GaussianSquares(support, factor @ factor.T, sigma, *bounds)
    a, b = 1 / sigma**2, 1 / (4 * measure.std**2)
    xp = namespace(support)
    log_height = -xp.sum((support - measure.mean) ** 2, axis=1) / (sigma**2 + 4 * measure.std**2)
    factor = xp.exp(log_height - log_height.max())[:, None] * factor
    points = (a * support + b * measure.mean) / (a + b)
    return GaussianSquares(points, factor @ factor.T, (a + b) ** -0.5)
