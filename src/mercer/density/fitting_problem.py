"""The programme of a density, from its kernel, its support and the data: the same for fitting and for certifying."""

from __future__ import annotations

import numpy as np

from mercer.backends.arrays import Array, as_double, namespace
from mercer.backends.chunks import KEPT_BYTES
from mercer.backends.config import require_free_memory
from mercer.density.comparison import compared
from mercer.density.likelihood_problem import make_likelihood
from mercer.density.section_choice import default_penalty
from mercer.density.setting import Setting
from mercer.kernels import Kernel, Laplacian
from mercer.kernels.integrals import KernelIntegrals, kernel_integrals
from mercer.kernels.integrals.gaussian_sections import GaussianSections
from mercer.kernels.integrals.sections import KernelSections
from mercer.operators import GramOperator
from mercer.problems import SquaresLikelihood, SumOfSquares
from mercer.problems.sum_of_squares import Spans, spanned
from mercer.problems.sum_of_squares_enclosures import Sample
from mercer.solvers.spectrahedron.interior_point import LARGEST_SYSTEM
from mercer.validation import distinct_rows, normalised

_LARGEST_LOG = 700.0
_HEAVIEST = 1e100
_MATRICES = 60  # of order m in double precision, at the same time
_ALWAYS = 16_000_000  # bytes of panels that do not depend on m
_A_ROW = 600  # bytes a point of the sample: weights, shares and partial row sums
_ROWS, _SYSTEMS = 4, 3  # of a likelihood: n × m arrays, and matrices of its equations
_SPANS = 3  # matrices of the order of the projection
_GRID_FEATURES, _MOST_ROWS = 3, 50_000


def make_programme(
    setting: Setting,
    sample: Sample,
    *,
    regularization: float | None,
    truncation: float,
    objective: str = "projection",
    spans: Spans | None = None,
    probes: Array | None = None,
) -> SumOfSquares:
    """The fit of a density to Σ a_i δ(x_i), the weights a over their sum; equal ones where they are None.

    λ = None means Σ a_i² (over distinct points: 1/n), the size of the sampling error of an MMD², times the volume
    exp(log_scale) of a squared kernel section, (πσ²/2)^{d/2} on R^d, so that the fit does not depend on the units of X.
    ``objective`` is what :class:`mercer.SumOfSquaresDensity` documents; ``spans`` and ``probes`` are those of a
    programme before with the same setting.

    Raises
    ------
    ValueError
        If the volume (πσ²/2)^{d/2} of a squared kernel section, or its like, is no number in double precision, or if λ
        is beyond all measure.
    """
    kernel, support, _ = setting
    shares = normalised(sample.weights, sample.points.shape[0], reference=sample.points)
    integrals, regularization = _scaled(setting, sample, regularization)
    gram = as_double(kernel(support))
    spans = spanned(integrals, gram, truncation) if spans is None else spans
    comparison = compared(integrals, sample, spans.basis, probes) if objective == "mmd" else None
    return SumOfSquares(
        integrals,
        gram,
        as_double(GramOperator(kernel, support, sample.points) @ shares),
        regularization=regularization,
        truncation=truncation,
        sample=sample,
        spans=spans,
        comparison=comparison,
    )


def kernel_likelihood(
    setting: Setting,
    sample: Sample,
    *,
    regularization: float | None,
    truncation: float,
    spans: Spans | None = None,
) -> SquaresLikelihood:
    """The same for the likelihood of the sample, whose penalty has the default of a distance too."""
    integrals, regularization = _scaled(setting, sample, regularization)
    sections = KernelSections(integrals, as_double(setting.kernel(setting.support)))
    basis = None if spans is None else spans.basis
    return make_likelihood(sections, sample, regularization=regularization, truncation=truncation, basis=basis)


def sections_likelihood(
    sections: GaussianSections,
    sample: Sample,
    *,
    regularization: float | None,
    truncation: float,
    spans: Spans | None = None,
) -> SquaresLikelihood:
    """The same for sections with covariances of their own, whose squares have mass one.

    λ is ten over n by default, and sixty where they have one shape.
    """
    if regularization is None:
        shares = normalised(sample.weights, sample.points.shape[0], reference=sample.points)
        regularization = default_penalty(sections) * concentration(sample.points, shares)
    if regularization > _HEAVIEST:
        raise ValueError(f"regularization={regularization:g} is so large that nothing of the data is left: lower it.")
    basis = None if spans is None else spans.basis
    return make_likelihood(sections, sample, regularization=regularization, truncation=truncation, basis=basis)


def unit_log_scale(problem: SumOfSquares | SquaresLikelihood) -> float:
    """The logarithm of what B is divided by to be that of the user's sections."""
    if isinstance(problem, SquaresLikelihood):
        return problem.integrals.unit_log_scale
    return problem.integrals.log_scale


def _scaled(setting: Setting, sample: Sample, regularization: float | None) -> tuple[KernelIntegrals, float]:
    """The integrals and λ, refused where they leave the range of double precision."""
    kernel, support, _ = setting
    shares = normalised(sample.weights, sample.points.shape[0], reference=sample.points)
    integrals = kernel_integrals(*setting)
    if not abs(integrals.log_scale) < _LARGEST_LOG:
        raise ValueError(
            f"The squared kernel has the volume exp({integrals.log_scale:.0f}) under {kernel!r} in {support.shape[1]} "
            "dimensions, beyond double precision: bring the features to a scale near one, or reduce the dimension."
        )
    if regularization is not None and regularization * float(np.exp(-integrals.log_scale)) > _HEAVIEST:
        raise ValueError(f"regularization={regularization:g} is so large that nothing of the data is left: lower it.")
    if regularization is None:
        regularization = concentration(sample.points, shares) * float(np.exp(integrals.log_scale))
    return integrals, regularization


def concentration(X: Array, shares: Array) -> float:
    """Σ a² over distinct points: 1/n for n equal weights."""
    xp = namespace(X)
    present = xp.nonzero(shares != 0)[0]
    masses = xp.bincount(distinct_rows(X[present])[1], weights=shares[present])
    return float(masses @ masses)


def require_memory(kernel: Kernel | None, support: Array, X: Array, objective: str = "projection") -> None:
    """Refuse a support of m points whose matrices exceed the memory limit of the configuration, before the work starts.

    Where the MMD of the density to n points with d features may have to be projected, on up to 1 500 points and the
    support, the matrices of that order count: beyond three features, and for kernels whose integrals are closed in no
    product of pairs. The whole MMD² factors a matrix of m(m+1)/2 rows, a likelihood keeps n sections.

    Raises
    ------
    ValueError
        With what they would take.
    """
    m, (n, d) = support.shape[0], X.shape
    on_grid = not isinstance(kernel, Laplacian) and d <= _GRID_FEATURES and n <= _MOST_ROWS
    projected = 0 if on_grid else min(n, 1000) + 500 + m
    factored = min(2 * m**4, KEPT_BYTES) if objective == "mmd" else 0
    if objective == "likelihood":
        projected, factored = 0, 8 * (_ROWS * n * m + _SYSTEMS * LARGEST_SYSTEM**2)
    needed = _ALWAYS + n * _A_ROW + 8 * max(_MATRICES * m**2, _SPANS * projected**2) + factored
    require_free_memory(needed, f"A density on {m} support points takes about", "take a smaller support")
