"""What people ask of a density, answered in closed form where there is one."""

from __future__ import annotations

import copy
import hashlib
import pickle
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.backends.arrays import Array, as_double, namespace, to_numpy
from mercer.density.affine_squares import AffineSquares
from mercer.density.gaussian_squares import GaussianSquares
from mercer.density.law import Law
from mercer.density.point_masses import PointMasses
from mercer.density.signed_normals import SignedNormals
from mercer.density.tabulated import TabulatedDensity
from mercer.kernels import Gaussian, Kernel
from mercer.kernels.checks import as_generator
from mercer.kernels.integrals.gaussian_sections import GaussianSections
from mercer.kernels.integrals.measures import Box, DiscreteMeasure, GaussianMeasure, Measure
from mercer.validation import whole_number

_ALL_BUT = 1e-6
_WIDENINGS = 20


class DensityQueries:
    """Samples, moments, marginals, conditionals and the distribution function of a fitted sum of squares.

    For the Gaussian kernel all of them are closed forms and samples are exact, whether with Lebesgue's measure on R^d,
    on a box or with a normal law (:class:`mercer.density.GaussianSquares`), and for Gaussians with covariances of their
    own (:class:`mercer.density.SignedNormals`). With a reference that is a sum over nodes
    they are about the probabilities of these, for any kernel. For other kernels they come from a table in up to three
    dimensions, whose error is stated (:class:`mercer.density.TabulatedDensity`). All of it is made at the first
    question, kept for the next, and no part of a pickle.
    """

    support_: Array
    _factor: Array  # F up to a constant: B = c F Fᵀ
    kernel_: Kernel
    measure_: Measure
    sections_: GaussianSections | None = None
    _kept_law: tuple[bytes, Law] | None = None
    _unsaved: ClassVar[frozenset[str]] = frozenset({"_kept_law"})
    _sometimes: ClassVar[frozenset[str]] = frozenset({"sections_"})

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

    def marginal(self, coordinates: Any) -> Law:
        """The density of some coordinates, the others integrated out."""
        return self._law().marginal(coordinates)

    def conditional(self, coordinates: Any, values: Any) -> Law:
        """The density of the other coordinates, given the values of these."""
        return self._law().conditional(coordinates, values)

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_kept_law"}

    def _law(self) -> Law:
        """The closed form, or the table, of the numbers that the model has at the moment."""
        if hasattr(self, "fit"):
            check_is_fitted(self)
        print_of = self._fingerprint()
        if self._kept_law is None or print_of is None or self._kept_law[0] != print_of:
            sections = self.sections_
            if sections is None:
                form = closed_form(self.support_, self._factor, self.kernel_, self.measure_)
            else:
                form = SignedNormals.of_squares(sections, self._factor)
            # a table asks a copy, which a later fit does not change
            self._kept_law = print_of or b"", copy.copy(self)._tabulated() if form is None else form
        return self._kept_law[1]

    def _fingerprint(self) -> bytes | None:
        """Of all that the law is made of, since attributes may be set or changed in place; None where there is none."""
        made_of = to_numpy(self.support_), to_numpy(self._factor), self.kernel_, self.measure_, self.sections_
        try:
            return hashlib.blake2b(pickle.dumps(made_of)).digest()
        except (AttributeError, TypeError, pickle.PicklingError):  # a kernel that is no part of a module
            return None

    def _tabulated(self) -> TabulatedDensity:
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


def closed_form(support: Array, factor: Array, kernel: Kernel, measure: Measure) -> Law | None:
    """The density as a sum of squares of Gaussians with Lebesgue's measure on R^d or on a box, where it is one.

    A normal reference is shared out among both sections of a square: k(x, z)·√ρ(x) is a Gaussian too. In the axes of
    its covariance, with variances s², it has 1/σ̃² = 1/σ² + 1/(4s²), is around z̃ = σ̃²(z/σ² + μ/(4s²)), and is lower by
    the factor exp(-(z - μ)²/(σ² + 4s²)). A reference that is a sum over nodes leaves probabilities of these, for any
    kernel.
    """
    if isinstance(measure, DiscreteMeasure):
        squares = namespace(support).sum(as_double(kernel(measure.points, support) @ factor) ** 2, axis=1)
        return PointMasses(measure.points, measure.weights * squares)
    if not isinstance(kernel, Gaussian):
        return None
    sigma = float(kernel.sigma)
    if not isinstance(measure, GaussianMeasure):
        bounds = (measure.lower, measure.upper) if isinstance(measure, Box) else (None, None)
        return GaussianSquares(support, factor @ factor.T, sigma, *bounds)
    if measure.covariance is not None:
        return _in_axes(support, factor, sigma, measure)
    assert measure.std is not None
    a, b = 1 / sigma**2, 1 / (4 * measure.std**2)
    factor = _lowered(support - measure.mean, sigma**2 + 4 * measure.std**2)[:, None] * factor
    points = (a * support + b * measure.mean) / (a + b)
    return GaussianSquares(points, factor @ factor.T, (a + b) ** -0.5)


def _in_axes(support: Array, factor: Array, sigma: float, measure: GaussianMeasure) -> AffineSquares:
    """The same for a covariance: in its axes, and in units of σ̃ in each, all sections have the same width."""
    variances, axes = namespace(support).linalg.eigh(measure.covariance)
    apart = (support - measure.mean) @ axes
    factor = _lowered(apart, sigma**2 + 4 * variances)[:, None] * factor
    widths = (1 / sigma**2 + 1 / (4 * variances)) ** -0.5
    points = apart * widths / sigma**2
    return AffineSquares(GaussianSquares(points, factor @ factor.T, 1.0), axes * widths, measure.mean)


def _lowered(apart: Array, scales: Any) -> Array:
    """exp(-Σ (z - μ)²/scale) up to a factor."""
    xp = namespace(apart)
    logs = -xp.sum(apart**2 / scales, axis=1)
    return xp.exp(logs - logs.max())
